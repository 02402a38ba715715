"""One operator works at a time: a session-level advisory lock of PostgreSQL on a connection of its own.

Leadership is for economy, never for safety: names of Jobs are fixed, statuses are applied whole, and the catalog
refuses what is out of order, so two operators at once do no harm.
"""

import logging
import threading
from collections.abc import Callable

from geogenius.catalog.leadership import Leadership
from geogenius.domain.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0


class Leader:
    """Waits for the lock, then watches that it is still held."""

    def __init__(self, leadership: Leadership, lost: Callable[[], None]) -> None:
        self._leadership = leadership
        self._lost = lost
        self._stop = threading.Event()
        self.leading = False

    def acquire(self, stop: threading.Event) -> bool:
        """Wait until this process leads; False when it was asked to stop instead."""
        while not stop.is_set():
            try:
                if self._leadership.try_acquire():
                    self.leading = True
                    threading.Thread(target=self._keep, name="leader", daemon=True).start()
                    return True
            except DatabaseUnavailable as error:
                logger.warning("leadership cannot be asked for: %s", error)
            stop.wait(CHECK_SECONDS)
        return False

    def release(self) -> None:
        """Let another process lead. A second call does nothing."""
        self._stop.set()
        self.leading = False
        self._leadership.release()

    def _keep(self) -> None:
        while not self._stop.wait(CHECK_SECONDS):
            if not self._leadership.held():
                self.leading = False
                logger.error("leadership is lost")
                self._lost()
                return
