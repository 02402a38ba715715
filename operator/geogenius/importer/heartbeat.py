"""Says that the executor lives, from a thread and a connection of its own, so that no long write delays it."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from geogenius.domain.errors import Conflict, DatabaseUnavailable, GeogeniusError, LeaseLost
from geogenius.domain.run import Fence

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.rows import DictRow

    from geogenius.catalog.executions import Executions
    from geogenius.db.pool import Database

LONGEST_INTERVAL = timedelta(seconds=30)
BEATS_IN_WINDOW = 6

_log = logging.getLogger(__name__)


def interval_of(stale_after: timedelta) -> timedelta:
    """How often to beat: six times in the window after which a run counts as stale, every 30 s at the least."""
    return min(stale_after / BEATS_IN_WINDOW, LONGEST_INTERVAL)


class Heartbeat:
    """Beats inside a `with` block. It raises nothing by itself: `check` tells the executor what the beats found.

    A database that does not answer is asked again until the stale window has passed without a beat.
    """

    def __init__(
        self,
        executions: "Executions",
        database: "Database",
        fence: Fence,
        stale_after: timedelta,
        news: Callable[[], Mapping[str, int]],
    ) -> None:
        self._executions = executions
        self._database = database
        self._fence = fence
        self._interval = interval_of(stale_after)
        self._window = stale_after
        self._news = news
        self._end: GeogeniusError | None = None
        self._stop = Event()
        self._last_beat = time.monotonic()
        self._thread = Thread(target=self._run, name=f"heartbeat-{fence.run_id}", daemon=True)

    def __enter__(self) -> Self:
        self._last_beat = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(self._interval.total_seconds())

    def check(self) -> None:
        """Raise LeaseLost if the run is no longer ours, DatabaseUnavailable if it cannot be known for too long."""
        if self._end is not None:
            raise self._end

    def _run(self) -> None:
        while self._end is None and not self._stop.is_set():
            try:
                with self._database.dedicated() as connection:
                    self._beat_until_stopped(connection)
            except Conflict as error:
                self._end = error if isinstance(error, LeaseLost) else LeaseLost(str(error))
            except Exception as error:  # noqa: BLE001  # a thread has nobody to raise to; `check` reports it
                self._note_outage(error)

    def _beat_until_stopped(self, connection: "Connection[DictRow]") -> None:
        while True:
            self._executions.heartbeat(self._fence, self._news(), connection)
            self._last_beat = time.monotonic()
            if self._stop.wait(self._interval.total_seconds()):
                return

    def _note_outage(self, error: Exception) -> None:
        silent = time.monotonic() - self._last_beat
        _log.warning(
            "no heartbeat for %.0f s: %s",
            silent,
            error,
            extra={"run_id": str(self._fence.run_id), "executor_id": str(self._fence.executor_id)},
        )
        if silent >= self._window.total_seconds():
            ended = DatabaseUnavailable(f"no heartbeat could be written for {silent:.0f} s: {error}")
            ended.__cause__ = error
            self._end = ended
        self._stop.wait(min(self._interval.total_seconds(), 5.0))
