import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geogenius.importer.geojson.geometry import GeometryRefused, multipolygon_wkb
from tests.support.geojson import square

Ring = list[list[float]]
LONGITUDES, LATITUDES = st.floats(-180, 180), st.floats(-90, 90)
POSITIONS = st.tuples(LONGITUDES | st.integers(-180, 180), LATITUDES | st.integers(-90, 90)).map(list)
RINGS = st.lists(POSITIONS, min_size=3, max_size=8).map(lambda ring: [*ring, ring[0]])
POLYGONS = st.lists(RINGS, min_size=1, max_size=3)


def parsed(wkb: bytes) -> list[list[Ring]]:
    """An own reading of MultiPolygon WKB, byte for byte."""
    at = 0

    def take(form: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from(form, wkb, at)
        at += struct.calcsize(form)
        return values

    def polygon() -> list[Ring]:
        assert take("<BI") == (1, 3)
        return [[list(take("<dd")) for _ in range(take("<I")[0])] for _ in range(take("<I")[0])]

    assert take("<BI") == (1, 6)
    polygons = [polygon() for _ in range(take("<I")[0])]
    assert at == len(wkb)
    return polygons


def refusal(geometry: object) -> GeometryRefused:
    with pytest.raises(GeometryRefused) as caught:
        multipolygon_wkb(geometry)
    return caught.value


def polygon(*rings: object) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": list(rings)}


@given(st.lists(POLYGONS, min_size=1, max_size=4))
def test_every_multipolygon_comes_back_from_its_wkb(polygons: list[list[Ring]]) -> None:
    wkb = multipolygon_wkb({"type": "MultiPolygon", "coordinates": polygons})
    assert wkb is not None
    assert parsed(wkb) == polygons


@given(POLYGONS)
def test_a_polygon_becomes_a_multipolygon_of_one(rings: list[Ring]) -> None:
    wkb = multipolygon_wkb(polygon(*rings))
    assert wkb is not None
    assert parsed(wkb) == [rings]


def test_null_is_no_geometry() -> None:
    assert multipolygon_wkb(None) is None


def test_heights_are_left_out() -> None:
    flat = square()
    raised = polygon([[*position, 7.5] for position in flat["coordinates"][0]])
    mixed = polygon([[*position, *[1, 2][:at]] for at, position in enumerate(flat["coordinates"][0])])
    assert multipolygon_wkb(raised) == multipolygon_wkb(mixed) == multipolygon_wkb(flat)


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "Point", "coordinates": [0, 0]},
        {"type": "LineString", "coordinates": [[0, 0], [1, 1]]},
        {"type": "GeometryCollection", "geometries": [square()]},
        {"coordinates": []},
        {"type": ["Polygon"]},
        {},
        "Polygon",
        [],
        0,
    ],
)
def test_what_is_no_polygon_is_refused(geometry: object) -> None:
    assert refusal(geometry).reason == "non_polygon_geometry"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([float("nan"), 0], "longitude nan"),
        ([0, float("inf")], "latitude inf"),
        ([180.0001, 0], "longitude 180.0001"),
        ([0, -91], "latitude -91"),
        ([10**400, 0], "a number without end"),
        ([48.1e6, 5.3e6], "longitude 48100000.0"),
    ],
)
def test_coordinates_off_the_globe_are_refused_with_their_place(value: list[float], shown: str) -> None:
    good = square()["coordinates"][0]
    error = refusal({"type": "MultiPolygon", "coordinates": [[good], [good, [*good[:2], value, *good[3:]]]]})
    assert error.reason == "bad_coordinates"
    assert shown in error.detail
    assert "ring 2 of polygon 2" in error.detail


@pytest.mark.parametrize(
    "value", [None, True, "ab", 7, {"x": 1, "y": 2}, [], [1], [1, None], [1, "2"], [True, 0], [[1, 2], 3]]
)
def test_a_position_that_is_not_two_numbers_is_refused_with_its_place(value: object) -> None:
    good = square()["coordinates"][0]
    error = refusal(polygon([*good[:2], value, *good[3:]]))
    assert (error.reason, error.detail[:32]) == ("bad_nesting", "position 3 of ring 1 of polygon ")


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        (polygon([[0, 0], [1, 0], [0, 0]]), "bad_ring"),
        (polygon([]), "bad_ring"),
        (polygon([[0, 0], [1, 0], [1, 1], [0, 1]]), "bad_ring"),
        (polygon(), "empty_geometry"),
        ({"type": "MultiPolygon", "coordinates": []}, "empty_geometry"),
        ({"type": "MultiPolygon", "coordinates": [square()["coordinates"], []]}, "empty_geometry"),
        ({"type": "Polygon"}, "bad_nesting"),
        ({"type": "Polygon", "coordinates": square()["coordinates"][0]}, "bad_nesting"),
        ({"type": "Polygon", "coordinates": [square()["coordinates"]]}, "bad_nesting"),
        ({"type": "MultiPolygon", "coordinates": square()["coordinates"]}, "bad_nesting"),
        ({"type": "MultiPolygon", "coordinates": 5}, "bad_nesting"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(geometry: object, reason: str) -> None:
    assert refusal(geometry).reason == reason


def test_messages_are_short_whatever_the_value() -> None:
    good = square()["coordinates"][0]
    assert len(refusal(polygon([*good[:2], "secret" * 1000, *good[3:]])).detail) < 200
    assert len(refusal({"type": "x" * 10_000}).detail) < 200
