"""GeoJSON geometry to the WKB the catalog keeps: one little-endian MultiPolygon in two dimensions.

Heights and measures (a third and fourth number of a position) are left out: the catalog is two-dimensional.
Validity in the sense of crossing rings is left to the database, which repairs it and counts the repairs.
"""

import struct
import sys
from array import array
from collections.abc import Sequence
from itertools import chain
from math import isfinite

from geogenius.importer.text import shortened

LONGITUDE, LATITUDE = 180.0, 90.0
RING_POINTS = 4
POLYGON, MULTI_POLYGON = 3, 6
_HEADER = struct.Struct("<BII").pack
_COUNT = struct.Struct("<I").pack
_NUMBERS = {int, float}


class GeometryRefused(Exception):
    """This geometry cannot be an area. `reason` is a stable word, `detail` a sentence with the place."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def multipolygon_wkb(geometry: object) -> bytes | None:
    """The WKB of a Polygon or MultiPolygon; None for null.

    Raises GeometryRefused: non_polygon_geometry, empty_geometry, bad_nesting, bad_ring, bad_coordinates.
    """
    if geometry is None:
        return None
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if not isinstance(geometry, dict) or kind not in ("Polygon", "MultiPolygon"):
        shown = shortened(kind if isinstance(geometry, dict) else geometry)
        raise GeometryRefused("non_polygon_geometry", f"the geometry is {shown}, not a Polygon or MultiPolygon")
    coordinates = geometry.get("coordinates")
    listed = _list(coordinates, f"the coordinates of the {kind}")
    polygons = [listed] if kind == "Polygon" else listed
    if not polygons or [] in polygons:
        raise GeometryRefused("empty_geometry", f"the {kind} has no rings; write null for an area without boundary")
    parts = [_HEADER(1, MULTI_POLYGON, len(polygons))]
    for number, polygon in enumerate(polygons, start=1):
        parts.extend(_polygon(polygon, number))
    return b"".join(parts)


def _polygon(rings: object, number: int) -> list[bytes]:
    checked = _list(rings, f"polygon {number}")
    parts = [_HEADER(1, POLYGON, len(checked))]
    for ring_number, ring in enumerate(checked, start=1):
        place = f"ring {ring_number} of polygon {number}"
        points = _ring(_list(ring, place), place)
        parts += (_COUNT(len(points) // 2), _little_endian(points))
    return parts


def _ring(positions: list[object], place: str) -> "array[float]":
    points = _flat(positions, place) if positions else array("d")
    if len(positions) < RING_POINTS:
        raise GeometryRefused("bad_ring", f"{place} has {len(positions)} positions; it needs {RING_POINTS} at least")
    longitudes, latitudes = points[0::2], points[1::2]
    if not isfinite(sum(points)) or _beyond(longitudes, LONGITUDE) or _beyond(latitudes, LATITUDE):
        raise _out_of_range(longitudes, latitudes, place)
    if points[:2] != points[-2:]:
        first, last = shortened(positions[0]), shortened(positions[-1])
        raise GeometryRefused("bad_ring", f"{place} is not closed: it starts at {first} and ends at {last}")
    return points


def _flat(positions: list[object], place: str) -> "array[float]":
    """Longitude and latitude of all positions in a row. The fast path is for positions of two numbers each."""
    try:
        lengths = set(map(len, positions))  # type: ignore[arg-type]  # what has no length is refused below
        pairs = positions if lengths == {2} else [position[:2] for position in positions]  # type: ignore[index]
        kinds = set(map(type, chain.from_iterable(pairs)))  # type: ignore[arg-type]
        if min(lengths) >= 2 and set(map(type, positions)) == {list} and kinds <= _NUMBERS:  # noqa: PLR2004
            return array("d", chain.from_iterable(pairs))  # type: ignore[arg-type]
    except TypeError:
        pass
    except OverflowError as error:
        raise GeometryRefused("bad_coordinates", f"{place} has a number without end") from error
    raise _not_positions(positions, place)


def _beyond(values: Sequence[float], limit: float) -> bool:
    return min(values) < -limit or max(values) > limit


def _not_positions(positions: list[object], place: str) -> GeometryRefused:
    for number, position in enumerate(positions, start=1):
        if not isinstance(position, list) or len(position) < 2 or not {type(n) for n in position[:2]} <= _NUMBERS:  # noqa: PLR2004
            shown = shortened(position)
            return GeometryRefused("bad_nesting", f"position {number} of {place} is {shown}, not two numbers")
    return GeometryRefused("bad_nesting", f"{place} is not a list of positions")


def _out_of_range(longitudes: Sequence[float], latitudes: Sequence[float], place: str) -> GeometryRefused:
    for number, (longitude, latitude) in enumerate(zip(longitudes, latitudes, strict=True), start=1):
        if not (abs(longitude) <= LONGITUDE and abs(latitude) <= LATITUDE):
            shown = f"longitude {longitude}, latitude {latitude}"
            return GeometryRefused("bad_coordinates", f"position {number} of {place} is {shown}: not on the globe")
    return GeometryRefused("bad_coordinates", f"{place} has coordinates that are not on the globe")


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise GeometryRefused("bad_nesting", f"{place} is {shortened(value)}, not a list")
    return value


def _little_endian(points: "array[float]") -> bytes:
    if sys.byteorder == "big":
        points.byteswap()
    return points.tobytes()
