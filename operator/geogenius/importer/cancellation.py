"""A request to stop, noticed at the next batch or chunk."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from geogenius.domain.errors import Cancelled, GeogeniusError, Interrupted

GLANCE_SECONDS = 0.2


class Cancellation:
    """Whether this process was asked to stop.

    A plain attribute, not an Event: a signal handler may interrupt the very thread that holds an Event's lock.
    """

    def __init__(self) -> None:
        self._because: tuple[type[GeogeniusError], str, str] | None = None

    def request(self, because: str) -> None:
        """Ask to stop, as somebody who wants no result; of several requests the first one stays."""
        self._because = self._because or (Cancelled, Cancelled.reason, f"stopped: {because}")

    def interrupt(self, reason: str, message: str) -> None:
        """Ask to stop for a reason that another attempt may not meet; as `request`."""
        self._because = self._because or (Interrupted, reason, message)

    def check(self) -> None:
        """Raise Cancelled or Interrupted if it was asked to stop: a new error each time, for whichever thread asks."""
        if self._because is not None:
            kind, reason, message = self._because
            raise kind(message, reason=reason)

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise as `check` soon after the request."""
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
