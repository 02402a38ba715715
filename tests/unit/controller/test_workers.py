from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event
from time import monotonic

import pytest

from geogenius.controller.keyed_queue import Backoff, Key, KeyedQueue
from geogenius.controller.workers import Workers
from geogenius.domain.errors import Conflict, DatabaseUnavailable
from geogenius.telemetry.metrics import ControllerMetrics

POISON, GOOD = Key("maps", "poison"), Key("maps", "good")


@contextmanager
def working(
    reconcile: Callable[[str, str], float | None], metrics: ControllerMetrics | None = None, count: int = 1
) -> Iterator[tuple[KeyedQueue, Workers]]:
    queue = KeyedQueue(monotonic, Backoff(first_seconds=0.01, cap_seconds=0.02))
    workers = Workers(queue, reconcile, metrics or ControllerMetrics(), count)
    workers.start()
    try:
        yield queue, workers
    finally:
        workers.stop(10)


@pytest.mark.parametrize(
    ("error", "result"),
    [(DatabaseUnavailable("gone"), "unavailable"), (Conflict("moved on"), "conflict"), (ValueError("a bug"), "error")],
    ids=["unavailable", "conflict", "bug"],
)
def test_a_key_that_always_raises_comes_again_and_keeps_nobody_waiting(error: Exception, result: str) -> None:
    seen: SimpleQueue[str] = SimpleQueue()
    metrics = ControllerMetrics()

    def reconcile(_: str, name: str) -> None:
        seen.put(name)
        if name == POISON.name:
            raise error

    with working(reconcile, metrics) as (queue, workers):
        queue.add(POISON)
        queue.add(GOOD)
        assert [seen.get(timeout=10) for _ in range(4)] == ["poison", "good", "poison", "poison"]
        assert workers.alive
    assert metrics.registry.get_sample_value("geogenius_reconcile_total", {"result": result}) >= 2


def test_a_key_comes_again_when_its_reconcile_asks_for_it() -> None:
    seen: SimpleQueue[float] = SimpleQueue()

    def reconcile(*_: str) -> float:
        seen.put(monotonic())
        return 0.05

    with working(reconcile) as (queue, _):
        queue.add(GOOD)
        first, second = seen.get(timeout=10), seen.get(timeout=10)
    assert second - first >= 0.05


def test_a_reconcile_that_hangs_shows_and_blocks_no_other() -> None:
    hanging, release, other = Event(), Event(), Event()

    def reconcile(_: str, name: str) -> None:
        if name == POISON.name:
            hanging.set()
            release.wait(10)
        other.set()

    with working(reconcile, count=2) as (queue, workers):
        queue.add(POISON)
        assert hanging.wait(10)
        queue.add(GOOD)
        assert other.wait(10)
        assert workers.longest_busy_seconds() > 0
        release.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_ends_is_noticed() -> None:
    def reconcile(*_: str) -> None:
        raise SystemExit

    with working(reconcile) as (queue, workers):
        assert workers.alive
        queue.add(POISON)
        workers._threads.join(10)
        assert not workers.alive
