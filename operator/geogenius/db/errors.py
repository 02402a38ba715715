"""What an error of PostgreSQL means: the one table from (SQLSTATE, word in DETAIL) to our errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from geogenius.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    DataRefused,
    GeogeniusError,
    InvalidRequest,
    LeaseLost,
    Misconfigured,
)

Meaning = tuple[type[GeogeniusError], str | None]

MEANINGS: dict[tuple[str, str], Meaning] = {
    # said on purpose: SQLSTATE and word, see `refuse` in db/functions
    ("23503", "unknown_run"): (LeaseLost, "UnknownRun"),
    ("55000", "superseded"): (LeaseLost, "Superseded"),
    ("55000", "lease_lost"): (LeaseLost, None),
    ("55000", "release_frozen"): (LeaseLost, "ReleaseFrozen"),
    ("55000", "wrong_phase"): (Conflict, "WrongPhase"),
    ("55000", "run_completed"): (Conflict, "RunCompleted"),
    ("55000", "run_id_taken"): (Conflict, "RunIdTaken"),
    ("55000", "not_merged"): (Conflict, "NotMerged"),
    ("55000", "run_ended"): (Conflict, "RunEnded"),
    ("55000", "release_retired"): (Conflict, "ReleaseRetired"),
    ("55000", "release_live"): (Conflict, "ReleaseLive"),
    ("55000", "release_incomplete"): (Conflict, "ReleaseIncomplete"),
    ("55000", "release_published"): (Conflict, "ReleasePublished"),
    ("55000", "pointer_moved"): (Conflict, "PointerMoved"),
    ("23514", "no_previous_release"): (Conflict, "NoPreviousRelease"),
    ("23503", "unknown_release"): (InvalidRequest, "UnknownRelease"),
    ("23503", "unknown_collection"): (InvalidRequest, "UnknownCollection"),
    ("22004", "null_argument"): (InvalidRequest, "NullArgument"),
    ("22023", "bad_manifest"): (InvalidRequest, "BadManifest"),
    ("22023", "bad_keep"): (InvalidRequest, "BadKeep"),
    ("22023", "bad_successor"): (InvalidRequest, "BadSuccessor"),
    ("42704", "unknown_role"): (InvalidRequest, "UnknownRole"),
    ("22023", "bad_access"): (InvalidRequest, "BadAccess"),
    ("55000", "staging_lost"): (DatabaseUnavailable, "StagingLost"),
    ("22023", "bad_claim"): (InvalidRequest, "BadClaim"),
    ("22023", "bad_enqueue_state"): (InvalidRequest, "BadEnqueueState"),
    ("22023", "bad_coordinate"): (InvalidRequest, "BadCoordinate"),
    ("22023", "bad_polygon"): (InvalidRequest, "BadPolygon"),
    ("22023", "bad_radius"): (InvalidRequest, "BadRadius"),
    ("22023", "bad_limit"): (InvalidRequest, "BadLimit"),
    ("22023", "bad_depth"): (InvalidRequest, "BadDepth"),
    ("22023", "bad_lists"): (InvalidRequest, "BadLists"),
    ("22023", "bad_score"): (InvalidRequest, "BadScore"),
    ("22023", "blank_query"): (InvalidRequest, "BlankQuery"),
    ("22023", "bad_strategy"): (InvalidRequest, "BadStrategy"),
    ("22023", "bad_resolve_input"): (InvalidRequest, "BadResolveInput"),
    ("23503", "unknown_parent"): (DataRefused, "UnknownParent"),
    ("23503", "unknown_artifact"): (Conflict, "UnknownArtifact"),
    ("23514", "artifact_mismatch"): (DataRefused, "ArtifactMismatch"),
    ("23514", "artifact_unobserved"): (DataRefused, "ArtifactUnobserved"),
    ("23514", "not_verified"): (DataRefused, "NotVerified"),
    # whole classes of SQLSTATE: the server is not there, is busy, or took the other side of a conflict
    ("08", ""): (DatabaseUnavailable, None),
    ("53", ""): (DatabaseUnavailable, None),
    ("57", ""): (DatabaseUnavailable, None),
    ("58", ""): (DatabaseUnavailable, None),
    ("40", ""): (DatabaseUnavailable, None),
    ("25P03", ""): (DatabaseUnavailable, None),
    ("25006", ""): (DatabaseUnavailable, "DatabaseReadOnly"),
    ("55P03", ""): (DatabaseUnavailable, None),
    # the installer must act
    ("3F", ""): (Misconfigured, "SchemaMissing"),
    ("42501", ""): (Misconfigured, "PermissionMissing"),
    ("42883", ""): (Misconfigured, "SchemaOutdated"),
    ("42P01", ""): (Misconfigured, "SchemaOutdated"),
    ("42703", ""): (Misconfigured, "SchemaOutdated"),
    # values that the types or the CHECKs of the catalog do not take
    ("22", ""): (DataRefused, None),
    ("23", ""): (DataRefused, None),
}


def translate(error: psycopg.Error) -> GeogeniusError:
    """Our error for one of psycopg; the caller raises it from the cause."""
    state = error.sqlstate or ""
    word = error.diag.message_detail or ""
    kind, reason = (
        MEANINGS.get((state, word)) or MEANINGS.get((state, "")) or MEANINGS.get((state[:2], "")) or _stateless(error)
    )
    message = error.diag.message_primary or str(error)
    return kind(", ".join([message, *getattr(error, "__notes__", [])]), reason=reason)


@contextmanager
def translated() -> Iterator[None]:
    """Errors of psycopg inside leave as ours, with their cause; what a broken connection did is not known."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


def _stateless(error: psycopg.Error) -> Meaning:
    """What psycopg says itself: connection trouble, or a value that no column takes."""
    match error:
        case psycopg.OperationalError() | psycopg.InterfaceError() if error.sqlstate is None:
            return DatabaseUnavailable, None
        case psycopg.DataError():
            return DataRefused, None
        case _:
            return GeogeniusError, None
