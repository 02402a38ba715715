"""Why a request is not accepted, in one word and in words for people."""

from geogenius.api.names import Reason
from geogenius.api.text import message_of, reason_of
from geogenius.domain.errors import InvalidRequest
from geogenius.domain.prepared import Refusal, Refused

OTHER_NAME = "give the release another name"

_REFUSALS: dict[Refusal, tuple[Reason, str]] = {
    Refusal.PROTECTED: (
        Reason.RELEASE_PROTECTED,
        f"the release is complete and never changes again; {OTHER_NAME}",
    ),
    Refusal.ORPHAN_CANDIDATE: (
        Reason.ORPHAN_CANDIDATE,
        f"an unfinished release of this name exists that no run built; {OTHER_NAME}",
    ),
    Refusal.STALE_IMPORT: (
        Reason.STALE_IMPORT,
        "another import of this release gives no sign of life and has not ended; end it first",
    ),
    Refusal.LIVE_IMPORT: (
        Reason.LIVE_IMPORT,
        "another import of this release, with another owner or another manifest, has not ended",
    ),
    Refusal.MANIFEST_CHANGED: (
        Reason.MANIFEST_CHANGED,
        f"an earlier import of this release had another manifest; {OTHER_NAME}",
    ),
    Refusal.FAILED: (
        Reason.EARLIER_RUN_FAILED,
        f"an earlier import of this release with the same manifest failed; {OTHER_NAME}",
    ),
    Refusal.SOURCE_DEFINITION_CHANGED: (
        Reason.SOURCE_DEFINITION_CHANGED,
        "the catalog knows a source or file of this vintage with other properties; give the source another releaseKey",
    ),
    Refusal.NOT_FOUND: (
        Reason.RUN_NOT_FOUND,
        "there is no such run",
    ),
    Refusal.CANDIDATE_MISMATCH: (
        Reason.CANDIDATE_MISMATCH,
        "the run built another release than the manifest names",
    ),
    Refusal.NOT_LATEST_ATTEMPT: (
        Reason.NOT_LATEST_ATTEMPT,
        "the release has a later attempt",
    ),
    Refusal.NOT_FAILED: (
        Reason.RUN_NOT_FAILED,
        "the run has not failed",
    ),
}


def explained(refusal: Refused | InvalidRequest) -> tuple[str, str]:
    """The reason and the message of a condition for this refusal."""
    match refusal:
        case Refused(reason=refused, run_id=run_id):
            reason, sentence = _REFUSALS[refused]
            return reason, sentence if run_id is None else f"{sentence} (run {run_id})"
        case InvalidRequest():
            return reason_of(refusal.reason, Reason.NOT_ACCEPTED), message_of(str(refusal))
