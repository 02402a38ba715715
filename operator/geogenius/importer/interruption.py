"""Ends statements that run long in the database, for an execution that must stop: its own thread waits for them."""

import logging
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from geogenius.domain.errors import GeogeniusError

GLANCE_SECONDS = 0.5

_log = logging.getLogger(__name__)


class Interruption:
    """Looks, inside a `with` block, whether `check` raises, and then calls `interrupt` again and again.

    Again, because a statement may begin just after the last look. It ends before the block does, so that nothing
    written afterwards is interrupted.
    """

    def __init__(self, check: Callable[[], None], interrupt: Callable[[], None]) -> None:
        self._check = check
        self._interrupt = interrupt
        self._stop = Event()
        self._thread = Thread(target=self._run, name="interruption", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(GLANCE_SECONDS):
            try:
                self._check()
            except GeogeniusError:
                self._try_to_interrupt()

    def _try_to_interrupt(self) -> None:
        try:
            self._interrupt()
        except GeogeniusError as error:
            _log.warning("a statement could not be interrupted: %s", error)
