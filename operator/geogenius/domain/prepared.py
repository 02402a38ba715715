"""What registering an import, or the next attempt of one, answers."""

from dataclasses import dataclass
from enum import StrEnum

from geogenius.domain.run import ReleaseId, RunId


class Refusal(StrEnum):
    """Why the catalog refuses to register a run. A refusal writes nothing."""

    PROTECTED = "protected"
    ORPHAN_CANDIDATE = "orphan_candidate"
    STALE_IMPORT = "stale_import"
    LIVE_IMPORT = "live_import"
    MANIFEST_CHANGED = "manifest_changed"
    FAILED = "failed"
    SOURCE_DEFINITION_CHANGED = "source_definition_changed"
    NOT_FOUND = "not_found"
    CANDIDATE_MISMATCH = "candidate_mismatch"
    NOT_LATEST_ATTEMPT = "not_latest_attempt"
    NOT_FAILED = "not_failed"


PREPARE_REFUSALS = frozenset(
    {
        Refusal.PROTECTED,
        Refusal.ORPHAN_CANDIDATE,
        Refusal.STALE_IMPORT,
        Refusal.LIVE_IMPORT,
        Refusal.MANIFEST_CHANGED,
        Refusal.FAILED,
        Refusal.SOURCE_DEFINITION_CHANGED,
    }
)
"""The closed set of `prepare_import`."""

RETRY_REFUSALS = frozenset(
    {
        Refusal.NOT_FOUND,
        Refusal.CANDIDATE_MISMATCH,
        Refusal.PROTECTED,
        Refusal.NOT_LATEST_ATTEMPT,
        Refusal.NOT_FAILED,
        Refusal.SOURCE_DEFINITION_CHANGED,
        Refusal.FAILED,
    }
)
"""The closed set of `retry_failed`."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new run, committed, to be enqueued."""

    run_id: RunId
    release_id: ReleaseId
    attempt: int


@dataclass(frozen=True, slots=True)
class Retried:
    """A new run, committed, to be enqueued: the next attempt after one that failed."""

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
PreparedRetry = Retried | Redelivered | Existing | Refused
