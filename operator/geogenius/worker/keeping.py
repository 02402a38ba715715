"""Keeps what the worker holds: renews leases from a thread and a connection of its own, however busy everything is."""

import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread

from geogenius.domain.errors import GeogeniusError
from geogenius.pgflow.leases import Leases
from geogenius.worker.held import Held

RENEWALS_IN_LEASE = 3

LONGEST_INTERVAL = timedelta(seconds=20)
"""However long the lease: others want to know that somebody listens (`FRESH` in pgflow/capabilities.py)."""

_log = logging.getLogger(__name__)


class Keeping:
    """Renews every lease at least three times in its length and says that the worker lives.

    A database that does not answer is asked again; a lease that ran out meanwhile is lost only when another worker took
    the message. Then `lost` is called, and nothing else is done: the run still belongs to its executor, which nobody
    replaces, and the other worker waits for its end.
    """

    def __init__(self, leases: Leases, name: str, lease: timedelta, held: Held, lost: Callable[[], None]) -> None:
        self._leases = leases
        self._name = name
        self._interval = min(lease / RENEWALS_IN_LEASE, LONGEST_INTERVAL)
        self._held = held
        self._lost = lost
        self._stop = Event()
        self._thread = Thread(target=self._run, name="keeping", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; for one call only."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; repeating it is harmless."""
        self._stop.set()
        self._thread.join(self._interval.total_seconds())

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._renew()
            except GeogeniusError as error:
                _log.warning("leases are not renewed: %s", error)
            self._stop.wait(self._interval.total_seconds())

    def _renew(self) -> None:
        self._leases.register(self._name)
        for delivery in self._held.leased():
            if not self._leases.renew(delivery) and self._held.lose(delivery):
                _log.warning("the lease is lost, the executor goes on", extra={"run_id": delivery.run_id})
                self._lost()
