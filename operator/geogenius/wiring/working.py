"""The worker: the queue, the catalog, and the child processes that execute runs."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from geogenius.db.pool import Database
from geogenius.domain.errors import Misconfigured
from geogenius.launcher.work import Work
from geogenius.pgflow.capabilities import Wanted, facts, problems
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.names import flow_slug
from geogenius.processes.supervisor import TaskSupervisor
from geogenius.settings import Settings
from geogenius.wiring.catalog import CatalogContext, database_url, opened, refuse_outdated, started
from geogenius.wiring.importing import deadline_of, supervisor_of


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Everything a worker needs, and how it shall work. `kept_leases` are the same on a connection of their own."""

    name: str
    slug: str
    database: Database
    work: Work
    leases: Leases
    kept_leases: Leases
    supervisor: TaskSupervisor
    concurrency: int
    lease: timedelta
    poll: timedelta
    drain: timedelta
    probe_port: int


@contextmanager
def worker_context() -> Iterator[WorkerContext]:
    """Build a worker.

    Raises Misconfigured on a schema that is not up to date, or a queue that is not installed as the settings say.
    """
    settings = started()
    with (
        opened(settings, "geogenius-worker") as catalog,
        _keeping_database(settings) as keeping,
        supervisor_of(settings, settings.worker.concurrency) as supervisor,
    ):
        refuse_outdated(catalog.database)
        _refuse_unusable(settings, catalog)
        yield _worker(settings, catalog, keeping, supervisor)


def _worker(
    settings: Settings, catalog: CatalogContext, keeping: Database, supervisor: TaskSupervisor
) -> WorkerContext:
    worker, worker_id = settings.worker, uuid4()
    name = f"geogenius worker {socket.gethostname()}:{os.getpid()}"
    slug, lease = flow_slug(settings.database.schema_name), timedelta(seconds=worker.lease_seconds)
    leases = Leases(catalog.database, slug, worker_id, lease, name)
    return WorkerContext(
        name=name,
        slug=slug,
        database=catalog.database,
        work=Work(catalog.runs, leases, supervisor, settings.database.schema_name),
        leases=leases,
        kept_leases=Leases(keeping, slug, worker_id, lease, name),
        supervisor=supervisor,
        concurrency=worker.concurrency,
        lease=lease,
        poll=timedelta(seconds=worker.poll_seconds),
        drain=timedelta(seconds=worker.drain_seconds),
        probe_port=worker.probe_port,
    )


def _refuse_unusable(settings: Settings, catalog: CatalogContext) -> None:
    """Refuse to work on a queue that lacks something; all that is wrong is named at once."""
    deadline = deadline_of(settings)
    with catalog.database.connection() as connection:
        seen = facts(connection, flow_slug(settings.database.schema_name))
    found = problems(seen, Wanted(deadline=deadline, stale_after=None, worker_required=False))
    if found:
        raise Misconfigured("; ".join(problem.message for problem in found), reason=found[0].reason)


@contextmanager
def _keeping_database(settings: Settings) -> Iterator[Database]:
    database = Database(
        database_url(settings), application_name="geogenius-keeper", schema=settings.database.schema_name, max_size=1
    )
    try:
        yield database
    finally:
        database.close()
