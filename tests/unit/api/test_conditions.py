"""The rule of Kubernetes for conditions."""

from datetime import UTC, datetime, timedelta

import pytest

from geogenius.api.conditions import Verdict, merged
from geogenius.api.names import ConditionStatus, ConditionType

NOON = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)

LAUNCHED = Verdict(ConditionType.LAUNCHED, ConditionStatus.TRUE, "Launched", "the Job was created")


def before(**changes: object) -> dict[str, object]:
    return {
        "type": "Launched",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2030-06-01T12:00:00Z",
        "reason": "Launching",
        "message": "",
    } | changes


def test_the_time_stays_while_the_status_stays_whatever_is_said() -> None:
    (condition,) = merged([before()], [LAUNCHED], 2, LATER)

    assert condition.last_transition_time == NOON
    assert (condition.reason, condition.message) == ("Launched", "the Job was created")
    assert condition.observed_generation == 2


def test_the_time_moves_with_the_status() -> None:
    (condition,) = merged([before(status="Unknown")], [LAUNCHED], 1, LATER)

    assert condition.last_transition_time == LATER


@pytest.mark.parametrize(
    "previous",
    [
        pytest.param([], id="nothing"),
        pytest.param([{}], id="an empty condition"),
        pytest.param([before(lastTransitionTime="yesterday")], id="no time"),
        pytest.param([before(lastTransitionTime=None)], id="null"),
        pytest.param([before(lastTransitionTime="2030-06-01T12:00:00")], id="a time without a zone"),
        pytest.param([before(type="Other")], id="another type"),
        pytest.param([before(type=["Launched"])], id="a type that is none"),
    ],
)
def test_what_cannot_be_read_counts_as_never_said(previous: list[dict[str, object]]) -> None:
    (condition,) = merged(previous, [LAUNCHED], 1, LATER)

    assert condition.last_transition_time == LATER


def test_merging_again_changes_nothing() -> None:
    first = merged([], [LAUNCHED], 1, NOON)
    again = merged([condition.model_dump(mode="json", by_alias=True) for condition in first], [LAUNCHED], 1, LATER)

    assert again == first
