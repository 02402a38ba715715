"""What a worker does with messages that nobody should have put there, and with those that others were lost with."""

import json
import signal
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from geogenius.db import Database
from geogenius.domain.run import RunId, RunState
from geogenius.pgflow.leases import Leases
from geogenius.testing import CatalogBench
from tests.support.host_processes import reason_of, until
from tests.support.queues import Sql, task_of, waiting, workers_known
from tests.support.worker_process import Worker

Enqueue = Callable[[RunId], None]
Start = Callable[..., Worker]
SLUG = "geogenius_import"


def an_order(run_id: object, **changes: object) -> dict[str, object]:
    known = {"run_id": str(run_id), "schema": "geogenius", "publish": False}
    return {**known, "stale_after_seconds": 420, "deadline_seconds": 3900, **changes}


def ordered(sql: Sql, flow_run: UUID, said: object) -> None:
    """Queues what no runner of ours would."""
    sql.execute("select pgflow.start_flow(%s, %s::jsonb, %s)", [SLUG, json.dumps(said), flow_run])
    sql.execute("select pg_notify(%s, '')", [SLUG])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["no object"], "the input is not an object"),
        ({}, "run_id"),
        (an_order("no id"), "run_id: 'no id' is not the id of a run"),
        (an_order(uuid4(), schema="another"), "is not the catalog of this worker"),
        (an_order(uuid4(), deadline_seconds="soon"), "deadline_seconds"),
        (an_order(uuid4()), "the two must have one id"),
    ],
)
def test_a_message_that_makes_no_sense_is_given_up_by_name_and_the_worker_goes_on(
    said: object, words: str, start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql
) -> None:
    flow_run = uuid4()
    ordered(sql, flow_run, said)
    start()
    run = bench.register(bench.intent("pgflow"))
    enqueue(run.run_id)

    assert bench.ended(run.run_id).state is RunState.COMPLETED
    until(lambda: waiting(sql) == 0, "the queue is empty")
    assert task_of(sql, flow_run)["status"] == "failed"
    assert words in task_of(sql, flow_run)["error_message"]


def test_a_message_for_a_run_that_the_catalog_does_not_have_is_given_up(start: Start, sql: Sql) -> None:
    unknown = uuid4()
    ordered(sql, unknown, an_order(unknown))
    start()

    until(lambda: waiting(sql) == 0, "the queue is empty")

    task = task_of(sql, unknown)
    assert (task["status"], task["error_message"]) == ("failed", "there is no such run in the catalog")


def test_a_run_that_waits_for_a_message_without_sense_fails_by_name(
    start: Start, bench: CatalogBench, sql: Sql
) -> None:
    run_id = bench.register(bench.intent("pgflow")).run_id
    ordered(sql, run_id, {"run_id": str(run_id), "schema": "geogenius", "stale_after_seconds": "soon"})
    start()

    ended = bench.ended(run_id)

    assert ended.error is not None
    assert (ended.error.reason, ended.error.evidence["class"]) == ("MessageMalformed", "configuration")
    assert "stale_after_seconds: 'soon' is not a positive number of seconds" in ended.error.message
    until(lambda: waiting(sql) == 0, "the queue is empty")


def test_a_run_whose_row_is_locked_keeps_no_other_from_being_executed(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, database: Database
) -> None:
    locked, other = (bench.register(bench.intent("pgflow")).run_id for _ in range(2))
    enqueue(locked)
    lose_workers(sql, database, 3)
    with sql.transaction():
        sql.execute("select from geogenius.import_run where id = %s for update", [locked])
        worker = start(GEOGENIUS_WORKER__CONCURRENCY="1")
        enqueue(other)

        assert bench.ended(other).state is RunState.COMPLETED
        assert worker.probe("/livez")[0] == worker.probe("/readyz")[0] == 200
        assert bench.run(locked).state is RunState.PENDING

    assert reason_of(bench.ended(locked)) == "WorkloadLost"


def test_a_message_without_a_task_is_archived(start: Start, sql: Sql) -> None:
    sql.execute("select pgmq.send(%s, '{}'::jsonb)", [SLUG])
    start()

    until(lambda: waiting(sql) == 0, "the queue is empty")

    assert sql.execute(f"select count(*) from pgmq.a_{SLUG}").fetchall() == [{"count": 1}]


def test_a_run_whose_worker_was_lost_before_it_began_is_executed_by_another(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, database: Database
) -> None:
    run = bench.register(bench.intent("pgflow"))
    enqueue(run.run_id)
    lose_workers(sql, database, 1)
    start()

    assert bench.ended(run.run_id).state is RunState.COMPLETED


def test_a_run_that_no_worker_survives_is_failed_and_does_not_go_round_for_ever(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, database: Database
) -> None:
    run = bench.register(bench.intent("pgflow"))
    enqueue(run.run_id)
    lose_workers(sql, database, 3)
    start()

    ended = bench.ended(run.run_id)

    assert ended.error is not None
    assert (ended.error.reason, ended.executor_id is None) == ("WorkloadLost", False)
    assert "3 workers were lost with this run" in ended.error.message
    until(lambda: waiting(sql) == 0, "the queue is empty")


def test_a_run_that_has_ended_before_it_is_handed_out_is_left_as_it_is(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql
) -> None:
    run = bench.register(bench.intent("pgflow"))
    enqueue(run.run_id)
    bench.execute(run.run_id)
    before = bench.ended(run.run_id)
    start()

    until(lambda: waiting(sql) == 0, "the queue is empty")

    assert bench.run(run.run_id).executor_id == before.executor_id
    assert task_of(sql, run.run_id)["status"] == "completed"


def test_a_core_whose_start_tasks_wants_the_name_of_the_queue_is_served_as_well(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql
) -> None:
    """From core 0.17 on there is no function with three arguments."""
    sql.execute("create schema of_old; grant usage on schema of_old to public")
    sql.execute("alter function pgflow.start_tasks(text, bigint[], uuid) set schema of_old")
    sql.execute(
        "create function pgflow.start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid, queue_name text)"
        " returns setof pgflow.step_task_record language sql"
        " as 'select * from of_old.start_tasks($1, $2, $3)'"
    )
    start()
    run = bench.register(bench.intent("pgflow"))

    enqueue(run.run_id)

    assert bench.ended(run.run_id).state is RunState.COMPLETED


def test_a_worker_whose_queue_lacks_something_says_what_and_does_not_start(start: Start, sql: Sql) -> None:
    sql.execute("drop function pgflow.fail_task(uuid, text, integer, text)")

    worker = start()

    assert worker.ended() == 64
    assert "pgflow.fail_task" in worker.log.read_text()


def test_a_worker_with_another_deadline_than_the_stored_one_does_not_start(start: Start) -> None:
    worker = start(GEOGENIUS_PGFLOW__DEADLINE_SECONDS="1000")

    assert worker.ended() == 64
    assert "has stored a timeout of 3900 s and 1000 s are set" in worker.log.read_text()


def test_the_worker_is_seen_while_it_lives_and_signs_off(start: Start, sql: Sql) -> None:
    worker = start()
    until(lambda: workers_known(sql) == 1, "the worker is known")

    assert worker.probe("/livez")[0] == 200
    assert worker.ended(signal.SIGTERM) == 0
    assert workers_known(sql) == 0


def lose_workers(sql: Sql, database: Database, count: int) -> None:
    """Workers that take the message and are never heard of again, until its lease has ended."""
    for _ in range(count):
        lost = Leases(database, SLUG, uuid4(), timedelta(seconds=60), "a worker")
        lost.register()
        assert len(lost.claim(1)) == 1
        sql.execute(f"update pgmq.q_{SLUG} set vt = clock_timestamp()")
