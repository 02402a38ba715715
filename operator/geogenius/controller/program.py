"""The operator as a program: lead, watch, reconcile, until it is asked to stop or the watch ends."""

import logging
import signal
from time import monotonic

from geogenius.controller.keyed_queue import Key, KeyedQueue
from geogenius.controller.leader import Leader
from geogenius.controller.resync import Resync, Scope
from geogenius.controller.watch import Watch, WatchOptions
from geogenius.controller.workers import Workers
from geogenius.domain.deadline import Deadline
from geogenius.domain.errors import KubernetesUnavailable
from geogenius.processes.ending import Ending
from geogenius.telemetry.metrics import ControllerMetrics
from geogenius.telemetry.probes import Probes, serve
from geogenius.wiring.operating import OperatorContext

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 45.0
"""How long the watch and the reconciles under way may take to end; below the pod's grace period of 60 s."""

STUCK_SECONDS = 600.0
"""A reconcile that takes longer than all its deadlines together hangs: some ten calls to the API server of 15 s, and
as many to a database that may have vanished, each noticed within a minute."""

WAIT_SECONDS = 2.0
"""How often it is tried whether the API knows and gives requests."""

LOOK_SECONDS = 1.0
"""How often it is looked whether all parts still run."""

BLOCKED_SECONDS = 60.0
"""An event loop that does not come around for this long is blocked for good; nothing in it waits for anybody."""


class Operator:
    """All parts of the operator, built from a context."""

    def __init__(self, context: OperatorContext) -> None:
        self.metrics = ControllerMetrics()
        self._context = context
        self._ending = Ending()
        self._queue = KeyedQueue(monotonic)
        self._watch = Watch(WatchOptions(context.namespaces, context.kubeconfig), self._event)
        self._workers = Workers(self._queue, context.reconciler.reconcile, self.metrics, context.workers)
        self._resync = Resync(
            context.requests, context.runs, Scope(context.cluster_id, context.namespaces), self._queue.add, self.metrics
        )
        self._leader = Leader(context.leadership, self._ending)

    def run(self) -> int:
        """Work until SIGTERM or SIGINT (0), or until the leadership or a part of the program is lost (1)."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.ask())
        probes = Probes(self.not_alive, self.not_ready, self.metrics.registry)
        server = serve(self._context.probe_port, probes)
        try:
            if self._leader.acquire() and self._requests_can_be_listed():
                self._work()
            self._leader.release()
        finally:
            server.shutdown()
            server.server_close()
        if self._ending.failure is not None:
            logger.error("ending: %s", self._ending.failure)
        return 0 if self._ending.failure is None else 1

    def not_alive(self) -> str | None:
        """What is wrong with this process, looking at nothing but this process."""
        blocked, busy = self._watch.seconds_blocked(), self._workers.longest_busy_seconds()
        if blocked > BLOCKED_SECONDS:
            return f"the watch is blocked for {blocked:.0f} s"
        return f"a reconcile hangs for {busy:.0f} s" if busy > STUCK_SECONDS else None

    def not_ready(self) -> str | None:
        """What keeps this process from serving; a standby that waits for leadership is ready."""
        if self._ending.asked:
            return "this process is ending"
        if self._leader.leading and not self._watch.ready:
            return "the watch has not started"
        return None if self._context.database_answers() else "the database does not answer"

    def _requests_can_be_listed(self) -> bool:
        """Wait until they can; False when asked to end. kopf passes over a kind that is not there yet, and for good."""
        while not self._ending.asked:
            try:
                next(self._context.requests.names(), None)
            except KubernetesUnavailable as error:
                logger.warning("waiting for the API: %s", error)
                self._ending.wait(WAIT_SECONDS)
            else:
                return True
        return False

    def _work(self) -> None:
        logger.info("leading; watching %s", ", ".join(self._context.namespaces) or "all namespaces")
        self.metrics.leader.set(1)
        self._watch.start()
        self._workers.start()
        self._resync.start(self._context.tick_seconds, self._context.resync_seconds)
        while not self._ending.wait(LOOK_SECONDS):
            for what, part in (("watch", self._watch), ("resync", self._resync), ("workers", self._workers)):
                if not part.alive:
                    self._ending.fail(f"the {what} ended unasked")
        drain = Deadline.after(DRAIN_SECONDS, monotonic)
        self._watch.stop(drain.remaining())
        self._resync.stop(drain.remaining())
        self._workers.stop(drain.remaining())
        self.metrics.leader.set(0)

    def _event(self, kind: str, key: Key) -> None:
        self.metrics.watch_events.labels(kind).inc()
        self._queue.add(key)
