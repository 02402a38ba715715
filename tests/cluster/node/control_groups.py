"""The control groups of a cluster: they hold every process it started, so that none is lost."""

import contextlib
import os
import signal
from pathlib import Path

from tests.cluster.steps import wait_for

ROOT = Path("/sys/fs/cgroup")


class ControlGroup:
    """One name in every hierarchy of the machine: one with version 2, one per controller with version 1."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self._folders = [hierarchy / name for hierarchy in _hierarchies(root)]

    def create(self) -> None:
        """Make it in every hierarchy, where the kubelet expects it."""
        for folder in self._folders:
            folder.mkdir(exist_ok=True)

    def enter(self, pid: int) -> None:
        """Put a process, with what it will start, into a leaf beside the groups of containers."""
        leaf = self._folders[0] / "programs"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(pid))

    def members(self) -> set[int]:
        """Processes in the group and below it."""
        lists = [file for folder in self._folders for file in folder.rglob("cgroup.procs")]
        return {int(pid) for file in lists for pid in _read(file).split()}

    def remove(self) -> None:
        """Kill what is left in it, then remove it."""
        wait_for("the end of every process of the cluster", self._killed, seconds=20)
        wait_for("the removal of the cluster's control groups", self._removed, seconds=20)

    def _killed(self) -> bool:
        members = self.members()
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not members

    def _removed(self) -> bool:
        for folder in self._folders:
            for group in sorted((entry for entry in folder.rglob("*") if entry.is_dir()), reverse=True):
                with contextlib.suppress(OSError):
                    group.rmdir()
            with contextlib.suppress(OSError):
                folder.rmdir()
        return not any(folder.exists() for folder in self._folders)


def _hierarchies(root: Path) -> list[Path]:
    """Every hierarchy; first the one that follows processes, which must not be a mere resource's."""
    if (root / "cgroup.controllers").exists():
        return [root]
    found = {file.parent.resolve() for file in root.glob("*/cgroup.procs")}
    return sorted(found, key=lambda folder: (folder.name != "pids", folder.name))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # a group may go while it is read
        return ""
