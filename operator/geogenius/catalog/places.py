"""Questions about places: which areas are here, share this surface, or are near. One call each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geogenius.catalog.matches import EVERYTHING, AreaMatch, Scope, arguments_of, match_of
from geogenius.catalog.statements import Statements
from geogenius.db import Database
from geogenius.db.sql import load_queries

_QUERIES = load_queries(Path(__file__).parent / "queries" / "places.sql")


class Places:
    """Reads only; works on a standby. Coordinates are degrees (WGS 84), longitude first.

    Every method raises DatabaseUnavailable when the database does not answer, InvalidRequest (UnknownRelease) and
    Conflict (ReleaseIncomplete, ReleaseRetired) for the release that the scope names.
    """

    def __init__(self, database: Database) -> None:
        self._statements = Statements(database, _QUERIES)

    def for_point(self, longitude: float, latitude: float, scope: Scope = EVERYTHING) -> list[AreaMatch]:
        """The areas that cover a point, edges included; by collection, broad types first.

        Raises InvalidRequest (BadCoordinate) for a point that is not on earth.
        """
        return self._ask("areas_for_point", scope, longitude=longitude, latitude=latitude)

    def for_geometry(self, polygon: Mapping[str, Any] | str, scope: Scope = EVERYTHING) -> list[AreaMatch]:
        """The areas that share surface with a polygon, the largest share (`intersection_area_m2`) first.

        The polygon is a GeoJSON geometry (Polygon or MultiPolygon), as a mapping or as text; one that crosses the
        antimeridian is cut there. Raises InvalidRequest (BadPolygon) for anything else, and for a polygon that crosses
        itself or leaves the earth.
        """
        document = polygon if isinstance(polygon, str) else json.dumps(polygon)
        return self._ask("areas_for_geometry", scope, polygon=document)

    def near(
        self, longitude: float, latitude: float, radius_m: float, scope: Scope = EVERYTHING, *, limit: int | None = 50
    ) -> list[AreaMatch]:
        """The `limit` nearest areas (None: all) with a part within so many metres of a point, nearest first.

        The distance is that to the boundary, to the centroid where there is none. Raises InvalidRequest
        (BadCoordinate, BadRadius, BadLimit).
        """
        known = {"longitude": longitude, "latitude": latitude, "radius": radius_m, "limit": limit}
        return self._ask("areas_near", scope, **known)

    def _ask(self, question: str, scope: Scope, **arguments: object) -> list[AreaMatch]:
        rows = self._statements.rows(question, **arguments_of(scope), **arguments)
        return [match_of(row) for row in rows]
