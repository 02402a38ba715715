"""A child of the nursery: executes one run, and ends when it is told to or when the nursery is gone."""

import logging
import os
from threading import Thread
from time import sleep

from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.exit_code import NOT_RECORDED, exit_code, explain
from geogenius.importer.pipeline import Pipeline
from geogenius.importer.recipe import Recipe
from geogenius.processes.messages import DEADLINE, LOST, STOPPED

_log = logging.getLogger(__name__)

REASONS = {
    DEADLINE: ("DeadlineExceeded", "the execution took longer than its deadline"),
    STOPPED: ("SupervisorStopped", "the supervisor of the execution was stopped"),
    LOST: ("SupervisorLost", "the supervisor of the execution is gone"),
}
"""What is recorded of a run whose executor is made to end."""


def execute(recipe: Recipe, run_id: RunId, executor_id: ExecutorId, lifeline: int, grace: float) -> int:
    """Execute the run; the exit code. `lifeline` is a pipe that says why to end, or ends itself with the nursery."""
    cancellation = Cancellation()
    Thread(target=_hold, args=(lifeline, cancellation, grace), name="lifeline", daemon=True).start()
    database = recipe.database("geogenius-executor")
    try:
        with cancellation.on_signals():
            executed = Pipeline.on(database, recipe.workplace, cancellation).execute(run_id, executor_id)
    finally:
        database.close()
    code = exit_code(executed)
    _log.log(logging.INFO if code == 0 else logging.WARNING, explain(executed), extra={"run_id": run_id})
    return code


def _hold(lifeline: int, cancellation: Cancellation, grace: float) -> None:
    """Wait for the word to end. Where nobody is left who would kill us after the grace, we do it ourselves."""
    said = os.read(lifeline, 100).decode().strip() or LOST
    cancellation.interrupt(*REASONS[said])
    if said == LOST or not os.read(lifeline, 1):
        sleep(grace)
        os._exit(NOT_RECORDED)
