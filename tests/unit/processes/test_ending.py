import signal
from threading import Thread

from geogenius.processes.ending import Ending


def test_an_end_that_nobody_asked_for_has_not_come() -> None:
    assert not Ending().wait(0)


def test_the_first_failure_counts_and_after_a_request_none() -> None:
    ending, asked = Ending(), Ending()
    ending.fail("the watch")
    ending.fail("the workers")
    asked.ask()
    asked.fail("a consequence of the end")
    assert (ending.failure, asked.failure) == ("the watch", None)


def test_whoever_waits_is_woken() -> None:
    ending = Ending()
    asking = Thread(target=ending.ask)
    asking.start()
    assert ending.wait(10)
    asking.join()
    assert ending.wait(10)


def test_a_signal_may_ask_while_the_same_thread_waits() -> None:
    ending = Ending()
    before = signal.signal(signal.SIGALRM, lambda *_: ending.ask())
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        assert ending.wait(10)
    finally:
        signal.signal(signal.SIGALRM, before)
