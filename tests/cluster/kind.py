"""A cluster made by kind; needs Docker."""

import shutil
import subprocess
from pathlib import Path

from tests.cluster.binaries import binaries
from tests.cluster.cache import cache_root
from tests.cluster.contract import ClusterError, State, checked_name
from tests.cluster.steps import run, say, succeeds

CA_FOLDER = "/etc/kubernetes/pki"


class KindCluster:
    """One container as the only node."""

    def __init__(self, name: str) -> None:
        self.name = checked_name(name)
        self._folder = cache_root() / "clusters" / name

    @property
    def kubeconfig(self) -> Path:
        """A file for clients on the host, with all rights."""
        return self._folder / "admin.kubeconfig"

    @property
    def host_address(self) -> str:
        """The gateway of kind's network, which is the host."""
        found = run("docker", "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
        addresses = [address for address in found.split() if "." in address]
        if not addresses:
            raise ClusterError("the network of kind has no IPv4 gateway")
        return addresses[0]

    @property
    def kubectl(self) -> tuple[str, ...]:
        """The command kubectl, bound to this cluster."""
        program = shutil.which("kubectl")
        start = (program,) if program else (str(binaries().kube), "kubectl")
        return (*start, f"--kubeconfig={self.kubeconfig}")

    @property
    def helm(self) -> tuple[str, ...]:
        """The command helm, bound to this cluster."""
        return (shutil.which("helm") or str(binaries().helm), f"--kubeconfig={self.kubeconfig}")

    def up(self) -> None:
        """Create it, unless it is there and healthy."""
        if self.state() is State.UP:
            say(f"cluster {self.name} is up already")
            return
        self.down()
        self._folder.mkdir(parents=True, exist_ok=True)
        run("kind", "create", "cluster", *self._named, f"--kubeconfig={self.kubeconfig}", "--wait=120s")

    def down(self) -> None:
        """Delete it."""
        run("kind", "delete", "cluster", *self._named, f"--kubeconfig={self.kubeconfig}")
        shutil.rmtree(self._folder, ignore_errors=True)

    def state(self) -> State:
        """Look whether kind knows it and its API server answers."""
        if self.name not in run("kind", "get", "clusters").split():
            return State.DOWN
        ready = self.kubeconfig.exists() and succeeds(*self.kubectl, "get", "--raw=/readyz")
        return State.UP if ready else State.BROKEN

    def load_image(self, archive: Path) -> None:
        """Load an archive into the node; kind itself skips images that are there."""
        run("kind", "load", "image-archive", archive, *self._named)

    def ca_files(self) -> tuple[Path, Path]:
        """Copy the authority's files out of the node."""
        certificate, key = self._folder / "ca.crt", self._folder / "ca.key"
        for file in (certificate, key):
            run("docker", "cp", f"{self.name}-control-plane:{CA_FOLDER}/{file.name}", file)
        return certificate, key

    def collect_logs(self, folder: Path) -> None:
        """Let kind export its logs; a cluster that is half gone must not hide the failure under study."""
        subprocess.run(["kind", "export", "logs", *self._named, str(folder)], check=False)

    @property
    def _named(self) -> tuple[str, str]:
        return ("--name", self.name)
