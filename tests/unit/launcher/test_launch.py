"""How answers of a runner are settled and written down. The catalog is a stand-in that keeps what it is told."""

from typing import cast

import pytest

from geogenius.catalog.runs import Runs
from geogenius.db import Call
from geogenius.domain.enqueued import Accepted, Enqueued, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import Conflict, DatabaseUnavailable, LeaseLost
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId
from geogenius.launcher.launch import FAIL_TRIES, Launch, Launcher, LeftPending, Rejected, Started, fail_from_outside
from geogenius.runners.contract import Arguments
from tests.support.builders import RUN_ID, a_run

REFUSED = NotEnqueued("Forbidden", "jobs.batch is forbidden")
BUSY = NotEnqueued("WaitingForQuota", "exceeded quota", retry_after=7.0)
UNKNOWN = OutcomeUnknown("ReadTimeout", "no answer")
LOST = RunError("staging", "WorkloadLost", "the Job is gone")


class Catalog:
    """What is recorded, in order; `troubles` are raised by the next failures."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.recorded: list[Enqueued] = []
        self.failed: list[tuple[Fence, RunError]] = []
        self.tried = 0
        self.deaf = False

    def record_enqueue(self, run_id: RunId, answer: Enqueued) -> None:
        assert run_id == RUN_ID
        if self.deaf:
            raise DatabaseUnavailable("gone")
        self.recorded.append(answer)

    def fail(self, fence: Fence, error: RunError, call: Call) -> None:
        assert call is Call.WAITING
        self.tried += 1
        if self.troubles:
            raise self.troubles.pop(0)
        self.failed.append((fence, error))

    @property
    def runs(self) -> Runs:
        return cast("Runs", self)


class Answering:
    """A runner that gives one answer, or breaks."""

    def __init__(self, answer: Enqueued | Exception) -> None:
        self._answer = answer
        self.args: Arguments = {}

    def name(self) -> str:
        return "answering"

    def available(self) -> bool:
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        assert run_id == RUN_ID
        self.args = args
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def start(catalog: Catalog, answer: Enqueued | Exception) -> Launch:
    return Launcher(catalog.runs, Answering(answer)).start(a_run(), fresh=True)


def test_an_acceptance_is_recorded() -> None:
    catalog = Catalog()
    assert start(catalog, Accepted("u")) == Started(RUN_ID)
    assert catalog.recorded == [Accepted("u")]


@pytest.mark.parametrize(("answer", "pause"), [(BUSY, 7.0), (UNKNOWN, 2.0)], ids=["busy", "unknown"])
def test_what_is_not_decided_is_recorded_and_fails_nothing(answer: NotEnqueued | OutcomeUnknown, pause: float) -> None:
    catalog = Catalog()
    assert start(catalog, answer) == LeftPending(RUN_ID, answer, pause)
    assert (catalog.recorded, catalog.tried) == ([answer], 0)


def test_a_runner_that_raises_may_have_accepted() -> None:
    catalog = Catalog()
    launch = start(catalog, RuntimeError("a bug"))
    assert isinstance(launch, LeftPending)
    assert isinstance(launch.answer, OutcomeUnknown)
    assert catalog.tried == 0


def test_a_refusal_that_an_earlier_try_may_overtake_is_not_recorded() -> None:
    catalog = Catalog()
    run = a_run(enqueue_state=EnqueueState.UNKNOWN)
    assert Launcher(catalog.runs, Answering(REFUSED)).start(run, fresh=False) == LeftPending(RUN_ID, REFUSED, 2.0)
    assert (catalog.recorded, catalog.tried) == ([], 0)


def test_a_final_refusal_is_recorded_first_and_then_fails_the_run() -> None:
    catalog = Catalog()
    launch = start(catalog, REFUSED)
    assert isinstance(launch, Rejected)
    assert launch.recorded
    assert catalog.recorded == [REFUSED]
    ((fence, error),) = catalog.failed
    assert (fence.run_id, error.reason) == (RUN_ID, "Forbidden")


def test_a_refusal_that_cannot_be_kept_still_fails_the_run() -> None:
    catalog = Catalog()
    catalog.deaf = True
    launch = start(catalog, REFUSED)
    assert isinstance(launch, Rejected)
    assert (launch.recorded, catalog.recorded, len(catalog.failed)) == (True, [], 1)


@pytest.mark.parametrize("state", list(EnqueueState))
def test_a_refused_redelivery_changes_nothing(state: EnqueueState) -> None:
    catalog = Catalog()
    run = a_run(enqueue_state=state, executor_id=ExecutorId(RUN_ID))
    assert Launcher(catalog.runs, Answering(REFUSED)).redeliver(run) == LeftPending(RUN_ID, REFUSED, 2.0)
    assert (catalog.recorded, catalog.tried) == ([], 0)


@pytest.mark.parametrize(("state", "recorded"), [(EnqueueState.NOT_ENQUEUED, [BUSY]), (EnqueueState.UNKNOWN, [])])
def test_a_redelivery_that_is_refused_for_now_is_left_with_its_reason(
    state: EnqueueState, recorded: list[NotEnqueued]
) -> None:
    catalog = Catalog()
    launch = Launcher(catalog.runs, Answering(BUSY)).redeliver(a_run(enqueue_state=state))
    assert launch == LeftPending(RUN_ID, BUSY, 7.0)
    assert (catalog.recorded, catalog.tried) == (recorded, 0)


def test_other_answers_to_a_redelivery_are_recorded() -> None:
    catalog = Catalog()
    assert Launcher(catalog.runs, Answering(Accepted("u"))).redeliver(a_run()) == Started(RUN_ID)
    assert Launcher(catalog.runs, Answering(UNKNOWN)).redeliver(a_run()) == LeftPending(RUN_ID, UNKNOWN, 2.0)
    assert (catalog.recorded, catalog.tried) == ([Accepted("u"), UNKNOWN], 0)


def test_publish_and_window_reach_the_runner_as_json() -> None:
    runner = Answering(Accepted())
    Launcher(Catalog().runs, runner).start(a_run(), fresh=True)
    assert runner.args == {"publish": True, "stale_after_seconds": 900}


def test_a_failure_is_recorded_for_the_executor_that_the_catalog_names() -> None:
    catalog, executor = Catalog(), ExecutorId(RUN_ID)
    assert fail_from_outside(catalog.runs, a_run(executor_id=executor), LOST) == Rejected(RUN_ID, LOST, recorded=True)
    assert catalog.failed == [(Fence(RUN_ID, executor), LOST)]


def test_a_failure_is_tried_a_second_time() -> None:
    catalog = Catalog(DatabaseUnavailable("gone"))
    assert fail_from_outside(catalog.runs, a_run(), LOST).recorded
    assert catalog.tried == 2


@pytest.mark.parametrize(
    "trouble",
    [DatabaseUnavailable("gone"), LeaseLost("claimed"), Conflict("completed")],
    ids=["outage", "claimed-meanwhile", "completed-meanwhile"],
)
def test_a_failure_that_is_not_recorded_says_so_and_why(trouble: Exception) -> None:
    catalog = Catalog(*[trouble] * FAIL_TRIES)
    rejected = fail_from_outside(catalog.runs, a_run(), LOST)
    assert rejected == Rejected(RUN_ID, LOST, recorded=False, why_not=str(trouble))
    assert catalog.tried == FAIL_TRIES


def test_both_causes_of_a_failure_that_is_not_recorded_are_told() -> None:
    catalog = Catalog(DatabaseUnavailable("cut off"), DatabaseUnavailable("no server"))
    assert fail_from_outside(catalog.runs, a_run(), LOST).why_not == "cut off; then: no server"
