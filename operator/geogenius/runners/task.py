"""Runs executed in supervised child processes of the host program."""

from typing import assert_never

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.run import RunId
from geogenius.processes.supervisor import Lost, Refused, Submitted, TaskSupervisor
from geogenius.runners.contract import Arguments

NAME = "task"


class TaskRunner:
    """Starts runs on a supervisor that the caller stops; `enqueue` returns as soon as a child is there."""

    def __init__(self, supervisor: TaskSupervisor) -> None:
        self._supervisor = supervisor

    def name(self) -> str:
        """The word stored with a run."""
        return NAME

    def available(self) -> bool:
        """Whether the supervisor takes runs, if it has room."""
        return self._supervisor.alive

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the stored run says the same
        """Have a child execute the run. A second call while it does makes no second child."""
        submitted = self._supervisor.submit(run_id)
        match submitted:
            case Submitted():
                return Accepted()
            case Refused(reason=reason, message=message, retry_after=seconds):
                return NotEnqueued(reason, message, seconds)
            case Lost(message=message):
                return OutcomeUnknown("SupervisorLost", message)
            case _:
                assert_never(submitted)
