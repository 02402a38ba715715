"""Runs in child processes: one each, not too many, never two for one run, and none after the end."""

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import SimpleQueue
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg import sql as composed
from psycopg.rows import DictRow

from geogenius.domain.enqueued import Accepted, NotEnqueued
from geogenius.domain.errors import Misconfigured
from geogenius.domain.run import RunId
from geogenius.importer.recipe import Recipe
from geogenius.processes.messages import DEADLINE, Ended
from geogenius.processes.supervisor import Refused, Submitted, TaskSupervisor
from geogenius.runners.contract import arguments
from geogenius.runners.task import TaskRunner
from geogenius.testing import CatalogBench
from tests.integration.task.conftest import GRACE, PASSWORD, Supervise
from tests.support.databases import WRITER
from tests.support.host_processes import (
    SECONDS,
    SlowRuns,
    alive,
    child_of,
    command_of,
    environment_of,
    family_of,
    nursery_of,
    parent_of,
    reason_of,
    threads_of,
    until,
    until_childless,
)

Connection = psycopg.Connection[DictRow]


def test_a_run_is_executed_in_a_child_while_the_caller_goes_on(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_id = slow.register()
    child = child_of(supervisor, run_id)
    slow.until_under_way(run_id)
    nursery = nursery_of(os.getpid())
    assert (bench.run(run_id).state, supervisor.running) == ("downloading", 1)
    assert (child != os.getpid(), parent_of(child)) == (True, nursery)
    slow.let_go(run_id)
    assert bench.ended(run_id).state == "completed"
    until(lambda: not alive(child) and supervisor.running == 0, "the child is gone")


def test_a_second_wish_finds_the_child_and_later_the_recorded_end(
    supervisor: TaskSupervisor, runner: TaskRunner, slow: SlowRuns, bench: CatalogBench
) -> None:
    run_id = slow.register()
    child = child_of(supervisor, run_id)
    slow.until_under_way(run_id)
    assert bench.ask(runner, run_id) == Accepted()
    assert child_of(supervisor, run_id) == child
    slow.let_go(run_id)
    first = bench.ended(run_id)
    until(lambda: supervisor.running == 0, "the child is gone")
    ends: SimpleQueue[Ended] = SimpleQueue()
    assert isinstance(supervisor.submit(run_id, ended=ends.put), Submitted)
    assert ends.get(timeout=SECONDS) == Ended(run_id, 0, None, None)
    assert (bench.run(run_id).executor_id, bench.run(run_id).state) == (first.executor_id, "completed")


def test_a_run_that_fails_by_itself_has_recorded_why(supervisor: TaskSupervisor, bench: CatalogBench) -> None:
    run_id = bench.register(bench.intent("task"), sound=False).run_id
    ends: SimpleQueue[Ended] = SimpleQueue()
    supervisor.submit(run_id, ended=ends.put)
    assert ends.get(timeout=SECONDS) == Ended(run_id, 65, None, None)
    assert reason_of(bench.run(run_id)) == "ChecksumMismatch"


def test_one_run_too_many_is_refused_for_now(supervise: Supervise, slow: SlowRuns, bench: CatalogBench) -> None:
    supervisor = supervise(max_children=1)
    runner = TaskRunner(supervisor)
    first, second = slow.register(), bench.register(bench.intent("task")).run_id
    assert bench.ask(runner, first) == Accepted()
    refused = bench.ask(runner, second)
    assert isinstance(refused, NotEnqueued)
    assert (refused.reason, (refused.retry_after or 0) > 0) == ("SupervisorFull", True)
    assert (runner.available(), bench.ask(runner, first)) == (True, Accepted())
    slow.let_go(first)
    bench.ended(first)
    until(lambda: supervisor.running == 0, "there is room")
    assert bench.ask(runner, second) == Accepted()
    assert bench.ended(second).state == "completed"


def test_a_stopped_supervisor_refuses_and_leaves_the_run_alone(
    supervisor: TaskSupervisor, runner: TaskRunner, bench: CatalogBench
) -> None:
    run = bench.register(bench.intent("task"))
    assert runner.available()
    supervisor.start()
    nursery = nursery_of(os.getpid())
    supervisor.stop()
    supervisor.stop()
    assert not alive(nursery)
    answer = runner.enqueue(run.run_id, arguments(publish=False, stale_after=run.stale_after))
    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after, runner.available()) == ("SupervisorStopped", None, False)
    assert (bench.run(run.run_id).state, bench.run(run.run_id).executor_id) == ("pending", None)


def test_a_nursery_that_cannot_be_started_is_a_refusal(supervise: Supervise, bench: CatalogBench) -> None:
    refused = supervise(("/nowhere/python",)).submit(bench.register(bench.intent("task")).run_id)
    assert isinstance(refused, Refused)
    assert refused.reason == "SupervisorNotStarted"


def test_threads_that_ask_at_once_have_one_nursery_of_one_thread(supervise: Supervise, slow: SlowRuns) -> None:
    supervisor = supervise(max_children=8)
    run_ids = [slow.register() for _ in range(8)]
    together = Barrier(8)

    def ask(run_id: RunId) -> int:
        together.wait(SECONDS)
        return child_of(supervisor, run_id)

    with ThreadPoolExecutor(8) as threads:
        children = list(threads.map(ask, run_ids))
    nursery = nursery_of(os.getpid())
    assert len(set(children)) == 8
    assert {parent_of(child) for child in children} == {nursery}
    assert threads_of(nursery) == 1
    for run_id in run_ids:
        slow.let_go(run_id)
    until(lambda: supervisor.running == 0, "all runs have ended")
    assert {slow.runs.get(run_id).state for run_id in run_ids} == {"completed"}  # type: ignore[union-attr]


def test_a_run_is_ended_at_its_deadline(supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench) -> None:
    run_id = slow.register()
    ends: SimpleQueue[Ended] = SimpleQueue()
    supervisor.submit(run_id, deadline=timedelta(seconds=1), ended=ends.put)
    ended = ends.get(timeout=SECONDS)
    assert (ended.why, ended.signal) == (DEADLINE, None)
    assert (bench.run(run_id).state, reason_of(bench.run(run_id))) == ("failed", "DeadlineExceeded")


def test_a_run_is_ended_on_request_and_others_go_on(
    supervisor: TaskSupervisor, slow: SlowRuns, bench: CatalogBench
) -> None:
    unwanted, wanted = slow.register(), slow.register()
    for run_id in (unwanted, wanted):
        child_of(supervisor, run_id)
        slow.until_under_way(run_id)
    supervisor.end(unwanted)
    assert reason_of(bench.ended(unwanted)) == "SupervisorStopped"
    slow.let_go(wanted)
    assert bench.ended(wanted).state == "completed"


def test_a_database_that_is_away_at_the_start_is_told_of_when_it_is_back(
    supervisor: TaskSupervisor, bench: CatalogBench, sql: Connection, dbname: str
) -> None:
    run_id = bench.register(bench.intent("task")).run_id
    limit = composed.SQL("alter database {} connection limit {}")
    sql.execute(limit.format(composed.Identifier(dbname), 0))
    sql.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", [WRITER])
    ends: SimpleQueue[Ended] = SimpleQueue()
    submitted = supervisor.submit(run_id, ended=ends.put)
    assert isinstance(submitted, Submitted)
    until(lambda: not alive(submitted.pid), "the executor has given up")
    known = sql.execute("select state::text from geogenius.import_run where id = %s", [run_id]).fetchone()
    assert known == {"state": "pending"}
    sql.execute(limit.format(composed.Identifier(dbname), -1))
    assert ends.get(timeout=SECONDS) == Ended(run_id, 75, None, None)
    assert (bench.run(run_id).state, reason_of(bench.run(run_id))) == ("failed", "OutcomeNotRecorded")
    other = bench.register(bench.intent("task")).run_id
    child_of(supervisor, other)
    assert bench.ended(other).state == "completed"


def test_the_connection_string_shows_nowhere(supervisor: TaskSupervisor, slow: SlowRuns, recipe: Recipe) -> None:
    run_id = slow.register()
    child = child_of(supervisor, run_id)
    slow.until_under_way(run_id)
    family = family_of(nursery_of(os.getpid()))
    assert child in family
    shown = [text for pid in family for text in (command_of(pid), environment_of(pid))]
    assert all(shown)
    assert not [text for text in (*shown, repr(recipe)) if PASSWORD in text]
    supervisor.stop()
    until_childless(*family)


def test_whoever_is_told_of_an_end_may_begin_the_next_run_and_stop(supervise: Supervise, bench: CatalogBench) -> None:
    supervisor = supervise(max_children=1)
    first, second = (bench.register(bench.intent("task")).run_id for _ in range(2))
    done: SimpleQueue[object] = SimpleQueue()

    def stop(_: Ended) -> None:
        supervisor.stop()
        done.put("stopped")

    child_of(supervisor, first, lambda _: done.put(supervisor.submit(second, ended=stop)))
    assert isinstance(done.get(timeout=SECONDS), Submitted)
    assert done.get(timeout=SECONDS) == "stopped"
    assert [bench.run(run_id).state for run_id in (first, second)] == ["completed"] * 2


def test_a_host_may_have_several_supervisors(supervise: Supervise, bench: CatalogBench) -> None:
    run_ids = [bench.register(bench.intent("task")).run_id for _ in range(2)]
    for run_id in run_ids:
        child_of(supervise(), run_id)
    assert [bench.ended(run_id).state for run_id in run_ids] == ["completed"] * 2


def test_a_timeout_that_the_host_gives_all_its_sockets_is_not_that_of_the_nursery(
    supervise: Supervise, bench: CatalogBench
) -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.05)
    try:
        supervisor = supervise(max_children=1)
        supervisor.start()
    finally:
        socket.setdefaulttimeout(before)
    link = supervisor._link
    until(lambda: link is not None and link._ready, "the nursery, silent for longer than that, is still heard")

    for _ in range(2):
        run_id = bench.register(bench.intent("task")).run_id
        assert isinstance(supervisor.submit(run_id), Submitted)
        assert bench.ended(run_id).state == "completed"
        until(lambda: not supervisor.running, "the slot is free")


def test_a_nursery_that_cannot_be_loaded_has_begun_nothing(supervise: Supervise, bench: CatalogBench) -> None:
    supervisor = supervise((sys.executable, "-c", "import no_such_module"))

    refused = supervisor.submit(bench.register(bench.intent("task")).run_id)

    assert isinstance(refused, Refused)
    assert "could not be loaded" in refused.message


def test_a_deadline_of_many_days_is_one(supervisor: TaskSupervisor, bench: CatalogBench) -> None:
    run_id = bench.register(bench.intent("task")).run_id

    assert isinstance(supervisor.submit(run_id, deadline=timedelta(days=300)), Submitted)
    assert bench.ended(run_id).state == "completed"


@pytest.mark.parametrize("wrong", [{"max_children": 0}, {"max_children": "4"}, {"grace": 20}, {"grace": -GRACE}])
def test_wrong_options_are_refused_before_anything_is_registered(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured, match=next(iter(wrong))):
        TaskSupervisor(("unused",), {}, **wrong)
