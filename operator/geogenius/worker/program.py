"""The worker as a program: claim, execute, conclude, until it is asked to stop."""

import logging
import random
import signal
from queue import Empty, SimpleQueue
from time import monotonic

from geogenius.domain.deadline import Deadline
from geogenius.domain.delivery import Execute
from geogenius.domain.errors import GeogeniusError, Unavailable
from geogenius.domain.run import RunId
from geogenius.launcher.work import NoExecutor, NotOurs, Step
from geogenius.pgflow.leases import Delivery
from geogenius.pgflow.listening import Listening
from geogenius.processes.ending import Ending
from geogenius.telemetry.metrics import WorkerMetrics
from geogenius.telemetry.probes import Probes, serve
from geogenius.wiring.working import WorkerContext
from geogenius.worker.agenda import Act, Agenda, Setbacks, Todo
from geogenius.worker.held import Held
from geogenius.worker.keeping import Keeping

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often it is looked whether to end, and whether all parts still run."""

STUCK_SECONDS = 300.0
"""A step that takes longer than all its deadlines together hangs."""

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
        self._agenda = Agenda()
        self._listening = Listening(context.database, context.slug, lambda: self._news.put(None))
        self._keeping = Keeping(context.kept_leases, context.lease, self._held, self.metrics.lost.inc)
        self._due = Deadline.after(0, monotonic)
        self._silences, self._refusals = Setbacks(), Setbacks()
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
        if self._silences.failures:
            return f"the database does not answer, {self._silences.failures} times so far"
        return f"no executor can be made: {self._refusals.why}" if self._refusals.failures else None

    def _turn(self) -> None:
        if not self._keeping.alive:
            self._ending.fail("the leases are no longer renewed")
        self._take_news(min(LOOK_SECONDS, self._due.remaining(), self._agenda.remaining()))
        self._work_off()
        if self._due.passed and not self._ending.asked:
            self._poll()
        self.metrics.held.set(len(self._held))

    def _take_news(self, seconds: float) -> None:
        """Wait for the first news, then take all there are: an executor that ended, or (None) messages that came."""
        self._turned = monotonic()
        try:
            news = self._news.get(timeout=seconds) if seconds > 0 else self._news.get_nowait()
            while True:
                if news is None:
                    self._hurry()
                elif self._held.of(news) is not None:
                    self._agenda.put(news, Act.CONCLUDE)
                news = self._news.get_nowait()
        except Empty:
            return

    def _poll(self) -> None:
        """Claim as many messages as executors are free, and come back at once where there may be more.

        All are held before the first is begun, so that their leases are kept meanwhile.
        """
        free = self._context.concurrency - len(self._held)
        if self._refusals.failures:
            free = min(free, 1)  # one message tells whether executors can be made again
        try:
            claimed = self._context.leases.claim(free) if free > 0 else []
        except GeogeniusError as error:
            self._rest(self._silences, str(error))
            return
        self._silences.end()
        for delivery in claimed:
            self._take(delivery)
        seconds = self._context.poll.total_seconds() * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  no secret
        self._due = Deadline.after(0 if claimed and len(self._held) < self._context.concurrency else seconds, monotonic)
        self._work_off()

    def _take(self, delivery: Delivery) -> None:
        self.metrics.deliveries.inc()
        if self._held.add(delivery):
            logger.warning("handed out again to us, its executor goes on", extra={"run_id": delivery.run_id})
        else:
            self._agenda.put(delivery.run_id, Act.BEGIN)

    def _work_off(self) -> None:
        """Do what is due; after something that does not answer, the rest waits for the next turn."""
        for todo in self._agenda.due():
            self._turned = monotonic()
            if not self._answered(todo):
                return

    def _answered(self, todo: Todo) -> bool:
        """Do one thing, or postpone it; whether that which it needs has answered."""
        delivery = self._held.of(todo.run_id)
        if delivery is None:
            self._agenda.remove(todo)
            return True
        try:
            step = self._step(todo.act, delivery)
        except Exception as error:  # noqa: BLE001  whatever one message meets, the others go on
            pause = self._agenda.postpone(todo, str(error))
            self.metrics.failures.inc()
            logger.warning("again in %.1f s: %s", pause, error, extra={"run_id": todo.run_id})
            return not isinstance(error, Unavailable)
        self._agenda.remove(todo)
        self._note(delivery, step)
        return True

    def _step(self, act: Act, delivery: Delivery) -> Step:
        """Do it; a bug that it meets is dealt with as the message allows."""
        work = self._context.work
        try:
            if act is Act.CONCLUDE:
                return work.conclude(delivery)
            if self._ending.asked:
                return work.give_back(delivery)
            return work.begin(delivery, lambda _: self._news.put(delivery.run_id))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  our own code failed
            return work.break_off(delivery, error)

    def _note(self, delivery: Delivery, step: Step) -> None:
        """What a step means for the worker."""
        self.metrics.steps.labels(type(step).__name__).inc()
        if isinstance(step, Execute):
            self._refusals.end()
            return
        self._held.drop(delivery)
        if isinstance(step, NotOurs):
            self.metrics.lost.inc()
        if not isinstance(step, NoExecutor):
            self._hurry()
            return
        self._rest(self._refusals, step.message)
        if step.hangs:
            self._ending.fail(step.message)

    def _hurry(self) -> None:
        """Look for messages at once, unless something does not work anyway."""
        if not self._silences.failures and not self._refusals.failures:
            self._due = Deadline.after(0, monotonic)

    def _rest(self, setbacks: Setbacks, why: str) -> None:
        """Claim again later and later, up to a bound."""
        pause = setbacks.add(why)
        self._due = Deadline.after(pause, monotonic)
        self.metrics.failures.inc()
        logger.warning("nothing is claimed for %.1f s: %s", pause, why)

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
            self._take_news(min(LOOK_SECONDS, deadline.remaining(), self._agenda.remaining()))
            self._work_off()
