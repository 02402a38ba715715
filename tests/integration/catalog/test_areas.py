"""From staged rows to the tables of a release: nothing is lost silently."""

import re
from typing import Any

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, MergeCounts, Runs, StoredReject
from geogenius.db import Database
from geogenius.domain.area import Reject, StagedArea
from geogenius.domain.errors import DatabaseUnavailable, DataRefused, LeaseLost
from geogenius.domain.run import Fence, RunError, RunState
from tests.support.catalog import (
    BOWTIE,
    GERMANY_AND_FRANCE,
    NEEDLE,
    a_manifest,
    a_source,
    an_area,
    an_artifact,
    driven,
    polygon_wkb,
    square,
)

Sql = psycopg.Connection[psycopg.rows.DictRow]
FILE = "countries.geojson"
EMPTY = polygon_wkb([])[:9].replace(b"\x01\x00\x00\x00", b"\x00\x00\x00\x00")
OPTIONAL_GEOMETRY = a_manifest(area_types=[{"key": "country", "rank": 10, "requires_geometry": False}])


def table(sql: Sql, parent: str, columns: str) -> list[dict[str, Any]]:
    """Rows of the only release, found where they stand."""
    name = sql.execute("select release_table(%s, id) as name from release", [parent]).fetchall()[0]["name"]
    return sql.execute(f"select {columns} from {name} order by area_number".encode()).fetchall()


def merged(database: Database, *areas: StagedArea, manifest: dict[str, Any] | None = None) -> tuple[Fence, MergeCounts]:
    fence = driven(database, RunState.NORMALIZING, manifest, areas=areas)
    return fence, Areas(database).merge(fence, len(areas))


def test_plain_wkb_is_stored_in_wgs_84(database: Database, sql: Sql) -> None:
    merged(database, an_area(1, "DE", square(10, 50)))
    assert table(sql, "boundary", "ST_AsEWKT(geom) as geom, repaired, repair_reason") == [
        {"geom": "SRID=4326;MULTIPOLYGON(((10 50,11 50,11 51,10 51,10 50)))", "repaired": False, "repair_reason": None}
    ]


def test_areas_are_numbered_by_key_and_keep_everything(database: Database, sql: Sql) -> None:
    attributes = {"größe": [1, None, {"a": "b'\\"}], "leer": ""}
    _, counts = merged(
        database,
        an_area(7, "fr", square(2, 46), name=None, attributes={}),
        an_area(9, "Z", square(3, 46)),
        an_area(12, "DE", square(10, 50), name="Deutschland", attributes=attributes),
    )
    assert counts == MergeCounts(areas=3, boundaries=3, repaired=0, rejected=0)
    columns = "area_number, area_key, authority, area_type, code, name, attributes, artifact, position, collection_key"
    first, *rest = table(sql, "release_area", columns)
    assert first == {
        "area_number": 1, "area_key": "iso:country:DE", "authority": "iso", "area_type": "country", "code": "DE",
        "name": "Deutschland", "attributes": attributes, "artifact": FILE, "position": 12, "collection_key": "world",
    }  # fmt: skip
    assert [(row["area_key"], row["name"]) for row in rest] == [
        ("iso:country:Z", "Country Z"),
        ("iso:country:fr", None),
    ]


def test_the_centroid_is_a_point_on_the_surface(database: Database, sql: Sql) -> None:
    horseshoe = polygon_wkb([(0, 0), (9, 0), (9, 9), (8, 9), (8, 1), (1, 1), (1, 9), (0, 9), (0, 0)])
    merged(database, an_area(1, "DE", horseshoe), an_area(2, "XX", None), manifest=OPTIONAL_GEOMETRY)
    inside = "centroid is null as missing, ST_Covers(ST_GeomFromWKB(%s, 4326), centroid::geometry) as inside"
    literal = psycopg.sql.Literal(horseshoe).as_string(sql)
    assert table(sql, "release_area", inside.replace("%s", literal)) == [
        {"missing": False, "inside": True}, {"missing": True, "inside": None},
    ]  # fmt: skip


def test_the_first_position_of_a_code_is_kept_and_each_later_one_is_a_reject(database: Database, sql: Sql) -> None:
    fence, counts = merged(
        database,
        an_area(8, "DE", square(3, 3), name="third"),
        an_area(2, "DE", square(1, 1), name="first"),
        an_area(5, "DE", square(2, 2), name="second"),
        an_area(6, "FR", square(2, 46)),
    )
    assert counts == MergeCounts(areas=2, boundaries=2, repaired=0, rejected=2)
    assert table(sql, "release_area", "code, name") == [{"code": "DE", "name": "first"},
                                                        {"code": "FR", "name": "Country FR"}]  # fmt: skip
    sentence = f"area iso:country:DE was read before at position 2 of {FILE}"
    assert Areas(database).rejects(fence.run_id, 10) == [
        StoredReject(FILE, 5, None, "duplicate_code", sentence),
        StoredReject(FILE, 8, None, "duplicate_code", sentence),
    ]
    assert len(Areas(database).rejects(fence.run_id, 10)) == 2
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert run.rejected == 2


def test_a_geometry_is_repaired_with_its_reason_or_rejected(database: Database, sql: Sql) -> None:
    fence, counts = merged(
        database,
        an_area(1, "BOW", BOWTIE),
        an_area(2, "NEEDLE", NEEDLE),
        an_area(3, "EMPTY", EMPTY),
        an_area(4, "GOOD", square(5, 5)),
        an_area(5, "NONE", None),
        manifest=OPTIONAL_GEOMETRY,
    )
    assert counts == MergeCounts(areas=3, boundaries=2, repaired=1, rejected=2)
    columns = "repaired, repair_reason, ST_IsValid(geom) as valid, ST_NumGeometries(geom) as parts"
    assert table(sql, "boundary", columns) == [
        {"repaired": True, "repair_reason": "Self-intersection[0.5 0.5]", "valid": True, "parts": 2},
        {"repaired": False, "repair_reason": None, "valid": True, "parts": 1},
    ]
    assert [(row.position, row.reason, row.detail) for row in Areas(database).rejects(fence.run_id, 10)] == [
        (2, "empty_geometry", "no polygon is left: Too few points in geometry component[0 0]"),
        (3, "empty_geometry", "no polygon is left: Empty geometry"),
    ]


def test_a_row_without_a_usable_geometry_does_not_take_the_code_of_a_good_one(database: Database, sql: Sql) -> None:
    merged(database, an_area(1, "DE", NEEDLE), an_area(2, "DE", square(10, 50)))
    assert table(sql, "release_area", "position") == [{"position": 2}]


def test_several_areas_of_one_row_are_all_kept(database: Database) -> None:
    _, counts = merged(database, an_area(1, "DE", square(1, 1)), an_area(1, "FR", square(2, 2)))
    assert counts == MergeCounts(areas=2, boundaries=2, repaired=0, rejected=0)


def test_merging_again_gives_the_same(database: Database) -> None:
    fence, counts = merged(database, an_area(1, "DE", square(1, 1)), an_area(2, "DE", BOWTIE), an_area(3, "B", BOWTIE))
    assert Areas(database).merge(fence, 3) == counts == MergeCounts(areas=2, boundaries=2, repaired=1, rejected=1)


def test_rejects_of_the_reader_are_kept_with_the_page_and_cut(database: Database) -> None:
    fence = driven(database, RunState.STAGING)
    Areas(database).create_staging(fence)
    rejects = [Reject(4, 812, "blank_code", "x" * 300), Reject(3, None, "not_a_polygon", "a point")]
    for _ in range(2):
        Areas(database).stage(fence, FILE, [], rejects)
    assert Areas(database).rejects(fence.run_id, 10) == [
        StoredReject(FILE, 3, None, "not_a_polygon", "a point"),
        StoredReject(FILE, 4, 812, "blank_code", "x" * 200),
    ]
    assert len(Areas(database).rejects(fence.run_id, 1)) == 1


def test_a_page_is_written_whole_or_not_at_all(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.STAGING)
    Areas(database).create_staging(fence)
    bad = an_area(2, "NU\x00L", square(1, 1))
    with pytest.raises(DataRefused):
        Areas(database).stage(fence, FILE, [*GERMANY_AND_FRANCE, bad], [Reject(3, None, "blank_code", "")])
    assert len(Areas(database).rejects(fence.run_id, 10)) == 0
    Areas(database).stage(fence, FILE, GERMANY_AND_FRANCE, [])
    staged = sql.execute("select staging_table(id) as name from import_run").fetchall()[0]["name"]
    assert sql.execute(f"select count(*) as rows from {staged}".encode()).fetchone() == {"rows": 2}


def test_creating_the_staging_table_again_empties_it(database: Database) -> None:
    fence = driven(database, RunState.STAGING)
    for _ in range(2):
        Areas(database).create_staging(fence)
        Areas(database).stage(fence, FILE, GERMANY_AND_FRANCE, [])
    Executions(database).advance(fence, RunState.NORMALIZING, {})
    assert Areas(database).merge(fence, 2) == MergeCounts(areas=2, boundaries=2, repaired=0, rejected=0)


def test_staged_areas_that_are_gone_are_noticed(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.NORMALIZING)
    name = sql.execute("select staging_table(id) as name from import_run").fetchall()[0]["name"]
    sql.execute(f"delete from {name} where position = 1".encode())
    with pytest.raises(DatabaseUnavailable, match="1 of 2 staged rows are left") as refused:
        Areas(database).merge(fence, 2)
    assert refused.value.reason == "StagingLost"


@pytest.mark.parametrize("phase", [RunState.NORMALIZING, RunState.RELATING, RunState.INDEXING, RunState.VERIFYING])
def test_a_failure_leaves_no_table_and_keeps_the_rejects(database: Database, sql: Sql, phase: RunState) -> None:
    duplicates = [an_area(1, "DE", square(1, 1)), an_area(2, "DE", square(1, 1))]
    fence = driven(database, phase, areas=duplicates)
    Runs(database).fail(fence, RunError(phase, "DataRefused", "duplicates"))
    left = "select relname from pg_class where relname ~ '^(staging|release_area|boundary)_[0-9a-f]{32}'"
    assert sql.execute(left).fetchall() == []
    assert len(Areas(database).rejects(fence.run_id, 10)) == (0 if phase is RunState.NORMALIZING else 1)
    with pytest.raises(LeaseLost):
        Areas(database).merge(fence, 2)


def test_indexes_stand_on_the_leaves_and_may_be_made_again(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.INDEXING)
    for _ in range(2):
        Areas(database).index(fence)
    rows = sql.execute("select indexdef from pg_indexes where indexdef ~ '_[0-9a-f]{32} USING '").fetchall()
    found = sorted(re.sub(r".* ON \w+\.(\w+)_[0-9a-f]{32} USING ", r"\1 ", row["indexdef"]) for row in rows)
    assert found == [
        "area_code btree (area_number)",
        "area_code btree (code_type, code_value)",
        "area_name btree (area_number)",
        "area_name gin (name gin_trgm_ops)",
        "boundary btree (area_number)",
        "boundary gist (geom)",
        "boundary_part gist (geom)",
        "relation btree (child_number, parent_number)",
        "relation btree (parent_number, child_number)",
        "release_area btree (area_key)",
        "release_area btree (area_number)",
        "release_area gin (name gin_trgm_ops)",
        "release_area gist (centroid)",
    ]


def verify(database: Database, *areas: StagedArea, manifest: dict[str, Any] | None = None) -> list[str]:
    fence = driven(database, RunState.VERIFYING, manifest, areas=areas)
    report = Areas(database).verify(fence)
    assert report.ok == (not report.failures)
    if not report.ok:
        with pytest.raises(DataRefused) as refused:
            Executions(database).complete(fence, {})
        assert refused.value.reason == "NotVerified"
    return list(report.failures)


def test_a_good_release_passes_and_is_counted(database: Database) -> None:
    fence = driven(database, RunState.VERIFYING)
    report = Areas(database).verify(fence)
    assert (report.ok, report.failures, report.area_count, report.boundary_count) == (True, (), 2, 2)


def test_a_release_without_areas_does_not_pass(database: Database) -> None:
    assert verify(database) == ["the release has no areas"]


def test_an_area_whose_type_requires_a_geometry_does_not_pass_without(database: Database) -> None:
    areas = [an_area(1, "DE", None), an_area(2, "FR", square(1, 1)), an_area(3, "IT", None)]
    assert verify(database, *areas) == ["2 areas lack the boundary that their type requires"]


def test_an_area_whose_type_requires_none_passes_without(database: Database) -> None:
    assert verify(database, an_area(1, "DE", None), manifest=OPTIONAL_GEOMETRY) == []


def test_an_area_of_an_undeclared_type_or_authority_does_not_pass(database: Database) -> None:
    strange = [an_area(1, "A", square(1, 1), area_type="moon"), an_area(2, "B", square(1, 1), authority="nasa")]
    assert verify(database, *strange) == [
        "1 areas are of a type that the release does not declare",
        "1 areas are of an authority that the release does not declare",
    ]


def test_an_invalid_boundary_does_not_pass(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.VERIFYING)
    name = sql.execute("select release_table('boundary', id) as name from release").fetchall()[0]["name"]
    broken = psycopg.sql.SQL("update {} set geom = ST_GeomFromWKB({}, 4326) where area_number = 1")
    sql.execute(broken.format(psycopg.sql.Identifier(name), psycopg.sql.Literal(BOWTIE)))
    assert Areas(database).verify(fence).failures == ("1 boundaries are not valid",)


def test_only_the_reviewed_file_is_kept_as_seen(database: Database) -> None:
    manifest = a_manifest(sources=[a_source(artifacts=[an_artifact(sha256="cd" * 32, bytes=7)])])
    fence = driven(database, RunState.DOWNLOADING, manifest)
    runs = Runs(database)
    file = runs.artifacts(fence.run_id)[0]
    for sha, size in [("ab" * 32, 7), ("cd" * 32, 8)]:
        with pytest.raises(DataRefused, match="expected 7 bytes with sha256 cdcd") as refused:
            Executions(database).record_artifact(fence, file.artifact_id, sha, size)
        assert refused.value.reason == "ArtifactMismatch"
    assert not runs.artifacts(fence.run_id)[0].observed
    for _ in range(2):
        Executions(database).record_artifact(fence, file.artifact_id, "CD" * 32, 7)
    assert runs.artifacts(fence.run_id)[0].observed
