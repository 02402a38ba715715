"""A run: one attempt to build one release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType
from uuid import UUID

from geogenius.domain.enqueued import EnqueueState

RunId = NewType("RunId", UUID)
ReleaseId = NewType("ReleaseId", UUID)
ExecutorId = NewType("ExecutorId", UUID)


class RunState(StrEnum):
    """Where a run stands; `docs/state-machine.md` draws it and `run_state_edge` in SQL enforces it."""

    PENDING = "pending"
    DOWNLOADING = "downloading"
    VALIDATING = "validating"
    STAGING = "staging"
    NORMALIZING = "normalizing"
    RELATING = "relating"
    INDEXING = "indexing"
    VERIFYING = "verifying"
    PUBLISHING = "publishing"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def terminal(self) -> bool:
        """Whether the run has ended: nothing about it changes any more."""
        return self in (RunState.COMPLETED, RunState.FAILED)


NEXT_PHASE: dict[RunState, RunState] = {
    RunState.PENDING: RunState.DOWNLOADING,
    RunState.DOWNLOADING: RunState.VALIDATING,
    RunState.VALIDATING: RunState.STAGING,
    RunState.STAGING: RunState.NORMALIZING,
    RunState.NORMALIZING: RunState.RELATING,
    RunState.RELATING: RunState.INDEXING,
    RunState.INDEXING: RunState.VERIFYING,
    RunState.VERIFYING: RunState.PUBLISHING,
}
"""The single next phase that `advance_import` accepts. Completion and failure are functions of their own."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to write for a run: made by a claim, asked for by every writing call, checked by the database."""

    run_id: RunId
    executor_id: ExecutorId


@dataclass(frozen=True, slots=True)
class Workload:
    """The Kubernetes Job that carries a run: whose cluster, where, and which object exactly."""

    cluster_id: UUID
    namespace: str
    name: str
    uid: UUID | None = None


@dataclass(frozen=True, slots=True)
class RequestRef:
    """The ImportRequest that asked for a run. The uid tells a re-created request from its namesake."""

    namespace: str
    name: str
    uid: UUID


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each stage of a run may take; intent that is stored with the run."""

    launch: timedelta = timedelta(minutes=10)
    active: timedelta = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class VerificationGates:
    """What a release must show beyond soundness to be complete; intent that is stored with the run.

    `minimum_areas` counts by area type; a shrink is measured by type against the release that readers see.
    """

    minimum_areas: Mapping[str, int] = field(default_factory=dict)
    required_types: tuple[str, ...] = ()
    max_shrink_percent: int | None = None


class CancelAnswer(StrEnum):
    """What becomes of the wish that a run stops: it is kept, or comes too late."""

    REQUESTED = "requested"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed, as stored: a stable CamelCase reason, a sentence, and where it happened."""

    phase: str
    reason: str
    message: str
    evidence: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `import_run` with its release, as the view `import_run_status` gives it.

    `read_at` is the catalog's clock at the moment of reading: decisions compare times of one clock only.
    """

    run_id: RunId
    release_id: ReleaseId
    collection: str
    release: str
    attempt: int
    state: RunState
    owner: str
    runner: str
    publish: bool
    published: bool
    stale_after: timedelta
    deadlines: Deadlines
    enqueue_state: EnqueueState
    enqueue_changed_at: datetime
    enqueue_reason: str | None
    created_at: datetime
    read_at: datetime
    workload: Workload | None = None
    request: RequestRef | None = None
    executor_id: ExecutorId | None = None
    execution_started_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    last_progress_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    completed_at: datetime | None = None
    reject_limit: int = 0
    gates: VerificationGates = field(default_factory=VerificationGates)
    rejected: int = 0
    progress: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    error: RunError | None = None


def workload_name(run_id: RunId) -> str:
    """The name of the Job of a run: fixed by the run id alone, so that creating it twice is impossible."""
    return f"geogenius-{run_id.hex}"
