"""The programs of the cluster, built from the Go module in `programs/`."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cache import build_once, cache_root, hash_of
from tests.cluster.contract import ClusterError
from tests.cluster.steps import SlowStep

MODULE = Path(__file__).parent / "programs"
PACKAGES = ("./kube", "./pause", "helm.sh/helm/v4/cmd/helm", "github.com/coredns/coredns")


@dataclass(frozen=True)
class Binaries:
    """Where the built programs are."""

    folder: Path

    @property
    def kube(self) -> Path:
        """Every program of Kubernetes and etcd, chosen by the first argument."""
        return self.folder / "kube"

    @property
    def pause(self) -> Path:
        """The process of a pod's sandbox."""
        return self.folder / "pause"

    @property
    def helm(self) -> Path:
        """Helm."""
        return self.folder / "helm"

    @property
    def coredns(self) -> Path:
        """The DNS server of pods."""
        return self.folder / "coredns"


def binaries() -> Binaries:
    """The programs, built on first use."""
    return Binaries(build_once(cache_root() / "programs" / inputs_hash(MODULE), _build))


def inputs_hash(module: Path) -> str:
    """What a build depends on: the module's files and the flags."""
    files = [module / "go.mod", module / "go.sum", *module.rglob("*.go")]
    return hash_of(module, files, *PACKAGES, *build_flags(module))


def build_flags(module: Path) -> tuple[str, ...]:
    """Flags of `go build`; the version, which kubelet and API server report, is the one that go.mod names."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise ClusterError(f"{module / 'go.mod'} requires no k8s.io/kubernetes")
    version, major, minor = found.groups()
    package = "k8s.io/component-base/version"
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    linker = " ".join(("-s", "-w", *(f"-X {package}.{name}={value}" for name, value in stamps.items())))
    return ("-trimpath", "-ldflags", linker)


def _build(folder: Path) -> None:
    if not shutil.which("go"):
        raise ClusterError("the program `go` is missing: install Go 1.26 or newer")
    command = ("go", "build", "-v", *build_flags(MODULE), "-o", f"{folder}/", *PACKAGES)
    SlowStep(
        title="building Kubernetes, Helm and CoreDNS",
        usually="12 minutes on two cores the first time, seconds with Go's cache",
        command=command,
        log=cache_root() / "log" / "go-build.log",
        folder=MODULE,
        env={"CGO_ENABLED": "0"},
    ).run()
