from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from geogenius.db import Database
from geogenius.domain.enqueued import Accepted
from geogenius.domain.run import RunId
from geogenius.runners.contract import arguments
from geogenius.runners.pgflow import PgflowRunner
from geogenius.testing import CatalogBench
from tests.support.databases import PostgresCluster
from tests.support.queues import DEADLINE, queue_template
from tests.support.worker_process import Worker, running_worker, worker_environment

LEASE_SECONDS = 2

Start = Callable[..., Worker]


@pytest.fixture(scope="session")
def template(postgres: PostgresCluster, template: str) -> str:
    """A migrated database with the queue."""
    return queue_template(postgres, template)


@pytest.fixture
def runner(database: Database) -> PgflowRunner:
    return PgflowRunner(database, DEADLINE, worker_required=False)


@pytest.fixture
def enqueue(runner: PgflowRunner, bench: CatalogBench) -> Callable[[RunId], None]:
    """Queues a registered run."""

    def enqueue(run_id: RunId) -> None:
        run = bench.run(run_id)
        args = arguments(publish=run.publish, stale_after=run.stale_after)
        assert runner.enqueue(run_id, args) == Accepted()

    return enqueue


@pytest.fixture
def environment(conninfo: str, bench: CatalogBench) -> dict[str, str]:
    return worker_environment(conninfo, bench.workplace, lease_seconds=LEASE_SECONDS)


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts workers, each ready before it is given; at the end nothing of them is left."""
    with ExitStack() as stack:

        def start(**settings: str) -> Worker:
            number = len(list(tmp_path.glob("worker-*.log")))
            log = tmp_path / f"worker-{number}.log"
            return stack.enter_context(running_worker(environment | settings, log))

        yield start
