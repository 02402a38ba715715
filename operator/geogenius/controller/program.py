"""The operator as a program: lead, watch, reconcile, until it is asked to stop or the watch ends."""

import logging
import signal
import threading
from dataclasses import dataclass
from time import monotonic

from geogenius.controller.keyed_queue import Key, KeyedQueue
from geogenius.controller.leader import Leader
from geogenius.controller.probes import Probes, serve
from geogenius.controller.resync import Resync, Scope
from geogenius.controller.watch import Watch, WatchOptions
from geogenius.controller.workers import Workers
from geogenius.telemetry import ControllerMetrics
from geogenius.wiring import OperatorContext

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 25.0
"""How long reconciles under way may take after SIGTERM; below the pod's grace period."""

STUCK_SECONDS = 120.0
"""A reconcile that takes longer than all its deadlines together hangs."""


@dataclass(slots=True)
class _Ending:
    """Why the program ends: by request, or because something it cannot do without is gone."""

    asked: threading.Event
    failure: str | None = None

    def fail(self, why: str) -> None:
        self.failure = why
        self.asked.set()


class Operator:
    """All parts of the operator, built from a context."""

    def __init__(self, context: OperatorContext) -> None:
        self.metrics = ControllerMetrics()
        self._context = context
        self._ending = _Ending(threading.Event())
        self._queue = KeyedQueue(monotonic)
        self._watch = Watch(WatchOptions(context.namespaces, context.kubeconfig), self._event)
        self._workers = Workers(self._queue, context.reconciler.reconcile, self.metrics, context.workers)
        self._resync = Resync(
            context.requests, context.runs, Scope(context.cluster_id, context.namespaces), self._queue.add, self.metrics
        )
        self._leader = Leader(context.leadership, lambda: self._ending.fail("leadership is lost"))

    def run(self) -> int:
        """Work until SIGTERM or SIGINT (0), or until the watch or the leadership is lost (1)."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.asked.set())
        server = serve(self._context.probe_port, Probes(self.not_alive, self.not_ready, self.metrics.registry))
        if self._leader.acquire(self._ending.asked):
            self._work()
        server.shutdown()
        server.server_close()
        if self._ending.failure is not None:
            logger.error("ending: %s", self._ending.failure)
        return 0 if self._ending.failure is None else 1

    def not_alive(self) -> str | None:
        """What is wrong with this process, looking at nothing but this process."""
        busy = self._workers.longest_busy_seconds()
        return f"a reconcile hangs for {busy:.0f} s" if busy > STUCK_SECONDS else None

    def not_ready(self) -> str | None:
        """What keeps this process from serving; a standby that waits for leadership is ready."""
        if self._leader.leading and not self._watch.ready:
            return "the watch has not started"
        return None if self._context.database_answers() else "the database does not answer"

    def _work(self) -> None:
        logger.info("leading; watching %s", ", ".join(self._context.namespaces) or "all namespaces")
        self.metrics.leader.set(1)
        self._watch.start()
        self._workers.start()
        self._resync.start(self._context.tick_seconds, self._context.resync_seconds)
        while not self._ending.asked.wait(1.0):
            if not self._watch.alive:
                self._ending.fail("the watch has ended")
        self._resync.stop()
        self._watch.stop(DRAIN_SECONDS)
        self._workers.stop(DRAIN_SECONDS)
        self._leader.release()

    def _event(self, kind: str, key: Key) -> None:
        self.metrics.watch_events.labels(kind).inc()
        self._queue.add(key)
