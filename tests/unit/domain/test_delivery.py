from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geogenius.domain.delivery import (
    LONGEST_LOOK,
    MOST_DELIVERIES,
    SHORTEST_LOOK,
    Conclude,
    Discard,
    Execute,
    FailRun,
    PutBack,
    consider,
    give_up,
)
from geogenius.domain.failure import FailureClass
from geogenius.domain.run import ExecutorId, Run, RunState
from tests.support.builders import NOON, a_run

WINDOW = timedelta(minutes=15)


def claimed(
    silent: timedelta, *, last_heartbeat_at: datetime | None = NOON, execution_started_at: datetime = NOON
) -> Run:
    facts: dict[str, Any] = {
        "state": RunState.STAGING,
        "executor_id": ExecutorId(uuid4()),
        "execution_started_at": execution_started_at,
        "last_heartbeat_at": last_heartbeat_at,
        "read_at": NOON + silent,
        "stale_after": WINDOW,
    }
    return a_run(**facts)


def test_a_run_that_nobody_claimed_is_executed() -> None:
    assert consider(a_run(), 1) == Execute()


@pytest.mark.parametrize("state", [RunState.COMPLETED, RunState.FAILED])
def test_a_run_that_has_ended_concludes_its_message(state: RunState) -> None:
    assert consider(a_run(state=state), 1) == Conclude(state)


def test_a_message_without_a_run_is_discarded() -> None:
    assert isinstance(consider(None, 1), Discard)


def test_a_run_that_lives_is_looked_at_again_and_never_taken_over() -> None:
    assert consider(claimed(timedelta(seconds=2)), 2) == PutBack(LONGEST_LOOK)


def test_the_last_look_falls_on_the_end_of_the_window() -> None:
    assert consider(claimed(WINDOW - timedelta(seconds=4)), 2) == PutBack(timedelta(seconds=4))
    assert consider(claimed(WINDOW - timedelta(milliseconds=4)), 2) == PutBack(SHORTEST_LOOK)


def test_a_claimed_run_that_is_silent_for_its_window_is_failed_on_that_evidence() -> None:
    decision = consider(claimed(WINDOW), 2)

    assert isinstance(decision, FailRun)
    assert decision.error.reason == "WorkloadLost"
    assert decision.error.phase == "staging"
    assert decision.error.evidence == {"class": "infrastructure"}
    assert "900 s" in decision.error.message


def test_a_run_claimed_without_a_heartbeat_yet_counts_from_its_claim() -> None:
    fresh = claimed(timedelta(minutes=20), last_heartbeat_at=None, execution_started_at=NOON + timedelta(minutes=19))

    assert isinstance(consider(fresh, 2), PutBack)


def test_a_run_with_which_workers_are_lost_again_and_again_ends() -> None:
    assert consider(a_run(), MOST_DELIVERIES) == Execute()
    assert isinstance(consider(a_run(), MOST_DELIVERIES + 1), FailRun)


@given(silent=st.timedeltas(timedelta(0), timedelta(hours=2)), delivery=st.integers(1, 50))
def test_no_claimed_run_is_ever_executed_again(silent: timedelta, delivery: int) -> None:
    assert isinstance(consider(claimed(silent), delivery), PutBack | FailRun)


def given_up(run: Run | None) -> object:
    return give_up(run, "MessageMalformed", "no sense", FailureClass.CONFIGURATION)


def test_a_message_that_can_never_be_done_ends_alone_where_no_run_waits_for_it() -> None:
    assert given_up(None) == Discard("no sense")
    assert given_up(a_run(state=RunState.FAILED)) == Conclude(RunState.FAILED)


def test_a_message_that_can_never_be_done_fails_a_run_that_nobody_claimed() -> None:
    failed = given_up(a_run())

    assert isinstance(failed, FailRun)
    assert (failed.error.reason, failed.error.message) == ("MessageMalformed", "no sense")
    assert failed.error.evidence == {"class": "configuration"}


def test_a_message_that_can_never_be_done_leaves_a_run_alone_whose_executor_lives() -> None:
    assert isinstance(given_up(claimed(WINDOW / 2)), PutBack)
    late = given_up(claimed(WINDOW))
    assert isinstance(late, FailRun)
    assert late.error.reason == "WorkloadLost"
