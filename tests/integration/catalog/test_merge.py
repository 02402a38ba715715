"""Sources converge: what several of them say of an area becomes one area, whatever the order of staging."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geogenius.catalog import Areas, MergeCounts, Runs
from geogenius.db import Database
from geogenius.domain.area import AreaCode, AreaName, NameKind, StagedArea
from geogenius.domain.run import Fence, RunError, RunState
from tests.support.catalog import (
    NEEDLE,
    a_manifest,
    a_source,
    an_area,
    an_artifact,
    driven,
    point_wkb,
    polygon_wkb,
    square,
)

Sql = psycopg.Connection[psycopg.rows.DictRow]
KINDS = [{"key": "country", "rank": 10, "requires_geometry": False}]
SOURCES = {"one": ("a1", "a2"), "two": ("b1",), "three": ("c1",)}
MANIFEST = a_manifest(
    area_types=KINDS,
    sources=[
        a_source(source_key=key, artifacts=[an_artifact(logical_name=name) for name in files])
        for key, files in SOURCES.items()
    ],
)
FILES = tuple(name for files in SOURCES.values() for name in files)
Files = Mapping[str, Sequence[StagedArea]]


def merged(database: Database, files: Files) -> tuple[Fence, MergeCounts]:
    fence = driven(database, RunState.NORMALIZING, MANIFEST, areas=files)
    return fence, Areas(database).merge(fence, sum(map(len, files.values())))


def table(sql: Sql, parent: str, columns: str) -> list[dict[str, Any]]:
    """Rows of the only release, found where they stand."""
    name = sql.execute("select release_table(%s, id) as name from release", [parent]).fetchall()[0]["name"]
    return sql.execute(f"select {columns} from {name} order by 1, 2".encode()).fetchall()


def test_sources_give_one_area_and_the_first_one_wins(database: Database, sql: Sql) -> None:
    first = an_area(7, "DE", None, name="Germany", attributes={"a": 1, "b": 1}, point=point_wkb(9, 51))
    second = an_area(3, "DE", square(10, 50), name="Deutschland", attributes={"b": 2, "c": 2})
    third = an_area(1, "DE", square(0, 0), name=None, attributes={"c": 3, "d": None})
    _, counts = merged(database, {"c1": [third], "b1": [second], "a2": [first]})
    assert counts == MergeCounts(areas=1, boundaries=1, repaired=0, rejected=0, merged=2, boundaries_unused=1)
    assert table(sql, "release_area", "name, attributes, artifact, position, ST_AsText(centroid) as centroid") == [
        {"name": "Germany", "attributes": {"a": 1, "b": 1, "c": 2, "d": None}, "artifact": "a2", "position": 7,
         "centroid": "POINT(10.5 50.5)"}
    ]  # fmt: skip
    assert table(sql, "area_name", "name, kind, locale") == [
        {"name": "Deutschland", "kind": "official", "locale": None}
    ]


def test_a_source_without_a_usable_boundary_is_a_reject_and_the_others_stay(database: Database, sql: Sql) -> None:
    _, counts = merged(database, {"a1": [an_area(1, "DE", NEEDLE)], "b1": [an_area(2, "DE", square(10, 50))]})
    assert (counts.areas, counts.boundaries, counts.rejected, counts.merged) == (1, 1, 1, 0)
    assert table(sql, "release_area", "artifact, position") == [{"artifact": "b1", "position": 2}]


def test_a_point_is_the_centroid_of_an_area_without_a_boundary(database: Database, sql: Sql) -> None:
    one = an_area(1, "DE", None, point=point_wkb(10, 51))
    merged(database, {"b1": [one], "a1": [replace(one, point=None)], "c1": [replace(one, point=point_wkb(0, 0))]})
    assert table(sql, "release_area", "ST_AsText(centroid) as centroid, 1") == [
        {"centroid": "POINT(10 51)", "?column?": 1}
    ]


def test_names_and_codes_are_sets_beside_the_official_name_and_the_own_code(database: Database, sql: Sql) -> None:
    names = (AreaName("Bund"), AreaName("Germany", NameKind.OFFICIAL), AreaName("Germany", NameKind.OFFICIAL, "en"))
    codes = (AreaCode("fips", "GM"), AreaCode("iso", "DE"), AreaCode("iso", "DEU"))
    area = an_area(1, "DE", None, name="Germany", names=names, codes=codes)
    merged(database, {"a1": [area], "b1": [replace(area, names=names[:1], codes=(*codes, AreaCode("fips", "GM")))]})
    assert table(sql, "area_name", "name, kind, locale") == [
        {"name": "Bund", "kind": "alias", "locale": None},
        {"name": "Germany", "kind": "official", "locale": "en"},
    ]
    assert table(sql, "area_code", "code_type, code_value") == [
        {"code_type": "fips", "code_value": "GM"},
        {"code_type": "iso", "code_value": "DEU"},
    ]


def test_within_a_source_the_order_of_its_files_decides(database: Database) -> None:
    fence, counts = merged(database, {"a2": [an_area(1, "DE", None)], "a1": [an_area(9, "DE", None)]})
    assert (counts.areas, counts.merged, counts.rejected) == (1, 0, 1)
    assert [(reject.artifact, reject.detail) for reject in Areas(database).rejects(fence.run_id, 9)] == [
        ("a2", "area iso:country:DE was read before at position 9 of a1")
    ]


def star(corners: int) -> bytes:
    """A polygon with twice as many vertices as corners."""
    turns = [math.pi * corner / corners for corner in range(2 * corners)]
    rays = [3 + corner % 2 for corner in range(2 * corners)]
    ring = [(ray * math.cos(turn), ray * math.sin(turn)) for ray, turn in zip(rays, turns, strict=True)]
    return polygon_wkb([*ring, ring[0]])


def test_a_boundary_with_many_vertices_is_divided_and_its_pieces_are_the_whole(database: Database, sql: Sql) -> None:
    merged(database, {"a1": [an_area(1, "BIG", star(1000)), an_area(2, "SMALL", star(100))]})
    assert table(sql, "boundary", "area_number, divided") == [
        {"area_number": 1, "divided": True},
        {"area_number": 2, "divided": False},
    ]
    row = sql.execute("select id from release").fetchall()[0]
    whole, pieces = (f"{parent}_{row['id'].hex}" for parent in ("boundary", "boundary_part"))
    question = f"""
    select count(*) > 5 as several, max(ST_NPoints(p.geom)) <= 256 as small, count(distinct p.area_number) as areas,
        ST_Area(ST_SymDifference(ST_Union(p.geom), (select geom from {whole} where area_number = 1))) < 1e-9 as same
    from {pieces} p
    """
    assert sql.execute(question.encode()).fetchall() == [{"several": True, "small": True, "areas": 1, "same": True}]


@dataclass
class Expected:
    """What one key becomes, by the rules of ADR 0018."""

    name: str | None
    attributes: dict[str, Any]
    position: tuple[str, int]
    side: float | None


CODES = st.sampled_from(["A", "B", "C"])
SIDES = st.sampled_from([None, 1.0, 2.0, 3.0])
ATTRIBUTES = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3), max_size=3)
ROWS = st.tuples(st.sampled_from(FILES), CODES, st.sampled_from([None, "n1", "n2"]), SIDES, ATTRIBUTES)


def expected_of(rows: list[tuple[str, int, str, str | None, float | None, dict[str, Any]]]) -> tuple[Any, ...]:
    """The model: areas by code, and how many rows merged, were rejected, and had a boundary that is not used."""
    source_of = {name: source for source, names in SOURCES.items() for name in names}
    areas: dict[str, Expected] = {}
    seen: set[tuple[str, str]] = set()
    merged_rows = rejected = unused = 0
    for file, position, code, name, side, attributes in sorted(rows, key=lambda row: (FILES.index(row[0]), row[1])):
        if (source_of[file], code) in seen:
            rejected += 1
            continue
        seen.add((source_of[file], code))
        known = areas.get(code)
        if known is None:
            areas[code] = Expected(name, dict(attributes), (file, position), side)
            continue
        merged_rows += 1
        unused += side is not None and known.side is not None
        known.name = known.name if known.name is not None else name
        known.attributes = {**attributes, **known.attributes}
        known.side = known.side if known.side is not None else side
    return areas, merged_rows, rejected, unused


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(ROWS, max_size=9), data=st.data())
def test_the_merge_follows_its_rules_for_any_rows_in_any_order(
    database: Database, sql: Sql, drawn: list[Any], data: st.DataObject
) -> None:
    rows = [(file, place, *rest) for place, (file, *rest) in enumerate(drawn, start=1)]
    areas, merged_rows, rejected, unused = expected_of(rows)
    files: dict[str, list[StagedArea]] = {}
    for file, position, code, name, side, attributes in data.draw(st.permutations(rows)):
        wkb = None if side is None else square(position, 0, side)
        files.setdefault(file, []).append(an_area(position, code, wkb, name=name, attributes=attributes))
    fence, counts = merged(database, files)
    found = table(sql, "release_area", "code, name, attributes, artifact, position, area_number")
    assert {row["code"]: (row["name"], row["attributes"], (row["artifact"], row["position"])) for row in found} == {
        code: (area.name, area.attributes, area.position) for code, area in areas.items()
    }
    assert [row["area_number"] for row in found] == list(range(1, len(areas) + 1))
    sides = [area.side for _, area in sorted(areas.items()) if area.side is not None]
    assert [
        row["side"] for row in table(sql, "boundary", "area_number, round(sqrt(ST_Area(geom)))::int as side")
    ] == sides
    assert counts == MergeCounts(
        areas=len(areas), boundaries=len(sides), repaired=0, rejected=rejected, merged=merged_rows,
        boundaries_unused=unused,
    )  # fmt: skip
    assert len(rows) == counts.areas + counts.merged + counts.rejected, "nothing is lost silently"
    Runs(database).fail(fence, RunError("normalizing", "Over", "the next example begins"))
    sql.execute("truncate import_run, import_reject, release cascade")
