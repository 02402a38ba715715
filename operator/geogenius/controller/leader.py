"""One operator works at a time: a session-level advisory lock of PostgreSQL on a connection of its own.

Leadership is for economy, never for safety: names of Jobs are fixed, statuses are applied whole, and the catalog
refuses what is out of order, so two operators at once do no harm.
"""

import logging
import threading

from geogenius.catalog.leadership import Leadership
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.processes.ending import Ending

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0

LAST_CHECK_SECONDS = 5.0
"""How long the end of the program waits for a check under way."""


class Leader:
    """Waits for the lock, then watches that it is still held; losing it ends the program."""

    def __init__(self, leadership: Leadership, ending: Ending, check_seconds: float = CHECK_SECONDS) -> None:
        self._leadership = leadership
        self._ending = ending
        self._check_seconds = check_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leader", daemon=True)
        self.leading = False

    def acquire(self) -> bool:
        """Wait until this process leads; False when it was asked to end instead."""
        while not self._ending.asked:
            try:
                if self._leadership.try_acquire():
                    self.leading = True
                    self._thread.start()
                    return True
            except DatabaseUnavailable as error:
                logger.warning("leadership cannot be asked for: %s", error)
            self._ending.wait(self._check_seconds)
        return False

    def release(self) -> None:
        """Let another process lead. A second call does nothing."""
        self._stop.set()
        if self.leading:
            self._thread.join(LAST_CHECK_SECONDS)
        self.leading = False
        self._leadership.release()

    def _keep(self) -> None:
        try:
            while not self._stop.wait(self._check_seconds):
                if not self._leadership.held():
                    break
        finally:  # whatever ends the watch over the lock: nobody may go on as if it were held
            if not self._stop.is_set():
                self._ending.fail("leadership is lost")
