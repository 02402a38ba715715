"""What the catalog tells about files, areas and rejects of a run, and about releases."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from geogenius.domain.run import ReleaseId, RunId, RunState


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
    """What became of the staged rows; `rejected` counts every reject of the run, the reader's too.

    `merged` rows joined the area of an earlier source; `boundaries_unused` are usable ones among them that an earlier
    source's boundary stands in for.
    """

    areas: int
    boundaries: int
    repaired: int
    rejected: int
    merged: int = 0
    boundaries_unused: int = 0


@dataclass(frozen=True, slots=True)
class RelateCounts:
    """How many relations the sources assert, and how many more were measured."""

    asserted: int
    measured: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The gate before completion; `failures` are sentences, empty exactly when `ok`."""

    ok: bool
    failures: tuple[str, ...]
    area_count: int
    boundary_count: int
    areas_by_type: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The release that readers of a collection see, and where roll back goes, if anywhere."""

    collection: str
    release_id: ReleaseId
    release: str
    previous_release_id: ReleaseId | None
    published_at: datetime


@dataclass(frozen=True, slots=True)
class PointerMove:
    """The pointer after a call; `moved` is False where readers saw that release already."""

    pointer: Pointer
    moved: bool


@dataclass(frozen=True, slots=True)
class PublicationEvent:
    """One move of a pointer; sequence numbers grow in the order of commits, over all collections."""

    sequence: int
    kind: Literal["published", "rolled_back"]
    release_id: ReleaseId
    release: str
    previous_release_id: ReleaseId | None
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """A release with its latest run; `previous` is where roll back goes. Areas are counted once it was verified."""

    collection: str
    release_id: ReleaseId
    release: str
    created_at: datetime
    completed_at: datetime | None
    retired_at: datetime | None
    published: bool
    previous: bool
    run_id: RunId | None
    attempt: int | None
    state: RunState | None
    area_count: int | None


@dataclass(frozen=True, slots=True)
class StoredReject:
    """A row that was read and not imported; positions count from 1."""

    artifact: str
    position: int
    byte_offset: int | None
    reason: str
    detail: str
