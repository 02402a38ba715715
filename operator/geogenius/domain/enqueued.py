"""What a runner answers when it is asked to start a run: yes, no, or not known."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of the run is, or will be, recorded in the catalog.

    `workload_uid` names the object that carries the run, where the runner makes one.
    """

    workload_uid: str | None = None


@dataclass(frozen=True, slots=True)
class NotEnqueued:
    """Definitely refused before acceptance: the run is not started and will not be by this call.

    `retry_after` (seconds) says that the refusal is temporary and when to ask again; None says it is final.
    """

    reason: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """Acceptance may have happened. Only a later look can tell; it is never counted as a refusal."""

    reason: str
    message: str


Enqueued = Accepted | NotEnqueued | OutcomeUnknown


class EnqueueState(StrEnum):
    """What the catalog knows about the start of a run; `intended` is written before anything is sent."""

    INTENDED = "intended"
    ACCEPTED = "accepted"
    NOT_ENQUEUED = "not_enqueued"
    UNKNOWN = "unknown"
