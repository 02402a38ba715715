"""Programs of the operating system that the harness needs."""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.cluster.cache import cache_root
from tests.cluster.contract import ClusterError
from tests.cluster.steps import SlowStep

CNI_PLUGINS = Path("/usr/lib/cni")
"""Where Debian keeps them; they are not on the search path."""

NODE = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "sysctl": "procps",
    "openssl": "openssl",
}
BUILDAH = {"buildah": "buildah"}
TESTS = {
    "/usr/lib/postgresql/15/bin/initdb": "postgresql-15",
    "/usr/share/postgresql/15/extension/postgis.control": "postgresql-15-postgis-3",
    "/usr/sbin/pgbouncer": "pgbouncer",
    "npm": "npm",
}
"""What tests without a cluster need on Debian."""
DEBIAN_ROOTS = {"mmdebstrap": "mmdebstrap"}


def require(programs: Mapping[str, str]) -> None:
    """Install the Debian packages of missing programs, or say exactly what is missing."""
    packages = missing_packages(programs)
    if not packages:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise ClusterError(f"missing programs; as root on Debian: apt-get install {' '.join(packages)}")
    for title, command in (
        ("refreshing the list of Debian packages", ("apt-get", "update")),
        (f"installing {' '.join(packages)}", ("apt-get", "install", "-y", "--no-install-recommends", *packages)),
    ):
        log = cache_root() / "log" / "apt.log"
        SlowStep(title, "10 to 30 s", command, log, env={"DEBIAN_FRONTEND": "noninteractive"}).run()


def missing_packages(programs: Mapping[str, str]) -> list[str]:
    """The packages of programs that are not here, each once."""
    return sorted({package for program, package in programs.items() if not _present(program)})


def _present(program: str) -> bool:
    """Whether a program is on the search path, or a file at its absolute path."""
    return Path(program).exists() if program.startswith("/") else shutil.which(program, path=search_path()) is not None


def search_path(folders: Iterable[str] = ("/usr/sbin", "/sbin")) -> str:
    """The search path with the folders of system programs, which a plain user's path lacks."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *folders))
