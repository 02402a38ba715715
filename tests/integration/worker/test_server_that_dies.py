"""A server of the tests' own that dies without a farewell: unlogged tables come back empty, connections are gone."""

from collections.abc import Callable, Iterator

import pytest

from geogenius.domain.run import RunId, RunState
from geogenius.testing import CatalogBench
from tests.support.databases import DURABLE, PostgresCluster, migrated_template, running_cluster
from tests.support.host_processes import SlowRuns, until
from tests.support.queues import queue_template
from tests.support.worker_process import Worker

Enqueue = Callable[[RunId], None]
Start = Callable[..., Worker]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    with running_cluster(settings=DURABLE) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def template(postgres: PostgresCluster) -> str:
    return queue_template(postgres, migrated_template(postgres))


def test_a_run_under_way_ends_and_new_ones_are_heard_of(
    postgres: PostgresCluster, start: Start, bench: CatalogBench, enqueue: Enqueue, slow: SlowRuns
) -> None:
    worker = start(GEOGENIUS_WORKER__POLL_SECONDS="600")
    under_way = slow.register("pgflow")
    enqueue(under_way)
    slow.until_under_way(under_way)

    postgres.crash()
    slow.let_go(under_way)

    assert bench.ended(under_way).state is RunState.COMPLETED
    until(lambda: worker.probe("/readyz")[0] == 200, "the worker is ready again")
    late = bench.register(bench.intent("pgflow"))
    enqueue(late.run_id)
    assert bench.ended(late.run_id).state is RunState.COMPLETED


def test_what_was_queued_before_is_executed_afterwards(
    postgres: PostgresCluster, start: Start, bench: CatalogBench, enqueue: Enqueue
) -> None:
    run = bench.register(bench.intent("pgflow"))
    enqueue(run.run_id)

    postgres.crash()
    start()

    assert bench.ended(run.run_id).state is RunState.COMPLETED
