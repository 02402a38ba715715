"""Runs put into the queue: once for ever, in a transaction, and never where the queue is not as it has to be."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from geogenius.db import Database
from geogenius.domain.enqueued import Accepted, NotEnqueued, OutcomeUnknown
from geogenius.domain.run import RunId
from geogenius.pgflow.enqueue import EndedBefore, Queued, enqueue
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.order import Order
from geogenius.runners.contract import arguments
from geogenius.runners.pgflow import PgflowRunner
from tests.support.catalog import registered
from tests.support.databases import OWNER, READER, WRITER, PostgresCluster, opened
from tests.support.postgres_proxy import Fault, proxied
from tests.support.queues import DEADLINE

SLUG = "geogenius_import"
ARGS = arguments(publish=True, stale_after=timedelta(minutes=15))
Sql = psycopg.Connection[dict[str, Any]]


@pytest.fixture
def runner(database: Database) -> PgflowRunner:
    return PgflowRunner(database, DEADLINE, worker_required=False)


@pytest.fixture
def run_id(database: Database) -> RunId:
    return registered(database)


def queued(sql: Sql) -> list[RunId]:
    return [row["run_id"] for row in sql.execute("select run_id from pgflow.runs").fetchall()]


def an_order(run_id: RunId) -> Order:
    return Order(run_id, "geogenius", publish=False, stale_after=timedelta(minutes=15), deadline=DEADLINE)


def test_a_run_is_queued_once_for_ever(runner: PgflowRunner, run_id: RunId, sql: Sql) -> None:
    assert [runner.enqueue(run_id, ARGS) for _ in range(3)] == [Accepted()] * 3
    assert queued(sql) == [run_id]
    assert sql.execute(f"select count(*) from pgmq.q_{SLUG}").fetchall() == [{"count": 1}]


def test_what_the_caller_rolls_back_was_never_queued(database: Database, run_id: RunId, sql: Sql) -> None:
    with database.connection() as connection, connection.transaction(force_rollback=True):
        assert enqueue(connection, SLUG, an_order(run_id)) == Queued()

    assert queued(sql) == []


def test_the_transaction_of_the_caller_stays_usable_after_a_second_enqueueing(
    database: Database, run_id: RunId, sql: Sql
) -> None:
    with database.connection() as connection:
        answers = [enqueue(connection, SLUG, an_order(run_id)) for _ in range(2)]
        connection.execute("select 1")

    assert answers == [Queued(), Queued()]
    assert queued(sql) == [run_id]


def test_a_run_whose_task_has_ended_without_an_end_in_the_catalog_is_refused(
    runner: PgflowRunner, run_id: RunId, database: Database
) -> None:
    runner.enqueue(run_id, ARGS)
    leases = Leases(database, SLUG, uuid4(), timedelta(seconds=60), "a worker")
    leases.register()
    (delivery,) = leases.claim(1)
    assert leases.fail(delivery, "given up")

    with database.connection() as connection:
        assert enqueue(connection, SLUG, an_order(run_id)) == EndedBefore("failed")
    answer = runner.enqueue(run_id, ARGS)
    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == ("QueuedBefore", None)


@pytest.mark.parametrize(
    ("damage", "reason", "words"),
    [
        ("drop schema pgflow cascade", "PgflowMissing", "geogenius pgflow install"),
        ("drop function pgflow.complete_task(uuid, text, integer, jsonb)", "PgflowIncomplete", "complete_task"),
        ("drop function pgflow.start_flow(text, jsonb, uuid)", "PgflowIncomplete", "older than 0.8"),
        ("drop function pgmq.archive(text, bigint)", "PgflowIncomplete", "pgmq.archive"),
        ("delete from pgflow.steps", "FlowStepsDiffer", "no step"),
        ("delete from pgflow.steps; delete from pgflow.flows", "FlowMissing", "not registered"),
        ("update pgflow.flows set opt_timeout = 60", "StoredDeadlineDiffers", "60 s and 3900 s"),
        ("update pgflow.steps set opt_timeout = 30", "StoredDeadlineDiffers", "30 s and 3900 s"),
    ],
)
def test_a_queue_that_is_not_as_it_has_to_be_takes_nothing_and_says_the_remedy(
    damage: str, reason: str, words: str, runner: PgflowRunner, run_id: RunId, sql: Sql
) -> None:
    sql.execute(damage)

    answer = runner.enqueue(run_id, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == (reason, None)
    assert words in answer.message
    assert runner.available() is False
    assert runner.why_not() == answer.message


@pytest.mark.parametrize(
    ("deadline", "window", "reason"),
    [
        (None, 900, "DeadlineMissing"),
        (DEADLINE, 3900, "DeadlineTooShort"),
        (DEADLINE, 100_000, "DeadlineTooShort"),
        (DEADLINE, "soon", "WindowMissing"),
        (DEADLINE, True, "WindowMissing"),
        (DEADLINE, -1, "WindowMissing"),
    ],
)
def test_a_run_whose_window_does_not_fit_the_deadline_is_refused(
    deadline: timedelta | None, window: object, reason: str, database: Database, run_id: RunId, sql: Sql
) -> None:
    runner = PgflowRunner(database, deadline, worker_required=False)

    answer = runner.enqueue(run_id, {"publish": True, "stale_after_seconds": window})  # type: ignore[dict-item]

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == (reason, None)
    assert queued(sql) == []


def test_where_a_worker_is_wanted_nothing_is_queued_until_one_lives(database: Database, run_id: RunId) -> None:
    runner = PgflowRunner(database, DEADLINE)
    refused = runner.enqueue(run_id, ARGS)
    assert isinstance(refused, NotEnqueued)
    assert (refused.reason, refused.retry_after) == ("NoWorker", 5.0)

    Leases(database, SLUG, uuid4(), timedelta(seconds=60), "a worker").register()

    assert runner.enqueue(run_id, ARGS) == Accepted()


def test_a_worker_that_has_been_silent_for_long_does_not_count(database: Database, sql: Sql) -> None:
    Leases(database, SLUG, uuid4(), timedelta(seconds=60), "a worker").register()
    sql.execute("update pgflow.workers set last_heartbeat_at = now() - interval '91 seconds'")

    assert PgflowRunner(database, DEADLINE).available() is False


def test_a_role_without_rights_on_the_queue_is_refused_by_name(
    postgres: PostgresCluster, dbname: str, run_id: RunId
) -> None:
    with opened(postgres.conninfo(dbname, READER)) as reader:
        answer = PgflowRunner(reader, DEADLINE, worker_required=False).enqueue(run_id, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert answer.reason == "PermissionMissing"


@pytest.mark.parametrize("fault", list(Fault))
def test_a_commit_whose_answer_is_lost_is_unknown_and_the_next_call_tells(
    fault: Fault, postgres: PostgresCluster, dbname: str, run_id: RunId, sql: Sql
) -> None:
    with proxied(postgres) as proxy, opened(proxy.conninfo(dbname, WRITER)) as database:
        runner = PgflowRunner(database, DEADLINE, worker_required=False)
        proxy.fault = fault

        assert isinstance(runner.enqueue(run_id, ARGS), OutcomeUnknown)
        assert queued(sql) == ([run_id] if fault is Fault.LOSE_ANSWER else [])
        assert runner.enqueue(run_id, ARGS) == Accepted()

    assert queued(sql) == [run_id]


def test_a_run_that_was_queued_by_a_call_whose_answer_was_lost_is_there_whatever_hinders_the_next(
    postgres: PostgresCluster, dbname: str, run_id: RunId, sql: Sql
) -> None:
    with proxied(postgres) as proxy, opened(proxy.conninfo(dbname, WRITER)) as database:
        proxy.fault = Fault.LOSE_ANSWER
        assert isinstance(PgflowRunner(database, DEADLINE, worker_required=False).enqueue(run_id, ARGS), OutcomeUnknown)

        assert PgflowRunner(database, DEADLINE).enqueue(run_id, ARGS) == Accepted()
        assert PgflowRunner(database, timedelta(days=1)).enqueue(run_id, ARGS) == Accepted()
        assert PgflowRunner(database, None).enqueue(run_id, ARGS) == Accepted()

    assert queued(sql) == [run_id]


def test_a_database_that_is_away_is_a_temporary_refusal(
    postgres: PostgresCluster, dbname: str, run_id: RunId, sql: Sql
) -> None:
    with proxied(postgres) as proxy, opened(proxy.conninfo(dbname, WRITER)) as database:
        runner = PgflowRunner(database, DEADLINE, worker_required=False)
        proxy.stop()

        answer = runner.enqueue(run_id, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == ("DatabaseUnavailable", 5.0)
    assert queued(sql) == []


def test_two_catalogs_of_one_database_never_take_each_others_runs(
    postgres: PostgresCluster, dbname: str, owner: Database, database: Database, run_id: RunId
) -> None:
    assert owner.schema == "geogenius"
    stranger = Leases(database, "another_import", uuid4(), timedelta(seconds=60), "a worker")
    with opened(postgres.conninfo(dbname, OWNER)) as other, other.connection() as connection:
        connection.execute("select pgflow.create_flow('another_import'), pgflow.add_step('another_import', 'execute')")
        connection.execute(f"grant all on pgmq.q_another_import, pgmq.a_another_import to {WRITER}")
    stranger.register()

    assert PgflowRunner(database, DEADLINE).available() is False
    assert PgflowRunner(database, DEADLINE, worker_required=False).enqueue(run_id, ARGS) == Accepted()
    assert stranger.claim(10) == []
