"""What the loop of a worker does with messages: those that meet a bug, and those that come back to their own holder."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

from typing_extensions import override

from geogenius.domain.delivery import MOST_DELIVERIES, Conclude, Considered, Discard, Execute, PutBack
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.run import RunId, RunState
from geogenius.launcher.work import Work
from geogenius.pgflow.leases import Delivery
from geogenius.worker.program import Worker

SOUND = Conclude(RunState.COMPLETED)


@dataclass
class Queue:
    """Messages to be claimed, and what became of them."""

    deliveries: list[Delivery]
    ends: list[tuple[int, str]] = field(default_factory=list)

    def claim(self, count: int) -> list[Delivery]:
        claimed, self.deliveries = self.deliveries[:count], self.deliveries[count:]
        return claimed

    def fail(self, delivery: Delivery, error: str) -> bool:
        self.ends.append((delivery.message, error))
        return True

    def put_back(self, delivery: Delivery, seconds: float, *, counted: bool = False) -> bool:
        assert seconds > 0
        self.ends.append((delivery.message, "counted" if counted else "put back"))
        return True


class BrokenWork(Work):
    """Our own code with a bug that one message meets."""

    def __init__(self, queue: Queue, broken: int, error: Exception) -> None:
        super().__init__(cast("Any", None), cast("Any", queue), cast("Any", None), "geogenius")
        self.broken, self.error = broken, error

    @override
    def begin(self, delivery: Delivery, ended: object) -> Considered:
        if delivery.message == self.broken:
            raise self.error
        return SOUND


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
    return Delivery(RunId(uuid4()), message, attempt, {})


def polled(queue: Queue, broken: int, error: Exception) -> Worker:
    worker = Worker(cast("Any", Context(BrokenWork(queue, broken, error), queue, queue)))
    worker._poll()
    return worker


def steps(worker: Worker) -> dict[str, float]:
    (metric,) = worker.metrics.steps.collect()
    return {sample.labels["step"]: sample.value for sample in metric.samples if sample.name.endswith("_total")}


def test_a_bug_puts_the_message_back_and_the_others_go_on() -> None:
    queue = Queue([a_delivery(1), a_delivery(2), a_delivery(3)])

    worker = polled(queue, 2, ZeroDivisionError("a bug"))

    assert steps(worker) == {type(SOUND).__name__: 2, PutBack.__name__: 1}
    assert queue.ends == [(2, "counted")]
    assert len(worker._held) == 0


def test_a_message_that_meets_a_bug_again_and_again_is_given_up_with_its_words() -> None:
    queue = Queue([a_delivery(1, MOST_DELIVERIES + 1)])

    worker = polled(queue, 1, ZeroDivisionError("a bug"))

    assert steps(worker) == {Discard.__name__: 1}
    assert queue.ends == [(1, "ZeroDivisionError: a bug")]


def test_a_database_that_does_not_answer_gives_nothing_up() -> None:
    queue = Queue([a_delivery(1, MOST_DELIVERIES + 1)])

    worker = polled(queue, 1, DatabaseUnavailable("silent"))

    assert queue.ends == []
    assert (len(worker._held), len(worker._concluding)) == (1, 1)


class Executing(Work):
    """Every run has an executor until the test says that it is gone."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(cast("Any", None), cast("Any", queue), cast("Any", None), "geogenius")
        self.gone: list[Callable[[Any], None]] = []
        self.concluded: list[int] = []

    @override
    def begin(self, delivery: Delivery, ended: Callable[[Any], None]) -> Considered:
        self.gone.append(ended)
        return Execute()

    @override
    def conclude(self, delivery: Delivery) -> Considered:
        self.concluded.append(delivery.attempt)
        return SOUND


def test_a_message_that_comes_back_to_its_own_holder_is_concluded_once_under_its_last_delivery() -> None:
    first = a_delivery(1)
    again = Delivery(first.run_id, 1, 2, {})
    queue = Queue([first])
    work = Executing(queue)
    worker = Worker(cast("Any", Context(work, queue, queue)))
    worker._poll()
    assert worker._held.lose(first)
    queue.deliveries.append(again)

    worker._poll()
    assert len(work.gone) == 1
    assert worker._held.leased() == (again,)
    work.gone[0](None)
    worker._take_news(0)
    worker._conclude()

    assert work.concluded == [2]
    assert len(worker._held) == 0
