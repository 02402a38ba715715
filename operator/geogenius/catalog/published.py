"""What readers see: the published release of each collection."""

from collections.abc import Sequence
from pathlib import Path

from geogenius.catalog.answers import AreaMatch
from geogenius.db import Database
from geogenius.db.sql import load_queries
from geogenius.domain.run import ReleaseId

_QUERIES = load_queries(Path(__file__).parent / "queries" / "published.sql")


class Published:
    """Questions to published releases. Reads only; works on a standby."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def areas_for_point(
        self, longitude: float, latitude: float, collections: Sequence[str] | None = None
    ) -> list[AreaMatch]:
        """The areas that cover a point (degrees, WGS 84), broad types first; None asks every collection.

        Raises InvalidRequest (BadCoordinate) for a point that is not on earth.
        """
        arguments = {
            "longitude": longitude,
            "latitude": latitude,
            "collections": None if collections is None else list(collections),
        }
        with self._database.connection() as connection:
            rows = connection.execute(_QUERIES["areas_for_point"], arguments).fetchall()
        return [AreaMatch(collection=row.pop("collection_key"), release=row.pop("release_key"), **row) for row in rows]

    def release(self, collection: str) -> ReleaseId | None:
        """The published release of a collection; None for an unknown collection or one without."""
        with self._database.connection() as connection:
            row = connection.execute(_QUERIES["published_release"], {"collection": collection}).fetchone()
        return row["release_id"] if row else None
