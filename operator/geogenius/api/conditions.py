"""How conditions change: the rule that Kubernetes has for all of them, and nothing about imports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from geogenius.api.names import ConditionStatus, ConditionType
from geogenius.api.v1alpha1 import Condition


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about one aspect right now."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str


def merged(
    previous: Iterable[Mapping[str, object]], verdicts: Sequence[Verdict], generation: int, now: datetime
) -> list[Condition]:
    """The verdicts as conditions, in the order given.

    `lastTransitionTime` is the previous one where the status did not change, and `now` otherwise; reason and message
    may change without being a transition. What cannot be read of the previous conditions counts as never said.
    """
    since = dict(_transition(condition) for condition in previous)
    return [
        Condition(
            type=verdict.type,
            status=verdict.status,
            observed_generation=generation,
            last_transition_time=since.get((verdict.type, verdict.status)) or now,
            reason=verdict.reason,
            message=verdict.message,
        )
        for verdict in verdicts
    ]


def _transition(condition: Mapping[str, object]) -> tuple[tuple[object, object], datetime | None]:
    return (str(condition.get("type")), str(condition.get("status"))), moment_of(condition.get("lastTransitionTime"))


def moment_of(text: object) -> datetime | None:
    """The moment that a status spells, or None where it spells none."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
