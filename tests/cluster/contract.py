"""What tests may ask of a cluster, whatever it runs on."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class ClusterError(Exception):
    """A cluster, or a step on the way to one, failed; the message is meant for people."""


def checked_name(name: str) -> str:
    """The name, if files and links can carry it; a folder is deleted by it."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", name):
        raise ClusterError(f"{name!r} is no name for a cluster: use up to 32 of a-z, 0-9 and -")
    return name


class State(StrEnum):
    """How a cluster is found."""

    UP = "up"
    BROKEN = "broken"
    """Some of it is there: a start was interrupted, a process died, the machine restarted."""
    DOWN = "down"


class Cluster(Protocol):
    """One cluster with a name; several may be up side by side."""

    @property
    def name(self) -> str:
        """The name it was asked for with."""

    @property
    def kubeconfig(self) -> Path:
        """A file for clients on the host, with all rights."""

    @property
    def host_address(self) -> str:
        """Where pods reach servers of the host; such servers bind to it, or to all addresses."""

    @property
    def kubectl(self) -> tuple[str, ...]:
        """The command kubectl, bound to this cluster; append arguments."""

    @property
    def helm(self) -> tuple[str, ...]:
        """The command helm, bound to this cluster; append arguments."""

    def up(self) -> None:
        """Start, and return when pods can run. A healthy cluster is left alone, a broken one starts anew."""

    def down(self) -> None:
        """Stop, and leave nothing behind. A second time does nothing."""

    def state(self) -> State:
        """Look, and change nothing."""

    def load_image(self, archive: Path) -> None:
        """Make the image of an archive usable under its own name. An image already there is left alone."""

    def ca_files(self) -> tuple[Path, Path]:
        """The certificate and the key of the authority that pods trust for the API server."""

    def collect_logs(self, folder: Path) -> None:
        """Copy what helps to explain a failure: logs of the cluster's programs, pods, events."""
