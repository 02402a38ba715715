"""What registering an import answers."""

from dataclasses import dataclass
from enum import StrEnum

from geogenius.domain.run import ReleaseId, RunId


class Refusal(StrEnum):
    """Why the catalog refuses a request: the closed set of `prepare_import`. A refusal writes nothing."""

    PROTECTED = "protected"
    ORPHAN_CANDIDATE = "orphan_candidate"
    STALE_IMPORT = "stale_import"
    LIVE_IMPORT = "live_import"
    MANIFEST_CHANGED = "manifest_changed"
    FAILED = "failed"
    SOURCE_DEFINITION_CHANGED = "source_definition_changed"


@dataclass(frozen=True, slots=True)
class Registered:
    """A new run, committed, to be enqueued."""

    run_id: RunId
    release_id: ReleaseId
    attempt: int


@dataclass(frozen=True, slots=True)
class Redelivered:
    """The live run of the same owner and manifest: enqueueing it again does not start a second one."""

    run_id: RunId
    release_id: ReleaseId
    attempt: int


@dataclass(frozen=True, slots=True)
class Existing:
    """The release is complete already; nothing is to be enqueued."""

    run_id: RunId
    release_id: ReleaseId
    attempt: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The rules say no; nothing was written. `run_id` names the run that stands in the way, where there is one."""

    reason: Refusal
    release_id: ReleaseId | None
    run_id: RunId | None


Prepared = Registered | Redelivered | Existing | Refused
