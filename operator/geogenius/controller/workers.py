"""Threads that take keys from the queue and reconcile them, one key at a time each."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from geogenius.controller.keyed_queue import Key, KeyedQueue
from geogenius.controller.threads import Threads
from geogenius.domain.errors import Conflict, Unavailable
from geogenius.telemetry.metrics import ControllerMetrics

logger = logging.getLogger(__name__)

Reconcile = Callable[[str, str], float | None]
"""Namespace and name in; seconds after which to look again out, or None."""


class Workers:
    """A fixed number of reconciling threads."""

    def __init__(self, queue: KeyedQueue, reconcile: Reconcile, metrics: ControllerMetrics, count: int) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._metrics = metrics
        self._threads = Threads({f"worker-{number}": self._work for number in range(count)})
        self._busy_since: dict[str, float] = {}

    def start(self) -> None:
        """Begin to take keys."""
        self._threads.start()

    def stop(self, seconds: float) -> None:
        """Close the queue and wait for what is being worked on, this long in all."""
        self._queue.close()
        self._threads.join(seconds)

    @property
    def alive(self) -> bool:
        """Whether every thread runs."""
        return self._threads.alive

    def longest_busy_seconds(self) -> float:
        """How long the slowest reconcile under way has taken so far."""
        return max((monotonic() - since for since in list(self._busy_since.values())), default=0.0)

    def _work(self) -> None:
        name = threading.current_thread().name
        while (key := self._queue.get()) is not None:
            self._busy_since[name] = monotonic()
            with self._metrics.reconcile_seconds.time():
                result = self._one(key)
            del self._busy_since[name]
            self._metrics.reconciles.labels(result).inc()
            self._metrics.queue_depth.set(self._queue.depth())

    def _one(self, key: Key) -> str:
        try:
            again = self._reconcile(key.namespace, key.name)
        except Unavailable as error:
            logger.warning("%s/%s: %s; trying again", key.namespace, key.name, error)
            self._queue.done(key, failed=True)
            return "unavailable"
        except Conflict as error:
            logger.info("%s/%s: %s; looking again", key.namespace, key.name, error)
            self._queue.done(key, failed=True)
            return "conflict"
        except Exception:
            logger.exception("%s/%s: reconcile failed; trying again", key.namespace, key.name)
            self._queue.done(key, failed=True)
            return "error"
        self._queue.done(key)
        if again is not None:
            self._queue.add_after(key, again)
        return "done"
