"""How one execution of a run ended, seen from the process that executed it."""

from dataclasses import dataclass
from enum import StrEnum

from geogenius.domain.run import RunError, RunId


class Claim(StrEnum):
    """The six answers of `claim_import_execution`."""

    CLAIMED = "claimed"
    OCCUPIED = "occupied"
    COMPLETED = "completed"
    FAILED = "failed"
    MISSING = "missing"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Done:
    """The run is completed and that is recorded."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class NoOp:
    """Somebody else executes this run, or a later attempt exists: nothing was done."""

    run_id: RunId
    claim: Claim


@dataclass(frozen=True, slots=True)
class Failed:
    """The run failed and that is recorded with this error."""

    run_id: RunId
    error: RunError


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Nothing could be recorded. `started` tells a run that never began from one whose end is unknown."""

    run_id: RunId
    started: bool
    message: str


Executed = Done | NoOp | Failed | Unrecorded
