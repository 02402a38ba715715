"""What the library answers: closed unions, one for each question."""

from dataclasses import dataclass

from geogenius.catalog.answers import Pointer
from geogenius.domain.enqueued import OutcomeUnknown
from geogenius.domain.prepared import Existing, Refused
from geogenius.domain.run import ReleaseId, Run, RunId
from geogenius.launcher.launch import Launch, LeftPending, Rejected, Started

Imported = Launch | Existing | Refused
"""Of `import_release` and `retry_failed`. All but Refused name the run."""


@dataclass(frozen=True, slots=True)
class UnknownRun:
    """The catalog has no such run."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class Completed:
    """The run has ended and its release is complete."""

    run: Run


@dataclass(frozen=True, slots=True)
class FailedRun:
    """The run has ended and `run.error` says why."""

    run: Run


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The run had not ended when the time was up; it goes on."""

    run: Run


Awaited = Completed | FailedRun | TimedOut | UnknownRun


@dataclass(frozen=True, slots=True)
class Declined:
    """The rules say no and nothing was changed; `reason` is CamelCase and stable."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PublicationUnknown:
    """The reply was lost and the catalog could not be read afterwards: the change may have been made."""

    message: str


@dataclass(frozen=True, slots=True)
class Published:
    """Readers see the release; `moved` is False where they did before."""

    pointer: Pointer
    moved: bool


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Readers see the release that they saw before."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class Retired:
    """These releases are readable no more; none where there was nothing to retire."""

    release_ids: tuple[ReleaseId, ...]


def guidance(launch: Launch) -> str:
    """What to do next, in a sentence; claims nothing that is not known."""
    match launch:
        case Started(run_id=run_id):
            return f"run {run_id} is started: its status tells the rest"
        case LeftPending(run_id=run_id, answer=OutcomeUnknown()):
            return (
                f"whether run {run_id} is started is not known: look at its status; if nothing executes it, import the"
                " same manifest again with the same owner"
            )
        case LeftPending(run_id=run_id):
            return f"run {run_id} waits to be started: import the same manifest again with the same owner"
        case Rejected(run_id=run_id, recorded=True):
            return f"run {run_id} has failed: retry it once the cause is gone"
        case Rejected(run_id=run_id):
            return f"run {run_id} is not started, and the catalog may not know: look at its status before anything else"
