"""Reading arguments that travelled, and answers of runners that do as they like."""

import json
from collections.abc import Callable
from datetime import timedelta
from enum import Enum, StrEnum
from types import SimpleNamespace

import pytest

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments, arguments, enqueue_with, publish, stale_after_seconds
from tests.support.builders import RUN_ID


class Word(StrEnum):
    PUBLISH = "publish"
    STALE_AFTER_SECONDS = "stale_after_seconds"


class Number(Enum):
    PUBLISH = 1
    STALE_AFTER_SECONDS = 2


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(arguments(publish=True, stale_after=timedelta(minutes=2)), id="as made"),
        pytest.param(json.loads(json.dumps(arguments(publish=True, stale_after=timedelta(minutes=2)))), id="JSON"),
        pytest.param({Word.PUBLISH: True, Word.STALE_AFTER_SECONDS: 120}, id="words of an enum"),
        pytest.param({Number.PUBLISH: True, Number.STALE_AFTER_SECONDS: 120}, id="names of an enum"),
        pytest.param(SimpleNamespace(publish=True, stale_after_seconds=120), id="attributes"),
    ],
)
def test_arguments_are_read_in_whatever_form_they_arrive(args: object) -> None:
    assert (publish(args), stale_after_seconds(args)) == (True, 120)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"publish": "true", "stale_after_seconds": "120"},
        {"publish": 1, "stale_after_seconds": 120.0},
        {"publish": None, "stale_after_seconds": True},
        {"publish": [True], "stale_after_seconds": 0},
        {"publish": "", "stale_after_seconds": -5},
        None,
        SimpleNamespace(),
        7,
    ],
)
def test_arguments_of_a_wrong_type_are_as_if_they_were_not_there(args: object) -> None:
    assert (publish(args), stale_after_seconds(args)) == (False, None)


class Acting:
    """A runner that does what it is told, typed loosely as a host's may be."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def name(self) -> str:
        return "acting"

    def available(self) -> bool:
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the contract
        return self._act()  # type: ignore[return-value]  # on purpose


def raising(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        pytest.param(lambda: Accepted("uid"), Accepted("uid"), id="accepted"),
        pytest.param(lambda: NotEnqueued("Full", "no", 3.0), NotEnqueued("Full", "no", 3.0), id="refused"),
        pytest.param(lambda: OutcomeUnknown("Lost", "?"), OutcomeUnknown("Lost", "?"), id="unknown"),
        pytest.param(lambda: ValueError("full"), NotEnqueued("RunnerRefused", "full"), id="returned error"),
        pytest.param(ValueError, NotEnqueued("RunnerRefused", "ValueError"), id="returned bare error"),
        pytest.param(lambda: "full", NotEnqueued("RunnerRefused", "full"), id="returned string"),
        pytest.param(raising(ValueError("x")), OutcomeUnknown("RunnerRaised", "ValueError: x"), id="raised"),
        pytest.param(lambda: None, OutcomeUnknown("RunnerAnswerInvalid", "the runner answered None"), id="nothing"),
        pytest.param(lambda: True, OutcomeUnknown("RunnerAnswerInvalid", "the runner answered True"), id="a boolean"),
        pytest.param(lambda: Accepted, OutcomeUnknown, id="a class"),
        pytest.param(KeyboardInterrupt, OutcomeUnknown, id="a returned interrupt is no error"),
    ],
)
def test_whatever_a_runner_does_is_one_of_three_answers(act: Callable[[], object], expected: object) -> None:
    answer = enqueue_with(Acting(act), RUN_ID, {})

    assert answer == expected or type(answer) is expected


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_the_end_of_the_process_is_not_taken_for_an_answer(error: BaseException) -> None:
    with pytest.raises(type(error)):
        enqueue_with(Acting(raising(error)), RUN_ID, {})
