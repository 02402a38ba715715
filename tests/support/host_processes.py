"""Host programs of runs in child processes, looked at from outside; and runs that last until they may go on."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from select import select
from threading import Event
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from geogenius.catalog.runs import Runs
from geogenius.domain.deadline import Deadline
from geogenius.domain.intent import ImportIntent
from geogenius.domain.prepared import Registered
from geogenius.domain.run import Run, RunId
from geogenius.importer.recipe import Recipe
from geogenius.manifest import normal_form
from geogenius.processes.supervisor import Ended, Submitted, TaskSupervisor
from tests.support.file_server import FileServer
from tests.support.geojson import a_manifest, an_artifact, collection, squares

SECONDS = 30.0
"""How long anything here may take on a busy machine."""

_LOOK_SECONDS = 0.02
_NURSERY = "geogenius.nursery"
_STATE, _PARENT, _SESSION = 0, 1, 3
"""Places in /proc/<pid>/stat, counted from behind the name (proc_pid_stat(5))."""


def until(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Returns when the condition holds; fails when it does not in time."""
    deadline = Deadline.after(seconds, monotonic)
    while not condition():
        if deadline.passed:
            pytest.fail(f"not after {seconds:.0f} s: {what}")
        Event().wait(_LOOK_SECONDS)


def child_of(supervisor: TaskSupervisor, run_id: RunId, ended: Callable[[Ended], None] | None = None) -> int:
    """Have the run executed; the process that does it."""
    submitted = supervisor.submit(run_id, ended=ended)
    assert isinstance(submitted, Submitted), submitted
    return submitted.pid


def reason_of(run: Run) -> str | None:
    """Why the run failed, if it did."""
    return None if run.error is None else run.error.reason


def alive(pid: int) -> bool:
    """Whether the process is there; a zombie is not, whoever was to reap it."""
    return (_stat(pid) or ["Z"])[_STATE] not in "ZX"


def parent_of(pid: int) -> int | None:
    """The parent of a process that is there."""
    stat = _stat(pid)
    return None if stat is None else int(stat[_PARENT])


def stopped(pid: int) -> bool:
    """Whether SIGSTOP has reached the process."""
    return (_stat(pid) or ["Z"])[_STATE] == "T"


def command_of(pid: int) -> str:
    """The command line of a process, empty when it is gone."""
    return _text(pid, "cmdline")


def environment_of(pid: int) -> str:
    """The environment that a process was given, empty when it is gone."""
    return _text(pid, "environ")


def threads_of(pid: int) -> int:
    """How many threads a process has."""
    status = dict(line.split(":\t", 1) for line in _text(pid, "status").splitlines() if ":\t" in line)
    return int(status.get("Threads", 0))


def nurseries_of(host: int) -> list[int]:
    """The nurseries that a host has started and that are there."""
    return [pid for pid in _pids() if parent_of(pid) == host and alive(pid) and _NURSERY in command_of(pid)]


def nursery_of(host: int) -> int:
    """The only nursery of a host."""
    (nursery,) = nurseries_of(host)
    return nursery


def family_of(nursery: int) -> list[int]:
    """All that is alive in the session of a nursery: itself, executors, guardians, and what they have started."""
    return [pid for pid in _pids() if (stat := _stat(pid)) is not None and _in_session(stat, nursery)]


def until_childless(*nurseries: int) -> None:
    """Returns when nothing is left of these nurseries."""
    until(lambda: not [pid for nursery in nurseries for pid in family_of(nursery)], "all child processes are gone")


@dataclass(slots=True)
class SlowRuns:
    """Runs that download for as long as the test wants; a file server holds back the second half of their file."""

    runs: Runs
    server: FileServer
    names: dict[RunId, str] = field(default_factory=dict)

    def register(self, runner: str = "task", stale_after: timedelta = timedelta(minutes=15)) -> RunId:
        """A slow import into a collection of its own, registered and committed."""
        name, text = f"{uuid4().hex}.geojson", collection(squares(2))
        self.server.files[name], self.server.stuck[name] = text, Event()
        artifact = an_artifact(sha256=hashlib.sha256(text).hexdigest(), size=len(text), url=self.server.url(name))
        manifest = replace(a_manifest(artifact, release=uuid4().hex), collection=f"slow_{uuid4().hex}")
        intent = ImportIntent(RunId(uuid4()), "tests", runner, publish=False, stale_after=stale_after)
        prepared = self.runs.prepare(normal_form(manifest), intent)
        assert isinstance(prepared, Registered), prepared
        self.names[prepared.run_id] = name
        return prepared.run_id

    def until_under_way(self, run_id: RunId) -> None:
        """Returns when the executor of the run waits for its file."""
        until(lambda: self.names[run_id] in self.server.asked, f"run {run_id} downloads")

    def times_asked(self, run_id: RunId) -> int:
        """How often the file of the run was asked for."""
        return self.server.asked.count(self.names[run_id])

    def let_go(self, run_id: RunId) -> None:
        """Send the rest of the file."""
        self.server.stuck[self.names[run_id]].set()


@dataclass(slots=True)
class Host:
    """A host program; it says JSON, a line at a time, and is told lines."""

    process: "subprocess.Popen[bytes]"
    errors: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> Any:  # noqa: ANN401  whatever the script says
        """The next thing it says."""
        assert self.process.stdout is not None
        assert select([self.process.stdout], [], [], SECONDS)[0], f"the host is silent: {self.errors.read_text()}"
        line = self.process.stdout.readline()  # unbuffered, or `select` would know nothing of what is read ahead
        assert line, f"the host ended: {self.errors.read_text()}"
        return json.loads(line)

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send the signal and wait for the end; the return code."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextmanager
def running_host(folder: Path, recipe: Recipe, command: list[str], *arguments: object) -> Iterator[Host]:
    """A program, told the file of the recipe and these arguments; at the end nothing of its session is left."""
    said = folder / "recipe.json"
    said.write_text(json.dumps(recipe.to_json()))
    errors = folder / "host.err"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [*command, str(said), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield Host(process, errors)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(BrokenPipeError):
            process.communicate(timeout=SECONDS)


@contextmanager
def running_script(folder: Path, recipe: Recipe, text: str, *arguments: object) -> Iterator[Host]:
    """A plain script as a host; see `running_host`."""
    script = folder / "host.py"
    script.write_text(text)
    with running_host(folder, recipe, [sys.executable, str(script)], *arguments) as host:
        yield host


def _in_session(stat: list[str], leader: int) -> bool:
    return int(stat[_SESSION]) == leader and stat[_STATE] not in "ZX"


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _stat(pid: int) -> list[str] | None:
    text = _text(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
