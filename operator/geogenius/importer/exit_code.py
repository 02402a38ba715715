"""How a process says how its execution ended: a number for machines, a sentence for people.

65, 69, 70 and 77 mean that the run failed and that this is recorded in the catalog.
"""

from typing import Final

from geogenius.domain.executed import Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.failure import FailureClass

COMPLETED: Final = 0
USAGE: Final = 64
REFUSED: Final = 65
UNAVAILABLE: Final = 69
INTERNAL: Final = 70
NOT_RECORDED: Final = 75
NOT_OURS: Final = 76
CANCELLED: Final = 77

_OF_CLASS: dict[str, int] = {
    FailureClass.DATA: REFUSED,
    FailureClass.CONFIGURATION: REFUSED,
    FailureClass.SOURCE_UNAVAILABLE: UNAVAILABLE,
    FailureClass.INFRASTRUCTURE: INTERNAL,
    FailureClass.OUT_OF_MEMORY: INTERNAL,
    FailureClass.INTERNAL: INTERNAL,
    FailureClass.CANCELLED: CANCELLED,
}


def exit_code(executed: Executed) -> int:
    """The exit code of an execution. A failure without a known class, recorded by somebody else, is internal."""
    match executed:
        case Done():
            return COMPLETED
        case NoOp():
            return NOT_OURS
        case Unrecorded():
            return NOT_RECORDED
        case Failed(error=error):
            return _OF_CLASS.get(error.evidence.get("class", ""), INTERNAL)


def explain(executed: Executed) -> str:
    """The end of an execution in one sentence."""
    match executed:
        case Done(run_id=run_id):
            return f"run {run_id} is completed"
        case NoOp(run_id=run_id, claim=claim):
            return f"run {run_id} is not ours: {claim}"
        case Unrecorded(run_id=run_id, started=started, message=message):
            return f"run {run_id} {'ended with nothing recorded' if started else 'was not started'}: {message}"
        case Failed(run_id=run_id, error=error):
            return f"run {run_id} failed in phase {error.phase}: {error.reason}: {error.message}"
