from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import DictRow

from geogenius.db import Database
from geogenius.domain.run import RunId
from geogenius.pgflow.enqueue import enqueue
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.names import flow_slug
from geogenius.pgflow.order import Order
from tests.support.databases import PostgresCluster
from tests.support.queues import DEADLINE, queue_template

Sql = psycopg.Connection[DictRow]

OBJECTS = """
select 'schema' as kind, n.nspname::text as name, n.xmin::text as change, '' as text
from pg_namespace n where n.nspname !~ '^pg_'
union all
select 'relation', c.oid::regclass::text, c.xmin::text, '' from pg_class c
join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('pgmq', 'pgflow', 'realtime')
union all
select 'function', p.oid::regprocedure::text, p.xmin::text, p.prosrc from pg_proc p
join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('pgmq', 'pgflow', 'realtime')
union all
select 'ledger', component || ' ' || script, xmin::text, sha256 from geogenius.queue_component
"""


def objects(sql: Sql) -> set[tuple[str, ...]]:
    """Everything of the queue, each with what changes whenever it is altered."""
    return {tuple(row.values()) for row in sql.execute(OBJECTS)}


def schemas(sql: Sql) -> set[str]:
    return {name for kind, name, *_ in objects(sql) if kind == "schema"} & {"pgmq", "pgflow", "realtime"}


def ledger(sql: Sql) -> set[str]:
    return {name.split()[0] for kind, name, *_ in objects(sql) if kind == "ledger"}


def an_order(schema: str = "geogenius") -> Order:
    return Order(RunId(uuid4()), schema, publish=False, stale_after=timedelta(minutes=15), deadline=DEADLINE)


def queued(database: Database) -> UUID:
    """A run that waits in the queue of this catalog."""
    order = an_order(database.schema)
    with database.connection() as connection:
        enqueue(connection, flow_slug(database.schema), order)
    return order.run_id


@pytest.fixture(scope="session")
def installed(postgres: PostgresCluster, template: str) -> str:
    """The name of a migrated database with the queue."""
    return queue_template(postgres, template)


@pytest.fixture
def dbname(postgres: PostgresCluster, installed: str) -> Iterator[str]:
    """A database with the queue, of the test's own."""
    name = postgres.create(installed)
    yield name
    postgres.drop(name)


@pytest.fixture
def worker(database: Database) -> Leases:
    """A worker that is known to the queue."""
    leases = Leases(database, flow_slug(database.schema), uuid4(), timedelta(seconds=60), "a worker")
    leases.register()
    return leases


@pytest.fixture
def ended(database: Database, worker: Leases) -> Callable[[], UUID]:
    """Queues a run and has it done."""

    def ended() -> UUID:
        run = queued(database)
        (delivery,) = worker.claim(1)
        assert worker.complete(delivery, {"outcome": "completed"})
        return run

    return ended
