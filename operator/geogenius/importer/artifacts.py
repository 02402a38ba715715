"""Obtains the reviewed files of a run. Every file is hashed and compared in every run, whatever its origin."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from geogenius.domain.errors import DataRefused, InvalidRequest
from geogenius.domain.manifest import Artifact
from geogenius.importer.downloader import CHUNK_BYTES, Downloader, Observed, check_observed


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file from another that takes its place, and from itself after a write."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp in the status of a file."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Obtained:
    """A file that is as reviewed, and where it lies."""

    path: Path
    observed: Observed
    downloaded: bool
    stamp: Stamp

    def check_unchanged(self) -> None:
        """Raise DataRefused (ArtifactChanged) if the file is no longer the one that was hashed."""
        try:
            unchanged = Stamp.of(self.path.stat()) == self.stamp
        except FileNotFoundError:
            unchanged = False
        if not unchanged:
            raise DataRefused(
                f"{self.path.name} was changed or replaced after it was checked; leave files alone while they are "
                "imported",
                reason="ArtifactChanged",
            )


class ArtifactStore:
    """Files from the folder of operator-supplied artifacts, or downloaded.

    An operator-supplied file is read where it lies; ask `check_unchanged` after reading it.
    """

    def __init__(self, folder: Path | None, downloader: Downloader, report: Callable[[int], None]) -> None:
        self._folder = folder
        self._downloader = downloader
        self._report = report

    def obtain(self, artifact: Artifact, work_dir: Path) -> Obtained:
        """The file, checked.

        Raises InvalidRequest (ArtifactMissing) with the path that was looked at, DataRefused (SizeMismatch,
        ChecksumMismatch), and what a download raises. A second call does it all again.
        """
        if artifact.url is not None:
            path = work_dir / artifact.logical_name
            observed = self._downloader.fetch(artifact, path)
            return Obtained(path, observed, downloaded=True, stamp=Stamp.of(path.stat()))
        path = self._supplied(artifact)
        stamp = Stamp.of(path.stat())
        check = Observed(artifact.sha256, stamp.size)
        check_observed(artifact, check)  # a wrong size shows before a long file is hashed
        observed = self._hashed(path)
        check_observed(artifact, observed)
        return Obtained(path, observed, downloaded=False, stamp=stamp)

    def _supplied(self, artifact: Artifact) -> Path:
        if self._folder is None:
            raise InvalidRequest(
                f"{artifact.logical_name} is operator-supplied, and no folder of such files is configured",
                reason="ArtifactMissing",
            )
        path = self._folder / artifact.logical_name
        if not path.is_file():
            raise InvalidRequest(
                f"{artifact.logical_name} is missing: there is no file {path}", reason="ArtifactMissing"
            )
        return path

    def _hashed(self, path: Path) -> Observed:
        digest = hashlib.sha256()
        size = 0
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                self._report(len(chunk))
        return Observed(digest.hexdigest(), size)
