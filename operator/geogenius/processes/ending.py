"""Why and when the program ends: by request, or because something it cannot do without is gone."""

from contextlib import suppress
from queue import Empty, SimpleQueue


class Ending:
    """Asked for from anywhere, signal handlers included; waited for by one thread."""

    def __init__(self) -> None:
        self.asked = False
        self.failure: str | None = None
        self._wake: SimpleQueue[None] = SimpleQueue()  # its put may interrupt its get, which an Event's set may not

    def ask(self) -> None:
        """End in good order. A second call changes nothing."""
        self.asked = True
        self._wake.put(None)

    def fail(self, why: str) -> None:
        """End because of this; of several reasons the first counts, and after `ask` none."""
        if not self.asked:
            self.failure = why
        self.ask()

    def wait(self, seconds: float) -> bool:
        """Wait this long for the end; whether it has come."""
        if not self.asked:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
        return self.asked
