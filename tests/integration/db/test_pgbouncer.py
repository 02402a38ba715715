"""Everything works through PgBouncer in transaction mode, where no two transactions need share a session."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from time import monotonic

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, Publications, Runs
from geogenius.catalog.leadership import Leadership
from geogenius.catalog.lookup import Lookup
from geogenius.catalog.places import Places
from geogenius.db import Call, Database
from geogenius.db.migrate import SchemaState, migrate, migrations, schema_state
from geogenius.domain.deadline import Deadline
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.run import RunState
from geogenius.importer.heartbeat import Heartbeat
from tests.support.catalog import a_manifest, claimed, driven, published
from tests.support.databases import OWNER, WRITER, PostgresCluster, opened
from tests.support.pgbouncer import SERVER_CONNECTIONS, running_bouncer, through

SESSION = """
select current_setting('search_path') as search_path, current_setting('statement_timeout') as statement_timeout,
    current_setting('TimeZone') as timezone, current_setting('idle_in_transaction_session_timeout') as idle
"""


@pytest.fixture(scope="module")
def bouncer(postgres: PostgresCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a private PgBouncer before the private server."""
    with running_bouncer(postgres, tmp_path_factory.mktemp("pgbouncer")) as port:
        yield port


@pytest.fixture
def pooled(bouncer: int, dbname: str) -> Iterator[Database]:
    """The database of the test as a writer, through PgBouncer."""
    with opened(through(bouncer, dbname, WRITER), "pooled") as database:
        yield database


def test_a_database_is_migrated_through_it(postgres: PostgresCluster, bouncer: int) -> None:
    name = postgres.create()
    postgres.execute(name, "create extension postgis; create extension pg_trgm")
    postgres.execute(name, f"create schema geogenius authorization {OWNER}")
    with opened(through(bouncer, name, OWNER)) as database, ThreadPoolExecutor() as threads:
        applied = list(threads.map(lambda _: migrate(database), range(2)))
        assert sorted(applied, key=len) == [[], [file.name for file in migrations()]], "one of the two does it"
        assert schema_state(database) is SchemaState.CURRENT


def test_an_import_with_its_heartbeat_and_every_move_works_through_it(pooled: Database) -> None:
    first = published(pooled, a_manifest(release="r0"))
    fence = driven(pooled, RunState.PUBLISHING)
    run = Runs(pooled).get(fence.run_id)
    assert run is not None
    with Heartbeat(Executions(pooled), pooled, fence, run.stale_after, lambda: {"rows": 7}) as heartbeat:
        deadline = Deadline.after(10, monotonic)
        while (beating := Runs(pooled).get(fence.run_id)) is None or beating.progress != {"rows": 7}:
            assert not deadline.passed
            Event().wait(0.02)
        heartbeat.check()
    Executions(pooled).publish(fence)
    publications = Publications(pooled)
    back = publications.rollback("world", run.release_id).pointer
    before = Runs(pooled).get(first.run_id)
    assert before is not None
    assert back.release_id == before.release_id
    assert publications.publish(run.release_id).moved
    assert [match.code for match in Places(pooled).for_point(10.5, 50.5)] == ["DE"]
    assert [match.code for match in Lookup(pooled).search("Country F")] == ["FR", "DE"]


def test_one_operator_leads_and_the_next_one_follows(pooled: Database) -> None:
    first, second = Leadership(pooled), Leadership(pooled)
    assert first.try_acquire()
    assert not second.try_acquire()
    assert first.held()
    pooled.ping()
    first.release()
    deadline = Deadline.after(10, monotonic)
    while not second.try_acquire():  # PgBouncer notices the closed client before it ends the transaction
        assert not deadline.passed
        Event().wait(0.02)
    second.release()


def test_a_bulk_statement_is_interrupted_through_it(pooled: Database, sql: psycopg.Connection[object]) -> None:
    def sleep() -> None:
        with pooled.connection(Call.BULK) as connection:
            connection.execute("select pg_sleep(60)")

    with ThreadPoolExecutor() as threads:
        sleeping = threads.submit(sleep)
        while not sql.execute("select from pg_stat_activity where wait_event = 'PgSleep'").fetchall():
            Event().wait(0.01)
        pooled.interrupt()
        with pytest.raises(DatabaseUnavailable, match="user request"):
            sleeping.result()
    pooled.ping()


def test_more_clients_than_server_connections_all_get_their_turn(bouncer: int, dbname: str) -> None:
    clients = SERVER_CONNECTIONS * 4
    ready = Barrier(clients, timeout=30)

    def build(number: int) -> int:
        with opened(through(bouncer, dbname, WRITER), f"client {number}") as own:
            ready.wait()
            fence = driven(own, RunState.VERIFYING, a_manifest(release=f"r{number}"))
            return Areas(own).verify(fence).area_count

    with ThreadPoolExecutor(clients) as threads:
        assert list(threads.map(build, range(clients))) == [2] * clients


def test_nothing_that_we_set_is_left_for_the_next_client(pooled: Database, bouncer: int, dbname: str) -> None:
    with psycopg.connect(through(bouncer, dbname, WRITER), autocommit=True, prepare_threshold=None) as stranger:
        before = stranger.execute(SESSION).fetchall()
        claimed(pooled)
        with pooled.connection(Call.BULK) as connection:
            ours = connection.execute(SESSION).fetchall()
        for _ in range(SERVER_CONNECTIONS * 2):
            assert stranger.execute(SESSION).fetchall() == before
    assert re.match("geogenius", ours[0]["search_path"])
    assert not re.match("geogenius", before[0][0])
