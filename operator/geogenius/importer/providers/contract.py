"""What a provider is: it turns the rows of a file into areas."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from geogenius.domain.area import Reject, StagedArea
from geogenius.domain.manifest import Artifact, Manifest, Source


@dataclass(frozen=True, slots=True)
class Batch:
    """Areas and rejects that are written together. `bytes_read` counts from the start of the file."""

    areas: tuple[StagedArea, ...]
    rejects: tuple[Reject, ...]
    bytes_read: int


class Provider(Protocol):
    """Reads one kind of file in the vocabulary of the manifest's options. It keeps nothing between calls."""

    @property
    def name(self) -> str:
        """What manifests call it."""
        ...

    def check_options(self, manifest: Manifest) -> None:
        """Look at the options without touching a file.

        Raises ManifestInvalid with the path of the option.
        """
        ...

    def measures_relations(self, manifest: Manifest) -> bool:
        """Whether boundaries of areas of different ranks are to be intersected once all files are merged."""
        ...

    def read(self, manifest: Manifest, source: Source, artifact: Artifact, path: Path) -> Iterator[Batch]:
        """The whole file in batches, each bounded in rows and bytes. Every row is an area or a reject.

        Reading again gives the same. Raises DataRefused, naming the artifact and the place, for a file that
        cannot be read to its end; nothing that was given before counts then.
        """
        ...
