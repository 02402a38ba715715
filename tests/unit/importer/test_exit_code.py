import pytest

from geogenius.domain.errors import (
    Cancelled,
    DatabaseUnavailable,
    DataRefused,
    GeogeniusError,
    InvalidRequest,
    ManifestInvalid,
    Misconfigured,
    SourceUnavailable,
)
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.failure import FailureClass
from geogenius.domain.run import RunError, RunState
from geogenius.importer.exit_code import exit_code, explain
from geogenius.importer.failures import run_error, unexpected
from tests.support.builders import RUN_ID


@pytest.mark.parametrize(
    ("error", "code", "reason", "failure"),
    [
        (DataRefused("x", reason="ChecksumMismatch"), 65, "ChecksumMismatch", FailureClass.DATA),
        (InvalidRequest("x", reason="ArtifactMissing"), 65, "ArtifactMissing", FailureClass.CONFIGURATION),
        (ManifestInvalid("x"), 65, "ManifestInvalid", FailureClass.CONFIGURATION),
        (Misconfigured("x"), 65, "Misconfigured", FailureClass.CONFIGURATION),
        (SourceUnavailable("x"), 69, "SourceUnavailable", FailureClass.SOURCE_UNAVAILABLE),
        (DatabaseUnavailable("x"), 70, "DatabaseUnavailable", FailureClass.INFRASTRUCTURE),
        (OSError(28, "No space left on device"), 70, "StorageFailed", FailureClass.INFRASTRUCTURE),
        (MemoryError(), 70, "OutOfMemory", FailureClass.OUT_OF_MEMORY),
        (GeogeniusError("x"), 70, "InternalError", FailureClass.INTERNAL),
        (KeyError("x"), 70, "InternalError", FailureClass.INTERNAL),
        (Cancelled("x"), 77, "Cancelled", FailureClass.CANCELLED),
    ],
)
def test_every_failure_has_its_reason_class_and_code(
    error: Exception, code: int, reason: str, failure: FailureClass
) -> None:
    record = run_error(RunState.STAGING, error)
    assert (record.phase, record.reason, record.evidence["class"]) == ("staging", reason, failure)
    assert exit_code(Failed(RUN_ID, record)) == code
    assert unexpected(error) == (failure is FailureClass.INTERNAL)


@pytest.mark.parametrize(
    ("executed", "code", "words"),
    [
        (Done(RUN_ID), 0, "is completed"),
        (Unrecorded(RUN_ID, started=False, message="gone"), 75, "was not started: gone"),
        (Unrecorded(RUN_ID, started=True, message="gone"), 75, "ended with nothing recorded: gone"),
        (NoOp(RUN_ID, Claim.OCCUPIED), 76, "is not ours: occupied"),
        (Failed(RUN_ID, RunError("pending", "Lost", "words")), 70, "failed in phase pending: Lost: words"),
    ],
)
def test_every_end_has_its_code_and_its_sentence(executed: Executed, code: int, words: str) -> None:
    assert exit_code(executed) == code
    assert explain(executed) == f"run {RUN_ID} {words}"


def test_long_messages_are_cut() -> None:
    assert len(run_error(RunState.STAGING, DataRefused("x" * 10_000)).message) == 2000
