"""Files that outlive a checkout: built once, found by a hash of what they were built from."""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def cache_root() -> Path:
    """The folder of everything that the harness keeps."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geogenius"


def hash_of(folder: Path, files: Iterable[Path], *settings: str) -> str:
    """A short hash of names (below the folder), contents and settings; the order of files is of no matter."""
    digest = hashlib.sha256()
    for setting in settings:
        digest.update(f"setting {len(setting)} {setting}\n".encode())
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(f"file {file.relative_to(folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def build_once(final: Path, build: Callable[[Path], None]) -> Path:
    """The folder, built if it is not there; one build at a time among its neighbours.

    A build works in another folder, which gets the name when it is done: an interrupted build never looks finished.
    """
    if final.is_dir():
        return final
    with locked(final.with_name(".lock")):
        if final.is_dir():
            return final
        for left in final.parent.glob(".*.partial"):
            shutil.rmtree(left)
        partial = final.with_name(f".{final.name}.partial")
        partial.mkdir()
        build(partial)
        partial.rename(final)
    return final


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a lock that other processes of this machine respect; a process that dies lets go of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
