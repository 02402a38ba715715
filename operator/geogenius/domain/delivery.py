"""What to do with a run that a queue hands out: a pure function of the run and the catalog's clock.

A message may be handed out again while its run is executed, or after its executor was lost. Nothing is ever taken over:
a run that somebody claimed is executed by nobody else; it ends, or is failed on the evidence that nothing of it lives.
"""

from dataclasses import dataclass
from datetime import timedelta

from geogenius.domain.failure import FailureClass
from geogenius.domain.run import Run, RunError, RunState

MOST_DELIVERIES = 3
"""How many workers may be lost with a run that none of them came to claim."""

LONGEST_LOOK = timedelta(seconds=15)
"""How late it is noticed that a run which somebody else executes has ended."""

SHORTEST_LOOK = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Execute:
    """Nobody has claimed the run: start an executor."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """The run has ended as `outcome` and that is recorded: the message has done its work."""

    outcome: RunState


@dataclass(frozen=True, slots=True)
class PutBack:
    """Not now: somebody else executes the run. Hand the message out again after this time."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class FailRun:
    """The evidence is enough: the run is failed explicitly with this error."""

    error: RunError


@dataclass(frozen=True, slots=True)
class Discard:
    """No run of this catalog waits for the message, and it can never be done."""

    message: str


Considered = Execute | Conclude | PutBack | FailRun | Discard


def consider(run: Run | None, delivery: int) -> Considered:
    """The next step for a run that is handed out for the `delivery`-th time, counted from 1."""
    if run is None:
        return Discard("there is no such run in the catalog")
    if run.state.terminal:
        return Conclude(run.state)
    if run.executor_id is not None:
        return _claimed(run)
    if delivery > MOST_DELIVERIES:
        message = f"{delivery - 1} workers were lost with this run before one of them began to execute it"
        return FailRun(_lost(run, message))
    return Execute()


def give_up(run: Run | None, reason: str, message: str, kind: FailureClass) -> Considered:
    """The next step with a message that can never be done: the run that it is for must not wait for it for ever."""
    if run is None:
        return Discard(message)
    if run.state.terminal:
        return Conclude(run.state)
    if run.executor_id is not None:
        return _claimed(run)
    return FailRun(RunError(run.state.value, reason, message, {"class": kind.value}))


def _claimed(run: Run) -> PutBack | FailRun:
    last_sign = run.last_heartbeat_at or run.execution_started_at or run.created_at
    silent = run.read_at - last_sign
    if silent < run.stale_after:
        return PutBack(max(SHORTEST_LOOK, min(run.stale_after - silent, LONGEST_LOOK)))
    message = (
        f"no worker has this run and its executor gave no sign of life for {silent.total_seconds():.0f} s"
        f" (allowed are {run.stale_after.total_seconds():.0f} s)"
    )
    return FailRun(_lost(run, message))


def _lost(run: Run, message: str) -> RunError:
    return RunError(run.state.value, "WorkloadLost", message, {"class": FailureClass.INFRASTRUCTURE.value})
