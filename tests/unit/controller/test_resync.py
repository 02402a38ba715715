"""Which changes of a run make a tick look at its request. The two sides are stand-ins that answer as they are told."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from geogenius.catalog.runs import Runs
from geogenius.controller.keyed_queue import Key
from geogenius.controller.resync import Resync, Scope
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.run import ExecutorId, RequestRef, Run, RunId, RunState
from geogenius.kube.requests import Requests
from geogenius.telemetry.metrics import ControllerMetrics
from tests.support.builders import CLUSTER_ID, NOON, REQUEST_UID, a_run

WORLD = Key("maps", "world")
EXECUTOR = ExecutorId(UUID(int=7))


class Sides:
    """The catalog and the cluster, as a resync sees them."""

    def __init__(self) -> None:
        self.live: list[Run] = []
        self.ended: dict[RunId, Run] = {}
        self.listed: list[tuple[str, str]] = []
        self.trouble: Exception | None = None
        self.looks = threading.Semaphore(0)

    def live_of_cluster(self, _: UUID) -> list[Run]:
        self.looks.release()
        if self.trouble is not None:
            raise self.trouble
        return self.live

    def get(self, run_id: RunId) -> Run | None:
        return self.ended.get(run_id)

    def names(self) -> Iterator[tuple[str, str]]:
        return iter(self.listed)


class Bench:
    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.sides = Sides()
        self.added: list[Key] = []
        requests, runs = cast("Requests", self.sides), cast("Runs", self.sides)
        self.resync = Resync(requests, runs, Scope(CLUSTER_ID, namespaces), self.added.append, ControllerMetrics())

    def tick(self, *live: Run) -> list[Key]:
        """What a tick adds that finds these runs alive."""
        self.added.clear()
        self.sides.live = list(live)
        self.resync.tick()
        return list(self.added)


def a_live_run(**changes: Any) -> Run:  # noqa: ANN401  any field of a run
    facts = {"state": RunState.STAGING, "enqueue_state": EnqueueState.ACCEPTED, "executor_id": EXECUTOR}
    return a_run(**(facts | {"last_heartbeat_at": NOON} | changes))


def test_a_run_is_looked_at_when_it_is_first_seen_and_not_while_nothing_changes() -> None:
    bench = Bench()
    assert bench.tick(a_live_run()) == [WORLD]
    later = NOON + timedelta(minutes=1)
    assert bench.tick(a_live_run(read_at=later, last_heartbeat_at=later)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"state": RunState.NORMALIZING},
        {"progress": {"rows": 10}},
        {"rejected": 1},
        {"executor_id": None},
        {"read_at": NOON + timedelta(minutes=16)},
    ],
    ids=["phase", "progress", "rejects", "executor", "no-sign-of-life"],
)
def test_what_shows_in_a_status_and_comes_without_an_event_is_looked_at(change: dict[str, Any]) -> None:
    bench = Bench()
    bench.tick(a_live_run())
    assert bench.tick(a_live_run(**change)) == [WORLD]


def test_a_run_that_has_ended_is_looked_at_once_more_and_forgotten() -> None:
    bench = Bench()
    run = a_live_run()
    bench.tick(run)
    bench.sides.ended[run.run_id] = run
    assert bench.tick() == [WORLD]
    assert bench.tick() == []
    assert bench.resync._seen == {}


def test_a_tick_that_breaks_off_loses_nothing() -> None:
    bench = Bench()
    bench.tick(a_live_run())
    bench.sides.trouble = DatabaseUnavailable("gone")
    with pytest.raises(DatabaseUnavailable):
        bench.tick()
    bench.sides.trouble = None
    assert bench.tick(a_live_run(rejected=1)) == [WORLD]


def test_runs_of_other_namespaces_and_of_commands_are_not_ours() -> None:
    other = a_live_run(run_id=RunId(uuid4()), request=RequestRef("elsewhere", "x", REQUEST_UID))
    command = a_live_run(run_id=RunId(uuid4()), request=None)
    assert Bench(("maps",)).tick(a_live_run(), other, command) == [WORLD]


def test_a_resync_adds_every_request_and_every_run_whose_request_is_gone() -> None:
    bench = Bench()
    bench.sides.listed = [("maps", "a"), ("maps", "b")]
    bench.sides.live = [a_live_run()]
    bench.resync.resync()
    assert bench.added == [Key("maps", "a"), Key("maps", "b"), WORLD]


@pytest.mark.parametrize("trouble", [DatabaseUnavailable("gone"), ValueError("a bug")], ids=["outage", "bug"])
def test_the_loops_outlive_whatever_a_look_raises(trouble: Exception) -> None:
    bench = Bench()
    bench.sides.trouble = trouble
    bench.resync.start(0.01, 0.01)
    for _ in range(6):
        assert bench.sides.looks.acquire(timeout=10)
    assert bench.resync.alive
    bench.resync.stop(10)
    assert not bench.resync.alive
