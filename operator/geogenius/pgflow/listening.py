"""Hears of new messages the moment they are committed; where nothing can be heard, the worker polls all the same."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from psycopg import sql

from geogenius.db import Database
from geogenius.domain.errors import DatabaseUnavailable, GeogeniusError

GLANCE_SECONDS = 1.0
"""How often the thread looks whether it shall stop."""

PAUSES_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Waits between tries to connect again; the last one for ever."""

_log = logging.getLogger(__name__)


class Listening:
    """Calls `heard` for every announcement, and once for every new connection: something may have come meanwhile.

    From a thread and a connection of its own, which a transaction pooler must not stand before.
    """

    def __init__(self, database: Database, slug: str, heard: Callable[[], None]) -> None:
        self._database = database
        self._slug = slug
        self._heard = heard
        self._stop = Event()
        self._failures = 0
        self._thread = Thread(target=self._run, name="listening", daemon=True)

    def start(self) -> None:
        """Begin to listen; for one call only."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; repeating it is harmless."""
        self._stop.set()
        self._thread.join(GLANCE_SECONDS * 5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except GeogeniusError as error:
                pause = PAUSES_SECONDS[min(self._failures, len(PAUSES_SECONDS) - 1)]
                self._failures += 1
                _log.warning("not listening to the queue, again in %.1f s: %s", pause, error)
                self._stop.wait(pause)

    def _listen(self) -> None:
        with self._database.dedicated() as connection:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._slug)))
            self._failures = 0
            self._heard()
            while not self._stop.is_set():
                for _ in connection.notifies(timeout=GLANCE_SECONDS, stop_after=1):
                    self._heard()
                if connection.broken:
                    raise DatabaseUnavailable("the connection that listens broke")
