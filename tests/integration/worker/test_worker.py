"""`geogenius worker` as a process, on the real queue: what it executes, keeps, gives back, and leaves alone."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from geogenius.db import Database
from geogenius.domain.run import RunId, RunState
from geogenius.pgflow.install import install
from geogenius.runners.contract import arguments
from geogenius.runners.pgflow import PgflowRunner
from geogenius.testing import CatalogBench
from tests.support.command import Command
from tests.support.databases import WRITER, PostgresCluster
from tests.support.host_processes import SlowRuns, nursery_of, stopped, until
from tests.support.pgbouncer import running_bouncer, through
from tests.support.queues import Sql, sources, task_of, waiting, workers_known
from tests.support.worker_process import Worker

Enqueue = Callable[[RunId], None]
Start = Callable[..., Worker]
LEASE_SECONDS = 2
SHORT = timedelta(seconds=4)
"""The window of runs whose executors are lost: longer than a lease, so that the message comes back first."""


def until_leases_were_renewed(sql: Sql, run_id: RunId, leases: int) -> None:
    """Returns when a run has been worked on for so many leases and its message was never visible in between."""
    query = """
        select from pgflow.step_tasks t join pgmq.q_geogenius_import m on m.msg_id = t.message_id
        where t.run_id = %s and t.started_at + make_interval(secs => %s) < clock_timestamp()
            and m.vt > clock_timestamp()
    """
    seconds = leases * LEASE_SECONDS
    until(lambda: sql.execute(query, [run_id, seconds]).fetchall(), f"run {run_id} is held for {leases} leases")


def freeze(sql: Sql, pids: list[int]) -> None:
    """Have processes stand still between their transactions: the server ends one in the middle a minute later."""
    open_ones = """
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
            and application_name like 'geogenius-%'
    """

    def stand_still() -> bool:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(stopped(pid) for pid in pids), "all stand still")
        if not sql.execute(open_ones).fetchall():
            return True
        thaw(pids)
        return False

    until(stand_still, "all stand still between transactions")


def thaw(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def done(sql: Sql, run_id: RunId) -> None:
    """Returns when the message of a run is done."""
    until(lambda: task_of(sql, run_id)["status"] in ("completed", "failed"), f"the task of {run_id} has ended")
    assert waiting(sql) == 0


def test_a_queued_run_is_executed_and_its_message_is_done(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql
) -> None:
    start()
    run = bench.register(bench.intent("pgflow", publish=True))

    enqueue(run.run_id)

    assert bench.ended(run.run_id).published
    done(sql, run.run_id)
    assert task_of(sql, run.run_id)["output"] == {"outcome": "completed"}


def test_a_run_that_lasts_longer_than_its_lease_is_executed_once_by_two_workers(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    workers = [start(), start()]
    run_id = slow.register("pgflow")
    enqueue(run_id)
    slow.until_under_way(run_id)

    until_leases_were_renewed(sql, run_id, 3)
    assert sum(len(worker.executors) for worker in workers) == 1
    slow.let_go(run_id)

    assert bench.ended(run_id).state is RunState.COMPLETED
    done(sql, run_id)
    assert task_of(sql, run_id)["attempts_count"] == 1
    assert slow.times_asked(run_id) == 1


def test_a_run_whose_worker_and_executor_were_killed_is_failed_on_evidence_and_not_taken_over(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    lost = start()
    run_id = slow.register("pgflow", SHORT)
    enqueue(run_id)
    slow.until_under_way(run_id)
    start()

    executor = bench.run(run_id).executor_id
    lost.kill_all()

    ended = bench.ended(run_id)
    assert ended.error is not None
    assert (ended.state, ended.error.reason, ended.executor_id) == (RunState.FAILED, "WorkloadLost", executor)
    done(sql, run_id)
    assert task_of(sql, run_id)["output"] == {"outcome": "failed"}
    assert slow.times_asked(run_id) == 1


def test_a_worker_that_stood_still_loses_the_message_and_its_executor_goes_on(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    still = start()
    run_id = slow.register("pgflow", timedelta(seconds=6))
    enqueue(run_id)
    slow.until_under_way(run_id)
    freeze(sql, [still.pid])
    other = start()
    until(lambda: 'geogenius_worker_steps_total{step="PutBack"} 1' in other.probe("/metrics")[1], "the other looked")

    thaw([still.pid])
    until(lambda: "geogenius_worker_lost_total 1" in still.probe("/metrics")[1], "the lease is lost")
    slow.let_go(run_id)

    assert bench.ended(run_id).state is RunState.COMPLETED
    done(sql, run_id)
    assert task_of(sql, run_id)["output"] == {"outcome": "completed"}
    assert slow.times_asked(run_id) == 1


def test_an_executor_that_comes_back_after_its_run_was_failed_writes_nothing(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    still = start()
    run_id = slow.register("pgflow", SHORT)
    enqueue(run_id)
    slow.until_under_way(run_id)
    frozen = [still.pid, *still.executors]
    freeze(sql, frozen)
    start()
    failed = bench.ended(run_id)
    slow.let_go(run_id)

    thaw(frozen)
    until(lambda: not still.executors, "the executor that came back has ended")

    assert failed.error is not None
    assert failed.error.reason == "WorkloadLost"
    assert bench.run(run_id).state is RunState.FAILED
    assert bench.run(run_id).error == failed.error
    done(sql, run_id)


def test_an_executor_that_is_killed_fails_its_run_and_is_not_restarted(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    worker = start()
    run_id = slow.register("pgflow")
    enqueue(run_id)
    slow.until_under_way(run_id)

    for pid in worker.executors:
        os.kill(pid, signal.SIGKILL)

    ended = bench.ended(run_id)
    assert ended.error is not None
    assert ended.error.reason == "ExecutorKilled"
    done(sql, run_id)
    assert task_of(sql, run_id)["output"] == {"outcome": "failed"}
    assert slow.times_asked(run_id) == 1


def test_on_sigterm_a_run_under_way_may_end_and_nothing_more_is_taken(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    worker = start(GEOGENIUS_WORKER__CONCURRENCY="1")
    under_way, left = slow.register("pgflow"), slow.register("pgflow")
    enqueue(under_way)
    slow.until_under_way(under_way)
    enqueue(left)

    worker.process.send_signal(signal.SIGTERM)
    until(lambda: worker.probe("/readyz")[0] == 503, "the worker says that it is ending")
    slow.let_go(under_way)

    assert worker.ended() == 0
    assert bench.run(under_way).state is RunState.COMPLETED
    assert bench.run(left).state is RunState.PENDING
    assert (task_of(sql, left)["status"], waiting(sql), workers_known(sql)) == ("queued", 1, 0)


def test_a_run_that_outlasts_the_drain_is_ended_and_that_is_recorded(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    worker = start(GEOGENIUS_WORKER__DRAIN_SECONDS="0")
    run_id = slow.register("pgflow")
    enqueue(run_id)
    slow.until_under_way(run_id)

    assert worker.ended(signal.SIGTERM) == 0

    ended = bench.run(run_id)
    assert ended.error is not None
    assert ended.error.reason == "SupervisorStopped"
    done(sql, run_id)


def test_an_announcement_that_is_never_heard_is_made_up_for_by_polling(
    start: Start, bench: CatalogBench, sql: Sql
) -> None:
    start(GEOGENIUS_WORKER__POLL_SECONDS="0.5")
    run = bench.register(bench.intent("pgflow"))

    silently = "select pgflow.start_flow('geogenius_import', %s::jsonb, %s)"
    order = f'{{"run_id": "{run.run_id}", "schema": "geogenius", "stale_after_seconds": 420, "deadline_seconds": 3900}}'
    sql.execute(silently, [order, run.run_id])

    assert bench.ended(run.run_id).state is RunState.COMPLETED


def test_a_run_that_takes_longer_than_its_deadline_is_ended_and_that_is_recorded(
    start: Start, bench: CatalogBench, sql: Sql, slow: SlowRuns, database: Database, owner: Database
) -> None:
    deadline = timedelta(seconds=3)
    install(owner, sources(), deadline)
    run_id = slow.register("pgflow", timedelta(seconds=2))
    args = arguments(publish=False, stale_after=timedelta(seconds=2))
    PgflowRunner(database, deadline, worker_required=False).enqueue(run_id, args)

    start(GEOGENIUS_PGFLOW__DEADLINE_SECONDS="3")

    ended = bench.ended(run_id)
    assert ended.error is not None
    assert ended.error.reason == "DeadlineExceeded"
    done(sql, run_id)
    assert slow.times_asked(run_id) == 1


def test_behind_a_transaction_pooler_nothing_is_heard_and_messages_are_found_by_polling(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, postgres: PostgresCluster, tmp_path: Path
) -> None:
    with running_bouncer(postgres, tmp_path) as port:
        url = through(port, sql.info.dbname, WRITER)
        worker = start(GEOGENIUS_DATABASE__URL=url, GEOGENIUS_WORKER__POLL_SECONDS="1")
        run = bench.register(bench.intent("pgflow"))
        enqueue(run.run_id)

        assert bench.ended(run.run_id).state is RunState.COMPLETED
        done(sql, run.run_id)
        assert worker.ended(signal.SIGTERM) == 0


def test_a_worker_whose_nursery_was_killed_goes_on_with_another(
    start: Start, bench: CatalogBench, enqueue: Enqueue, sql: Sql, slow: SlowRuns
) -> None:
    worker = start()
    run_id = slow.register("pgflow", SHORT)
    enqueue(run_id)
    slow.until_under_way(run_id)

    os.kill(nursery_of(worker.pid), signal.SIGKILL)

    ended = bench.ended(run_id)
    assert ended.error is not None
    assert ended.error.reason in ("SupervisorLost", "WorkloadLost")
    next_one = bench.register(bench.intent("pgflow"))
    enqueue(next_one.run_id)
    assert bench.ended(next_one.run_id).state is RunState.COMPLETED
    until(lambda: waiting(sql) == 0, "both messages are done")
    assert slow.times_asked(run_id) == 1


def test_the_command_line_queues_an_import_and_waits_for_the_worker(
    start: Start, conninfo: str, environment: dict[str, str]
) -> None:
    folder = Path(environment["GEOGENIUS_IMPORTER__ARTIFACT_DIR"])
    geogenius = Command(conninfo, folder, GEOGENIUS_PGFLOW__DEADLINE_SECONDS="3900")
    start()

    assert "is completed" in geogenius("import", geogenius.manifest("a"), "--runner", "pgflow", "--publish")
    assert "NotJson" in geogenius("import", geogenius.manifest("b", text=b"no"), "--runner", "pgflow", code=65)
    assert [run["runner"] for run in geogenius.json("runs", "world")] == ["pgflow", "pgflow"]
