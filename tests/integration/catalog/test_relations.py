"""Relations: what sources assert, what boundaries measure, and how the two live side by side."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, RelateCounts
from geogenius.db import Database
from geogenius.domain.area import ParentLink, RelationType, StagedArea
from geogenius.domain.errors import Conflict, DatabaseUnavailable, DataRefused, LeaseLost
from geogenius.domain.run import ExecutorId, Fence, RunId, RunState
from tests.support.catalog import a_manifest, an_area, driven, polygon_wkb, published, square

Sql = psycopg.Connection[psycopg.rows.DictRow]
KINDS = [
    {"key": "country", "rank": 10, "requires_geometry": False},
    {"key": "state", "rank": 20, "requires_geometry": False},
    {"key": "city", "rank": 30, "requires_geometry": False},
]
MANIFEST = a_manifest(area_types=KINDS)
EDGES = """
select p.code as parent, c.code as child, r.relation_type as kind, round(r.intersection_area_m2) as m2,
    round(r.parent_coverage::numeric, 3)::float8 as of_parent, round(r.child_coverage::numeric, 3)::float8 as of_child
from {relation} r join {release_area} p on p.area_number = r.parent_number
join {release_area} c on c.area_number = r.child_number order by 1, 2
"""


def country(code: str, wkb: bytes | None, position: int = 1, **more: Any) -> StagedArea:  # noqa: ANN401
    return an_area(position, code, wkb, **more)


def state(code: str, wkb: bytes | None, *parents: ParentLink, position: int = 2) -> StagedArea:
    return an_area(position, code, wkb, area_type="state", parents=parents)


def under(code: str, kind: RelationType = RelationType.CONTAINS) -> ParentLink:
    return ParentLink(f"iso:country:{code}", kind)


def relating(database: Database, areas: Sequence[StagedArea]) -> Fence:
    return driven(database, RunState.RELATING, MANIFEST, areas=areas)


def related(database: Database, areas: Sequence[StagedArea], *, measured: bool = True) -> RelateCounts:
    return Areas(database).relate(relating(database, areas), measured=measured)


def edges(sql: Sql) -> list[tuple[Any, ...]]:
    row = sql.execute("select id from release").fetchall()[0]
    question = EDGES
    for parent in ("relation", "release_area"):
        question = question.replace(f"{{{parent}}}", f"{parent}_{row['id'].hex}")
    return [tuple(edge.values()) for edge in sql.execute(question.encode())]


def test_boundaries_are_measured_between_ranks_and_classified_by_the_share_of_the_child(
    database: Database, sql: Sql
) -> None:
    counts = related(
        database,
        [
            country("A", square(0, 0, 10)),
            country("B", square(10, 0, 10)),
            state("INSIDE", square(1, 1, 1), position=3),
            state("EDGE", square(9, 1, 1), position=4),
            state("MOST", square(9.4, 3, 1), position=5),
            state("LITTLE", square(9.6, 5, 1), position=6),
            state("FAR", square(50, 50, 1), position=7),
        ],
    )
    found = {(parent, child): (kind, of_child) for parent, child, kind, _, _, of_child in edges(sql)}
    assert found == {
        ("A", "INSIDE"): ("contains", 1.0),
        ("A", "EDGE"): ("contains", 1.0),
        ("A", "MOST"): ("mostly_contains", 0.6),
        ("B", "MOST"): ("overlaps", 0.4),
        ("A", "LITTLE"): ("overlaps", 0.4),
        ("B", "LITTLE"): ("mostly_contains", 0.6),
    }, "areas of one rank, and those that only touch, are no pairs"
    assert counts == RelateCounts(asserted=0, measured=6)


def test_measures_are_square_metres_on_the_ellipsoid_and_shares(database: Database, sql: Sql) -> None:
    related(database, [country("A", square(0, 0, 2)), state("S", square(1, 0, 2))])
    [(_, _, _, m2, of_parent, of_child)] = edges(sql)
    row = sql.execute("select ST_Area(ST_MakeEnvelope(1, 0, 2, 2, 4326)::geography) as m2").fetchall()[0]
    assert abs(float(m2) - row["m2"]) < 1e-4 * row["m2"]
    assert (of_parent, of_child) == (0.5, 0.5)


def test_a_parent_of_many_vertices_is_measured_by_its_pieces(database: Database, sql: Sql) -> None:
    steps = [(x / 100, 10 + (x % 2) / 100) for x in range(1000, -1, -1)]
    comb = polygon_wkb([(0, 0), (10, 0), *steps, (0, 0)])
    related(database, [country("A", comb), state("S", square(1, 1, 8)), state("T", square(8, 8, 4), position=3)])
    found = {child: (kind, of_child) for _, child, kind, _, _, of_child in edges(sql)}
    assert found["S"] == ("contains", 1.0)
    assert found["T"][0] == "overlaps"
    assert abs(found["T"][1] - 0.251) < 0.003


def test_asserted_edges_stay_and_measured_ones_fill_the_rest(database: Database, sql: Sql) -> None:
    counts = related(
        database,
        [
            country("A", square(0, 0, 10)),
            state("S", square(1, 1, 1), under("A", RelationType.OVERLAPS)),
            state("T", square(3, 3, 1), position=3),
            state("U", None, under("A"), position=4),
        ],
    )
    assert counts == RelateCounts(asserted=2, measured=1)
    assert [(child, kind, m2 is None) for _, child, kind, m2, *_ in edges(sql)] == [
        ("S", "overlaps", True),
        ("T", "contains", False),
        ("U", "contains", True),
    ]


def test_of_several_assertions_the_strongest_counts(database: Database, sql: Sql) -> None:
    kinds = (RelationType.OVERLAPS, RelationType.CONTAINS, RelationType.MOSTLY_CONTAINS)
    related(database, [country("A", None), state("S", None, *(under("A", kind) for kind in kinds))])
    assert [edge[:3] for edge in edges(sql)] == [("A", "S", "contains")]


def test_nothing_is_measured_where_nobody_wants_it_or_there_is_one_rank(database: Database, sql: Sql) -> None:
    assert related(database, [country("A", square(0, 0, 9)), state("S", square(1, 1))], measured=False).measured == 0
    one = a_manifest(collection="moon")
    fence = driven(database, RunState.RELATING, one, areas=[country("A", square(0, 0, 9)), country("B", square(1, 1))])
    assert Areas(database).relate(fence, measured=True) == RelateCounts(0, 0)
    assert sql.execute("select count(*) as many from relation").fetchall() == [{"many": 0}]


def test_relating_again_builds_the_same(database: Database, sql: Sql) -> None:
    fence = relating(database, [country("A", square(0, 0, 9)), state("S", square(1, 1), under("A")),
                                state("T", square(2, 2), position=3)])  # fmt: skip
    first = Areas(database).relate(fence, measured=True)
    before = edges(sql)
    assert Areas(database).relate(fence, measured=True) == first
    assert edges(sql) == before


def test_parents_that_are_no_areas_are_refused_with_the_first_five(database: Database) -> None:
    areas = [state(f"S{number}", None, under("NOWHERE"), position=number) for number in range(1, 8)]
    own = state("SELF", None, ParentLink("iso:state:SELF"), position=8)
    with pytest.raises(DataRefused) as refused:
        related(database, [*areas, own])
    assert refused.value.reason == "UnknownParent"
    message = str(refused.value)
    assert message.startswith("8 parents are no other areas of the release: iso:state:S1 -> iso:country:NOWHERE")
    assert "(countries.geojson position 5)" in message
    assert "S6" not in message


def test_rows_that_were_rejected_assert_nothing(database: Database, sql: Sql) -> None:
    related(database, [country("A", None), state("S", None, position=2), state("S", None, under("A"), position=3)])
    assert edges(sql) == []


def test_what_a_crash_took_from_the_staging_table_is_noticed(database: Database, sql: Sql) -> None:
    fence = relating(database, [country("A", None), state("S", None, under("A"))])
    sql.execute(f"truncate staging_{fence.run_id.hex}".encode())
    with pytest.raises(DatabaseUnavailable) as lost:
        Areas(database).relate(fence, measured=False)
    assert lost.value.reason == "StagingLost"


def test_relating_is_for_its_executor_in_its_phase(database: Database, sql: Sql) -> None:
    fence = relating(database, [country("A", None)])
    row = sql.execute("select release_id from import_run").fetchall()[0]
    for wrong in (
        Fence(fence.run_id, ExecutorId(uuid4())),
        Fence(RunId(row["release_id"]), fence.executor_id),
    ):
        with pytest.raises(LeaseLost):
            Areas(database).relate(wrong, measured=True)
    Executions(database).advance(fence, RunState.INDEXING, {})
    with pytest.raises(Conflict) as refused:
        Areas(database).relate(fence, measured=True)
    assert refused.value.reason == "WrongPhase"


def test_a_release_without_any_call_has_no_relations_and_is_sound(database: Database) -> None:
    """As an importer of 0.1 leaves it."""
    fence = relating(database, [country("A", square(0, 0)), state("S", square(0, 0), position=2)])
    for phase in (RunState.INDEXING, RunState.VERIFYING):
        Executions(database).advance(fence, phase, {})
        if phase is RunState.INDEXING:
            Areas(database).index(fence)
    assert Areas(database).verify(fence).ok


def test_relations_are_seen_with_the_release(database: Database, sql: Sql) -> None:
    published(database, MANIFEST, areas=[country("A", square(0, 0, 9)), state("S", square(1, 1))])
    question = "select parent_area_key, child_area_key, relation_type from published_relations"
    assert sql.execute(question).fetchall() == [
        {"parent_area_key": "iso:country:A", "child_area_key": "iso:state:S", "relation_type": "contains"}
    ]
