"""Questions about places: points, polygons and distances, asked with the rights of a reader."""

import json
from itertools import pairwise
from math import cos, pi, sin
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geogenius.catalog import MatchMethod, Places, Scope
from geogenius.db import Database
from geogenius.domain.errors import InvalidRequest
from tests.support.catalog import a_manifest, an_area, polygon_wkb, published, square
from tests.support.reading import Sql, bare, codes, key, read, release_of, set_point, whole

LEAVES = """
select relation::regclass::text as name from pg_locks
where pid = pg_backend_pid() and relation::regclass::text ~ '_[0-9a-f]{32}$' order by 1
"""
SEAM = """
select ST_X(p) as longitude, ST_Y(p) as latitude from (
    select ST_PointOnSurface(ST_Intersection(one.geom, other.geom)) as p
    from boundary_part one join boundary_part other on one.ctid < other.ctid and ST_Touches(one.geom, other.geom)
) seam where not ST_IsEmpty(p) limit 1
"""
SHARE = """
select ST_Area(ST_Segmentize(ST_Intersection(geom, other), 0.25)::geography) as shared,
    ST_Area(ST_Segmentize(geom, 0.25)::geography) as own,
    ST_Area(ST_Segmentize(other, 0.25)::geography) as asked
from published_boundaries, ST_GeomFromGeoJSON(%s) other
"""
DISAGREEING = """
with asked as materialized (select x, y from unnest(%s::float8[], %s::float8[]) p (x, y))
select x, y from asked, published_boundaries b
where exists (select from areas_for_point(x, y)) <> ST_Covers(b.geom, ST_SetSRID(ST_MakePoint(x, y), 4326))
"""
OUTSIDE_ZONE = """
select ST_AsText(p) as place
from (
    select ST_Project(c::geography, least(%(radius)s * share, 20015000), direction)::geometry as p, c
    from ST_SetSRID(ST_MakePoint(%(longitude)s, %(latitude)s), 4326) c,
        unnest(%(directions)s::float8[], %(shares)s::float8[]) way (direction, share)
) ring
where ST_Distance(p::geography, c::geography) <= %(radius)s
    and not ST_Intersects(p, search_zone(%(longitude)s, %(latitude)s, %(radius)s))
"""
DEGREE_M = 111_319.49
"""A degree of the equator."""


def geojson(west: float, south: float, side: float = 1.0) -> dict[str, Any]:
    east, north = west + side, south + side
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def star(tips: int = 1000) -> list[tuple[float, float]]:
    """A ring of twice as many vertices around (20, 20), which is divided."""
    turns = [pi * n / tips for n in range(2 * tips)]
    ring = [(20 + (1 + n % 2) * cos(turn), 20 + (1 + n % 2) * sin(turn)) for n, turn in enumerate(turns)]
    return [*ring, ring[0]]


STAR = star()


def keys_at(database: Database, longitude: float, latitude: float, *collections: str) -> list[str]:
    return [whole(match) for match in Places(database).for_point(longitude, latitude, Scope(collections or None))]


def test_a_point_is_answered_broad_types_first_for_the_collections_asked(database: Database, reader: Database) -> None:
    areas = [an_area(1, "BE", square(13, 52), area_type="state"), an_area(2, "DE", square(10, 50, 5))]
    read(database, areas)
    published(database, a_manifest(collection="moon"))
    assert keys_at(reader, 13.4, 52.5) == ["world/r1/iso:country:DE", "world/r1/iso:state:BE"]
    assert keys_at(reader, 10.5, 50.5) == ["moon/r1/iso:country:DE", "world/r1/iso:country:DE"]
    assert keys_at(reader, 10.5, 50.5, "world", "nowhere") == ["world/r1/iso:country:DE"]


def test_a_match_tells_all_there_is_to_know_of_an_area(database: Database, reader: Database) -> None:
    release = read(database, [an_area(1, "BE", square(13, 52), area_type="state", name=None)])
    [match] = Places(reader).for_point(13.4, 52.5)
    assert (match.collection, match.release_id, match.release) == ("world", release, "r1")
    assert (match.authority, match.area_type, match.type_rank, match.code) == ("iso", "state", 20, "BE")
    assert (match.name, match.codes, match.attributes) == (None, {"iso": ["BE"]}, {"code": "BE"})
    assert match.centroid == pytest.approx((13.5, 52.5), abs=0.01)
    assert (match.retired_at, match.successor_key, match.match_method) == (None, None, MatchMethod.CONTAINMENT)
    assert (match.distance_m, match.intersection_area_m2, match.score, match.depth, match.relation_type) == (None,) * 5


def test_an_edge_belongs_to_its_area_and_a_common_one_to_both(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "DE", square(10, 50)), an_area(2, "PL", square(11, 50))])
    assert codes(Places(reader).for_point(10, 50)) == ["DE"]
    assert codes(Places(reader).for_point(9.999999, 50)) == []
    assert codes(Places(reader).for_point(11, 50.5)) == ["DE", "PL"]


@pytest.mark.parametrize("longitude", [180, -180])
def test_the_antimeridian_is_one_line(database: Database, reader: Database, longitude: float) -> None:
    published(database, areas=[an_area(1, "FJ", square(179, 0)), an_area(2, "US", square(-180, 0))])
    assert codes(Places(reader).for_point(longitude, 0.5)) == ["FJ", "US"]
    assert codes(Places(reader).for_point(179.5, 0.5)) == ["FJ"]


@pytest.mark.parametrize("point", [(181, 0), (0, -91), (float("nan"), 0), (0, float("inf")), (None, 0), (0, None)])
def test_a_point_that_is_not_on_earth_is_refused(reader: Database, point: tuple[float, float]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Places(reader).for_point(*point)
    assert refused.value.reason == "BadCoordinate"
    with pytest.raises(InvalidRequest) as refused:
        Places(reader).near(*point, 1000)
    assert refused.value.reason == "BadCoordinate"


def test_an_area_answers_once_though_several_pieces_of_its_boundary_match(
    database: Database, reader: Database, sql: Sql
) -> None:
    read(database, [an_area(1, "ST", polygon_wkb(STAR))])
    assert len(sql.execute("select from boundary_part").fetchall()) > 2
    seam = sql.execute(SEAM).fetchall()[0]
    asked = Places(reader)
    assert codes(asked.for_point(**seam)) == ["ST"]
    assert codes(asked.near(**seam, radius_m=300_000)) == ["ST"]
    assert codes(asked.for_geometry(geojson(19, 19, 2))) == ["ST"]


def test_a_divided_boundary_covers_what_the_whole_one_covers(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "ST", polygon_wkb(STAR))])
    around = st.tuples(st.floats(17.9, 22.1), st.floats(17.9, 22.1))

    @settings(max_examples=40, deadline=None)
    @given(st.lists(around | st.sampled_from(STAR), min_size=1, max_size=30))
    def agree(points: list[tuple[float, float]]) -> None:
        with reader.connection() as connection:
            assert connection.execute(DISAGREEING, [[x for x, _ in points], [y for _, y in points]]).fetchall() == []

    agree()


def test_a_point_question_opens_the_tables_of_the_published_release_only(database: Database, sql: Sql) -> None:
    for manifest in (a_manifest(), a_manifest(release="r2"), a_manifest(collection="moon")):
        current = release_of(database, published(database, manifest))
        if manifest["collection"] == "world":
            asked = current
    with sql.transaction():
        sql.execute("select * from areas_for_point(10.5, 50.5, '{world}')").fetchall()
        opened = {row["name"] for row in sql.execute(LEAVES)}
    assert {f"boundary_{asked.hex}", f"release_area_{asked.hex}"} <= opened
    assert {name[-32:] for name in opened} == {asked.hex}


def test_a_polygon_is_answered_by_the_areas_that_share_surface_with_it(database: Database, reader: Database) -> None:
    areas = [
        an_area(1, "BESIDE", square(2, 0, 2)),
        an_area(2, "SAME", square(0, 0, 2)),
        an_area(3, "CORNER", square(-2, 2, 2)),
        an_area(4, "INSIDE", square(0.5, 0.5, 0.5)),
    ]
    read(database, [*areas, *bare("NOWHERE")])
    matches = Places(reader).for_geometry(geojson(0, 0, 2))
    assert codes(matches) == ["SAME", "INSIDE"], "what only touches does not count, the largest share comes first"
    assert {match.match_method for match in matches} == {MatchMethod.OVERLAP}


def test_coverages_are_per_cent_of_both_sides(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "HALF", square(1, 0, 2)), an_area(2, "WIDE", square(-9, -9, 18))])
    wide, half = Places(reader).for_geometry(geojson(0, 0, 2))
    assert half.coverage_of_input == pytest.approx(50, rel=1e-3)
    assert half.coverage_of_area == pytest.approx(50, rel=1e-3)
    assert half.intersection_area_m2 == pytest.approx(2 * DEGREE_M**2, rel=0.01)
    assert wide.coverage_of_input == pytest.approx(100)
    assert wide.coverage_of_area == pytest.approx(400 / 324, rel=0.01)


def test_shares_of_a_divided_boundary_are_those_of_the_whole_one(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "ST", polygon_wkb(STAR))])
    asked = geojson(20.2, 19.3, 3)
    [match] = Places(reader).for_geometry(asked)
    with reader.connection() as connection:
        true = connection.execute(SHARE, [json.dumps(asked)]).fetchall()[0]
    assert match.intersection_area_m2 == pytest.approx(true["shared"], rel=1e-4)
    assert match.coverage_of_area == pytest.approx(100 * true["shared"] / true["own"], rel=1e-4)
    assert match.coverage_of_input == pytest.approx(100 * true["shared"] / true["asked"], rel=1e-4)


def test_a_polygon_comes_as_mapping_or_text_of_one_or_many_parts_with_or_without_heights(
    database: Database, reader: Database
) -> None:
    read(database, [an_area(1, "DE", square(10, 50)), an_area(2, "FR", square(2, 46))])
    near, far = geojson(10, 50), geojson(2, 46)
    many = {"type": "MultiPolygon", "coordinates": [near["coordinates"], far["coordinates"]]}
    high = {"type": "Polygon", "coordinates": [[[*point, 8848] for point in near["coordinates"][0]]]}
    asked = Places(reader)
    assert codes(asked.for_geometry(near)) == codes(asked.for_geometry(json.dumps(near))) == ["DE"]
    assert codes(asked.for_geometry(high)) == ["DE"]
    assert sorted(codes(asked.for_geometry(many))) == ["DE", "FR"]


@pytest.mark.parametrize(
    "polygon",
    [
        "",
        "not json",
        "null",
        "[]",
        "{}",
        '{"type": "Polygon"}',
        '{"type": "Polygon", "coordinates": "all"}',
        {"type": "Polygon", "coordinates": []},
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]},
        {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]},
        {"type": "Polygon", "coordinates": [[[0, 0], [float("nan"), 1], [1, 0], [0, 0]]]},
        {"type": "Point", "coordinates": [0, 0]},
        {"type": "Feature", "properties": {}, "geometry": geojson(0, 0)},
        {"type": "GeometryCollection", "geometries": [geojson(0, 0)]},
        geojson(179.5, 0),
        geojson(0, 89.5),
        {**geojson(0, 0), "crs": {"type": "name", "properties": {"name": "EPSG:3857"}}},
    ],
)
def test_what_is_not_a_polygon_on_earth_is_refused(reader: Database, polygon: dict[str, Any] | str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Places(reader).for_geometry(polygon)
    assert refused.value.reason == "BadPolygon"


def test_near_areas_come_nearest_first_with_their_distances(database: Database, reader: Database, sql: Sql) -> None:
    read(database, [an_area(1, "EAST", square(3, -0.5)), an_area(2, "HERE", square(0, -0.5)), *bare("NODE", "LOST")])
    set_point(sql, key("NODE"), -1, 0)
    here, node, east = Places(reader).near(0.5, 0, 400_000)
    assert codes([here, node, east]) == ["HERE", "NODE", "EAST"], "one without any place is near to nothing"
    assert here.distance_m == 0
    assert node.distance_m == pytest.approx(1.5 * DEGREE_M, rel=1e-4), "to the centroid where there is no boundary"
    assert east.distance_m == pytest.approx(2.5 * DEGREE_M, rel=1e-4)
    assert {match.match_method for match in (here, node, east)} == {MatchMethod.PROXIMITY}


def test_a_radius_reaches_as_far_as_it_says(database: Database, reader: Database, sql: Sql) -> None:
    read(database, [an_area(1, "EAST", square(3, -0.5)), *bare("NODE")])
    set_point(sql, key("NODE"), -2, 0)
    found = Places(reader).near(0, 0, 400_000)
    for match, other in zip(found, reversed(found), strict=True):
        assert match.distance_m is not None
        expected = [match.code] if match is found[0] else [other.code, match.code]
        assert codes(Places(reader).near(0, 0, match.distance_m + 0.01)) == expected
        assert match.code not in codes(Places(reader).near(0, 0, match.distance_m - 0.01))


@pytest.mark.parametrize(
    ("place", "radius_m", "found"),
    [
        ((179.5, 0), 100_000, ["FJ", "US"]),
        ((-179.5, 0), 100_000, ["US", "FJ"]),
        ((180, 0), 1, ["FJ", "US"]),
        ((90, 89.5), 200_000, ["POLE"]),
        ((-90, 89.9), 150_000, ["POLE"]),
        ((0, -89.99), 20_037_509, ["US", "FJ", "POLE"]),
    ],
)
def test_a_radius_reaches_over_the_antimeridian_and_the_poles(
    database: Database, reader: Database, place: tuple[float, float], radius_m: float, found: list[str]
) -> None:
    areas = [an_area(1, "FJ", square(179, -0.5)), an_area(2, "US", square(-180, -0.5))]
    read(database, [*areas, an_area(3, "POLE", square(89.5, 88, 1))])
    assert sorted(codes(Places(reader).near(*place, radius_m))) == sorted(found)


@given(
    place=st.tuples(st.floats(-180, 180), st.floats(-90, 90)),
    radius_m=st.floats(0.001, 20_037_509) | st.floats(1, 100_000),
    ways=st.lists(
        st.tuples(st.floats(0, 2 * pi), st.sampled_from([0.001, 0.3, 0.7, 0.99, 1.0])), min_size=1, max_size=20
    ),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_point_within_the_radius_lies_in_the_zone_that_is_searched(
    reader: Database, place: tuple[float, float], radius_m: float, ways: list[tuple[float, float]]
) -> None:
    directions, shares = zip(*ways, *((turn * pi / 8, 1.0) for turn in range(16)), strict=True)
    asked = {"longitude": place[0], "latitude": place[1], "radius": radius_m}
    with reader.connection() as connection:
        rows = connection.execute(OUTSIDE_ZONE, {**asked, "directions": list(directions), "shares": list(shares)})
        assert rows.fetchall() == []


def test_a_limit_cuts_the_farthest_over_all_collections_and_none_is_no_limit(
    database: Database, reader: Database
) -> None:
    for collection, south in (("world", 0), ("moon", 30)):
        areas = [an_area(n, f"{collection}-{n:02}", square(0, south + n, 0.5)) for n in range(1, 31)]
        read(database, areas, collection=collection)
    asked = Places(reader)
    assert len(asked.near(0, 0, 10_000_000)) == 50
    everything = asked.near(0, 0, 10_000_000, limit=None)
    distances = [match.distance_m or 0 for match in everything]
    assert len(everything) == 60
    assert all(nearer <= farther for nearer, farther in pairwise(distances))
    assert asked.near(0, 0, 10_000_000, limit=35) == everything[:35]


@pytest.mark.parametrize("radius_m", [0, -1, float("nan"), float("inf"), 20_037_510, None])
def test_a_radius_that_is_none_is_refused(reader: Database, radius_m: float) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Places(reader).near(0, 0, radius_m)
    assert refused.value.reason == "BadRadius"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_pass_is_refused(reader: Database, limit: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Places(reader).near(0, 0, 1, limit=limit)
    assert refused.value.reason == "BadLimit"
