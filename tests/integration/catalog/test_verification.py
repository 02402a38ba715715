"""Verification: what is unsound, the optional gates of a run, and checking a complete release again."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.domain.errors import Conflict, InvalidRequest
from geogenius.domain.run import Fence, RunId, RunState
from tests.support.catalog import a_manifest, an_area, completed, driven, published, registered, square
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
KINDS = [
    {"key": "country", "rank": 10, "requires_geometry": True},
    {"key": "state", "rank": 20, "requires_geometry": False},
]
PLAIN = a_manifest(area_types=KINDS)


def states(count: int) -> list[Any]:
    return [an_area(number, f"S{number}", None, area_type="state") for number in range(1, count + 1)]


def countries(count: int) -> list[Any]:
    return [an_area(100 + number, f"C{number}", square(number * 2, 0)) for number in range(count)]


def with_gates(database: Database, release: str, gates: dict[str, Any], areas: list[Any]) -> Fence:
    """A run in `verifying` that must pass these gates."""
    claim = {"run_id": str(uuid4()), "owner": "maps/world", "runner_backend": "inline", "gates": gates}
    manifest = {**PLAIN, "release": release}
    with database.connection() as connection:
        connection.execute("select prepare_import(%s, %s)", [Jsonb(manifest), Jsonb(claim)])
    return driven(database, RunState.VERIFYING, areas=areas, run_id=RunId(claim["run_id"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gates", "failures"),
    [
        ({}, []),
        ({"minimum_areas": {"country": 2, "state": 3}}, []),
        (
            {"minimum_areas": {"country": 3, "state": 3, "zip": 1}},
            [
                "2 areas of type country, at least 3 are required",
                "0 areas of type zip, at least 1 are required",
            ],
        ),
        ({"required_types": ["country", "state"]}, []),
        ({"required_types": ["zip", "country"]}, ["no area of type zip, which is required"]),
        ({"max_shrink_percent": 0}, []),
    ],
)
def test_a_run_must_pass_its_own_gates(database: Database, gates: dict[str, Any], failures: list[str]) -> None:
    fence = with_gates(database, "r1", gates, [*countries(2), *states(3)])
    report = Areas(database).verify(fence)
    assert (report.ok, sorted(report.failures)) == (not failures, sorted(failures))
    assert (report.area_count, report.boundary_count) == (5, 2)


@pytest.mark.parametrize(
    ("percent", "counts", "failing"),
    [
        (20, (10, 10), []),
        (20, (8, 8), []),
        (20, (10, 7), ["state"]),
        (20, (7, 7), ["country", "state"]),
        (0, (10, 9), ["state"]),
        (0.5, (10, 10), []),
        (100, (1, 0), []),
        (50, (11, 0), ["state"]),
    ],
)
def test_a_release_shrinks_no_more_than_allowed_against_the_published_one(
    database: Database, percent: float, counts: tuple[int, int], failing: list[str]
) -> None:
    published(database, PLAIN, areas=[*countries(10), *states(10)])
    completed(database, {**PLAIN, "release": "r2"}, areas=countries(3))  # not published, so not compared with
    areas = [*countries(counts[0]), *states(counts[1])]
    report = Areas(database).verify(with_gates(database, "r3", {"max_shrink_percent": percent}, areas))
    assert [failure.split(" of type ")[1].split(",")[0] for failure in sorted(report.failures)] == failing


def test_a_run_that_does_not_pass_its_gates_cannot_complete(database: Database) -> None:
    fence = with_gates(database, "r1", {"required_types": ["state"]}, countries(1))
    Areas(database).verify(fence)
    with pytest.raises(InvalidRequest) as refused:
        Executions(database).complete(fence, {})
    assert refused.value.reason == "NotVerified"


STRAYS = {
    "boundary": "insert into {} select collection_key, release_id, 99, geom, false, null, false from {} limit 1",
    "boundary_part": "insert into {} select %s, %s, 99, ST_MakePoint(0, 0)",
    "area_name": "insert into {} values (%s, %s, 99, 'x', 'alias', null)",
    "area_code": "insert into {} values (%s, %s, 99, 'fips', '1')",
    "relation": "insert into {} values (%s, %s, 1, 99, 'contains', null, null, null)",
}


@pytest.mark.parametrize("table", STRAYS)
def test_rows_of_no_area_are_found_before_completion(database: Database, sql: Sql, table: str) -> None:
    fence = driven(database, RunState.VERIFYING)
    row = sql.execute("select release_table(%s, id) as leaf, id from release", [table]).fetchall()[0]
    statement = STRAYS[table].replace("{}", row["leaf"])
    sql.execute(statement.encode(), ["world", row["id"]] if "%s" in statement else None)
    report = Areas(database).verify(fence)
    number = "child_number" if table == "relation" else "area_number"
    assert report.failures == (f"1 rows of {table} have a {number} that no area has",)


def again(database: Database, release: object) -> Any:  # noqa: ANN401  a document
    with database.connection() as connection:
        return connection.execute("select verify_release(%s) as report", [release]).fetchall()[0]["report"]


def test_a_complete_release_is_checked_again_and_damage_is_found(database: Database, sql: Sql) -> None:
    fence = published(database)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    before = digest(sql)
    assert again(database, run.release_id) == {
        "ok": True, "failures": [], "area_count": 2, "boundary_count": 2, "areas_by_type": {"country": 2},
    }  # fmt: skip
    assert digest(sql) == before
    sql.execute("delete from boundary where area_number = 1")
    assert again(database, run.release_id)["failures"] == ["1 areas lack the boundary that their type requires"]


def test_what_is_not_complete_or_not_there_cannot_be_checked_again(database: Database) -> None:
    run_id = registered(database)
    run = Runs(database).get(run_id)
    assert run is not None
    with pytest.raises(Conflict) as refused:
        again(database, run.release_id)
    assert refused.value.reason == "ReleaseIncomplete"
    for nothing in (run_id, None):
        with pytest.raises(InvalidRequest) as unknown:
            again(database, nothing)
        assert unknown.value.reason == "UnknownRelease"
