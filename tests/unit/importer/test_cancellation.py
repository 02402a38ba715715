import os
import signal
from threading import Timer

import pytest

from geogenius.domain.errors import Cancelled
from geogenius.importer.cancellation import Cancellation


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_becomes_a_request_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    cancellation = Cancellation()
    before = signal.getsignal(number)
    with cancellation.on_signals():
        cancellation.check()
        os.kill(os.getpid(), number)
        with pytest.raises(Cancelled, match=f"stopped: received {number.name}"):
            cancellation.check()
    assert signal.getsignal(number) is before


def test_the_first_reason_stays() -> None:
    cancellation = Cancellation()
    cancellation.request("first")
    cancellation.request("second")
    with pytest.raises(Cancelled, match="stopped: first"):
        cancellation.wait(0)


def test_a_wait_ends_soon_after_the_request() -> None:
    cancellation = Cancellation()
    timer = Timer(0.05, cancellation.request, ["enough"])
    timer.start()
    with pytest.raises(Cancelled):
        cancellation.wait(3600)
    timer.join()


def test_a_wait_ends_by_itself() -> None:
    Cancellation().wait(0.01)
