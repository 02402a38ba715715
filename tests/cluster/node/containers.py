"""Containers of a node: containerd's configuration, images, and what containers leave behind."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.images.names import PAUSE
from tests.cluster.node.layout import Layout
from tests.cluster.packages import CNI_PLUGINS
from tests.cluster.steps import run, say, succeeds

NAME_ANNOTATION = "org.opencontainers.image.ref.name"
CNI_RESULTS = Path("/var/lib/cni/results")
CONTAINER_LOG_LINKS = Path("/var/log/containers")
"""Fixed places where the network library and the kubelet leave files of every cluster of the machine."""

CONTAINERD_CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  netns_mounts_under_state_dir = true
  # Lowering a process's score needs CAP_SYS_RESOURCE, which the host may not have.
  restrict_oom_score_adj = true
  disable_apparmor = true

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{folder}/runc"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
"""


class Containers:
    """What containerd holds for one node."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ctr = ("ctr", "--address", str(layout.socket), "--namespace", "k8s.io")

    def configure(self) -> list[str]:
        """Write the configuration; gives the command that starts containerd."""
        layout = self._layout
        cni, config = layout.config / "cni", layout.config / "containerd.toml"
        cni.mkdir(parents=True)
        (cni / "bridge.conflist").write_text(json.dumps(self._pod_network()))
        folder = layout.socket.parent
        folder.mkdir(parents=True, mode=0o711)
        config.write_text(
            CONTAINERD_CONFIG.format(folder=folder, socket=layout.socket, pause=PAUSE, plugins=CNI_PLUGINS, cni=cni),
        )
        return ["containerd", "--config", str(config)]

    def answer(self) -> bool:
        """Whether containerd answers."""
        return succeeds(*self._ctr, "version")

    def load(self, archive: Path) -> None:
        """Import the image of an archive, unless the very same one is there."""
        images = set(archived_images(archive))
        if images <= set(self._images()):
            return
        say(f"loading {', '.join(name for name, _ in images)} ({archive.stat().st_size / 1e6:.0f} MB)")
        run(*self._ctr, "images", "import", archive)

    def remove_traces(self) -> None:
        """Unmount and remove what containers leave outside the cluster's folder, once their processes are gone."""
        inside = f"{self._layout.folder}/"
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in reversed(mounts):
            if mount.startswith(inside):
                succeeds("umount", "--lazy", mount)
        for trace in (*self._shim_sockets(), *self._network_results()):
            trace.unlink(missing_ok=True)
        for link in CONTAINER_LOG_LINKS.glob("*.log"):
            if str(link.readlink()).startswith(inside):
                link.unlink()

    def _images(self) -> Iterator[tuple[str, str]]:
        for line in run(*self._ctr, "images", "list").splitlines()[1:]:
            name, _, digest, *_ = line.split()
            yield name, digest

    def _shim_sockets(self) -> Iterator[Path]:
        tasks = self._layout.socket.parent / "state" / "io.containerd.runtime.v2.task"
        for file in (*tasks.glob("*/*/address"), *tasks.glob("*/*/bootstrap.json")):
            yield from (Path(found) for found in re.findall(r"unix://(/run/containerd/s/\w+)", file.read_text()))

    def _network_results(self) -> Iterator[Path]:
        """Two files a pod; the one of its loopback device names no cluster."""
        prefix, suffix = f"{self._pod_network_name}-", "-eth0"
        for file in CNI_RESULTS.glob(f"{prefix}*{suffix}"):
            pod = file.name.removeprefix(prefix).removesuffix(suffix)
            yield from (file, file.with_name(f"cni-loopback-{pod}-lo"))

    @property
    def _pod_network_name(self) -> str:
        return f"{self._layout.node_name}-cni"

    def _pod_network(self) -> dict[str, object]:
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": str(self._layout.subnets.pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self._layout.folder / "addresses"),
        }
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
        return {"cniVersion": "1.0.0", "name": self._pod_network_name, "plugins": [bridge]}


def archived_images(archive: Path) -> list[tuple[str, str]]:
    """Name and digest of the images in an OCI archive."""
    with tarfile.open(archive) as files:
        index = files.extractfile("index.json")
        if index is None:
            return []
        manifests = json.load(index)["manifests"]
    return [(manifest["annotations"][NAME_ANNOTATION], manifest["digest"]) for manifest in manifests]
