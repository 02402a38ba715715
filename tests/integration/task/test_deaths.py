"""Executors and nurseries that die, stop answering or are told to end: every run gets an end that tells the truth."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import psycopg
import pytest
from psycopg.rows import DictRow

from geogenius.db import Database
from geogenius.processes.messages import STOPPED, Ended
from geogenius.processes.supervisor import TaskSupervisor
from geogenius.testing import CatalogBench
from tests.integration.task.conftest import Supervise
from tests.support.databases import session, until_waiting_for_lock
from tests.support.host_processes import (
    SECONDS,
    SlowRuns,
    alive,
    child_of,
    family_of,
    nurseries_of,
    nursery_of,
    reason_of,
    stopped,
    until,
    until_childless,
)

Connection = psycopg.Connection[DictRow]

SHORT = timedelta(seconds=0.5)

DYING = """
import os
from geogenius.catalog.executions import Executions
from geogenius.domain.run import Fence
from geogenius.nursery import __main__, program

def die(recipe, run_id, executor_id, *_):
    Executions(recipe.database("dying")).claim(Fence(run_id, executor_id))
    os._exit({code})

program.execute = die
__main__.main()
"""
"""A nursery whose executors claim their run and are gone."""


@contextmanager
def locked(owner: Database, statement: str) -> Iterator[None]:
    """Hold a lock on the catalog."""
    with session(owner) as connection, connection.transaction():
        connection.execute(statement.encode())
        yield


def test_a_killed_executor_is_recorded_and_not_restarted(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    killed, other = slow.register(), slow.register()
    ends: SimpleQueue[Ended] = SimpleQueue()
    child = child_of(supervisor, killed, ends.put)
    bystander = child_of(supervisor, other)
    slow.until_under_way(killed)
    executor_id = bench.run(killed).executor_id
    asked = slow.times_asked(killed)
    os.kill(child, signal.SIGKILL)
    assert ends.get(timeout=SECONDS) == Ended(killed, None, signal.SIGKILL, None)
    run = bench.run(killed)
    assert (run.state, reason_of(run), run.executor_id) == ("failed", "ExecutorKilled", executor_id)
    assert run.error is not None
    assert ("SIGKILL" in run.error.message, run.error.evidence["class"]) == (True, "infrastructure")
    assert slow.times_asked(killed) - asked <= 1
    assert not list(bench.workplace.work_dir.glob(f"run_{killed.hex}_*")), "what it had downloaded is gone"
    assert alive(bystander)
    slow.let_go(other)
    assert bench.ended(other).state == "completed"
    until(lambda: family_of(nursery_of(os.getpid())) == [nursery_of(os.getpid())], "the nursery is alone")


def test_what_an_executor_has_started_dies_with_it(supervise: Supervise, bench: CatalogBench) -> None:
    program = DYING.format(code="os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '600') and 3")
    supervisor = supervise((sys.executable, "-P", "-c", program))
    run_id = bench.register(bench.intent("task")).run_id
    child_of(supervisor, run_id)
    assert reason_of(bench.ended(run_id)) == "ExecutorCrashed"
    nursery = nursery_of(os.getpid())
    until(lambda: family_of(nursery) == [nursery], "the nursery is alone")


@pytest.mark.parametrize(("code", "reason"), [(3, "ExecutorCrashed"), (75, "OutcomeNotRecorded")])
def test_an_executor_that_ends_without_a_record_is_recorded(
    code: int, reason: str, supervise: Supervise, bench: CatalogBench
) -> None:
    supervisor = supervise((sys.executable, "-P", "-c", DYING.format(code=code)))
    run_id = bench.register(bench.intent("task")).run_id
    ends: SimpleQueue[Ended] = SimpleQueue()
    child_of(supervisor, run_id, ends.put)
    assert ends.get(timeout=SECONDS) == Ended(run_id, code, None, None)
    assert (bench.run(run_id).state, reason_of(bench.run(run_id))) == ("failed", reason)


def test_a_stop_lets_the_executors_record_their_ends(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_ids = [slow.register() for _ in range(2)]
    ends: SimpleQueue[Ended] = SimpleQueue()
    for run_id in run_ids:
        child_of(supervisor, run_id, ends.put)
        slow.until_under_way(run_id)
    nursery = nursery_of(os.getpid())
    supervisor.stop()
    assert family_of(nursery) == []
    assert {(end.why, end.signal) for end in (ends.get_nowait(), ends.get_nowait())} == {(STOPPED, None)}
    assert [reason_of(bench.run(run_id)) for run_id in run_ids] == ["SupervisorStopped"] * 2


def test_a_stop_ends_a_statement_that_waits_in_the_database(
    supervisor: TaskSupervisor, bench: CatalogBench, owner: Database, sql: Connection
) -> None:
    run_id = bench.register(bench.intent("task")).run_id
    with locked(owner, "lock table boundary in access exclusive mode"):
        child_of(supervisor, run_id)
        until_waiting_for_lock(sql, "geogenius-executor", SECONDS)
        supervisor.stop()
    run = bench.run(run_id)
    assert run.error is not None
    assert (run.error.phase, run.error.reason) == ("normalizing", "SupervisorStopped")


def test_an_executor_that_does_not_listen_is_killed_after_the_grace(
    supervise: Supervise, slow: SlowRuns, bench: CatalogBench
) -> None:
    supervisor = supervise(grace=SHORT)
    run_id = slow.register()
    ends: SimpleQueue[Ended] = SimpleQueue()
    child = child_of(supervisor, run_id, ends.put)
    slow.until_under_way(run_id)
    nursery = nursery_of(os.getpid())
    os.kill(child, signal.SIGSTOP)
    until(lambda: stopped(child), "the executor stands still")
    supervisor.stop()
    assert family_of(nursery) == []
    assert ends.get_nowait() == Ended(run_id, None, signal.SIGKILL, STOPPED)
    error = bench.run(run_id).error
    assert error is not None
    assert (error.reason, "SIGKILL" in error.message) == ("SupervisorStopped", True)


def test_a_terminated_nursery_ends_its_executors_and_is_replaced(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_id = slow.register()
    ends: SimpleQueue[Ended] = SimpleQueue()
    child_of(supervisor, run_id, ends.put)
    slow.until_under_way(run_id)
    nursery = nursery_of(os.getpid())
    os.kill(nursery, signal.SIGTERM)
    assert ends.get(timeout=SECONDS).why == STOPPED
    assert reason_of(bench.run(run_id)) == "SupervisorStopped"
    until_childless(nursery)
    until(lambda: supervisor.running == 0, "the host has noticed")
    other = bench.register(bench.intent("task")).run_id
    until(lambda: bool(supervisor.submit(other)) and supervisor.running, "another nursery is there")
    assert bench.ended(other).state == "completed"


def test_executors_end_with_a_nursery_that_was_killed_and_the_next_run_has_another(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_ids = [slow.register() for _ in range(2)]
    ends: SimpleQueue[Ended] = SimpleQueue()
    for run_id in run_ids:
        child_of(supervisor, run_id, ends.put)
        slow.until_under_way(run_id)
    nursery = nursery_of(os.getpid())
    os.kill(nursery, signal.SIGKILL)
    lost = {ends.get(timeout=SECONDS) for _ in run_ids}
    assert lost == {Ended(run_id, None, None, None) for run_id in run_ids}
    assert [reason_of(bench.ended(run_id)) for run_id in run_ids] == ["SupervisorLost"] * 2
    until_childless(nursery)
    other = bench.register(bench.intent("task")).run_id
    child_of(supervisor, other)
    assert bench.ended(other).state == "completed"
    assert nursery_of(os.getpid()) != nursery


def test_an_executor_that_does_not_listen_outlives_a_killed_nursery_by_no_more_than_the_grace(
    supervise: Supervise, bench: CatalogBench, owner: Database, sql: Connection
) -> None:
    supervisor = supervise(grace=SHORT)
    run_id = bench.register(bench.intent("task")).run_id
    with locked(owner, "lock table import_run in exclusive mode"):
        child_of(supervisor, run_id)
        until_waiting_for_lock(sql, "geogenius-executor", SECONDS)
        nursery = nursery_of(os.getpid())
        os.kill(nursery, signal.SIGKILL)
        until_childless(nursery)
    assert bench.run(run_id).executor_id is None


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_replaced_nurseries_leave_nothing_open(supervisor: TaskSupervisor) -> None:
    supervisor.start()
    before = open_files()

    def replaced(gone: int) -> bool:
        supervisor.start()
        return nurseries_of(os.getpid()) not in ([], [gone])

    for _ in range(3):
        nursery = nursery_of(os.getpid())
        os.kill(nursery, signal.SIGKILL)
        until(partial(replaced, nursery), "the nursery is replaced")
    assert open_files() == before
