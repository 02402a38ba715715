"""Keeps what the worker holds: renews leases from a thread and a connection of its own, however busy everything is."""

import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread

from geogenius.domain.errors import GeogeniusError
from geogenius.pgflow.leases import Delivery, Leases
from geogenius.worker.held import Held

RENEWALS_IN_LEASE = 3

RETRY_SECONDS = 1.0
"""How soon the next round follows one in which something did not work."""

LONGEST_INTERVAL = timedelta(seconds=20)
"""However long the lease: others want to know that somebody listens (`FRESH` in pgflow/capabilities.py)."""

_log = logging.getLogger(__name__)


class Keeping:
    """Renews every lease at least three times in its length and says that the worker lives.

    A database that does not answer is asked again, and no lease waits for another that cannot be renewed. A lease that
    ran out meanwhile is lost only when another worker took the message. Then `lost` is called, and nothing else is
    done: the run still belongs to its executor, which nobody replaces, and the other worker waits for its end.
    """

    def __init__(self, leases: Leases, lease: timedelta, held: Held, lost: Callable[[], None]) -> None:
        self._leases = leases
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
        interval = self._interval.total_seconds()
        while not self._stop.is_set():
            self._stop.wait(interval if self._round() else min(interval, RETRY_SECONDS))

    def _round(self) -> bool:
        """Renew everything that can be renewed; whether that was everything."""
        renewed = [self._renewed(delivery) for delivery in self._held.leased()]
        try:
            self._leases.register()
        except GeogeniusError as error:
            _log.warning("the worker cannot say that it lives: %s", error)
            return False
        return all(renewed)

    def _renewed(self, delivery: Delivery) -> bool:
        try:
            ours = self._leases.renew(delivery)
        except GeogeniusError as error:
            _log.warning("the lease is not renewed: %s", error, extra={"run_id": delivery.run_id})
            return False
        if not ours and self._held.lose(delivery):
            _log.warning("the lease is lost, the executor goes on", extra={"run_id": delivery.run_id})
            self._lost()
        return True
