"""Messages claimed, kept and ended by their owner only, whatever else happens at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import DictRow

from geogenius.db import Database
from geogenius.domain.run import RunId
from geogenius.pgflow.enqueue import enqueue
from geogenius.pgflow.leases import Delivery, Leases
from geogenius.pgflow.order import Order
from tests.support.databases import session, until_waiting_for_lock
from tests.support.queues import DEADLINE

SLUG = "geogenius_import"
MINUTE = timedelta(seconds=60)
Sql = psycopg.Connection[DictRow]

SLOW_READ = """
create schema of_old;
grant usage on schema of_old to public;
alter function pgmq.read(text, integer, integer, jsonb) set schema of_old;
create function pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb default '{}')
returns setof pgmq.message_record language plpgsql as $$
begin
    perform pg_advisory_xact_lock(42);
    return query select * from of_old.read($1, $2, $3, $4);
end
$$
"""


@pytest.fixture
def leases(database: Database) -> Leases:
    return a_worker(database)


def a_worker(database: Database) -> Leases:
    leases = Leases(database, SLUG, uuid4(), MINUTE, "a worker")
    leases.register()
    return leases


def queued(database: Database) -> RunId:
    run_id = RunId(uuid4())
    order = Order(run_id, "geogenius", publish=False, stale_after=MINUTE, deadline=DEADLINE)
    with database.connection() as connection:
        enqueue(connection, SLUG, order)
    return run_id


def expired(sql: Sql) -> None:
    """All leases have run out."""
    sql.execute(f"update pgmq.q_{SLUG} set vt = clock_timestamp()")


def one(leases: Leases) -> Delivery:
    (delivery,) = leases.claim(1)
    return delivery


def test_a_message_that_is_committed_while_others_are_read_is_claimed_with_its_task(
    database: Database, leases: Leases, sql: Sql
) -> None:
    """A function sees what was committed after its statement began; a table beside it in that statement does not."""
    sql.execute(SLOW_READ)
    with session(database) as gate, ThreadPoolExecutor(1) as other:
        gate.execute("select pg_advisory_lock(42)")
        claiming = other.submit(leases.claim, 10)
        until_waiting_for_lock(sql, "tests")
        run_id = queued(database)
        gate.execute("select pg_advisory_unlock(42)")

        assert [delivery.run_id for delivery in claiming.result(30)] == [run_id]


def test_a_worker_that_stands_still_between_reading_and_starting_takes_nothing_from_those_who_have_it_now(
    database: Database, leases: Leases, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued(database)
    other = a_worker(database)
    has_it: list[Delivery] = []
    start = leases._started

    def started_late(read: dict[int, int]) -> list[Delivery]:
        expired(sql)
        has_it.append(one(other))
        return start(read)

    monkeypatch.setattr(leases, "_started", started_late)

    assert leases.claim(1) == []
    assert has_it[0].attempt == 1
    assert other.complete(has_it[0], {"outcome": "completed"})


def test_a_worker_that_is_not_known_yet_or_was_forgotten_claims_all_the_same(database: Database, sql: Sql) -> None:
    leases = Leases(database, SLUG, uuid4(), MINUTE, "a worker")
    queued(database)

    assert one(leases).attempt == 1
    assert sql.execute("select function_name from pgflow.workers").fetchall() == [{"function_name": "a worker"}]
    sql.execute("delete from pgflow.workers")
    queued(database)
    assert one(leases).attempt == 1


def test_every_message_goes_to_one_of_many_workers(database: Database) -> None:
    workers = [a_worker(database) for _ in range(3)]
    with ThreadPoolExecutor(8) as threads:
        run_ids = set(threads.map(lambda _: queued(database), range(60)))
        claimed = [d.run_id for found in threads.map(lambda w: w.claim(25), workers) for d in found]

    assert len(claimed) == len(set(claimed)) == 60
    assert set(claimed) == run_ids


def test_messages_are_claimed_while_others_are_queued_and_none_is_lost(database: Database, leases: Leases) -> None:
    claimed: list[RunId] = []
    with ThreadPoolExecutor(4) as threads:
        queueing = [threads.submit(queued, database) for _ in range(120)]
        while not all(each.done() for each in queueing):
            claimed += [delivery.run_id for delivery in leases.claim(3)]
    while found := leases.claim(10):
        claimed += [delivery.run_id for delivery in found]

    assert sorted(claimed) == sorted(each.result() for each in queueing)


def test_a_message_whose_lease_ran_out_is_another_delivery_and_the_first_owner_has_no_say(
    database: Database, leases: Leases, sql: Sql
) -> None:
    run_id = queued(database)
    first = one(leases)
    expired(sql)
    other = a_worker(database)
    second = one(other)

    assert (first.attempt, second.attempt, second.redelivered) == (1, 2, True)
    assert [leases.renew(first), leases.complete(first, {}), leases.fail(first, "x")] == [False] * 3
    assert leases.put_back(first, 0) is False
    assert other.complete(second, {"outcome": "completed"})
    assert sql.execute("select output from pgflow.step_tasks where run_id = %s", [run_id]).fetchall() == [
        {"output": {"outcome": "completed"}}
    ]


def test_a_lease_that_ran_out_is_renewed_where_nobody_took_the_message(
    database: Database, leases: Leases, sql: Sql
) -> None:
    queued(database)
    delivery = one(leases)
    expired(sql)

    assert leases.renew(delivery)
    assert a_worker(database).claim(1) == []


@pytest.mark.parametrize(("counted", "attempt"), [(True, 2), (False, 1)])
def test_what_is_put_back_is_handed_out_again_and_counts_where_it_was_tried(
    counted: bool,  # noqa: FBT001  a parameter of the test
    attempt: int,
    database: Database,
    leases: Leases,
) -> None:
    queued(database)

    assert leases.put_back(one(leases), 0, counted=counted)

    assert one(leases).attempt == attempt


def test_what_is_put_back_for_later_rests_until_then(database: Database, leases: Leases) -> None:
    queued(database)
    assert leases.put_back(one(leases), 30)

    assert leases.claim(1) == []


def test_the_end_of_a_message_counts_once(database: Database, leases: Leases, sql: Sql) -> None:
    queued(database)
    delivery = one(leases)

    assert leases.fail(delivery, "given up")
    assert leases.complete(delivery, {}) is False
    assert sql.execute("select status from pgflow.step_tasks").fetchall() == [{"status": "failed"}]
    assert sql.execute(f"select count(*) from pgmq.a_{SLUG}").fetchall() == [{"count": 1}]
