"""What the catalog tells about files, areas and rejects of a run."""

from dataclasses import dataclass
from uuid import UUID

from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import ReleaseId


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """A file that a run is to read, as defined when the run was registered; `observed` once it was seen and matched.

    Without a url the operator of the catalog supplies the file. `sha256` is lower-case hexadecimal.
    """

    artifact_id: UUID
    source_key: str
    source_release: str
    provider: str
    logical_name: str
    format: str
    sha256: str
    bytes: int
    url: str | None
    observed: bool


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What became of the staged rows; `rejected` counts every reject of the run, the reader's too."""

    areas: int
    boundaries: int
    repaired: int
    rejected: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The gate before completion; `failures` are sentences, empty exactly when `ok`."""

    ok: bool
    failures: tuple[str, ...]
    area_count: int
    boundary_count: int


@dataclass(frozen=True, slots=True)
class StoredReject:
    """A row that was read and not imported; positions count from 1."""

    artifact: str
    position: int
    byte_offset: int | None
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class AreaMatch:
    """A published area that answers a question; a low rank is a broad area."""

    collection: str
    release_id: ReleaseId
    release: str
    area_key: str
    authority: str
    area_type: str
    type_rank: int
    code: str
    name: str | None
    attributes: dict[str, JsonValue]
