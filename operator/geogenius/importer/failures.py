"""What an error of an execution means: the record that the run keeps, and whose move it is."""

from geogenius.domain.errors import (
    Cancelled,
    DataRefused,
    GeogeniusError,
    InvalidRequest,
    Misconfigured,
    SourceUnavailable,
    Unavailable,
)
from geogenius.domain.failure import FailureClass
from geogenius.domain.run import RunError, RunState

MESSAGE_CHARACTERS = 2000

_CLASSES: tuple[tuple[type[Exception], FailureClass], ...] = (
    (DataRefused, FailureClass.DATA),
    (InvalidRequest, FailureClass.CONFIGURATION),
    (Misconfigured, FailureClass.CONFIGURATION),
    (SourceUnavailable, FailureClass.SOURCE_UNAVAILABLE),
    (Unavailable, FailureClass.INFRASTRUCTURE),
    (Cancelled, FailureClass.CANCELLED),
    (MemoryError, FailureClass.OUT_OF_MEMORY),
    (OSError, FailureClass.INFRASTRUCTURE),
    (Exception, FailureClass.INTERNAL),
)
"""The first line that fits decides."""

_REASONS: dict[FailureClass, str] = {
    FailureClass.OUT_OF_MEMORY: "OutOfMemory",
    FailureClass.INFRASTRUCTURE: "StorageFailed",
}
"""Reasons of errors that do not name one themselves; any other is an InternalError."""


def failure_class(error: Exception) -> FailureClass:
    """Whose move it is after this error."""
    return next(meaning for kind, meaning in _CLASSES if isinstance(error, kind))


def run_error(phase: RunState, error: Exception) -> RunError:
    """The record of an error: its own reason where it has one, its class under `class` in the evidence."""
    meaning = failure_class(error)
    if isinstance(error, GeogeniusError):
        reason, message = error.reason, str(error)
    else:
        reason, message = _REASONS.get(meaning, "InternalError"), f"{type(error).__name__}: {error}"
    return RunError(
        phase=phase,
        reason=reason,
        message=message[:MESSAGE_CHARACTERS],
        evidence={"class": meaning, "exception": type(error).__name__},
    )


def unexpected(error: Exception) -> bool:
    """Whether this is a defect of ours, whose traceback belongs into the log."""
    return failure_class(error) is FailureClass.INTERNAL
