"""Places and questions at which answers once went wrong."""

from uuid import UUID

import psycopg
import pytest

from geogenius.catalog import Areas
from geogenius.catalog.lookup import Lookup
from geogenius.catalog.matches import Clues, Scope
from geogenius.catalog.places import Places
from geogenius.db import Database
from geogenius.domain.area import ParentLink
from geogenius.domain.errors import GeogeniusError, InvalidRequest
from geogenius.domain.run import RunState
from tests.support.catalog import an_area, driven, polygon_wkb, square
from tests.support.reading import an_atlas, codes, read

Sql = psycopg.Connection[psycopg.rows.DictRow]


def box(west: float, south: float, east: float, north: float) -> bytes:
    return polygon_wkb([(west, south), (east, south), (east, north), (west, north), (west, south)])


def geojson(west: float, south: float, east: float, north: float) -> dict[str, object]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def test_a_pole_is_one_place(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "WEDGE", box(-120, -90, -60, -60)), an_area(2, "ZERO", box(-30, -90, 30, -60))])
    for longitude in (-180, -90, 0, 45):
        assert codes(Places(reader).for_point(longitude, -90)) == ["WEDGE", "ZERO"]
    assert codes(Places(reader).for_point(0, -89.99)) == ["ZERO"]


def test_a_collection_that_is_named_twice_answers_once(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "DE", square(10, 50))])
    twice = Scope(["world", "world"])
    assert codes(Places(reader).for_point(10.5, 50.5, twice)) == ["DE"]
    assert codes(Lookup(reader).by_code("iso", "DE", twice)) == ["DE"]


@pytest.mark.parametrize("corners", [(-180, -90, 180, 90), (-90, 0, 90, 60), (-180, 0, 180, 90), (-180, -60, 180, 60)])
def test_the_whole_earth_may_be_asked(
    database: Database, reader: Database, corners: tuple[float, float, float, float]
) -> None:
    read(database, [an_area(1, "DE", square(10, 50)), an_area(2, "BELT", box(-180, -60, 180, 60))])
    found = {match.code: match for match in Places(reader).for_geometry(geojson(*corners))}
    assert found.keys() == {"DE", "BELT"}
    assert found["DE"].coverage_of_area == pytest.approx(100)
    small = Places(reader).for_geometry(geojson(10, 50, 11, 51))
    assert set(codes(small)) == {"DE", "BELT"}


def test_a_child_wholly_inside_a_divided_parent_is_contained_however_long_its_edges(
    database: Database, sql: Sql
) -> None:
    top = [(30 - step / 100, 60 + (step % 2) / 50) for step in range(4001)]
    big = polygon_wkb([(-10, 30), (30, 30), *top, (-10, 30)])
    bottom = [(-3 + step * 18 / 50, 40.0) for step in range(51)]
    wide = polygon_wkb([*bottom, (15, 49), (-3, 49), (-3, 40)])
    areas = [an_area(1, "BIG", big), an_area(2, "WIDE", wide, area_type="state")]
    fence = driven(database, RunState.RELATING, an_atlas(), areas=areas)
    assert Areas(database).relate(fence, measured=True).measured == 1
    release: UUID = sql.execute("select id from release").fetchall()[0]["id"]
    row = sql.execute(f"select relation_type, child_coverage from relation_{release.hex}".encode()).fetchall()[0]
    assert row["relation_type"] == "contains"
    assert row["child_coverage"] == pytest.approx(1, abs=1e-4)


def test_the_nearest_are_the_beginning_of_all_that_are_near(database: Database, reader: Database) -> None:
    areas = [
        an_area(number, f"A{number:03}", square(number % 20 / 50, number // 20 / 50, 0.01)) for number in range(200)
    ]
    areas += [an_area(300, "Z", square(0, 0)), an_area(301, "S", square(0, 0), area_type="state")]
    read(database, areas)
    everything = codes(Places(reader).near(0.1, 0.1, 50_000, limit=None))
    assert len(everything) > 190
    for limit in (1, 2, 3, 50, 150):
        assert codes(Places(reader).near(0.1, 0.1, 50_000, limit=limit)) == everything[:limit]


def test_numbers_beyond_all_bounds_are_no_fault_of_the_schema(reader: Database) -> None:
    with pytest.raises(InvalidRequest):
        Places(reader).near(0, 0, 1, limit=2**31)


@pytest.mark.parametrize("given", ['{"lon": "abc", "lat": 1}', '{"lon": true, "lat": 1}', '{"lon": {}, "lat": 1}'])
def test_clues_of_another_type_are_refused_by_name(sql: Sql, given: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        sql.execute("select * from resolve(%s::jsonb)", [given])
    assert refused.value.diag.message_detail == "bad_resolve_input"


def test_a_code_with_colons_is_not_cut(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "country:5", None, area_type="state")])
    assert codes(Lookup(reader).by_code("iso", "country:5")) == ["country:5"]
    assert codes(Lookup(reader).by_code("iso:state", "5")) == []


def test_a_name_under_a_parent_is_found_beside_a_better_one_elsewhere(database: Database, reader: Database) -> None:
    child = an_area(2, "C", None, area_type="state", name="Springfield", parents=(ParentLink("iso:country:P"),))
    read(database, [an_area(1, "P", None), child, an_area(3, "X", None, area_type="state", name="Springfeld")])
    found = Lookup(reader).resolve(Clues(name="Sprngfeld", parent_area_key="iso:country:P"))
    assert codes(found) == ["C"]


def test_no_question_ends_in_an_error_without_a_name(reader: Database) -> None:
    with pytest.raises(GeogeniusError) as refused:
        Lookup(reader).by_code("iso", "x", max_depth=2**31)
    assert refused.value.reason != "SchemaOutdated"
