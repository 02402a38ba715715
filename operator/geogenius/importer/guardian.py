"""Records what became of an executor that could not do so itself. Nothing is started again, nothing is taken over."""

import logging
import signal
import time

from geogenius.catalog.runs import Runs
from geogenius.domain.errors import Conflict, DatabaseUnavailable, GeogeniusError
from geogenius.domain.failure import FailureClass
from geogenius.domain.run import Fence, RunError
from geogenius.importer.executor import REASONS
from geogenius.importer.exit_code import (
    CANCELLED,
    COMPLETED,
    INTERNAL,
    NOT_OURS,
    NOT_RECORDED,
    REFUSED,
    UNAVAILABLE,
)
from geogenius.importer.pipeline import remove_folders_of
from geogenius.importer.recipe import Recipe
from geogenius.processes.messages import Ended

PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits between the tries while the database does not answer."""

RECORDED = frozenset({COMPLETED, REFUSED, UNAVAILABLE, INTERNAL, NOT_OURS, CANCELLED})
"""Exit codes after which nothing is left to record."""

_log = logging.getLogger(__name__)


def needs_guardian(ended: Ended) -> bool:
    """Whether an executor may have left its run without a recorded end."""
    return ended.exit_code not in RECORDED


def death(ended: Ended) -> RunError:
    """What is recorded of it."""
    how = f"was killed by {_signal_name(ended.signal)}" if ended.signal else f"ended with {ended.exit_code}"
    if ended.why is not None:
        reason, message = REASONS[ended.why]
        return _error(reason, f"{message}, and its process {how}")
    reason = "ExecutorKilled" if ended.signal else "ExecutorCrashed"
    if ended.exit_code == NOT_RECORDED:
        reason, how = "OutcomeNotRecorded", "could not record how it ended"
    return _error(reason, f"the process that executed the run {how}")


def guard(recipe: Recipe, fence: Fence, error: RunError) -> None:
    """Fail the run, if it has not ended and is not somebody else's; while the database is silent, again and again.

    The files that its executor has left are removed first.
    Where all tries fail it is logged; a run without heartbeats is failed later by others, on that evidence.
    """
    remove_folders_of(fence, recipe.workplace.work_dir)
    database = recipe.database("geogenius-guardian")
    runs, ids = Runs(database), {"run_id": fence.run_id, "executor_id": fence.executor_id}
    try:
        for pause in (*PAUSES_SECONDS, None):
            try:
                runs.fail(fence, error)
            except Conflict as conflict:
                _log.info("nothing to record: %s", conflict, extra=ids)
                return
            except DatabaseUnavailable as silent:
                if pause is None:
                    _log.exception("not recorded: %s", error.message, extra=ids)
                    return
                _log.warning("recorded later: %s", silent, extra=ids)
                time.sleep(pause)
            except GeogeniusError:
                _log.exception("not recorded: %s", error.message, extra=ids)
                return
            else:
                _log.warning("recorded: %s", error.message, extra=ids)
                return
    finally:
        database.close()


def _signal_name(number: int) -> str:
    """Real-time signals have no name of their own."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _error(reason: str, message: str) -> RunError:
    return RunError("execution", reason, message, {"class": FailureClass.INFRASTRUCTURE.value})
