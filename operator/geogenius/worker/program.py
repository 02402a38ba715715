"""The worker as a program: claim, execute, conclude, until it is asked to stop."""

import logging
import random
import signal
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic

from geogenius.domain.deadline import Deadline
from geogenius.domain.delivery import Considered, Execute
from geogenius.domain.errors import GeogeniusError
from geogenius.domain.run import RunId
from geogenius.pgflow.leases import Delivery
from geogenius.pgflow.listening import Listening
from geogenius.processes.ending import Ending
from geogenius.telemetry.metrics import WorkerMetrics
from geogenius.telemetry.probes import Probes, serve
from geogenius.wiring.working import WorkerContext
from geogenius.worker.held import Held
from geogenius.worker.keeping import Keeping

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often it is looked whether to end, and whether all parts still run."""

STUCK_SECONDS = 300.0
"""A turn of the loop that takes longer than all its deadlines together hangs."""

LONGEST_PAUSE_SECONDS = 10.0
"""How late a database that fell silent is asked again."""

LAST_WORDS_SECONDS = 15.0
"""How long, at the end, a database that is silent is asked to take the ends of the last runs."""

JITTER = 0.2
"""By how much polls are spread, so that workers do not ask in step."""


class Worker:
    """The loop. Threads only bring news; what becomes of a message is decided here, one after the other."""

    def __init__(self, context: WorkerContext) -> None:
        self.metrics = WorkerMetrics()
        self._context = context
        self._ending = Ending()
        self._news: SimpleQueue[RunId | None] = SimpleQueue()
        self._held = Held()
        self._concluding: list[RunId] = []
        self._listening = Listening(context.database, context.slug, lambda: self._news.put(None))
        self._keeping = Keeping(context.kept_leases, context.name, context.lease, self._held, self.metrics.lost.inc)
        self._due = Deadline.after(0, monotonic)
        self._failures = 0
        self._turned = monotonic()

    def run(self) -> int:
        """Work until SIGTERM or SIGINT (0), or until a part of the program is lost (1)."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.ask())
        server = serve(self._context.probe_port, Probes(self.not_alive, self.not_ready, self.metrics.registry))
        try:
            self._context.supervisor.start()
            self._keeping.start()
            self._listening.start()
            logger.info("worker %s takes %d runs at once", self._context.name, self._context.concurrency)
            while not self._ending.asked:
                self._turn()
            self._drain()
        finally:
            server.shutdown()
            server.server_close()
        if self._ending.failure is not None:
            logger.error("ending: %s", self._ending.failure)
        return 0 if self._ending.failure is None else 1

    def not_alive(self) -> str | None:
        """What is wrong with this process, looking at nothing but this process."""
        stuck = monotonic() - self._turned
        return f"the loop hangs for {stuck:.0f} s" if stuck > STUCK_SECONDS else None

    def not_ready(self) -> str | None:
        """What keeps this worker from taking runs."""
        if self._ending.asked:
            return "this process is ending"
        return f"the database does not answer, {self._failures} times so far" if self._failures else None

    def _turn(self) -> None:
        self._turned = monotonic()
        if not self._keeping.alive:
            self._ending.fail("the leases are no longer renewed")
        self._take_news(min(LOOK_SECONDS, self._due.remaining()))
        if not self._failures or self._due.passed:
            self._conclude()
        if self._due.passed and not self._ending.asked:
            self._poll()
        self.metrics.held.set(len(self._held))

    def _take_news(self, seconds: float) -> None:
        """Wait for the first news, then take all there are: an executor that ended, or (None) messages that came."""
        try:
            news = self._news.get(timeout=seconds) if seconds > 0 else self._news.get_nowait()
            while True:
                if news is not None:
                    self._concluding.append(news)
                elif not self._failures:
                    self._due = Deadline.after(0, monotonic)
                news = self._news.get_nowait()
        except Empty:
            return

    def _poll(self) -> None:
        """Claim as many messages as executors are free, and come back at once where there may be more."""
        free = self._context.concurrency - len(self._held)
        try:
            claimed = self._context.leases.claim(free) if free > 0 else []
        except GeogeniusError as error:
            self._rest(error)
            return
        self._failures = 0
        for delivery in claimed:
            self.metrics.deliveries.inc()
            self._begin(delivery)
        seconds = self._context.poll.total_seconds() * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  no secret
        self._due = Deadline.after(0 if claimed and len(self._held) < self._context.concurrency else seconds, monotonic)

    def _begin(self, delivery: Delivery) -> None:
        if self._held.add(delivery):
            logger.warning("handed out again to us, its executor goes on", extra={"run_id": delivery.run_id})
            return
        step = self._tried(
            delivery, lambda: self._context.work.begin(delivery, lambda _: self._news.put(delivery.run_id))
        )
        if step is None:
            self._concluding.append(delivery.run_id)
        elif not isinstance(step, Execute):
            self._let_go(delivery, type(step).__name__)

    def _conclude(self) -> None:
        """Say how the runs ended whose executors are gone; what the database does not take now, it is told later."""
        for run_id in tuple(self._concluding):
            delivery = self._held.of(run_id)
            if delivery is None:
                self._concluding.remove(run_id)
                continue
            step = self._tried(delivery, partial(self._context.work.conclude, delivery))
            if step is not None:
                self._failures = 0
                self._concluding.remove(run_id)
                self._let_go(delivery, type(step).__name__)

    def _tried(self, delivery: Delivery, step: Callable[[], Considered]) -> Considered | None:
        """What the step has done; None where it has to be tried again. A bug that one message meets ends no others."""
        try:
            try:
                return step()
            except GeogeniusError:
                raise
            except Exception as error:  # noqa: BLE001  our own code failed: this message rests, or ends
                return self._context.work.break_off(delivery, error)
        except GeogeniusError as error:
            self._rest(error)
            return None

    def _let_go(self, delivery: Delivery, step: str) -> None:
        self._held.drop(delivery)
        self.metrics.steps.labels(step).inc()
        self._due = Deadline.after(0, monotonic)

    def _rest(self, error: GeogeniusError) -> None:
        """After a database that gave no answer: ask again later and later, up to a bound."""
        self._failures += 1
        pause = min(LOOK_SECONDS * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_SECONDS)
        self._due = Deadline.after(pause, monotonic)
        self.metrics.failures.inc()
        logger.warning("again in %.1f s: %s", pause, error)

    def _drain(self) -> None:
        """Claim nothing more; let runs end for a while, then have them ended; tell what can be told."""
        self._listening.stop()
        self._until_held_nothing(Deadline.after(self._context.drain.total_seconds(), monotonic))
        self._context.supervisor.stop()
        self._until_held_nothing(Deadline.after(LAST_WORDS_SECONDS, monotonic))
        self._keeping.stop()
        try:
            self._context.leases.retire()
        except GeogeniusError as error:
            logger.warning("the worker is not signed off: %s", error)
        for delivery in self._held.now():
            logger.error("left to another worker when its lease ends", extra={"run_id": delivery.run_id})

    def _until_held_nothing(self, deadline: Deadline) -> None:
        while len(self._held) and not deadline.passed:
            self._turned = monotonic()
            self._take_news(min(LOOK_SECONDS, deadline.remaining()))
            if not self._failures or self._due.passed:
                self._conclude()
