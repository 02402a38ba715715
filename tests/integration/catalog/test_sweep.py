"""The sweep removes what nobody needs, one table at a time, and no reader ever waits for it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog import Publications, Runs
from geogenius.catalog.sweep import Kept, Sweep, Sweepable, SweepKind, Swept, Waiting
from geogenius.db import Database
from geogenius.domain.errors import Misconfigured
from geogenius.domain.run import RunError, RunState
from tests.support.catalog import a_manifest, claimed, completed, driven, published, release_of
from tests.support.databases import PostgresCluster, opened, session, until_waiting_for_lock
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
READ = "select count(*) from published_areas where collection_key = 'world'"
TABLES = "select relname from pg_class where relkind = 'r' and relname ~ '_[0-9a-f]{32}$' order by 1"


def with_a_retired_release(database: Database) -> UUID:
    """A published release, and an older one that was retired."""
    old = release_of(database, completed(database))
    published(database, a_manifest(release="r2"))
    Publications(database).retire("world", 1)
    return old


def tables(sql: Sql, *ids: UUID) -> list[str]:
    return [row["relname"] for row in sql.execute(TABLES) if row["relname"].endswith(tuple(i.hex for i in ids))]


@contextmanager
def reading(postgres: PostgresCluster, dbname: str) -> Iterator[None]:
    """Somebody in the middle of a long transaction over another release of the collection."""
    with opened(postgres.conninfo(dbname), "reader") as database, database.connection() as connection:
        connection.execute(READ)
        yield


def sweep_all(sweeper: Sweep) -> list[object]:
    return [sweeper.sweep(table) for table in sweeper.list()]


def test_a_retired_release_is_detached_and_dropped_and_all_else_stays(
    database: Database, owner: Database, sql: Sql
) -> None:
    old = with_a_retired_release(database)
    live = driven(database, RunState.RELATING, a_manifest(release="r3"))
    unpublished = release_of(database, completed(database, a_manifest(release="r4")))
    before = {name: print_ for name, print_ in digest(sql).items() if old.hex not in name}
    outcomes = sweep_all(Sweep(owner))
    assert [type(outcome) for outcome in outcomes] == [Swept] * 6
    assert tables(sql, old) == []
    after = digest(sql)
    kept = [name for name in before if "_of_" not in name]
    assert {name: after[name] for name in kept if name not in ROOTS} == {
        name: before[name] for name in kept if name not in ROOTS
    }
    assert len(tables(sql, live.run_id, release_of(database, live), unpublished)) == 1 + 6 + 6
    assert Sweep(owner).list() == [], "a second sweep finds nothing"
    assert sql.execute(READ.encode()).fetchall() == [{"count": 2}]


ROOTS = {"release_area", "boundary", "boundary_part", "area_name", "area_code", "relation"}
"""Seen through them, the rows of the retired release are gone."""


def test_what_a_crash_left_of_failed_and_ended_runs_is_dropped(database: Database, owner: Database, sql: Sql) -> None:
    fence = driven(database, RunState.NORMALIZING)
    Runs(database).fail(fence, RunError("x", "Y", "z"))
    release = release_of(database, fence)
    sql.execute(f"create table staging_{fence.run_id.hex} ()".encode())
    sql.execute(f"create table boundary_{release.hex} ()".encode())
    sql.execute(f"create table staging_{uuid4().hex} ()".encode())
    sql.execute(f"create table boundary_{release.hex}_notes ()".encode())
    kinds = {table.kind for table in Sweep(owner).list()}
    assert kinds == {SweepKind.STAGING, SweepKind.CANDIDATE}
    assert [type(outcome) for outcome in sweep_all(Sweep(owner))] == [Swept, Swept]
    assert tables(sql, fence.run_id, release) == []
    assert len(sql.execute(TABLES).fetchall()) == 1, "a table of an unknown run is nobody's to drop"


def test_a_table_that_is_needed_again_is_kept(database: Database, owner: Database, sql: Sql) -> None:
    fence = claimed(database)
    Runs(database).fail(fence, RunError("x", "Y", "z"))
    release = release_of(database, fence)
    sql.execute(f"create table boundary_{release.hex} ()".encode())
    [table] = Sweep(owner).list()
    claim = Jsonb({"run_id": str(uuid4()), "owner": "maps/world", "runner_backend": "inline"})
    sql.execute("select retry_failed(%s, %s, %s)", [fence.run_id, Jsonb(a_manifest()), claim])
    assert Sweep(owner).sweep(table) == Kept(table)
    assert tables(sql, release) == [f"boundary_{release.hex}"]


def test_no_reader_waits_for_a_sweep_that_waits_for_a_reader(
    database: Database, owner: Database, sql: Sql, postgres: PostgresCluster, dbname: str
) -> None:
    old = with_a_retired_release(database)
    with ThreadPoolExecutor() as threads:
        with reading(postgres, dbname):
            sweeping = threads.submit(sweep_all, Sweep(owner))
            until_waiting_for_lock(sql, "tests")
            with opened(postgres.conninfo(dbname), "newcomer") as late, late.connection() as newcomer:
                newcomer.execute("set local lock_timeout = '100ms'")
                assert newcomer.execute(READ.encode()).fetchall() == [{"count": 2}]
        assert [type(outcome) for outcome in sweeping.result()] == [Swept] * 6
    assert tables(sql, old) == []


def test_a_sweep_that_waited_too_long_says_so_and_the_next_one_ends_its_work(
    database: Database, owner: Database, sql: Sql, postgres: PostgresCluster, dbname: str
) -> None:
    old = with_a_retired_release(database)
    with reading(postgres, dbname):
        [first] = [table for table in Sweep(owner).list() if table.relation.startswith("release_area_")]
        assert Sweep(owner, timedelta(milliseconds=300)).sweep(first) == Waiting(first)
        pending = {table.relation: table.kind for table in Sweep(owner).list()}
        assert pending[first.relation] is SweepKind.DETACHING
        assert sql.execute(READ.encode()).fetchall() == [{"count": 2}], "readers go on"
    assert {type(outcome) for outcome in sweep_all(Sweep(owner))} == {Swept}
    assert tables(sql, old) == []


def test_two_sweeps_at_once_share_the_work(database: Database, owner: Database, sql: Sql) -> None:
    old = with_a_retired_release(database)
    with ThreadPoolExecutor() as threads:
        outcomes = [outcome for each in threads.map(sweep_all, [Sweep(owner), Sweep(owner)]) for outcome in each]
    assert {type(outcome) for outcome in outcomes} <= {Swept, Kept, Waiting}
    sweep_all(Sweep(owner))
    assert tables(sql, old) == []


def test_only_the_owner_sweeps(database: Database) -> None:
    with_a_retired_release(database)
    [table, *_] = Sweep(database).list()
    with pytest.raises(Misconfigured) as refused:
        Sweep(database).sweep(table)
    assert refused.value.reason == "PermissionMissing"
    with pytest.raises(Misconfigured):
        Sweep(database).sweep(Sweepable("boundary_x", SweepKind.CANDIDATE))


def test_a_sweep_of_nothing_drops_nothing(owner: Database) -> None:
    nothing = Sweepable("import_run", SweepKind.STAGING)
    assert Sweep(owner).sweep(nothing) == Kept(nothing)
    with session(owner) as connection:
        assert connection.execute("select count(*) as many from import_run").fetchall() == [{"many": 0}]
