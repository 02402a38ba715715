"""The lock is a stand-in here: what PostgreSQL does with it is tried in tests/integration."""

from typing import cast

import pytest

from geogenius.catalog.leadership import Leadership
from geogenius.controller.leader import Leader
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.processes.ending import Ending


class Lock:
    """Answers as it is told, the last answer for ever."""

    def __init__(self, *, acquired: list[bool | Exception], held: list[bool | Exception]) -> None:
        self.acquired, self.holds, self.released = acquired, held, 0

    def try_acquire(self) -> bool:
        return _next(self.acquired)

    def held(self) -> bool:
        return _next(self.holds)

    def release(self) -> None:
        self.released += 1


def _next(answers: list[bool | Exception]) -> bool:
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer


def a_leader(lock: Lock, ending: Ending) -> Leader:
    return Leader(cast("Leadership", lock), ending, check_seconds=0.01)


def test_leadership_is_waited_for_through_an_outage_and_another_leader() -> None:
    leader = a_leader(Lock(acquired=[DatabaseUnavailable("gone"), False, True], held=[True]), Ending())
    assert leader.acquire()
    assert leader.leading
    leader.release()


def test_a_request_to_end_ends_the_waiting() -> None:
    ending = Ending()
    ending.ask()
    leader = a_leader(Lock(acquired=[False], held=[True]), ending)
    assert not leader.acquire()
    leader.release()


def test_losing_the_lock_ends_the_program() -> None:
    ending = Ending()
    leader = a_leader(Lock(acquired=[True], held=[True, False]), ending)
    assert leader.acquire()
    assert ending.wait(10)
    assert ending.failure == "leadership is lost"
    leader.release()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_check_that_breaks_ends_the_program_too() -> None:
    ending = Ending()
    leader = a_leader(Lock(acquired=[True], held=[ValueError("a bug")]), ending)
    assert leader.acquire()
    assert ending.wait(10)
    assert ending.failure == "leadership is lost"
    leader.release()


def test_giving_leadership_up_is_no_loss() -> None:
    ending, lock = Ending(), Lock(acquired=[True], held=[True])
    leader = a_leader(lock, ending)
    assert leader.acquire()
    leader.release()
    leader.release()
    assert (ending.failure, lock.released, leader.leading) == (None, 2, False)
