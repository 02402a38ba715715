"""Where a cluster keeps its files, and what its parts on the machine are called."""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.contract import ClusterError
from tests.cluster.node.subnets import Subnets

LONGEST_SOCKET_PATH = 107
"""The kernel's limit for the path of a Unix socket."""


@dataclass(frozen=True)
class Layout:
    """Files and names of one cluster."""

    name: str
    folder: Path
    subnets: Subnets

    def __post_init__(self) -> None:
        longest = self.folder / "kubelet" / "device-plugins" / "kubelet.sock"
        if len(str(longest)) > LONGEST_SOCKET_PATH:
            raise ClusterError(f"{longest} is too long for a socket; set XDG_CACHE_HOME to a shorter folder")

    @property
    def node_name(self) -> str:
        """The name of the node, of its network namespace and of its control groups."""
        return f"gg-{self.name}"

    @property
    def pki(self) -> Path:
        """Certificates, keys, and a kubeconfig for each client."""
        return self.folder / "pki"

    @property
    def config(self) -> Path:
        """Configuration files of programs."""
        return self.folder / "config"

    @property
    def log(self) -> Path:
        """Logs of programs, and of pods below `pods`."""
        return self.folder / "log"

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.folder / "containerd" / "containerd.sock"

    def kubeconfig(self, client: str = "admin") -> Path:
        """The kubeconfig of a client."""
        return self.pki / f"{client}.kubeconfig"
