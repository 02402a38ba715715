"""`python -m bench.runners`: what each runner adds to the pipeline, and a queue whose workers are killed all the time.

One private server with its default durability. The work is the smallest import there is: two areas out of a file that
is there. Direct calls of the pipeline and the runners take turns, so that noise meets all alike. Imports differ by tens
of milliseconds, so `inline` is measured as what the call takes beyond the execution inside it; `task` as the difference
within a turn, where the end is looked for every 2 ms, which counts as ours. The queue is drained in a catalog of its
own.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from uuid import uuid4

import psycopg
from rich.console import Console

from bench.table import Result, readable, show
from geogenius.domain.deadline import Deadline
from geogenius.domain.enqueued import Accepted
from geogenius.domain.executed import Executed
from geogenius.domain.run import Run, RunId
from geogenius.importer.recipe import Recipe
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners.contract import Runner, arguments
from geogenius.runners.inline import InlineRunner
from geogenius.runners.pgflow import PgflowRunner
from geogenius.runners.task import TaskRunner
from geogenius.testing import CatalogBench
from tests.support.databases import DURABLE, WRITER, PostgresCluster, migrated_template, running_cluster
from tests.support.queues import DEADLINE, queue_template
from tests.support.worker_process import Worker, running_worker, worker_environment

TURNS, EXECUTING_TURNS, WARM_UP = 30, 60, 3
LOOK_SECONDS = 0.002
KILL_SECONDS = 5.0
"""How often a worker is killed, with its nursery and its executors, and replaced."""
LOST_WINDOW = timedelta(seconds=10)
"""The window of runs that may be lost with a worker, longer than the lease of their messages."""
LEASE_SECONDS = 5
EXECUTORS = 2
"""Of each worker: so many runs may be lost with it."""
LONGEST_DRAIN_SECONDS = 1800.0

STARTED = "select from pgflow.step_tasks where run_id = %s and status <> 'queued'"
LIVE = "select count(*) from import_run where owner = 'conformance' and state not in ('completed', 'failed')"
ENDS = """
select coalesce(error ->> 'reason', state::text), count(*) from import_run
where runner_backend = 'pgflow' and stale_after_seconds = %s group by 1
"""
COMPLETED = "select id::text from import_run where runner_backend = 'pgflow' and state = 'completed'"
MESSAGES = "select count(*) from pgmq.q_geogenius_import"
EXECUTED = re.compile(rb"phase downloading \[run ([0-9a-f-]{36})\]")

LOST = {"WorkloadLost", "SupervisorLost"}
"""How runs end whose worker was killed: on evidence, or recorded by an executor that outlived its nursery a moment."""

console = Console(width=170)
progress = Console(width=170, stderr=True)
random = Random(11)  # noqa: S311  no secret


@dataclass
class Stand:
    """The catalog with its queue, a plain connection to look inside, and a folder for files."""

    bench: CatalogBench
    connection: "psycopg.Connection[tuple[object, ...]]"
    conninfo: str
    folder: Path
    logs: list[Path] = field(default_factory=list)

    def registered(self, runner: str, window: timedelta | None = None) -> Run:
        """A new run for a runner, committed."""
        intent = self.bench.intent(runner)
        return self.bench.register(intent if window is None else replace(intent, stale_after=window))

    def worker(self, stack: ExitStack) -> Worker:
        """A worker with two executors that is ready."""
        self.logs.append(self.folder / f"worker-{len(self.logs)}.log")
        environment = worker_environment(self.conninfo, self.bench.workplace, lease_seconds=LEASE_SECONDS)
        return stack.enter_context(running_worker(environment, self.logs[-1]))

    def value(self, question: str, *given: object) -> int:
        """The one number of an answer."""
        ((value,),) = self.connection.execute(question.encode(), given).fetchall()
        assert isinstance(value, int)
        return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="how many runs are queued for workers that are killed")
    count = parser.parse_args().runs
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(settings=DURABLE))
        stand = _stand(stack, cluster)
        results = [*_executing(stand), _enqueueing(stand), _claiming(stand)]
        sound = _drained(_stand(stack, cluster), count)
    show(results, console)
    return 0 if all(result.met for result in results) and sound else 1


def _stand(stack: ExitStack, cluster: PostgresCluster) -> Stand:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="geogenius-bench-")))
    with progress.status("making a catalog with a queue"):
        conninfo = cluster.conninfo(queue_template(cluster, migrated_template(cluster)), WRITER)
    bench = stack.enter_context(CatalogBench.open(conninfo, conninfo, folder))
    options = "-c search_path=geogenius,public"
    connection = stack.enter_context(psycopg.connect(conninfo, autocommit=True, options=options))
    cluster.execute(connection.info.dbname, f"create table floor (id uuid); grant insert on floor to {WRITER}")
    return Stand(bench, connection, conninfo, folder)


def _turns(*works: Callable[[], float], turns: int = TURNS) -> list[list[float]]:
    """Every work once a turn, in an order of its own each time, after a few turns that do not count."""
    measured: list[list[float]] = [[] for _ in works]
    for turn in range(turns + WARM_UP):
        for place in random.sample(range(len(works)), len(works)):
            seconds = works[place]()
            if turn >= WARM_UP:
                measured[place].append(seconds)
    return measured


def _timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _executing(stand: Stand) -> list[Result]:
    """Runners that execute: from the call to the recorded end, beside a direct call of the pipeline."""
    recipe = Recipe(stand.conninfo, workplace=stand.bench.workplace, log_level="WARNING")
    with TaskSupervisor(NURSERY, recipe.to_json()) as supervisor:
        task = TaskRunner(supervisor)
        console.print(f"task, first run of a supervisor: {readable(_ended(stand, task))}")
        direct, called, child = _turns(
            lambda: _direct(stand),
            lambda: _around(stand),
            lambda: _ended(stand, task),
            turns=EXECUTING_TURNS,
        )
    return [
        Result("inline: beyond the pipeline", called, direct, 0.005, "limit"),
        Result("task: beyond the pipeline", _beyond(child, direct), direct, 0.300, "limit"),
    ]


def _beyond(seconds: list[float], floor: list[float]) -> list[float]:
    return [ours - bare for ours, bare in zip(seconds, floor, strict=True)]


def _direct(stand: Stand) -> float:
    run = stand.registered("inline")
    return _timed(lambda: stand.bench.execute(run.run_id))


def _around(stand: Stand) -> float:
    """Seconds that the runner `inline` takes beside the execution it calls."""
    inside: list[float] = []

    def execute(run_id: RunId) -> Executed:
        began = perf_counter()
        executed = stand.bench.execute(run_id)
        inside.append(perf_counter() - began)
        return executed

    whole = _enqueued(stand, InlineRunner(execute))
    return whole - sum(inside)


def _ended(stand: Stand, runner: Runner) -> float:
    """Seconds until the end of a new run is recorded."""
    run = stand.registered(runner.name())
    state = "select state in ('completed', 'failed') from import_run where id = %s"

    def work() -> None:
        _enqueue(runner, run)
        _until(lambda: stand.connection.execute(state, [run.run_id]).fetchall() == [(True,)])

    return _timed(work)


def _enqueue(runner: Runner, run: Run) -> None:
    answer = runner.enqueue(run.run_id, arguments(publish=run.publish, stale_after=run.stale_after))
    assert answer == Accepted(), answer


def _until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    assert _came(condition, seconds), f"not after {seconds:.0f} s"


def _came(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it held in time."""
    deadline = Deadline.after(seconds, monotonic)
    while not (holds := condition()) and not deadline.passed:
        sleep(LOOK_SECONDS)
    return holds


def _enqueueing(stand: Stand) -> Result:
    """Nobody listens yet; the floor is one committed row."""
    runner = PgflowRunner(stand.bench.database, DEADLINE, worker_required=False)
    insert = "insert into public.floor values (%s)"
    ours, floor = _turns(
        lambda: _enqueued(stand, runner), lambda: _timed(lambda: stand.connection.execute(insert, [uuid4()]))
    )
    return Result("pgflow: enqueue", ours, floor, 0.015, "limit")


def _enqueued(stand: Stand, runner: Runner) -> float:
    """Seconds until a new run is accepted; one that is executed in the caller has ended then."""
    run = stand.registered(runner.name())
    return _timed(lambda: _enqueue(runner, run))


def _claiming(stand: Stand) -> Result:
    """From the return of enqueue to the committed claim, as another connection sees it; an idle worker listens.

    The floor is the round trip that looks.
    """
    runner = PgflowRunner(stand.bench.database, DEADLINE)
    with ExitStack() as stack:
        stand.worker(stack)
        _until(lambda: stand.value(MESSAGES) == 0, 120)
        ours, floor = _turns(lambda: _claimed(stand, runner), lambda: _timed(lambda: stand.value("select 1")))
    return Result("pgflow: enqueued to claimed", ours, floor, 0.050, "limit")


def _claimed(stand: Stand, runner: Runner) -> float:
    run = stand.registered("pgflow")
    _enqueue(runner, run)
    seconds = _timed(lambda: _until(lambda: bool(stand.connection.execute(STARTED, [run.run_id]).fetchall())))
    stand.bench.ended(run.run_id)
    _until(lambda: stand.value(MESSAGES) == 0)  # or the worker would not be idle in the next turn
    return seconds


def _drained(stand: Stand, count: int) -> bool:
    """So many queued runs are done by two workers, one of which is killed every few seconds; whether none was lost."""
    runner = PgflowRunner(stand.bench.database, DEADLINE, worker_required=False)
    for number in range(count):
        _enqueue(runner, stand.registered("pgflow", LOST_WINDOW))
        if number % 100 == 0:
            progress.print(f"queued {number} of {count}")
    began, kills = monotonic(), 0
    with ExitStack() as stack:
        workers = [stand.worker(stack), stand.worker(stack)]
        for kills in _kills(stand, stack, workers):
            progress.print(f"{monotonic() - began:4.0f} s: {stand.value(LIVE)} left, {kills} workers killed")
    seconds = monotonic() - began
    return _told(stand, count, kills, seconds)


def _kills(stand: Stand, stack: ExitStack, workers: list[Worker]) -> Iterator[int]:
    """Kill and replace workers in turn until no run is left; how many were killed so far."""
    end = Deadline.after(LONGEST_DRAIN_SECONDS, monotonic)
    kills = 0
    turn = Deadline.after(KILL_SECONDS, monotonic)
    while stand.value(LIVE) and not end.passed:
        while stand.value(LIVE) and not turn.passed:
            sleep(0.1)
        turn = Deadline.after(
            KILL_SECONDS, monotonic
        )  # a replacement is not ready at once: its start is part of a turn
        if stand.value(LIVE):
            with suppress(ProcessLookupError):  # an executor ended by itself meanwhile; worker and nursery come first
                workers.pop(0).kill_all()
            workers.append(stand.worker(stack))
            kills += 1
        yield kills
    _came(lambda: stand.value(MESSAGES) == 0, 120)


def _told(stand: Stand, count: int, kills: int, seconds: float) -> bool:
    """Print how it went; every run has one end, and was begun once at most.

    That is seen in what executors log when they have claimed a run, so every completed run must be seen there. No more
    runs may be lost than the killed workers had executors.
    """
    rows = stand.connection.execute(ENDS, [int(LOST_WINDOW.total_seconds())]).fetchall()
    ends = {str(end): int(str(number)) for end, number in rows}
    begun = Counter(run.decode() for log in stand.logs for run in EXECUTED.findall(log.read_bytes()))
    unseen = {run for (run,) in stand.connection.execute(COMPLETED).fetchall()} - begun.keys()
    twice, left = sum(1 for times in begun.values() if times > 1), stand.value(LIVE) + stand.value(MESSAGES)
    lost = {reason: number for reason, number in ends.items() if reason != "completed"}
    console.print(
        f"{count} queued runs, 2 workers, {kills} killed: {seconds:.0f} s, {count / seconds:.1f} runs/s;"
        f" {ends.get('completed', 0)} completed, failed with their workers {lost or 'none'},"
        f" left over {left}, begun twice {twice}, completed unseen {len(unseen)}"
    )
    explained = lost.keys() <= LOST and sum(lost.values()) <= EXECUTORS * kills
    return sum(ends.values()) == count and not (left or twice or unseen) and explained


if __name__ == "__main__":
    sys.exit(main())
