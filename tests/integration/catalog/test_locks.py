"""Nobody waits: readers for ends, ends for readers, heartbeats for writes. Proven by pg_locks and lock_timeout."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

import psycopg
import pytest

from geogenius.catalog import Areas
from geogenius.db import Call, Database
from geogenius.domain.run import RunState
from tests.support.catalog import a_manifest, completed, driven, published, release_of
from tests.support.databases import opened
from tests.support.matrix import full, write_evidence

Sql = psycopg.Connection[psycopg.rows.DictRow]
IMPATIENT = "set local lock_timeout = '100ms'"
ROOTS = ("release_area", "boundary", "boundary_part", "area_name", "area_code", "relation")
HELD = """
select case
        when c.relname ~ '_of_[0-9a-f]{32}$' then 'partition of the collection'
        when c.relname = any (%(roots)s) then 'root of the release tables'
        when c.relname ~ ('_' || %(own)s || '$') then 'table of its own release'
        when c.relname ~ '^staging_' then 'its staging table'
        when c.relname ~ '_[0-9a-f]{32}$' then 'table of another release'
    end as relation,
    l.mode
from pg_locks l join pg_class c on c.oid = l.relation
where l.pid = %(pid)s and l.granted and c.relkind in ('r', 'p') and c.relnamespace = 'geogenius'::regnamespace
group by 1, 2 having min(c.relname) is not null order by 1, 2
"""
WAITING = "select pid, mode from pg_locks where not granted"
READS = (
    "select count(*) from release_areas where collection_key = 'world' and release_id = %(release)s",
    "select count(*) from published_areas where collection_key = 'world'",
    "select count(*) from published_boundaries where collection_key = 'world'",
    "select count(*) from published_areas",
    "select count(*) from areas_for_point(10.5, 50.5)",
)
WEAK = {"AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock"}
"""Modes that do not conflict with reading, whoever comes first."""


Move = tuple[str, list[object], UUID]
"""A call, its arguments, and the release it is about."""


@contextmanager
def reading(conninfo: str, release: UUID) -> Iterator[None]:
    """A reader in the middle of a long transaction that has touched every table a question can touch."""
    with opened(conninfo, "reader") as database, database.connection() as connection:
        connection.execute(IMPATIENT)
        for question in READS:
            connection.execute(question.encode(), {"release": release})
        yield


def a_complete(database: Database) -> Move:
    fence = driven(database, RunState.VERIFYING, a_manifest(release="r2"))
    Areas(database).verify(fence)
    return "select complete_import(%s, %s, '{}')", [fence.run_id, fence.executor_id], release_of(database, fence)


def a_publication_at_the_end(database: Database) -> Move:
    fence = driven(database, RunState.PUBLISHING, a_manifest(release="r2"))
    return "select publish_import(%s, %s)", [fence.run_id, fence.executor_id], release_of(database, fence)


def a_first_release_of_another_collection(database: Database) -> Move:
    fence = driven(database, RunState.PUBLISHING, a_manifest(collection="moon"))
    return "select publish_import(%s, %s)", [fence.run_id, fence.executor_id], release_of(database, fence)


def a_publication(database: Database) -> Move:
    release = release_of(database, completed(database, a_manifest(release="r2")))
    return "select * from publish_release(%s)", [release], release


def a_roll_back(database: Database) -> Move:
    release = release_of(database, published(database, a_manifest(release="r2")))
    return "select * from rollback_publication('world', %s)", [release], release


def a_retirement(database: Database) -> Move:
    release = release_of(database, completed(database, a_manifest(release="r2")))
    return "select retire_releases('world', 1)", [], release


MOVES = [
    a_complete,
    a_publication_at_the_end,
    a_first_release_of_another_collection,
    a_publication,
    a_roll_back,
    a_retirement,
]


def held_by(sql: Sql, connection: psycopg.Connection[psycopg.rows.DictRow], own: UUID) -> list[tuple[str, str]]:
    arguments = {"pid": connection.info.backend_pid, "own": own.hex, "roots": list(ROOTS)}
    return [(row["relation"], row["mode"]) for row in sql.execute(HELD.encode(), arguments) if row["relation"]]


@pytest.fixture(scope="module")
def table() -> Iterator[list[Sequence[object]]]:
    """What was seen, written down when all moves were."""
    rows: list[Sequence[object]] = []
    yield rows
    write_evidence(
        "catalog-locks",
        "What ends and moves of the pointer lock while others read",
        ("call", "relation", "lock", "beside a reader in a long transaction", "new readers meanwhile"),
        rows,
    )


@pytest.mark.matrix
@pytest.mark.parametrize("prepare", MOVES)
def test_an_end_or_a_move_waits_for_no_reader_of_another_release_and_no_reader_waits_for_it(
    database: Database, conninfo: str, sql: Sql, table: list[Sequence[object]], prepare: Callable[[Database], Move]
) -> None:
    first = release_of(database, published(database))
    statement, arguments, own = prepare(database)
    with reading(conninfo, first), database.connection(Call.WAITING) as mover:
        mover.execute(IMPATIENT)
        mover.execute(statement.encode(), arguments)
        with reading(conninfo, first):  # one that comes while the move is not committed
            assert sql.execute(WAITING).fetchall() == []
        held = held_by(sql, mover, own)
    strong = [(relation, mode) for relation, mode in held if mode not in WEAK]
    assert {relation for relation, _ in strong} <= {"table of its own release", "its staging table"}
    name = re.findall(r"(\w+)\(", statement)[0]
    table += [(name, relation, mode, "does not wait", "do not wait") for relation, mode in held]


@pytest.mark.matrix
def test_heartbeats_pass_during_a_long_fenced_write(database: Database, conninfo: str) -> None:
    fence = driven(database, RunState.STAGING)
    seconds = 30 if full() else 2
    guard = "select assert_import_write(%s, %s, array['staging']::run_state[])"
    beats = 0
    with opened(conninfo, "writing") as other, ThreadPoolExecutor() as threads:

        def write() -> None:
            with other.connection(Call.BULK) as connection:
                connection.execute(guard, [fence.run_id, fence.executor_id])
                connection.execute("select pg_sleep(%s)", [seconds])

        writing = threads.submit(write)
        while not writing.done():
            with database.connection() as own:
                own.execute("set local lock_timeout = '1ms'")
                own.execute("select heartbeat_import(%s, %s, '{}')", [fence.run_id, fence.executor_id])
            beats += 1
        writing.result()
    assert beats > seconds * 10
    write_evidence(
        "catalog-heartbeats",
        "Heartbeats during one fenced write",
        ("length of the write", "heartbeats that waited no millisecond for a lock"),
        [(f"{seconds} s", beats)],
    )
