"""Claims, the fence and its refusals, heartbeats, and the first evidence of a failure."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.db.migrate import migrate
from geogenius.domain.enqueued import Accepted, Enqueued, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import Conflict, InvalidRequest, LeaseLost
from geogenius.domain.executed import Claim
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId, RunState
from tests.support.catalog import a_job_intent, a_manifest, claimed, completed, driven, published, registered
from tests.support.databases import PostgresCluster, opened, until_waiting_for_lock

Sql = psycopg.Connection[psycopg.rows.DictRow]
ERROR = RunError("staging", "DataRefused", "row 7 is bad", {"class": "data"})
GUARD = "select assert_import_write(%s, %s, array['staging']::run_state[])"
SUPERSEDE = """
with ended as (
    update import_run set state = 'failed', completed_at = now(), error = '{"phase": "", "reason": "", "message": ""}'
    where id = %(run)s returning *
)
insert into import_run
select (jsonb_populate_record(null::import_run, to_jsonb(e) || %(changes)s)).* from ended e
"""
NEXT_ATTEMPT = {"id": str(uuid4()), "attempt": 2, "state": "pending", "completed_at": None, "error": None}


def another(fence: Fence) -> Fence:
    return Fence(fence.run_id, ExecutorId(uuid4()))


def supersede(sql: Sql, fence: Fence) -> None:
    changes = psycopg.types.json.Jsonb(NEXT_ATTEMPT)
    with sql.transaction():
        sql.execute("drop index import_run_one_live")  # both rows are written by one statement
        sql.execute(SUPERSEDE, {"run": fence.run_id, "changes": changes})


def test_a_claim_is_for_one_executor_and_repeatable_by_it(database: Database) -> None:
    fence = claimed(database)
    assert Executions(database).claim(fence) is Claim.CLAIMED
    assert Executions(database).claim(another(fence)) is Claim.OCCUPIED
    Executions(database).advance(fence, RunState.DOWNLOADING, {})
    assert Executions(database).claim(fence) is Claim.OCCUPIED


def test_a_claim_of_an_ended_run_says_how_it_ended(database: Database) -> None:
    done = completed(database)
    lost = claimed(database, a_manifest(release="r2"))
    Runs(database).fail(lost, ERROR)
    assert Executions(database).claim(another(done)) is Claim.COMPLETED
    assert Executions(database).claim(another(lost)) is Claim.FAILED
    assert Executions(database).claim(Fence(RunId(uuid4()), ExecutorId(uuid4()))) is Claim.MISSING


def test_a_claim_of_an_earlier_attempt_is_superseded(database: Database, sql: Sql) -> None:
    fence = claimed(database)
    supersede(sql, fence)
    assert Executions(database).claim(fence) is Claim.SUPERSEDED


def test_a_claim_without_a_lease_is_occupied(database: Database, sql: Sql) -> None:
    fence = Fence(registered(database), ExecutorId(uuid4()))
    sql.execute("delete from import_run_lease")
    assert Executions(database).claim(fence) is Claim.OCCUPIED


def test_of_many_claims_at_once_one_wins(database: Database) -> None:
    run_id = registered(database)
    fences = [Fence(run_id, ExecutorId(uuid4())) for _ in range(12)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(Executions(database).claim, fences))
    assert sorted(answers) == [Claim.CLAIMED] + [Claim.OCCUPIED] * 11


def test_a_claim_proves_that_the_start_was_accepted(database: Database) -> None:
    run = Runs(database).get(claimed(database).run_id)
    assert run is not None
    assert (run.enqueue_state, run.enqueue_reason) == (EnqueueState.ACCEPTED, "claimed by an executor")


def executor_is_another(_: Sql, fence: Fence) -> Fence:
    return another(fence)


def run_is_unknown(_: Sql, fence: Fence) -> Fence:
    return Fence(RunId(uuid4()), fence.executor_id)


def release_id_for_run_id(sql: Sql, fence: Fence) -> Fence:
    row = sql.execute("select release_id from import_run").fetchall()[0]
    return Fence(RunId(row["release_id"]), fence.executor_id)


def later_attempt_exists(sql: Sql, fence: Fence) -> Fence:
    supersede(sql, fence)
    return fence


def lease_is_gone(sql: Sql, fence: Fence) -> Fence:
    sql.execute("delete from import_run_lease")
    return fence


def nobody_has_claimed(sql: Sql, fence: Fence) -> Fence:
    sql.execute("update import_run_lease set executor_id = null, execution_started_at = null")
    return fence


def release_is_completed(sql: Sql, fence: Fence) -> Fence:
    sql.execute("update release set completed_at = now()")
    return fence


def phase_is_another(sql: Sql, fence: Fence) -> Fence:
    sql.execute("update import_run set state = 'normalizing'")
    return fence


@pytest.mark.parametrize(
    ("spoil", "word", "reason"),
    [
        (run_is_unknown, "unknown_run", "UnknownRun"),
        (release_id_for_run_id, "unknown_run", "UnknownRun"),
        (later_attempt_exists, "superseded", "Superseded"),
        (executor_is_another, "lease_lost", "LeaseLost"),
        (lease_is_gone, "lease_lost", "LeaseLost"),
        (nobody_has_claimed, "lease_lost", "LeaseLost"),
        (release_is_completed, "release_frozen", "ReleaseFrozen"),
        (phase_is_another, "wrong_phase", "WrongPhase"),
    ],
)
def test_the_fence_refuses_by_a_word(
    database: Database, sql: Sql, spoil: Callable[[Sql, Fence], Fence], word: str, reason: str
) -> None:
    fence = spoil(sql, driven(database, RunState.STAGING))
    with pytest.raises(psycopg.Error) as said:
        sql.execute(GUARD, [fence.run_id, fence.executor_id])
    assert said.value.diag.message_detail == word
    for write in (Areas(database).create_staging, lambda held: Areas(database).stage(held, "a", [], [])):
        with pytest.raises(Conflict) as refused:
            write(fence)
        assert refused.value.reason == reason
        assert isinstance(refused.value, LeaseLost) == (word != "wrong_phase")


def test_a_fence_without_an_executor_never_holds(database: Database, sql: Sql) -> None:
    registered(database)
    with pytest.raises(psycopg.Error) as said:
        sql.execute("select assert_import_write(id, null, array['pending']::run_state[]) from import_run")
    assert said.value.diag.message_detail == "lease_lost"


def test_a_heartbeat_passes_while_a_fenced_write_is_open(database: Database, conninfo: str) -> None:
    fence = driven(database, RunState.STAGING)
    with opened(conninfo, "writer") as other, other.connection() as open_write:
        open_write.execute(GUARD, [fence.run_id, fence.executor_id])
        with database.dedicated() as own:
            own.execute("set lock_timeout = '1ms'")
            Executions(database).heartbeat(fence, {"rows": 10}, own)
            Executions(database).heartbeat(fence, {"bytes": 5}, own)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert run.progress == {"rows": 10, "bytes": 5}


def test_a_failure_waits_for_the_open_write_and_then_keeps_it_out(database: Database, conninfo: str, sql: Sql) -> None:
    fence = driven(database, RunState.STAGING)
    Areas(database).create_staging(fence)
    with opened(conninfo, "failing") as outside, ThreadPoolExecutor() as threads:
        with database.connection() as open_write:
            open_write.execute(GUARD, [fence.run_id, fence.executor_id])
            failing = threads.submit(Runs(outside).fail, fence, ERROR)
            until_waiting_for_lock(sql, "failing")
            Executions(database).heartbeat(fence, {"rows": 1})
            # the same executor goes on in the same transaction, although somebody waits for its rows
            open_write.execute("select advance_import(%s, %s, 'normalizing', '{}')", [fence.run_id, fence.executor_id])
        failing.result()
    with pytest.raises(LeaseLost):
        Areas(database).create_staging(fence)


def test_two_catalogs_in_one_database_do_not_wait_for_each_other(
    owner: Database, postgres: PostgresCluster, dbname: str
) -> None:
    locks = "select lock_release('world', 'r1'), lock_publication('world')"
    neighbour = Database(postgres.conninfo(dbname), application_name="neighbour", schema="neighbour")
    try:
        migrate(neighbour)
        with owner.connection() as ours, neighbour.connection() as theirs:
            theirs.execute("set local lock_timeout = '1ms'")
            ours.execute(locks)
            theirs.execute(locks)
    finally:
        neighbour.close()


def test_a_heartbeat_renews_the_lease_and_keeps_when_progress_was_made(database: Database, owner: Database) -> None:
    fence = claimed(database)
    with owner.dedicated() as own:
        for now, progress in [("10:00", {"rows": 1}), ("10:01", {"rows": 2}), ("10:02", {"rows": 2})]:
            own.execute("select set_config('geogenius.now', %s, false)", [f"2030-01-01 {now}Z"])
            Executions(owner).heartbeat(fence, progress, own)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert run.last_heartbeat_at is not None
    assert run.last_progress_at is not None
    assert (run.last_heartbeat_at.minute, run.last_progress_at.minute, run.progress) == (2, 1, {"rows": 2})


def test_a_heartbeat_of_another_executor_or_after_the_end_is_refused(database: Database) -> None:
    fence = claimed(database)
    with pytest.raises(LeaseLost):
        Executions(database).heartbeat(another(fence), {})
    Runs(database).fail(fence, ERROR)
    with pytest.raises(LeaseLost), database.dedicated() as own:
        Executions(database).heartbeat(fence, {}, own)


def test_a_failure_keeps_the_evidence_of_the_lease(database: Database, sql: Sql) -> None:
    fence = claimed(database)
    Executions(database).heartbeat(fence, {"rows": 3})
    before = Runs(database).get(fence.run_id)
    Runs(database).fail(fence, ERROR)
    run = Runs(database).get(fence.run_id)
    assert before is not None
    assert run is not None
    assert (run.state, run.error, run.progress) == (RunState.FAILED, ERROR, {"rows": 3})
    assert (run.executor_id, run.execution_started_at, run.last_heartbeat_at, run.last_progress_at) == (
        fence.executor_id, before.execution_started_at, before.last_heartbeat_at, before.last_progress_at,
    )  # fmt: skip
    assert sql.execute("select count(*) as leases from import_run_lease").fetchone() == {"leases": 0}


def test_a_second_failure_keeps_the_first_evidence(database: Database) -> None:
    fence = claimed(database)
    Runs(database).fail(fence, ERROR)
    first = Runs(database).get(fence.run_id)
    Runs(database).fail(another(fence), RunError("later", "Other", "other"))
    second = Runs(database).get(fence.run_id)
    assert first is not None
    assert second is not None
    assert (second.error, second.completed_at, second.executor_id) == (ERROR, first.completed_at, fence.executor_id)


def test_a_completed_run_cannot_fail(database: Database) -> None:
    fence = published(database)
    with pytest.raises(Conflict) as refused:
        Runs(database).fail(fence, ERROR)
    assert (refused.value.reason, isinstance(refused.value, LeaseLost)) == ("RunCompleted", False)


def test_a_run_that_nobody_claimed_takes_the_executor_that_fails_it(database: Database) -> None:
    fence = Fence(registered(database), ExecutorId(uuid4()))
    Runs(database).fail(fence, ERROR)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert (run.state, run.executor_id) == (RunState.FAILED, fence.executor_id)


def test_only_the_executor_fails_its_run(database: Database) -> None:
    fence = claimed(database)
    with pytest.raises(LeaseLost):
        Runs(database).fail(another(fence), ERROR)
    with pytest.raises(LeaseLost):
        Runs(database).fail(Fence(RunId(uuid4()), fence.executor_id), ERROR)


ACCEPTED, REFUSED, UNKNOWN = Accepted(), NotEnqueued("Quota", "exceeded"), OutcomeUnknown("Timeout", "no answer")


@pytest.mark.parametrize(
    ("answers", "state", "reason"),
    [
        ([], EnqueueState.INTENDED, None),
        ([UNKNOWN], EnqueueState.UNKNOWN, "Timeout: no answer"),
        ([REFUSED, UNKNOWN], EnqueueState.UNKNOWN, "Timeout: no answer"),
        ([UNKNOWN, REFUSED], EnqueueState.NOT_ENQUEUED, "Quota: exceeded"),
        ([UNKNOWN, REFUSED, ACCEPTED], EnqueueState.ACCEPTED, None),
        ([ACCEPTED, REFUSED, UNKNOWN], EnqueueState.ACCEPTED, None),
    ],
)
def test_what_is_known_about_the_start_only_grows(
    database: Database, answers: list[Enqueued], state: EnqueueState, reason: str | None
) -> None:
    run_id = registered(database)
    for answer in answers:
        Runs(database).record_enqueue(run_id, answer)
    run = Runs(database).get(run_id)
    assert run is not None
    assert (run.enqueue_state, run.enqueue_reason) == (state, reason)


def test_a_repeated_answer_keeps_since_when_it_holds(database: Database) -> None:
    run_id = registered(database)
    Runs(database).record_enqueue(run_id, UNKNOWN)
    first = Runs(database).get(run_id)
    Runs(database).record_enqueue(run_id, OutcomeUnknown("Reset", "cut off"))
    second = Runs(database).get(run_id)
    assert first is not None
    assert second is not None
    assert (second.enqueue_changed_at, second.enqueue_reason) == (first.enqueue_changed_at, "Reset: cut off")


def test_the_uid_of_the_workload_is_learned_later_and_kept(database: Database) -> None:
    intent = a_job_intent()
    fence = claimed(database, intent=intent)
    uid = uuid4()
    for answer in (Accepted(str(uid)), Accepted(str(uuid4())), Accepted()):
        Runs(database).record_enqueue(fence.run_id, answer)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert run.workload is not None
    assert run.workload.uid == uid


def test_the_name_of_a_workload_outside_a_cluster_is_not_kept(database: Database) -> None:
    run_id = registered(database)
    Runs(database).record_enqueue(run_id, Accepted("queue item 7"))
    run = Runs(database).get(run_id)
    assert run is not None
    assert run.workload is None


def test_after_the_end_no_answer_changes_the_run(database: Database) -> None:
    fence = Fence(registered(database), ExecutorId(uuid4()))
    Runs(database).fail(fence, ERROR)
    before: Any = Runs(database).get(fence.run_id)
    Runs(database).record_enqueue(fence.run_id, ACCEPTED)
    after: Any = Runs(database).get(fence.run_id)
    assert (after.enqueue_state, after.enqueue_changed_at) == (EnqueueState.INTENDED, before.enqueue_changed_at)


def test_an_answer_for_an_unknown_run_or_without_meaning_is_refused(database: Database) -> None:
    with pytest.raises(LeaseLost):
        Runs(database).record_enqueue(RunId(uuid4()), ACCEPTED)
    with pytest.raises(InvalidRequest), database.connection() as connection:
        connection.execute("select record_enqueue(%s, 'intended', null, null)", [registered(database)])
