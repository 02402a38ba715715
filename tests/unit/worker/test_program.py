"""What the loop of a worker does with messages, whatever one of them, the database or the nursery meets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from typing_extensions import override

from geogenius.db import Call
from geogenius.domain.delivery import MOST_DELIVERIES, Conclude, Discard, Execute, FailRun, PutBack
from geogenius.domain.errors import Conflict, DatabaseUnavailable, GeogeniusError
from geogenius.domain.run import Run, RunError, RunId, RunState
from geogenius.launcher.work import NoExecutor, NotOurs, Step, Work
from geogenius.pgflow.leases import Delivery
from geogenius.pgflow.order import Order
from geogenius.processes.supervisor import Ended, Lost, Refused, Submitted
from geogenius.telemetry.metrics import WorkerMetrics
from geogenius.worker.agenda import LONGEST_PAUSE_SECONDS, Act
from geogenius.worker.held import Held
from geogenius.worker.keeping import Keeping
from geogenius.worker.program import Worker
from tests.support.builders import a_run

SOUND = Conclude(RunState.COMPLETED)
SILENT = DatabaseUnavailable("silent")
MINUTE = timedelta(seconds=60)


@dataclass
class Queue:
    """Messages to be claimed, and what became of them."""

    deliveries: list[Delivery]
    ends: list[tuple[int, str]] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)
    taken_away: set[int] = field(default_factory=set)
    silent: bool = False

    def claim(self, count: int) -> list[Delivery]:
        self.answer()
        self.claims.append(count)
        claimed, self.deliveries = self.deliveries[:count], self.deliveries[count:]
        return claimed

    def renew(self, delivery: Delivery) -> bool:
        self.answer()
        return delivery.message not in self.taken_away

    def fail(self, delivery: Delivery, error: str) -> bool:
        return self._ended(delivery, error)

    def complete(self, delivery: Delivery, output: dict[str, str]) -> bool:
        return self._ended(delivery, output["outcome"])

    def put_back(self, delivery: Delivery, seconds: float, *, counted: bool = False) -> bool:
        return self._ended(delivery, f"{'counted' if counted else 'put back'} for {seconds:.0f} s")

    def answer(self) -> None:
        if self.silent:
            raise SILENT

    def _ended(self, delivery: Delivery, how: str) -> bool:
        self.answer()
        self.ends.append((delivery.message, how))
        return True


@dataclass
class Catalog:
    """One answer for every run, and the failures that were recorded."""

    run: Run | None = None
    error: Exception | None = None
    failed: list[tuple[RunError, Call]] = field(default_factory=list)
    refusal: GeogeniusError | None = None

    def get(self, run_id: RunId) -> Run | None:  # noqa: ARG002  one answer for all
        if self.error is not None:
            raise self.error
        return self.run

    def fail(self, fence: object, error: RunError, call: Call) -> None:  # noqa: ARG002  one answer for all
        if self.refusal is not None:
            raise self.refusal
        self.failed.append((error, call))


@dataclass
class Supervisor:
    """Answers as the test says; knows what it was asked for."""

    answer: Submitted | Refused | Lost = field(default_factory=lambda: Submitted(1))
    asked: list[RunId] = field(default_factory=list)
    ended: list[Callable[[Ended], None]] = field(default_factory=list)

    def submit(self, run_id: RunId, *, deadline: timedelta, ended: Callable[[Ended], None]) -> object:
        assert deadline == MINUTE * 2
        self.asked.append(run_id)
        self.ended.append(ended)
        return self.answer


@dataclass
class Context:
    work: Work
    leases: Queue
    kept_leases: Queue
    name: str = "a worker"
    slug: str = "s"
    database: Any = None
    supervisor: Any = None
    concurrency: int = 8
    lease: timedelta = timedelta(seconds=60)
    poll: timedelta = timedelta(seconds=5)
    drain: timedelta = timedelta(0)
    probe_port: int = 0


def a_delivery(message: int, attempt: int = 1) -> Delivery:
    run_id = RunId(uuid4())
    order = Order(run_id, "geogenius", publish=False, stale_after=MINUTE, deadline=MINUTE * 2)
    return Delivery(run_id, message, attempt, order.to_json())


def a_worker(work: Work, queue: Queue) -> Worker:
    return Worker(cast("Any", Context(work, queue, queue)))


@dataclass
class Desk:
    """The real steps of a worker on a queue, a catalog and a supervisor of the test."""

    queue: Queue
    catalog: Catalog = field(default_factory=lambda: Catalog(a_run()))
    supervisor: Supervisor = field(default_factory=Supervisor)

    def worker(self) -> Worker:
        parts: tuple[Any, Any, Any] = (self.catalog, self.queue, self.supervisor)
        return a_worker(Work(*parts, "geogenius"), self.queue)


class BrokenWork(Work):
    """Our own code with a bug that one message meets."""

    def __init__(self, queue: Queue, broken: int, error: Exception) -> None:
        super().__init__(cast("Any", Catalog()), cast("Any", queue), cast("Any", None), "geogenius")
        self.broken, self.error = broken, error

    @override
    def begin(self, delivery: Delivery, ended: object) -> Step:
        if delivery.message == self.broken:
            raise self.error
        return SOUND


def polled(queue: Queue, broken: int, error: Exception) -> Worker:
    worker = a_worker(BrokenWork(queue, broken, error), queue)
    worker._poll()
    return worker


def steps(worker: Worker) -> dict[str, float]:
    (metric,) = worker.metrics.steps.collect()
    return {sample.labels["step"]: sample.value for sample in metric.samples if sample.name.endswith("_total")}


def acts(worker: Worker) -> list[Act]:
    return [todo.act for todo in worker._agenda._todos.values()]


def all_due(worker: Worker) -> None:
    """Whatever rests has rested."""
    for run_id, todo in tuple(worker._agenda._todos.items()):
        worker._agenda.put(run_id, todo.act)


def test_a_bug_puts_the_message_back_and_the_others_go_on() -> None:
    queue = Queue([a_delivery(1), a_delivery(2), a_delivery(3)])

    worker = polled(queue, 2, ZeroDivisionError("a bug"))

    assert steps(worker) == {type(SOUND).__name__: 2, PutBack.__name__: 1}
    assert queue.ends == [(2, "counted for 2 s")]
    assert len(worker._held) == 0


def test_a_message_that_meets_a_bug_again_and_again_is_given_up_with_its_words() -> None:
    queue = Queue([a_delivery(1, MOST_DELIVERIES + 1)])

    worker = polled(queue, 1, ZeroDivisionError("a bug"))

    assert steps(worker) == {Discard.__name__: 1}
    assert queue.ends == [(1, "ZeroDivisionError: a bug")]


def test_what_a_message_meets_that_is_no_silence_is_not_taken_for_one() -> None:
    queue = Queue([a_delivery(1), a_delivery(2)])

    worker = polled(queue, 1, Conflict("the world moved on"))

    assert steps(worker) == {type(SOUND).__name__: 1, PutBack.__name__: 1}
    assert worker.not_ready() is None


def test_a_message_that_is_given_up_after_a_bug_takes_its_run_along() -> None:
    desk = Desk(Queue([a_delivery(1, MOST_DELIVERIES + 1)]), Catalog(a_run()))
    worker = desk.worker()

    assert isinstance(worker._context.work.break_off(desk.queue.deliveries[0], ZeroDivisionError("a bug")), FailRun)

    ((error, _),) = desk.catalog.failed
    assert (error.reason, error.message) == ("InternalError", "ZeroDivisionError: a bug")
    assert desk.queue.ends == [(1, "failed")]


def test_a_message_whose_run_meets_the_bug_itself_ends_alone() -> None:
    desk = Desk(Queue([a_delivery(1, MOST_DELIVERIES + 1)]), Catalog(error=ZeroDivisionError("a bug")))
    worker = desk.worker()

    worker._poll()

    assert desk.queue.ends == [(1, "ZeroDivisionError: a bug")]
    assert len(worker._held) == 0


def test_a_malformed_message_fails_the_run_that_waits_for_it() -> None:
    delivery = Delivery(RunId(uuid4()), 1, 1, {"run_id": 7})
    desk = Desk(Queue([delivery]))
    worker = desk.worker()

    worker._poll()

    ((error, call),) = desk.catalog.failed
    assert (error.reason, call) == ("MessageMalformed", Call.IMPATIENT)
    assert "run_id: 7 is not the id of a run" in error.message
    assert desk.queue.ends == [(1, "failed")]


def test_a_database_that_does_not_answer_gives_nothing_up() -> None:
    queue = Queue([a_delivery(1, MOST_DELIVERIES + 1)])

    worker = polled(queue, 1, SILENT)

    assert queue.ends == []
    assert (len(worker._held), acts(worker)) == (1, [Act.BEGIN])


def test_a_message_that_meets_a_silent_database_again_and_again_is_begun_afterwards_under_the_same_delivery() -> None:
    desk = Desk(Queue([a_delivery(1)]), Catalog(a_run(), error=SILENT))
    worker = desk.worker()
    worker._poll()
    for _ in range(MOST_DELIVERIES + 2):
        all_due(worker)
        worker._work_off()
    assert (desk.queue.ends, desk.supervisor.asked) == ([], [])

    desk.catalog.error = None
    all_due(worker)
    worker._work_off()

    assert (desk.queue.ends, len(desk.supervisor.asked)) == ([], 1)
    assert steps(worker) == {Execute.__name__: 1}


def test_after_a_silence_the_other_messages_wait_for_the_next_turn_and_none_is_left_out() -> None:
    desk = Desk(Queue([a_delivery(1), a_delivery(2), a_delivery(3)]), Catalog(a_run(), error=SILENT))
    worker = desk.worker()

    worker._poll()
    assert len(worker._agenda.due()) == 2

    worker._work_off()
    worker._work_off()
    assert worker._agenda.due() == []
    assert 0 < worker._agenda.remaining() <= 1


def test_a_message_that_always_meets_a_silence_keeps_no_other_from_being_claimed() -> None:
    first = a_delivery(1)
    desk = Desk(Queue([first]))
    worker = desk.worker()
    worker._poll()
    worker._keeping = cast("Any", type("Alive", (), {"alive": True}))
    desk.catalog.error = SILENT
    desk.supervisor.ended[0](Ended(first.run_id, 0, None, None))
    worker._take_news(0)
    worker._work_off()
    assert acts(worker) == [Act.CONCLUDE]

    desk.catalog.error = None
    desk.queue.deliveries.append(a_delivery(2))
    worker._news.put(None)
    worker._turn()

    assert len(desk.supervisor.asked) == 2
    assert acts(worker) == [Act.CONCLUDE]


def test_pauses_grow_up_to_a_bound() -> None:
    desk = Desk(Queue([a_delivery(1)]), Catalog(a_run(), error=SILENT))
    worker = desk.worker()
    worker._poll()
    (todo,) = worker._agenda._todos.values()

    pauses = [worker._agenda.postpone(todo, "silent") for _ in range(20)]

    assert pauses[:3] == [2, 4, 8]
    assert max(pauses) == pauses[-1] == LONGEST_PAUSE_SECONDS


def test_all_messages_are_held_before_the_first_is_begun() -> None:
    held: list[int] = []

    class Looking(BrokenWork):
        @override
        def begin(self, delivery: Delivery, ended: object) -> Step:
            held.append(len(worker._held))
            return SOUND

    queue = Queue([a_delivery(number) for number in range(3)])
    worker = a_worker(Looking(queue, 0, SILENT), queue)

    worker._poll()

    assert held == [3, 2, 1]


def test_a_message_that_went_to_another_worker_meanwhile_is_not_begun() -> None:
    desk = Desk(Queue([a_delivery(1), a_delivery(2)], taken_away={1}))
    worker = desk.worker()

    worker._poll()

    assert steps(worker) == {NotOurs.__name__: 1, Execute.__name__: 1}
    assert worker.metrics.lost._value.get() == 1
    assert len(desk.supervisor.asked) == 1


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (Refused("NotForked", "no memory"), "put back for 2 s"),
        (Refused("SupervisorNotStarted", "no memory"), "put back for 2 s"),
        (Lost("no memory"), "counted for 2 s"),
    ],
)
def test_a_worker_that_cannot_make_executors_puts_back_what_it_has_rests_and_is_not_ready(
    answer: Refused | Lost, end: str
) -> None:
    desk = Desk(Queue([a_delivery(number) for number in range(20)]), supervisor=Supervisor(answer))
    worker = desk.worker()

    worker._poll()

    assert desk.queue.ends == [(number, end) for number in range(8)]
    assert worker._due.remaining() > 0
    assert worker.not_ready() == "no executor can be made: no memory"
    worker._news.put(None)
    worker._take_news(0)
    assert worker._due.remaining() > 0
    assert not worker._ending.asked


def test_a_worker_that_could_not_make_executors_tries_with_one_message_and_then_takes_all_it_can() -> None:
    desk = Desk(Queue([a_delivery(number) for number in range(20)]), supervisor=Supervisor(Refused("Full", "full")))
    worker = desk.worker()
    worker._poll()
    worker._poll()
    desk.supervisor.answer = Submitted(1)

    worker._poll()
    assert worker.not_ready() is None
    assert worker._due.passed
    worker._poll()

    assert desk.queue.claims == [8, 1, 1, 7]
    assert len(worker._held) == 8


def test_a_nursery_that_hangs_ends_the_worker_and_what_is_not_begun_goes_to_others_uncounted() -> None:
    desk = Desk(Queue([a_delivery(1), a_delivery(2)]), supervisor=Supervisor(Lost("silent for 60 s", hangs=True)))
    worker = desk.worker()

    worker._poll()

    assert worker._ending.failure == "silent for 60 s"
    assert desk.queue.ends == [(1, "counted for 2 s"), (2, "put back for 0 s")]
    assert steps(worker) == {NoExecutor.__name__: 1, PutBack.__name__: 1}


def test_a_run_that_cannot_be_failed_at_once_is_looked_at_later() -> None:
    delivery = a_delivery(1, MOST_DELIVERIES + 1)
    desk = Desk(Queue([delivery]), Catalog(a_run(), refusal=SILENT))
    worker = desk.worker()

    worker._poll()

    assert desk.queue.ends == [(1, "put back for 15 s")]


class Executing(Work):
    """Every run has an executor until the test says that it is gone."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(cast("Any", None), cast("Any", queue), cast("Any", None), "geogenius")
        self.gone: list[Callable[[Any], None]] = []
        self.concluded: list[int] = []

    @override
    def begin(self, delivery: Delivery, ended: Callable[[Any], None]) -> Step:
        self.gone.append(ended)
        return Execute()

    @override
    def conclude(self, delivery: Delivery) -> Conclude:
        self.concluded.append(delivery.attempt)
        return SOUND


def test_a_message_that_comes_back_to_its_own_holder_is_concluded_once_under_its_last_delivery() -> None:
    first = a_delivery(1)
    again = Delivery(first.run_id, 1, 2, {})
    queue = Queue([first])
    work = Executing(queue)
    worker = a_worker(work, queue)
    worker._poll()
    assert worker._held.lose(first)
    queue.deliveries.append(again)

    worker._poll()
    assert len(work.gone) == 1
    assert worker._held.leased() == (again,)
    work.gone[0](None)
    worker._take_news(0)
    worker._work_off()

    assert work.concluded == [2]
    assert len(worker._held) == 0


def test_a_lease_that_cannot_be_renewed_keeps_no_other_from_being_renewed() -> None:
    held, renewed = Held(), []
    for number in (1, 2, 3):
        held.add(a_delivery(number))

    class Leases:
        def renew(self, delivery: Delivery) -> bool:
            if delivery.message == 1:
                raise SILENT
            renewed.append(delivery.message)
            return delivery.message != 3

        def register(self) -> None:
            raise SILENT

    metrics = WorkerMetrics()
    keeping = Keeping(cast("Any", Leases()), MINUTE, held, metrics.lost.inc)

    assert keeping._round() is False

    assert renewed == [2, 3]
    assert [delivery.message for delivery in held.leased()] == [1, 2]
    assert metrics.lost._value.get() == 1
