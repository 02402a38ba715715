"""Calls that meet: whatever the order, one of them wins, the other is told, and nobody deadlocks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.domain.errors import Conflict, LeaseLost
from geogenius.domain.executed import Claim
from geogenius.domain.run import ExecutorId, Fence, Run, RunError, RunState
from tests.support.catalog import a_manifest, an_area, an_intent, driven, published, registered, square
from tests.support.databases import opened, until_waiting_for_lock

Sql = psycopg.Connection[psycopg.rows.DictRow]
ERROR = RunError("publishing", "Cancelled", "asked to stop")
PUBLISH, FAIL = "select publish_import(%s, %s)", "select fail_import(%s, %s, %s)"
WHY = psycopg.types.json.Jsonb({"phase": "publishing", "reason": "Cancelled", "message": "asked to stop"})


def run_of(database: Database, fence: Fence) -> Run:
    run = Runs(database).get(fence.run_id)
    assert run is not None
    return run


def test_a_failure_that_meets_a_publication_is_refused(database: Database, conninfo: str, sql: Sql) -> None:
    fence = driven(database, RunState.PUBLISHING)
    with opened(conninfo, "failing") as other, ThreadPoolExecutor() as threads:
        with database.connection() as publishing:
            publishing.execute(PUBLISH, [fence.run_id, fence.executor_id])
            failing = threads.submit(Runs(other).fail, fence, ERROR)
            until_waiting_for_lock(sql, "failing")
        with pytest.raises(Conflict) as refused:
            failing.result()
    assert refused.value.reason == "RunCompleted"
    assert run_of(database, fence).published


def test_a_publication_that_meets_a_failure_is_refused_and_publishes_nothing(
    database: Database, conninfo: str, sql: Sql
) -> None:
    fence = driven(database, RunState.PUBLISHING)
    with opened(conninfo, "publishing") as other, ThreadPoolExecutor() as threads:
        with database.connection() as failing:
            failing.execute(FAIL, [fence.run_id, fence.executor_id, WHY])
            publishing = threads.submit(Executions(other).publish, fence)
            until_waiting_for_lock(sql, "publishing")
        with pytest.raises(LeaseLost):
            publishing.result()
    assert run_of(database, fence).error == ERROR
    assert sql.execute("select from publication").fetchall() == []


def test_of_two_failures_at_once_the_first_keeps_its_evidence(database: Database, conninfo: str, sql: Sql) -> None:
    fence = driven(database, RunState.STAGING)
    with opened(conninfo, "second") as other, ThreadPoolExecutor() as threads:
        with database.connection() as first:
            first.execute(FAIL, [fence.run_id, fence.executor_id, WHY])
            second = threads.submit(Runs(other).fail, fence, RunError("late", "Late", "too late"))
            until_waiting_for_lock(sql, "second")
        second.result()
    assert run_of(database, fence).error == ERROR


def test_a_claim_that_meets_a_failure_finds_the_run_failed(database: Database, conninfo: str, sql: Sql) -> None:
    """A refused enqueue is recorded while the pod starts after all: one of the two executors is told no."""
    run_id = registered(database)
    with opened(conninfo, "claiming") as other, ThreadPoolExecutor() as threads:
        with database.connection() as failing:
            failing.execute(FAIL, [run_id, uuid4(), WHY])
            claiming = threads.submit(Executions(other).claim, Fence(run_id, ExecutorId(uuid4())))
            until_waiting_for_lock(sql, "claiming")
        assert claiming.result() is Claim.FAILED


def test_a_merge_that_the_failure_waits_for_leaves_nothing_behind(database: Database, conninfo: str, sql: Sql) -> None:
    fence = driven(database, RunState.NORMALIZING)
    with opened(conninfo, "failing") as other, ThreadPoolExecutor() as threads:
        with database.connection() as merging:
            merging.execute("select merge_staging(%s, %s, 2)", [fence.run_id, fence.executor_id])
            failing = threads.submit(Runs(other).fail, fence, ERROR)
            until_waiting_for_lock(sql, "failing")
        failing.result()
    left = sql.execute("select relname from pg_class where relname ~ '_[0-9a-f]{32}$' and relkind = 'r'").fetchall()
    assert left == []


def test_64_requests_for_one_release_at_once_make_one_run(conninfo: str) -> None:
    ready = Barrier(16, timeout=30)

    def prepare(_: int) -> str:
        with opened(conninfo, "asking") as asking:
            ready.wait()
            return ",".join(type(Runs(asking).prepare(a_manifest(), an_intent())).__name__ for _ in range(4))

    with ThreadPoolExecutor(16) as threads:
        answers = ",".join(threads.map(prepare, range(16))).split(",")
    assert sorted(answers) == ["Redelivered"] * 63 + ["Registered"]


AREAS = [an_area(number, f"C{number}", square(number % 170, number % 80)) for number in range(1, 801)]
ORDERS: tuple[Callable[[int], int], ...] = (lambda n: n, lambda n: -n, lambda n: n * 7 % 800, lambda n: n % 2)


def test_imports_of_one_collection_at_once_in_opposing_orders_neither_deadlock_nor_mix(conninfo: str, sql: Sql) -> None:
    """Where areas were shared rows, opposing orders of keys deadlocked; releases of their own cannot meet."""

    def build(number: int) -> str:
        ordered = sorted(AREAS, key=lambda area: ORDERS[number % len(ORDERS)](area.position))
        with opened(conninfo, f"import {number}") as own:
            published(own, a_manifest(release=f"r{number}"), areas=ordered)
        return f"r{number}"

    with ThreadPoolExecutor(4) as threads:
        keys = list(threads.map(build, range(8)))
    rows = sql.execute("select release_id, count(*) as areas from release_area group by 1").fetchall()
    assert [row["areas"] for row in rows] == [800] * 8
    events = sql.execute("select release_key from publication_history order by sequence").fetchall()
    assert sorted(row["release_key"] for row in events) == keys


@pytest.mark.parametrize("order", list(permutations(["publish", "roll back", "retire"])), ids="-".join)
def test_moves_of_one_pointer_in_any_order_leave_a_legal_one(
    database: Database, conninfo: str, sql: Sql, order: tuple[str, ...]
) -> None:
    for key in ("r1", "r2", "r3"):
        published(database, a_manifest(release=key))
    fence = driven(database, RunState.VERIFYING, a_manifest(release="r4"))
    Areas(database).verify(fence)
    Executions(database).complete(fence, {})
    calls = {
        "publish": ("select publish_release(%s)", [run_of(database, fence).release_id]),
        "roll back": ("select rollback_publication('world', null)", []),
        "retire": ("select retire_releases('world', 2)", []),
    }

    def move(which: str) -> None:
        question, arguments = calls[which]
        with opened(conninfo, which) as own:
            try:
                with own.connection() as connection:
                    connection.execute(question.encode(), arguments)
            except Conflict as refused:
                assert refused.reason == "NoPreviousRelease"  # noqa: PT017  a race may make it so

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(move, order))
    pointer = """
    select count(*) as legal from publication p join release r on r.id = p.release_id
    left join release o on o.id = p.previous_release_id
    where r.retired_at is null and r.completed_at is not null and o.retired_at is null
    """
    assert sql.execute(pointer.encode()).fetchall() == [{"legal": 1}]
