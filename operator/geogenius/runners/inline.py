"""Runs executed in the caller: the reference that every other runner is measured by."""

from collections.abc import Callable

from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.executed import Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments

NAME = "inline"

Execute = Callable[[RunId], Executed]
"""Executes a run in this process and records its outcome, with the publish intent and window stored with the run."""


class InlineRunner:
    """Always available; `enqueue` returns when the run has ended. A second call finds the outcome recorded."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def name(self) -> str:
        """The word stored with a run."""
        return NAME

    def available(self) -> bool:
        """Always."""
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the stored run says the same
        """Execute the run. A failure that is recorded is accepted: the catalog tells it."""
        executed = self._execute(run_id)
        match executed:
            case Done() | NoOp() | Failed():
                return Accepted()
            case Unrecorded(started=False, message=message):
                return NotEnqueued("NotStarted", message)
            case Unrecorded(message=message):
                return OutcomeUnknown("OutcomeNotRecorded", message)
