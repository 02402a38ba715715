"""Which runner starts what the command line asks for, and what is said of those that cannot."""

from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.databases import WRITER, PostgresCluster
from tests.support.queues import queue_template

HOST_RUNNER = """
from geogenius.domain.enqueued import Accepted

class Elsewhere:
    def name(self):
        return "elsewhere"
    def available(self):
        return True
    def enqueue(self, run_id, args):
        return Accepted()

class Broken(Elsewhere):
    enqueue = None
    available = 3
"""
DEADLINE = {"GEOGENIUS_PGFLOW__DEADLINE_SECONDS": "3900"}


@pytest.fixture
def host_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings a runner by an entry point."""
    folder = tmp_path / "site"
    (folder / "host_package-1.dist-info").mkdir(parents=True)
    (folder / "host_package-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: host-package\nVersion: 1\n"
    )
    points = "[geogenius.runners]\nelsewhere = host_runner:Elsewhere\n"
    (folder / "host_package-1.dist-info" / "entry_points.txt").write_text(points)
    (folder / "host_runner.py").write_text(HOST_RUNNER)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture(scope="session")
def with_queue(postgres: PostgresCluster, template: str) -> str:
    """A migrated database with the queue."""
    return queue_template(postgres, template)


def runs(geogenius: Command) -> list[tuple[str, str]]:
    return [(run["runner"], run["state"]) for run in geogenius.json("runs", "world")]


@pytest.mark.parametrize("runner", ["inline", "task"])
def test_the_call_names_the_runner_and_waits_for_the_end(runner: str, geogenius: Command) -> None:
    assert "is completed" in geogenius("import", geogenius.manifest("a"), "--runner", runner)
    assert runs(geogenius) == [(runner, "completed")]


def test_without_a_name_the_setting_counts_and_then_inline(conninfo: str, tmp_path: Path, geogenius: Command) -> None:
    geogenius("import", geogenius.manifest("a"))
    configured = Command(conninfo, tmp_path, GEOGENIUS_RUNNER__NAME="task")
    configured("import", configured.manifest("b"))

    assert runs(geogenius) == [("task", "completed"), ("inline", "completed")]


def test_children_end_with_the_command_so_it_waits_for_them(geogenius: Command) -> None:
    said = geogenius("import", geogenius.manifest("a"), "--runner", "task", "--no-wait", code=64)

    assert "the child processes of the runner task end with this command" in said
    assert runs(geogenius) == []


def test_a_malformed_connection_string_is_refused_without_its_words(tmp_path: Path) -> None:
    geogenius = Command("postgress://user:hush-hush@host/db", tmp_path)

    said = geogenius("releases", "world", code=64)

    assert "ConnectionStringInvalid" in said
    assert "hush" not in said


def test_a_run_that_fails_in_a_child_says_why_with_its_exit_code(geogenius: Command) -> None:
    assert "NotJson" in geogenius("import", geogenius.manifest("a", text=b"nonsense"), "--runner", "task", code=65)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("nobody", "there is no runner 'nobody' here: name one of"),
        ("kubernetes_job", "apply an ImportRequest"),
        ("no_such_module:Runner", "cannot be imported"),
        ("json:loads", "name is missing"),
        ("host_runner:Broken", "available is no method; enqueue is no method"),
    ],
)
@pytest.mark.usefixtures("host_package")
def test_a_runner_that_cannot_be_used_is_refused_before_anything_is_registered(
    named: str, says: str, geogenius: Command
) -> None:
    assert says in geogenius("import", geogenius.manifest("a"), "--runner", named, code=64)
    assert runs(geogenius) == []


@pytest.mark.usefixtures("host_package")
def test_a_runner_of_an_installed_package_is_found_by_its_entry_point(geogenius: Command) -> None:
    said = geogenius("import", geogenius.manifest("a"), "--runner", "elsewhere", "--no-wait")

    assert "is started by elsewhere: `geogenius status" in said
    assert runs(geogenius) == [("elsewhere", "pending")]


@pytest.mark.usefixtures("host_package")
def test_a_wait_has_an_end_and_the_run_goes_on(geogenius: Command) -> None:
    arguments = ("--runner", "elsewhere", "--wait-seconds", "0.5")
    assert "we wait no longer" in geogenius("import", geogenius.manifest("a"), *arguments, code=75)
    assert runs(geogenius) == [("elsewhere", "pending")]


@pytest.mark.usefixtures("host_package")
def test_all_runners_are_listed_with_what_keeps_them_from_work(conninfo: str, tmp_path: Path) -> None:
    geogenius = Command(conninfo, tmp_path, **DEADLINE)
    listed = {runner["name"]: runner for runner in geogenius.json("runners")}

    assert {name: runner["available"] for name, runner in listed.items()} == {
        "task": True,
        "inline": True,
        "pgflow": False,
        "kubernetes_job": False,
        "elsewhere": True,
    }
    assert "geogenius pgflow install" in listed["pgflow"]["reason"]
    assert listed["elsewhere"]["origin"] == "entry point"
    assert "NAME" in geogenius("runners")


def test_a_queue_that_is_not_installed_fails_the_run_with_the_remedy(conninfo: str, tmp_path: Path) -> None:
    geogenius = Command(conninfo, tmp_path, **DEADLINE)
    said = geogenius("import", geogenius.manifest("a"), "--runner", "pgflow", code=65)

    assert "PgflowMissing" in said
    assert "geogenius pgflow install" in said
    assert runs(geogenius) == [("pgflow", "failed")]


def test_a_run_is_queued_and_the_command_need_not_wait(
    postgres: PostgresCluster, with_queue: str, tmp_path: Path
) -> None:
    name = postgres.create(with_queue)
    waiting = Command(postgres.conninfo(name, WRITER), tmp_path, **DEADLINE)
    said = waiting("import", waiting.manifest("a"), "--runner", "pgflow", code=75)
    assert "start `geogenius worker`" in said
    willing = Command(postgres.conninfo(name, WRITER), tmp_path, **DEADLINE, GEOGENIUS_PGFLOW__WORKER_REQUIRED="false")

    assert "is started by pgflow" in willing("import", willing.manifest("a"), "--runner", "pgflow", "--no-wait")

    assert runs(willing) == [("pgflow", "pending")]
    postgres.drop(name)
