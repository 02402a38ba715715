"""How executions end when something happens to them: signals, a crash of the database, a second executor, no space."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from typing_extensions import override

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.domain.deadline import Deadline
from geogenius.domain.executed import Done, Failed
from geogenius.domain.manifest import Artifact
from geogenius.domain.run import ExecutorId, Fence, Run, RunId, RunState
from geogenius.importer.pipeline import Workplace
from tests.support.databases import migrated_template, opened, running_cluster
from tests.support.geojson import collection, squares
from tests.support.web import Answer, ok, serving

Sql = psycopg.Connection[psycopg.rows.DictRow]
Supply = Callable[..., Artifact]
Register = Callable[..., RunId]
Wanted = Callable[..., RunId]
Build = Callable[..., Any]

GRACE_SECONDS = 15.0
"""Far below the grace period of a pod, and long enough for a busy machine."""

SLEEPS = {
    RunState.NORMALIZING: "repair_staged(staging text) returns void",
    RunState.INDEXING: "index_release(run uuid, executor uuid) returns void",
    RunState.VERIFYING: "release_faults(release uuid) returns setof text",
}
"""What the database does for a whole release in a phase; a test lets it sleep."""
ASLEEP = "select from pg_stat_activity where application_name = 'geogenius-importer' and wait_event = 'PgSleep'"


@pytest.fixture
def wanted(supply: Supply, register: Register) -> Wanted:
    """Supply and register a file of so many areas."""
    return lambda count, **intent: register(supply(collection(squares(count))), **intent)


@contextmanager
def executing(conninfo: str, run_id: RunId, folder: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """`geogenius execute` as a process of its own, killed at the end."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "GEOGENIUS_DATABASE__URL": conninfo,
        "GEOGENIUS_DOWNLOAD__ALLOW_HTTP": "true",
        "GEOGENIUS_DOWNLOAD__ALLOW_PRIVATE_ADDRESSES": "true",
        "GEOGENIUS_DOWNLOAD__READ_TIMEOUT_SECONDS": "1",
        "GEOGENIUS_IMPORTER__ARTIFACT_DIR": str(folder / "supplied"),
        "GEOGENIUS_IMPORTER__WORK_DIR": str(folder / "work"),
    }
    command = [sys.executable, "-c", "from geogenius.cli import main; main()", "execute", str(run_id), *flags]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(seen: Callable[[], object]) -> None:
    """Returns when it is seen; fails when it is not in time."""
    deadline = Deadline.after(GRACE_SECONDS, monotonic)
    while not seen():
        assert not deadline.passed, "it never happened"
        Event().wait(0.02)


def read(runs: Runs, run_id: RunId) -> Run:
    run = runs.get(run_id)
    assert run is not None
    return run


def assert_cancelled(process: subprocess.Popen[str], run: Callable[[], Run], phase: RunState) -> None:
    """Ask the process to stop; it must end as cancelled within the grace period, and the catalog must know."""
    process.send_signal(signal.SIGTERM)
    _, words = process.communicate(timeout=GRACE_SECONDS)
    assert process.returncode == 77, words
    error = run().error
    assert error is not None
    assert (error.phase, error.reason, run().state) == (phase, "Cancelled", RunState.FAILED)


def never_ending(first: bytes) -> tuple[Answer, Event]:
    """An answer that stops in the middle until the event is set."""
    end = Event()

    def answer(handler: Any) -> None:  # noqa: ANN401  the handler of a test server
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(first) + 1))
        handler.end_headers()
        handler.wfile.write(first)
        end.wait(GRACE_SECONDS)

    return answer, end


def test_a_signal_during_a_download_is_recorded(conninfo: str, runs: Runs, register: Register, tmp_path: Path) -> None:
    answer, end = never_ending(b"x" * 1000)
    with serving(answer) as server:
        run_id = register(Artifact("a.geojson", "geojson", "0" * 64, 1001, server.url()))
        with executing(conninfo, run_id, tmp_path) as process:
            until(lambda: server.requests)
            assert_cancelled(process, lambda: read(runs, run_id), RunState.DOWNLOADING)
            end.set()


@pytest.mark.parametrize("phase", [RunState.NORMALIZING, RunState.INDEXING, RunState.VERIFYING])
def test_a_signal_during_a_long_statement_is_recorded(
    conninfo: str, runs: Runs, sql: Sql, wanted: Wanted, tmp_path: Path, phase: RunState
) -> None:
    body = "begin perform pg_sleep(600); end"
    sql.execute(f"create or replace function {SLEEPS[phase]} language plpgsql as $$ {body} $$".encode())
    run_id = wanted(10)
    with executing(conninfo, run_id, tmp_path) as process:
        until(lambda: sql.execute(ASLEEP).fetchall())
        assert_cancelled(process, lambda: read(runs, run_id), phase)
    left = "select relname from pg_class where relname ~ '^(staging|release_area|boundary)_[0-9a-f]{32}'"
    assert sql.execute(left).fetchall() == []


def test_a_signal_while_a_file_is_read_is_recorded(conninfo: str, runs: Runs, wanted: Wanted, tmp_path: Path) -> None:
    run_id = wanted(60_000)
    with executing(conninfo, run_id, tmp_path) as process:
        until(lambda: read(runs, run_id).state is RunState.STAGING)
        assert_cancelled(process, lambda: read(runs, run_id), RunState.STAGING)


def test_of_two_processes_one_works_and_the_other_says_that_the_run_is_not_its_own(
    conninfo: str, runs: Runs, wanted: Wanted, tmp_path: Path
) -> None:
    run_id = wanted(10)
    with executing(conninfo, run_id, tmp_path) as first, executing(conninfo, run_id, tmp_path) as second:
        codes = sorted(process.wait(GRACE_SECONDS) for process in (first, second))
    assert codes in ([0, 76], [0, 0])  # the second may find the run completed
    assert read(runs, run_id).state is RunState.COMPLETED


def test_what_is_stored_decides_and_not_the_flags(conninfo: str, runs: Runs, wanted: Wanted, tmp_path: Path) -> None:
    run_id = wanted(10, publish=False)
    with executing(conninfo, run_id, tmp_path, "--publish", "--stale-after-seconds", "1") as process:
        assert process.wait(GRACE_SECONDS) == 0
    run = read(runs, run_id)
    assert (run.published, run.publish, run.stale_after.total_seconds()) == (False, False, 900)


class Happens(Areas):
    """Something happens after the second page."""

    def __init__(self, database: Database, event: Callable[[], None]) -> None:
        super().__init__(database)
        self._event = event
        self._pages = 0

    @override
    def stage(self, fence: Fence, artifact: str, areas: Any, rejects: Any) -> None:
        super().stage(fence, artifact, areas, rejects)
        self._pages += 1
        if self._pages == 2:
            self._event()


def crash(conninfo: str) -> None:
    """One backend is killed, so the server throws out everybody and recovers: unlogged tables are empty then."""
    with psycopg.connect(conninfo, autocommit=True, application_name="crash") as connection:
        connection.execute("checkpoint")  # the servers of tests do not wait for the disk at a commit
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        until(lambda: answers(conninfo))


def answers(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def fragile() -> Iterator[str]:
    """A migrated database on a server that may crash."""
    with running_cluster() as cluster:
        yield cluster.conninfo(migrated_template(cluster))


class TestOnAServerThatCrashes:
    """The same fixtures, on a server of its own."""

    @pytest.fixture
    def database(self, fragile: str) -> Iterator[Database]:
        with opened(fragile) as database:
            yield database

    def test_rows_lost_between_two_pages_fail_the_run(
        self, fragile: str, database: Database, build: Build, wanted: Wanted, executor: ExecutorId
    ) -> None:
        run_id = wanted(2000, publish=True)
        executed = build(areas=Happens(database, lambda: crash(fragile))).execute(run_id, executor)
        assert isinstance(executed, Failed), executed
        assert (executed.error.reason, executed.error.evidence["class"]) == ("StagingLost", "infrastructure")
        assert executed.error.message.startswith("1000 of 2000 staged rows are left")


@pytest.mark.parametrize("change", ["rewritten", "replaced", "removed"])
def test_a_file_that_changes_while_it_is_imported_fails_the_run(
    build: Build,
    database: Database,
    workplace: Workplace,
    wanted: Wanted,
    executor: ExecutorId,
    change: str,
) -> None:
    run_id = wanted(2000)
    assert workplace.artifact_folder is not None
    file = workplace.artifact_folder / "areas.geojson"

    def happens() -> None:
        other = file.with_name("other")
        other.write_bytes(file.read_bytes())
        match change:
            case "rewritten":
                file.write_bytes(other.read_bytes())
            case "replaced":
                other.replace(file)
            case _:
                file.unlink()

    executed = build(areas=Happens(database, happens)).execute(run_id, executor)
    assert isinstance(executed, Failed), executed
    assert (executed.error.reason, executed.error.phase) == ("ArtifactChanged", "staging")


def test_files_whose_names_extend_each_other_are_both_downloaded(
    build: Build, register: Register, executor: ExecutorId
) -> None:
    bodies = [collection(squares(3)), collection(squares(6)[3:])]
    with serving(*map(ok, bodies)) as server:
        files = [
            Artifact(name, "geojson", hashlib.sha256(body).hexdigest(), len(body), server.url())
            for name, body in zip(("a.part", "a"), bodies, strict=True)
        ]
        run_id = register(*files)
        assert build().execute(run_id, executor) == Done(run_id)


def test_a_work_folder_that_cannot_be_made_is_a_recorded_failure(
    build: Build, database: Database, workplace: Workplace, wanted: Wanted, executor: ExecutorId
) -> None:
    workplace.work_dir.write_text("in the way")
    run_id = wanted(10)
    executed = build().execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, executed.error.evidence["class"]) == ("StorageFailed", "infrastructure")
    assert Executions(database).claim(Fence(run_id, ExecutorId(uuid4()))) == "failed"
