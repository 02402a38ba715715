"""Register an import, start its run, settle the answer: prepare and commit, then enqueue, then record what is known."""

import logging
from dataclasses import dataclass
from typing import assert_never
from uuid import uuid4

from geogenius.catalog.runs import Runs
from geogenius.db import Call
from geogenius.domain.decision import FailRun, Record, Settlement, Wait, settle, settle_redelivery
from geogenius.domain.enqueued import Enqueued, NotEnqueued
from geogenius.domain.errors import Conflict, DatabaseUnavailable
from geogenius.domain.run import ExecutorId, Fence, Run, RunError, RunId
from geogenius.runners.contract import Runner, arguments, enqueue_with

logger = logging.getLogger(__name__)

FAIL_TRIES = 2
"""How often a failure is tried to be recorded before the caller is told that it is not."""


@dataclass(frozen=True, slots=True)
class Started:
    """The runner has the run: the catalog tells the rest."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class LeftPending:
    """Nothing is started and nothing is failed; `answer` says why, and after so many seconds it is worth asking again.

    A refusal that may be overtaken by an earlier try is not recorded.
    """

    run_id: RunId
    answer: Enqueued
    retry_after: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """The run is not started and never will be; `recorded` tells whether the catalog knows, else why not."""

    run_id: RunId
    error: RunError
    recorded: bool
    why_not: str | None = None


Launch = Started | LeftPending | Rejected


class Launcher:
    """Starts runs through one runner and writes down how that went."""

    def __init__(self, runs: Runs, runner: Runner) -> None:
        self._runs = runs
        self._runner = runner

    def start(self, run: Run, *, fresh: bool) -> Launch:
        """Ask the runner to start the run and record the answer; `fresh` says that nobody asked before.

        A second call for the same run asks the runner again; runners accept a run once. Raises
        DatabaseUnavailable when the answer could not be recorded: the next look finds the run as it was.
        """
        return settled(self._runs, run, self._ask(run), fresh=fresh)

    def redeliver(self, run: Run) -> Launch:
        """Ask the runner once more for a live run of the same owner: nothing that it answers fails the run."""
        answer = self._ask(run)
        return _written(self._runs, run, settle_redelivery(answer, run), answer)

    def _ask(self, run: Run) -> Enqueued:
        args = arguments(publish=run.publish, stale_after=run.stale_after)
        return enqueue_with(self._runner, run.run_id, args)


def settled(runs: Runs, run: Run, answer: Enqueued, *, fresh: bool) -> Launch:
    """Draw the conclusion from an answer of the runner and write it down."""
    return _written(runs, run, settle(answer, run, fresh=fresh), answer)


def _written(runs: Runs, run: Run, settlement: Settlement, answer: Enqueued) -> Launch:
    logger.info("run %s: %s -> %s", run.run_id, answer, type(settlement).__name__)
    match settlement:
        case Record(retry_after=seconds):
            runs.record_enqueue(run.run_id, answer)
            return Started(run.run_id) if seconds is None else LeftPending(run.run_id, answer, seconds)
        case Wait(seconds=seconds):
            return LeftPending(run.run_id, answer, seconds)
        case FailRun(error=error):
            _note_refusal(runs, run, error)
            return fail_from_outside(runs, run, error)
        case _:
            assert_never(settlement)


def _note_refusal(runs: Runs, run: Run, error: RunError) -> None:
    """Keep the refusal before the end of the run closes its row; if that fails, its failure says the same."""
    try:
        runs.record_enqueue(run.run_id, NotEnqueued(error.reason, error.message))
    except DatabaseUnavailable as lost:
        logger.warning("run %s: the refusal %s is not recorded: %s", run.run_id, error.reason, lost)


def fail_from_outside(
    runs: Runs, run: Run, error: RunError, *, tries: int = FAIL_TRIES, call: Call = Call.WAITING
) -> Rejected:
    """Fail a run that this process does not execute, on evidence.

    Uses the executor that the catalog named when the run was read, or a fresh one where nobody had claimed. A run
    that was claimed or has completed since keeps what it has: the evidence is out of date. The answer says whether
    the failure is recorded.
    """
    fence = Fence(run.run_id, run.executor_id or ExecutorId(uuid4()))
    causes: list[str] = []
    for _ in range(tries):
        try:
            runs.fail(fence, error, call)
        except (Conflict, DatabaseUnavailable) as refusal:
            causes.append(str(refusal))
        else:
            logger.warning("run %s failed from outside: %s: %s", run.run_id, error.reason, error.message)
            return Rejected(run.run_id, error, recorded=True)
    why_not = "; then: ".join(dict.fromkeys(causes))
    logger.error("run %s: the failure %s is not recorded: %s", run.run_id, error.reason, why_not)
    return Rejected(run.run_id, error, recorded=False, why_not=why_not)
