from datetime import timedelta

import pytest

from geogenius.domain.decision import (
    LONGEST_PAUSE_SECONDS,
    SHORTEST_PAUSE_SECONDS,
    UNKNOWN_BOUND,
    Decision,
    Enqueue,
    FailRun,
    Record,
    Settled,
    Wait,
    Watch,
    decide,
    settle,
)
from geogenius.domain.enqueued import Accepted, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.failure import FailureClass
from geogenius.domain.observation import Absent, Ended, Foreign, Observation, Running, Waiting
from geogenius.domain.run import RunState
from tests.support.builders import NOON, a_run

ACCEPTED = EnqueueState.ACCEPTED
SECOND = timedelta(seconds=1)
OOM = Ended("u", succeeded=False, reason="OOMKilled", message="limit 300Mi", exit_code=137)
DONE = Ended("u", succeeded=True, reason="Complete", message="", exit_code=0)
REFUSED = NotEnqueued("Forbidden", "jobs.batch is forbidden")
BUSY = NotEnqueued("WaitingForQuota", "exceeded quota", retry_after=7.0)


@pytest.mark.parametrize(
    "observation",
    [Absent(), Waiting("u", "Unschedulable", ""), Running("u"), OOM, DONE, Foreign("x")],
    ids=lambda o: type(o).__name__,
)
@pytest.mark.parametrize("state", [RunState.COMPLETED, RunState.FAILED])
def test_a_run_that_has_ended_is_only_mirrored_whatever_its_job_looks_like(
    state: RunState, observation: Observation
) -> None:
    run = a_run(state=state, enqueue_state=ACCEPTED, completed_at=NOON)
    assert decide(run, observation) == Settled()


@pytest.mark.parametrize("observation", [Waiting("u", "ImagePullBackOff", "no such image"), Running("u")])
def test_an_accepted_run_with_a_living_job_is_watched(observation: Observation) -> None:
    assert decide(a_run(enqueue_state=ACCEPTED), observation) == Watch()


@pytest.mark.parametrize(
    ("observation", "reason", "failure"),
    [
        (Absent(), "WorkloadLost", FailureClass.INFRASTRUCTURE),
        (Foreign("not ours"), "WorkloadLost", FailureClass.INFRASTRUCTURE),
        (OOM, "OOMKilled", FailureClass.OUT_OF_MEMORY),
        (DONE, "EndedWithoutOutcome", FailureClass.INFRASTRUCTURE),
    ],
    ids=["job-gone", "job-replaced", "out-of-memory", "complete-without-outcome"],
)
def test_an_accepted_run_whose_job_is_over_is_failed_on_that_evidence(
    observation: Observation, reason: str, failure: FailureClass
) -> None:
    decision = decide(a_run(enqueue_state=ACCEPTED, state=RunState.STAGING), observation)
    assert isinstance(decision, FailRun)
    assert (decision.error.reason, decision.error.evidence["class"]) == (reason, failure)
    assert decision.error.phase == "staging"


def test_the_words_and_the_exit_code_of_the_pod_are_kept() -> None:
    decision = decide(a_run(enqueue_state=ACCEPTED), OOM)
    assert isinstance(decision, FailRun)
    assert "limit 300Mi" in decision.error.message
    assert decision.error.evidence["exit_code"] == "137"


@pytest.mark.parametrize("state", [EnqueueState.INTENDED, EnqueueState.UNKNOWN, EnqueueState.NOT_ENQUEUED])
@pytest.mark.parametrize(
    ("observation", "decision"),
    [
        (Waiting("u", "", ""), Record(Accepted("u"))),
        (Running("u"), Record(Accepted("u"))),
        (DONE, Record(Accepted("u"))),
        (Absent(), Enqueue()),
    ],
    ids=["waiting", "running", "ended", "absent"],
)
def test_an_unresolved_start_is_resolved_by_looking(
    state: EnqueueState, observation: Observation, decision: Decision
) -> None:
    assert decide(a_run(enqueue_state=state), observation) == decision


def test_a_runner_that_is_to_be_left_in_peace_is_not_asked_however_many_events_come() -> None:
    run = a_run(enqueue_state=EnqueueState.NOT_ENQUEUED)
    assert decide(run, Absent(), NOON + 7 * SECOND) == Wait(7.0)
    assert decide(run, Absent(), NOON) == Enqueue()


def test_a_job_that_appears_meanwhile_counts_at_once() -> None:
    run = a_run(enqueue_state=EnqueueState.UNKNOWN)
    assert decide(run, Running("u"), NOON + 7 * SECOND) == Record(Accepted("u"))


@pytest.mark.parametrize(
    ("refusing", "pause"),
    [(0, SHORTEST_PAUSE_SECONDS), (40, 10.0), (86_400, LONGEST_PAUSE_SECONDS)],
    ids=["at-first", "after-a-while", "for-a-day"],
)
def test_a_server_that_gives_no_answer_for_long_is_asked_less_and_less_often(refusing: int, pause: float) -> None:
    unknown = OutcomeUnknown("ServerError", "HTTP 500")
    run = a_run(enqueue_state=EnqueueState.UNKNOWN, read_at=NOON + refusing * SECOND)
    assert settle(unknown, run, fresh=False) == Record(unknown, pause)


@pytest.mark.parametrize("asked", [0.0, -1.0])
def test_a_server_that_names_no_pause_is_not_asked_again_at_once(asked: float) -> None:
    at_once = NotEnqueued("Throttled", "too many requests", retry_after=asked)
    assert settle(at_once, a_run(), fresh=True) == Record(at_once, SHORTEST_PAUSE_SECONDS)


def test_a_foreign_job_of_our_name_is_never_adopted() -> None:
    decision = decide(a_run(), Foreign("Job maps/x belongs to somebody else"))
    assert isinstance(decision, FailRun)
    assert decision.error.reason == "NameConflict"


def test_an_accepted_start_is_recorded_and_followed_by_events() -> None:
    assert settle(Accepted("u"), a_run(), fresh=True) == Record(Accepted("u"))


@pytest.mark.parametrize("fresh", [True, False])
def test_an_unknown_outcome_is_recorded_and_looked_at_again_soon(*, fresh: bool) -> None:
    unknown = OutcomeUnknown("ReadTimeout", "no answer")
    assert settle(unknown, a_run(), fresh=fresh) == Record(unknown, SHORTEST_PAUSE_SECONDS)


def test_a_definite_refusal_of_a_fresh_run_fails_it_with_the_servers_words() -> None:
    settlement = settle(REFUSED, a_run(), fresh=True)
    assert isinstance(settlement, FailRun)
    assert (settlement.error.reason, settlement.error.message) == ("Forbidden", "jobs.batch is forbidden")
    assert settlement.error.phase == "enqueue"


def test_a_temporary_refusal_waits_as_long_as_the_server_says() -> None:
    assert settle(BUSY, a_run(), fresh=True) == Record(BUSY, 7.0)


def test_a_temporary_refusal_becomes_final_at_the_launch_deadline() -> None:
    run = a_run(enqueue_state=EnqueueState.NOT_ENQUEUED, read_at=NOON + a_run().deadlines.launch)
    settlement = settle(BUSY, run, fresh=False)
    assert isinstance(settlement, FailRun)
    assert settlement.error.evidence["class"] == FailureClass.INFRASTRUCTURE


def test_waiting_never_goes_beyond_the_launch_deadline() -> None:
    run = a_run(enqueue_state=EnqueueState.NOT_ENQUEUED, read_at=NOON + a_run().deadlines.launch - 3 * SECOND)
    assert settle(BUSY, run, fresh=False) == Record(BUSY, 3.0)


@pytest.mark.parametrize("state", [EnqueueState.INTENDED, EnqueueState.UNKNOWN])
@pytest.mark.parametrize("answer", [REFUSED, BUSY], ids=["final", "temporary"])
def test_a_refusal_proves_nothing_while_an_earlier_request_may_still_land(
    state: EnqueueState, answer: NotEnqueued
) -> None:
    run = a_run(enqueue_state=state, read_at=NOON + UNKNOWN_BOUND - SECOND)
    assert settle(answer, run, fresh=False) == Wait(1.0)


def test_a_refusal_counts_once_nothing_can_land_any_more() -> None:
    run = a_run(enqueue_state=EnqueueState.UNKNOWN, read_at=NOON + UNKNOWN_BOUND)
    assert isinstance(settle(REFUSED, run, fresh=False), FailRun)
