"""What to do next about a run: pure functions of the run, its workload and the catalog's clock.

ADR 0008 (settling an answer), `docs/architecture.md` (evidence, never takeover). Nothing here reads a clock or talks to
anybody.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from geogenius.domain.enqueued import Accepted, Enqueued, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.failure import FailureClass
from geogenius.domain.observation import Absent, Ended, Foreign, Observation, Running, Waiting
from geogenius.domain.run import Run, RunError, RunState

UNKNOWN_BOUND = timedelta(seconds=60)
"""How long a request that was sent may still land. The API server itself gives up on a write after 34 s."""

SHORTEST_PAUSE_SECONDS = 2.0
"""How soon a run is sent again at the earliest."""

LONGEST_PAUSE_SECONDS = 60.0
"""How late at the latest, unless the server asks for more."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The run has ended: only its status is left to mirror."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The workload is on its way: the next event or tick tells more."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Ask the runner (again) to start the run."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this many seconds have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Record:
    """The catalog learns how the runner answered; `retry_after` (seconds) says when to ask again, if at all."""

    answer: Enqueued
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class FailRun:
    """The evidence is enough: the run is failed explicitly with this error."""

    error: RunError


Decision = Settled | Watch | Enqueue | Wait | Record | FailRun
Settlement = Record | Wait | FailRun


def decide(run: Run, observation: Observation, not_before: datetime | None = None) -> Decision:
    """The next step for a run whose workload looks like this.

    `observation` must have been made before `run` was read: then a workload that has ended without a recorded
    outcome is evidence, and not a race. `not_before` (the catalog's clock) is how long a runner that gave no
    acceptance is left in peace, however many events come.
    """
    if run.state.terminal:
        return Settled()
    if run.enqueue_state is EnqueueState.ACCEPTED:
        return _decide_accepted(run, observation)
    match observation:
        case Waiting(uid=uid) | Running(uid=uid) | Ended(uid=uid):
            return Record(Accepted(uid))
        case Foreign(message=message):
            return FailRun(_error(run, "NameConflict", message, FailureClass.CONFIGURATION))
        case Absent() if not_before is not None and run.read_at < not_before:
            return Wait((not_before - run.read_at).total_seconds())
        case Absent():
            return Enqueue()


def settle(answer: Enqueued, run: Run, *, fresh: bool) -> Settlement:
    """What an answer of the runner means for the run.

    `fresh` says that this very call registered the run, so that nothing can have been sent for it before. An earlier
    try whose outcome is not known may still land: until `UNKNOWN_BOUND` has passed, a refusal proves nothing.
    """
    match answer:
        case Accepted():
            return Record(answer)
        case OutcomeUnknown():
            return Record(answer, _pause(run, 0.0))
        case NotEnqueued():
            return _settle_refusal(answer, run, fresh=fresh)


def settle_redelivery(answer: Enqueued, run: Run) -> Record | Wait:
    """What an answer means for a live run that its owner asks for again.

    A refusal tells nothing about the try before, which may be at work: it never fails the run.
    """
    match settle(answer, run, fresh=False):
        case FailRun():
            return Wait(_pause(run, 0.0))
        case settlement:
            return settlement


def _settle_refusal(answer: NotEnqueued, run: Run, *, fresh: bool) -> Settlement:
    sent_before = not fresh and run.enqueue_state in (EnqueueState.INTENDED, EnqueueState.UNKNOWN)
    since = run.read_at - run.enqueue_changed_at
    if sent_before and since < UNKNOWN_BOUND:
        return Wait(min(_pause(run, answer.retry_after or 0.0), (UNKNOWN_BOUND - since).total_seconds()))
    left = (run.created_at + run.deadlines.launch - run.read_at).total_seconds()
    if answer.retry_after is not None and left > 0:
        return Record(answer, min(_pause(run, answer.retry_after), left))
    failure = FailureClass.CONFIGURATION if answer.retry_after is None else FailureClass.INFRASTRUCTURE
    return FailRun(_error(run, answer.reason, answer.message, failure))


def _pause(run: Run, asked_seconds: float) -> float:
    """Seconds until the runner is asked again: a quarter of the time that it has been refusing, within bounds."""
    grown = (run.read_at - run.enqueue_changed_at).total_seconds() / 4
    return max(SHORTEST_PAUSE_SECONDS, min(grown, LONGEST_PAUSE_SECONDS), asked_seconds)


def _decide_accepted(run: Run, observation: Observation) -> Decision:
    match observation:
        case Waiting() | Running():
            return Watch()
        case Absent():
            message = f"{_carrier(run)} no longer exists and the run has no recorded outcome"
            return FailRun(_error(run, "WorkloadLost", message, FailureClass.INFRASTRUCTURE))
        case Foreign(message=message):
            return FailRun(_error(run, "WorkloadLost", message, FailureClass.INFRASTRUCTURE))
        case Ended():
            return FailRun(_ended_error(run, observation))


def _ended_error(run: Run, ended: Ended) -> RunError:
    reason = "EndedWithoutOutcome" if ended.succeeded else ended.reason
    failure = FailureClass.OUT_OF_MEMORY if reason == "OOMKilled" else FailureClass.INFRASTRUCTURE
    said = f": {ended.message}" if ended.message else ""
    error = _error(run, reason, f"{_carrier(run)} ended without a recorded outcome{said}", failure)
    code = {} if ended.exit_code is None else {"exit_code": str(ended.exit_code)}
    return replace(error, evidence=error.evidence | code)


def request_deleted(run: Run) -> RunError:
    """The error of a live run whose request was deleted."""
    return _error(run, "RequestDeleted", "the ImportRequest was deleted", FailureClass.CANCELLED)


def _error(run: Run, reason: str, message: str, failure: FailureClass) -> RunError:
    phase = "enqueue" if run.state is RunState.PENDING else run.state.value
    return RunError(phase, reason, message, {"class": failure.value})


def _carrier(run: Run) -> str:
    return f"Job {run.workload.namespace}/{run.workload.name}" if run.workload else "the message in the queue"
