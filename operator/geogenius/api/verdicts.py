"""What is to be said about each aspect of a request: one pure function a condition."""

from datetime import datetime

from geogenius.api.conditions import Verdict
from geogenius.api.names import ConditionStatus, ConditionType, Reason
from geogenius.api.refusals import explained
from geogenius.api.text import message_of, reason_of
from geogenius.api.view import RequestView
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.observation import Absent, Ended, Foreign, Observation, Running, Waiting
from geogenius.domain.run import Run, RunState

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def verdicts(view: RequestView, now: datetime) -> list[Verdict]:
    """All known aspects, in their order."""
    return [accepted(view), launched(view), succeeded(view), stalled(view, now)]


def accepted(view: RequestView) -> Verdict:
    """Whether the catalog has a run for the request."""
    kind = ConditionType.ACCEPTED
    if view.run is not None:
        run = view.run
        return Verdict(kind, TRUE, Reason.REGISTERED, f"run {run.run_id} is attempt {run.attempt} at this release")
    if view.refusal is not None:
        return Verdict(kind, FALSE, *explained(view.refusal))
    return Verdict(kind, UNKNOWN, *_waiting(view))


def launched(view: RequestView) -> Verdict:
    """Whether the cluster has the workload of the run; an executor at work is proof, whatever was answered."""
    kind, run = ConditionType.LAUNCHED, view.run
    if run is None:
        status = UNKNOWN if view.refusal is None else FALSE
        reason = Reason.WAITING if view.refusal is None else Reason.NOT_ACCEPTED
        return Verdict(kind, status, reason, "no run is registered")
    if run.executor_id is not None:
        return Verdict(kind, TRUE, Reason.STARTED, "the run was started by its executor")
    if run.state is RunState.FAILED and run.enqueue_state is not EnqueueState.ACCEPTED:
        return Verdict(kind, FALSE, *_failure(run))
    return _launching(run, view.observation)


def succeeded(view: RequestView) -> Verdict:
    """The summary. It is Unknown until the outcome is final, and never changes after."""
    kind, run = ConditionType.SUCCEEDED, view.run
    if run is None:
        if view.refusal is not None:
            return Verdict(kind, FALSE, *explained(view.refusal))
        return Verdict(kind, UNKNOWN, *_waiting(view))
    match run.state:
        case RunState.COMPLETED:
            reason = Reason.PUBLISHED if run.published else Reason.COMPLETED
            return Verdict(kind, TRUE, reason, f"release {run.release} of {run.collection} is {_finish(run)}")
        case RunState.FAILED:
            return Verdict(kind, FALSE, *_failure(run))
        case _ if run.executor_id is None:
            return Verdict(kind, UNKNOWN, Reason.LAUNCHING, "the run has not started")
        case _:
            return Verdict(kind, UNKNOWN, Reason.RUNNING, f"the run is {run.state}")


def stalled(view: RequestView, now: datetime) -> Verdict:
    """Whether a run at work has given no sign of life for longer than its window. Reported only."""
    kind, run = ConditionType.STALLED, view.run
    if run is not None and run.state.terminal:
        return Verdict(kind, FALSE, Reason.FINISHED, "")
    last = last_sign_of_life(run)
    if run is None or last is None:
        return Verdict(kind, FALSE, Reason.NOT_STARTED, "")
    if now - last > run.stale_after:
        return Verdict(kind, TRUE, Reason.HEARTBEAT_OVERDUE, f"no sign of life since {last:%Y-%m-%dT%H:%M:%S%z}")
    return Verdict(kind, FALSE, Reason.ALIVE, "")


def last_sign_of_life(run: Run | None) -> datetime | None:
    """When the executor of the run was last heard of; None without an executor."""
    if run is None or run.executor_id is None:
        return None
    signs = (run.execution_started_at, run.last_heartbeat_at, run.last_progress_at)
    return max((sign for sign in signs if sign is not None), default=None)


def _launching(run: Run, observation: Observation | None) -> Verdict:
    kind = ConditionType.LAUNCHED
    match run.enqueue_state:
        case EnqueueState.INTENDED:
            return Verdict(kind, UNKNOWN, Reason.LAUNCHING, f"{_carrier(run)} is about to be created")
        case EnqueueState.UNKNOWN:
            said = _recorded(
                run, Reason.OUTCOME_UNKNOWN, f"whether {_carrier(run)} was created is not known; looking for it"
            )
            return Verdict(kind, UNKNOWN, *said)
        case EnqueueState.NOT_ENQUEUED:
            return Verdict(kind, FALSE, *_recorded(run, Reason.NOT_ENQUEUED, f"{_carrier(run)} was not created"))
        case EnqueueState.ACCEPTED:
            return Verdict(kind, TRUE, *_workload(run, observation))


def _carrier(run: Run) -> str:
    return "the message in the queue" if run.workload is None else "the Job"


def _waiting(view: RequestView) -> tuple[str, str]:
    if view.unavailable is None:
        return Reason.WAITING, "the request has not been looked at yet"
    return reason_of(view.unavailable.reason, Reason.WAITING), message_of(str(view.unavailable))


def _recorded(run: Run, otherwise: Reason, sentence: str) -> tuple[str, str]:
    """What the catalog recorded about a start: a word, or a word, a colon and a sentence."""
    word, _, rest = (run.enqueue_reason or "").partition(":")
    reason = reason_of(word.strip(), "")
    if not reason:
        return otherwise, message_of(run.enqueue_reason or sentence)
    return reason, message_of(rest) or sentence


def _workload(run: Run, observation: Observation | None) -> tuple[str, str]:
    match observation:
        case Waiting(reason=reason, message=message):
            return reason_of(reason, Reason.LAUNCHED), message_of(message) or "the Job waits for its pod"
        case Running():
            return Reason.LAUNCHED, "a worker has the run" if run.workload is None else "the pod of the Job runs"
        case Ended():
            return Reason.LAUNCHED, f"{_carrier(run)} has ended"
        case Absent() | Foreign() | None:
            return Reason.LAUNCHED, f"{_carrier(run)} was created"


def _finish(run: Run) -> str:
    if run.published:
        return "complete and published"
    return "complete, and not the one that readers see"


def _failure(run: Run) -> tuple[str, str]:
    if run.error is None:
        return Reason.FAILED, "the run failed and recorded no error"
    return reason_of(run.error.reason, Reason.FAILED), message_of(run.error.message)
