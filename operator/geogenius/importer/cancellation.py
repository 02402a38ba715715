"""A request to stop, noticed at the next batch or chunk."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from geogenius.domain.errors import Cancelled

GLANCE_SECONDS = 0.2


class Cancellation:
    """Whether this process was asked to stop.

    A plain attribute, not an Event: a signal handler may interrupt the very thread that holds an Event's lock.
    """

    def __init__(self) -> None:
        self._because: str | None = None

    def request(self, because: str) -> None:
        """Ask to stop; the first reason stays."""
        self._because = self._because or because

    def check(self) -> None:
        """Raise Cancelled if it was asked to stop."""
        if self._because is not None:
            raise Cancelled(f"stopped: {self._because}")

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise Cancelled soon after the request."""
        end = time.monotonic() + seconds
        self.check()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, GLANCE_SECONDS))
            self.check()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT make the request inside the block; for the main thread only."""
        watched = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._on_signal) for number in watched}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.request(f"received {signal.Signals(number).name}")
