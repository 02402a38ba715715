"""Processes that outlive the command that started them, recorded so that later commands find exactly them."""

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.contract import ClusterError
from tests.cluster.node.control_groups import ControlGroup
from tests.cluster.node.layout import Layout
from tests.cluster.packages import search_path
from tests.cluster.steps import wait_for

GRACE_SECONDS = 2
"""The API server drains watches for a minute when it is only asked to stop; nothing of it is kept anyway."""


@dataclass(frozen=True)
class Process:
    """A process identity: a number alone may belong to another process later."""

    pid: int
    started: str

    @classmethod
    def find(cls, pid: int) -> "Process | None":
        """The running process with this number; one that ended and waits for its parent does not count."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, fields[19])

    def alive(self) -> bool:
        """Whether it runs still."""
        return Process.find(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it runs still."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Processes:
    """The programs of one node."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._records = layout.folder / "run"
        self._group = ControlGroup(layout.node_name)

    def log(self, name: str) -> Path:
        """The log of a program."""
        return self._layout.log / f"{name}.log"

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program inside the node's network; `ip netns exec` would hide its mounts from others."""
        self._records.mkdir(parents=True, exist_ok=True)
        inside = ("nsenter", f"--net=/run/netns/{self._layout.node_name}", *command)
        log = os.open(self.log(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # Not `subprocess`, which wants its children to end before it forgets them: these outlive this program.
            pid = os.posix_spawnp(
                inside[0],
                inside,
                {**os.environ, "PATH": search_path()},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(log)
        self._group.enter(pid)
        process = Process.find(pid)
        if process is None:
            raise ClusterError(f"{name} ended at once; see {self.log(name)}")
        (self._records / name).write_text(f"{process.pid} {process.started}")

    def started(self, name: str) -> bool:
        """Whether a program was started and not stopped since."""
        return (self._records / name).exists()

    def alive(self, name: str) -> bool:
        """Whether a program was started and runs still."""
        process = self._recorded(name)
        return process is not None and process.alive()

    def stop(self, *names: str) -> None:
        """Ask programs to end, insist after a moment, and forget them."""
        processes = [process for name in names if (process := self._recorded(name))]
        for process in processes:
            process.send(signal.SIGTERM)
        with contextlib.suppress(ClusterError):
            wait_for("end", lambda: not any(process.alive() for process in processes), GRACE_SECONDS)
        for process in processes:
            process.send(signal.SIGKILL)
        wait_for(f"the end of {', '.join(names)}", lambda: not any(process.alive() for process in processes), 10)
        for name in names:
            (self._records / name).unlink(missing_ok=True)

    def _recorded(self, name: str) -> Process | None:
        file = self._records / name
        if not file.exists():
            return None
        pid, started = file.read_text().split()
        return Process(int(pid), started)
