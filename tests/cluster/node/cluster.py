"""The life of a one-node cluster: start, look, stop."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.cluster import packages
from tests.cluster.binaries import binaries
from tests.cluster.cache import cache_root, locked
from tests.cluster.contract import ClusterError, State, checked_name
from tests.cluster.images.catalog import pause_image
from tests.cluster.node.containers import Containers
from tests.cluster.node.control_groups import ControlGroup
from tests.cluster.node.layout import Layout
from tests.cluster.node.network import Network
from tests.cluster.node.processes import Processes
from tests.cluster.node.start import PROGRAMS, Start
from tests.cluster.node.subnets import Subnets, free_number, host_routes
from tests.cluster.steps import say, succeeds


class NodeCluster:
    """A cluster of plain processes on this machine; needs root."""

    def __init__(self, name: str) -> None:
        self.name = checked_name(name)
        self._clusters = cache_root() / "clusters"
        self._folder = self._clusters / name

    @property
    def kubeconfig(self) -> Path:
        """A file for clients on the host, with all rights."""
        return self._layout().kubeconfig()

    @property
    def host_address(self) -> str:
        """The host's end of the link to the node."""
        return self._layout().subnets.host_address

    @property
    def kubectl(self) -> tuple[str, ...]:
        """The command kubectl, bound to this cluster."""
        return (str(binaries().kube), "kubectl", f"--kubeconfig={self.kubeconfig}")

    @property
    def helm(self) -> tuple[str, ...]:
        """The command helm, bound to this cluster."""
        return (str(binaries().helm), f"--kubeconfig={self.kubeconfig}")

    def up(self) -> None:
        """Start, and return when pods can run. A failed start leaves its logs and nothing else."""
        with self._locked():
            if self.state() is State.UP:
                say(f"cluster {self.name} is up already")
                return
            _require_root()
            packages.require(packages.NODE)
            programs, pause = binaries(), pause_image()
            began = time.monotonic()
            self._remove()
            layout = self._claim()
            try:
                Start(layout, programs).run(pause)
            except BaseException:
                self._stop()
                self._number_file.unlink()
                say(f"cluster {self.name} did not start; its logs are in {layout.log}")
                raise
            self._ready_file.touch()
            say(f"cluster {self.name} is up after {time.monotonic() - began:.1f} s; kubeconfig: {self.kubeconfig}")

    def down(self) -> None:
        """Stop, and leave nothing behind."""
        with self._locked():
            self._remove()

    def state(self) -> State:
        """Look at every program, the API server and the node."""
        if not self._number_file.exists():
            return State.DOWN
        processes = Processes(self._layout())
        if not self._ready_file.exists() or not all(processes.alive(name) for name in PROGRAMS):
            return State.BROKEN
        ready = succeeds(*self.kubectl, "wait", "nodes", "--all", "--for=condition=Ready", "--timeout=1s")
        return State.UP if ready else State.BROKEN

    def load_image(self, archive: Path) -> None:
        """Import the image of an archive, unless the very same one is there."""
        Containers(self._layout()).load(archive)

    def ca_files(self) -> tuple[Path, Path]:
        """The files `ca.crt` and `ca.key`, in the cluster's folder."""
        pki = self._layout().pki
        return pki / "ca.crt", pki / "ca.key"

    def collect_logs(self, folder: Path) -> None:
        """Copy the logs of programs and pods; add pods and events as the API server tells them."""
        shutil.copytree(self._layout().log, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        for resource, form in (("pods", "yaml"), ("jobs", "yaml"), ("events", "wide")):
            command = (*self.kubectl, "get", resource, "--all-namespaces", f"--output={form}", "--request-timeout=10s")
            with (folder / f"{resource}.txt").open("wb") as output:
                subprocess.run(command, stdout=output, stderr=output, check=False)

    @property
    def _number_file(self) -> Path:
        return self._folder / "number"

    @property
    def _ready_file(self) -> Path:
        return self._folder / "ready"

    def _layout(self) -> Layout:
        if not self._number_file.exists():
            raise ClusterError(f"cluster {self.name} is not up")
        return Layout(self.name, self._folder, Subnets(int(self._number_file.read_text())))

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return locked(self._clusters / f".{self.name}.lock")

    def _claim(self) -> Layout:
        """Take a number that no other cluster has."""
        with locked(self._clusters / ".numbers.lock"):
            taken = {int(file.read_text()) for file in self._clusters.glob("*/number")}
            layout = Layout(self.name, self._folder, Subnets(free_number(taken, host_routes())))
            if Network(layout).exists():
                # Not ours to stop: it was started with another cache folder.
                raise ClusterError(f"the network namespace {layout.node_name} exists; choose another name")
            self._folder.mkdir(parents=True)
            self._number_file.write_text(str(layout.subnets.number))
        return layout

    def _remove(self) -> None:
        if self._number_file.exists():
            self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> None:
        """End every process, the kubelet first so that it starts no pods again, then remove mounts and network."""
        layout = self._layout()
        processes = Processes(layout)
        processes.stop("kubelet")
        processes.stop(*PROGRAMS)
        ControlGroup(layout.node_name).remove()
        Containers(layout).remove_traces()
        Network(layout).remove()


def _require_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError("a node on this machine needs root: it makes namespaces, mounts and control groups")
