"""Which release readers see: publish, roll back, retire, and what there is to see. One call each."""

from datetime import datetime
from pathlib import Path

from geogenius.catalog.answers import Pointer, PointerMove, PublicationEvent, ReleaseStatus, VerifyReport
from geogenius.catalog.rows import event_of, move_of, pointer_of, release_of, report_of
from geogenius.catalog.statements import Statements
from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.domain.run import ReleaseId

_QUERIES = load_queries(Path(__file__).parent / "queries" / "publications.sql")


class Publications:
    """Releases and the pointer of each collection. The rules are in the database (`db/functions`).

    Every method raises DatabaseUnavailable when the database does not answer: a write may then have happened, which
    `settled` tells. Methods that take a collection and write raise InvalidRequest (UnknownCollection) without it.
    """

    def __init__(self, database: Database) -> None:
        self._statements = Statements(database, _QUERIES)

    def publish(self, release_id: ReleaseId) -> PointerMove:
        """Makes a complete release the one that readers see; one that they see already stays as it is.

        Raises InvalidRequest (UnknownRelease) and Conflict (ReleaseIncomplete, ReleaseLive, ReleaseRetired).
        """
        return move_of(self._statements.one("publish_release", Call.WAITING, release=release_id))

    def rollback(self, collection: str, leaving: ReleaseId | None = None) -> PointerMove:
        """Makes the release that readers saw before the one they see; a second call goes forward again.

        Unless it says which release readers are to be `leaving`: then a repeated call raises Conflict (PointerMoved).
        Conflict (NoPreviousRelease) where there is nothing to go back to.
        """
        arguments = {"collection": collection, "leaving": leaving}
        return move_of(self._statements.one("rollback_publication", Call.WAITING, **arguments))

    def retire(self, collection: str, keep: int) -> list[ReleaseId]:
        """Retires complete releases but the published one and the newest others, `keep` in all; gives the retired.

        Repeating it retires nothing more.
        """
        rows = self._statements.rows("retire_releases", Call.WAITING, collection=collection, keep=keep)
        return [row["release_id"] for row in rows]

    def retire_area(self, collection: str, area_key: str, successor_key: str | None = None) -> None:
        """Says that an area is no more, whatever releases say of it; repeating it takes the new successor."""
        arguments = {"collection": collection, "area": area_key, "successor": successor_key}
        self._statements.one("retire_area", **arguments)

    def restore_area(self, collection: str, area_key: str) -> bool:
        """Takes back what `retire_area` said; False if nothing was said."""
        restored: bool = self._statements.one("restore_area", collection=collection, area=area_key)["restored"]
        return restored

    def current(self, collection: str) -> Pointer | None:
        """What readers see now; None for an unknown collection or one without a published release."""
        rows = self._statements.rows("current_publication", collection=collection)
        return pointer_of(rows[0]) if rows else None

    def settled(self, collection: str) -> Pointer | None:
        """The same, after every move of the pointer that has begun: what a lost reply would have said."""
        rows = self._statements.rows("settled_publication", Call.WAITING, collection=collection)
        return pointer_of(rows[0]) if rows else None

    def release_at(self, collection: str, moment: datetime) -> ReleaseId | None:
        """What readers saw at a moment; None for an unknown collection and before its first publication."""
        release_id: ReleaseId | None = self._statements.one("release_at", collection=collection, moment=moment)[
            "release_id"
        ]
        return release_id

    def verify(self, release_id: ReleaseId) -> VerifyReport:
        """Looks at every row of a complete release and keeps nothing.

        Raises InvalidRequest (UnknownRelease) and Conflict (ReleaseIncomplete, ReleaseRetired).
        """
        return report_of(self._statements.one("verify_release", Call.BULK, release=release_id)["report"])

    def releases(self, collection: str) -> list[ReleaseStatus]:
        """The releases of a collection, newest first; none for an unknown one."""
        return [release_of(row) for row in self._statements.rows("list_releases", collection=collection)]

    def get(self, release_id: ReleaseId) -> ReleaseStatus | None:
        """The release, if there is one."""
        rows = self._statements.rows("get_release", release=release_id)
        return release_of(rows[0]) if rows else None

    def history(self, collection: str, limit: int) -> list[PublicationEvent]:
        """The latest moves of the pointer, latest first."""
        return [event_of(row) for row in self._statements.rows("list_history", collection=collection, limit=limit)]
