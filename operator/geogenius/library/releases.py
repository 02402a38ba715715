"""Releases: published, rolled back, retired, verified. A lost reply is resolved by looking, never guessed."""

from datetime import datetime

from geogenius.catalog.answers import Pointer, ReleaseStatus, VerifyReport
from geogenius.domain.errors import Conflict, DatabaseUnavailable, GeogeniusError, InvalidRequest
from geogenius.domain.run import ReleaseId
from geogenius.library.answers import Declined, PublicationUnknown, Published, Retired, RolledBack
from geogenius.library.context import Context


def publish(context: Context, release_id: ReleaseId) -> Published | Declined | PublicationUnknown:
    """Makes a complete release the one that readers see; repeating it changes nothing.

    Raises DatabaseUnavailable when nothing was changed.
    """
    release = context.publications.get(release_id)
    if release is None:
        return Declined("UnknownRelease", f"no release {release_id}")
    before = context.publications.current(release.collection)
    try:
        move = context.publications.publish(release_id)
    except (Conflict, InvalidRequest) as refusal:
        return Declined(refusal.reason, str(refusal))
    except DatabaseUnavailable as lost:
        now = _looked_at(context, release.collection, before, release_id, lost)
        return now if isinstance(now, PublicationUnknown) else Published(now, _move(now) != _move(before))
    return Published(move.pointer, move.moved)


def rollback(
    context: Context, collection: str, leaving: ReleaseId | None = None
) -> RolledBack | Declined | PublicationUnknown:
    """Makes the release that readers saw before the one they see. Raises DatabaseUnavailable when nothing was changed.

    Done twice it goes forward again, unless `leaving` names the release that readers are to leave: then the second
    call is declined.
    """
    before = context.publications.current(collection)
    seen, previous = (before.release_id, before.previous_release_id) if before else (None, None)
    try:
        move = context.publications.rollback(collection, leaving or seen)
    except (Conflict, InvalidRequest) as refusal:
        return Declined(refusal.reason, str(refusal))
    except DatabaseUnavailable as lost:
        now = _looked_at(context, collection, before, previous, lost)
        return now if isinstance(now, PublicationUnknown) else RolledBack(now)
    return RolledBack(move.pointer)


def retire(context: Context, collection: str, keep: int) -> Retired | Declined | PublicationUnknown:
    """Retires all complete releases but the published one and the newest others, `keep` in all; candidates stay.

    Repeating it retires nothing more. Raises DatabaseUnavailable when nothing was changed.
    """
    before = _retired(context, collection)
    try:
        retired = context.publications.retire(collection, keep)
    except (Conflict, InvalidRequest) as refusal:
        return Declined(refusal.reason, str(refusal))
    except DatabaseUnavailable as lost:
        try:
            context.publications.settled(collection)  # waits for the call whose reply was lost
            retired = [release_id for release_id in _retired(context, collection) if release_id not in before]
        except GeogeniusError as unreadable:
            return _unknown(lost, unreadable)
        if not retired:
            raise
    return Retired(tuple(retired))


def verify(context: Context, release_id: ReleaseId) -> VerifyReport | Declined:
    """Looks at every row of a complete release, and changes nothing."""
    try:
        return context.publications.verify(release_id)
    except (Conflict, InvalidRequest) as refusal:
        return Declined(refusal.reason, str(refusal))


def releases(context: Context, collection: str) -> list[ReleaseStatus]:
    """The releases of a collection with what became of each, newest first; none for an unknown collection."""
    return context.publications.releases(collection)


def _looked_at(
    context: Context,
    collection: str,
    before: Pointer | None,
    wanted: ReleaseId | None,
    lost: DatabaseUnavailable,
) -> Pointer | PublicationUnknown:
    """What readers see, after the move whose reply was lost has ended; raises the loss again if it changed nothing."""
    try:
        now = context.publications.settled(collection)
    except GeogeniusError as unreadable:
        return _unknown(lost, unreadable)
    if now is not None and now.release_id == wanted:
        return now
    if _move(now) == _move(before):
        raise lost
    return PublicationUnknown(f"the reply was lost ({lost}); the publication of {collection} was moved again meanwhile")


def _move(pointer: Pointer | None) -> tuple[ReleaseId, datetime] | None:
    """Which move made the pointer what it is; retiring where roll back goes to is none."""
    return None if pointer is None else (pointer.release_id, pointer.published_at)


def _unknown(lost: DatabaseUnavailable, unreadable: GeogeniusError) -> PublicationUnknown:
    return PublicationUnknown(f"the reply was lost ({lost}) and the catalog cannot be read: {unreadable}")


def _retired(context: Context, collection: str) -> list[ReleaseId]:
    return [release.release_id for release in context.publications.releases(collection) if release.retired_at]
