"""File systems of Debian, made from its packages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import packages
from tests.cluster.cache import cache_root
from tests.cluster.steps import SlowStep

SUITE = "bookworm"
UNUSED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")


@dataclass(frozen=True)
class Root:
    """A file system with chosen packages."""

    include: Sequence[str]
    leave_out: Sequence[str] = ()
    """Files of packages that the image does without."""
    finish: Sequence[str] = ()
    """Commands of a shell that runs when all is installed; `$1` is the file system."""

    @property
    def command(self) -> tuple[str, ...]:
        """The command that makes it, to be followed by the name of an archive."""
        excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in (*UNUSED, *self.leave_out)]
        hooks = [f"--customize-hook={command}" for command in self.finish]
        return ("mmdebstrap", "--variant=minbase", f"--include={','.join(self.include)}", *excluded, *hooks, SUITE)

    def make(self, name: str, archive: Path) -> None:
        """Write it to an archive."""
        packages.require(packages.DEBIAN_ROOTS)
        log = cache_root() / "log" / f"root-{name}.log"
        title = f"installing Debian {SUITE} for the image {name}"
        SlowStep(title, "a minute", (*self.command, str(archive)), log).run()
