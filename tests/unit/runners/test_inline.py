import pytest

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.run import RunError
from geogenius.runners.inline import InlineRunner
from tests.support.builders import RUN_ID


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        pytest.param(Done(RUN_ID), Accepted(), id="done"),
        pytest.param(NoOp(RUN_ID, Claim.OCCUPIED), Accepted(), id="somebody else executes it"),
        pytest.param(Failed(RUN_ID, RunError("staging", "DataRefused", "no code")), Accepted(), id="failed, recorded"),
        pytest.param(Unrecorded(RUN_ID, started=False, message="no"), NotEnqueued("NotStarted", "no"), id="refused"),
        pytest.param(
            Unrecorded(RUN_ID, started=True, message="gone"), OutcomeUnknown("OutcomeNotRecorded", "gone"), id="lost"
        ),
    ],
)
def test_how_an_execution_ended_decides_the_answer(executed: Executed, expected: Enqueued) -> None:
    assert InlineRunner(lambda _: executed).enqueue(RUN_ID, {}) == expected
