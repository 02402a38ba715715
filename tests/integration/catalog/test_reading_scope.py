"""Which releases and areas a question is put to: the same filters for every question."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from geogenius.catalog import AreaMatch, Clues, Hierarchy, Lookup, MatchMethod, Places, Publications, Scope
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from geogenius.domain.errors import Conflict, InvalidRequest
from geogenius.domain.run import Fence, ReleaseId, RunState
from geogenius.library import Context
from tests.support.catalog import an_area, completed, driven, published, square
from tests.support.databases import READER, PostgresCluster
from tests.support.reading import Sql, add_code, add_name, an_atlas, key, relate, release_of, whole

EU, DE, BE, MITTE = key("EU", "continent"), key("DE"), key("BE", "state"), key("MITTE", "county")
SQUARE = {"type": "Polygon", "coordinates": [[[10, 50], [11, 50], [11, 51], [10, 51], [10, 50]]]}
AREAS = [
    an_area(1, "EU", None, area_type="continent", name=None),
    an_area(2, "DE", square(10, 50, 2), name="Here"),
    an_area(3, "BE", square(10, 50, 1), area_type="state", name="Hereabout"),
    an_area(4, "MITTE", None, area_type="county", name=None),
]

Ask = Callable[[Database, Scope], list[AreaMatch]]
QUESTIONS: Mapping[str, Ask] = {
    "point": lambda reader, scope: Places(reader).for_point(10.5, 50.5, scope),
    "polygon": lambda reader, scope: Places(reader).for_geometry(SQUARE, scope),
    "radius": lambda reader, scope: Places(reader).near(9.9, 50.5, 20_000, scope),
    "code": lambda reader, scope: Lookup(reader).by_code("post", "1", scope),
    "name": lambda reader, scope: Lookup(reader).search("Here", scope, min_score=0.1),
    "children": lambda reader, scope: Hierarchy(reader).children_of(EU, scope),
    "ancestors": lambda reader, scope: Hierarchy(reader).ancestors_of(MITTE, scope),
    "related": lambda reader, scope: Hierarchy(reader).related(EU, scope),
    "resolve by containment": lambda reader, scope: Lookup(reader).resolve(Clues(10.5, 50.5), scope),
    "resolve by code": lambda reader, scope: Lookup(reader).resolve(Clues(code_type="post", code_value="1"), scope),
    "resolve by proximity": lambda reader, scope: Lookup(reader).resolve(
        Clues(9.9, 50.5), scope, strategies=[MatchMethod.PROXIMITY]
    ),
}
"""Each of them finds the country DE and the state BE in every release of AREAS."""


def imported(database: Database, build: Callable[..., Any] = published, **changes: Any) -> ReleaseId:  # noqa: ANN401
    return release_of(database, build(database, an_atlas(**changes), areas=AREAS))


def indexing(database: Database, manifest: dict[str, Any], areas: Sequence[StagedArea]) -> Fence:
    return driven(database, RunState.INDEXING, manifest, areas)


def detailed(sql: Sql) -> None:
    """Writes codes and relations into all releases there are."""
    for area in (DE, BE):
        add_code(sql, area, "post", "1")
        add_name(sql, area, "Here", "mailing")
        relate(sql, EU, area)
        relate(sql, area, MITTE)


def answers(reader: Database, scope: Scope) -> dict[str, set[str]]:
    return {name: {whole(match) for match in ask(reader, scope)} for name, ask in QUESTIONS.items()}


def everywhere(*areas: str) -> dict[str, set[str]]:
    return {question: set(areas) for question in QUESTIONS}


def refusals(reader: Database, release: ReleaseId) -> set[str]:
    """Why questions to a release are refused."""
    reasons = set()
    for ask in QUESTIONS.values():
        with pytest.raises((InvalidRequest, Conflict)) as refused:
            ask(reader, Scope(release_id=release))
        reasons.add(refused.value.reason)
    return reasons


def test_collections_and_types_narrow_every_question(database: Database, reader: Database, sql: Sql) -> None:
    for collection in ("moon", "world"):
        imported(database, collection=collection)
    detailed(sql)
    moon, world = ([f"{collection}/r1/{area}" for area in (DE, BE)] for collection in ("moon", "world"))
    assert answers(reader, Scope()) == everywhere(*moon, *world)
    assert answers(reader, Scope(["moon", "world", "nowhere"])) == everywhere(*moon, *world)
    assert answers(reader, Scope(["moon"])) == everywhere(*moon)
    assert answers(reader, Scope(types=["state", "nonsense"])) == everywhere(moon[1], world[1])
    assert answers(reader, Scope(["world"], ["country"])) == everywhere(world[0])
    for nothing in (Scope([]), Scope(types=[]), Scope(["nowhere"]), Scope(types=["nonsense"])):
        assert answers(reader, nothing) == everywhere()


def test_areas_that_are_no_more_answer_only_if_wanted(database: Database, reader: Database, sql: Sql) -> None:
    for collection in ("moon", "world"):
        imported(database, collection=collection)
    detailed(sql)
    Publications(database).retire_area("world", DE, "iso:country:NEW")
    rest = [f"moon/r1/{DE}", f"moon/r1/{BE}", f"world/r1/{BE}"]
    assert answers(reader, Scope()) == everywhere(*rest)
    assert answers(reader, Scope(include_retired=True)) == everywhere(*rest, f"world/r1/{DE}")
    for name, ask in QUESTIONS.items():
        told = {whole(match): match for match in ask(reader, Scope(include_retired=True))}
        gone = told.pop(f"world/r1/{DE}")
        assert gone.retired_at is not None, name
        assert gone.successor_key == "iso:country:NEW"
        assert {(match.retired_at, match.successor_key) for match in told.values()} == {(None, None)}
    Publications(database).restore_area("world", DE)
    assert answers(reader, Scope()) == everywhere(*rest, f"world/r1/{DE}")


def test_a_question_may_name_any_complete_release_published_or_not(
    database: Database, reader: Database, sql: Sql
) -> None:
    first, second = imported(database), imported(database, release="r2")
    third = imported(database, completed, release="r3")
    detailed(sql)
    assert answers(reader, Scope()) == everywhere(f"world/r2/{DE}", f"world/r2/{BE}")
    for name, release in (("r1", first), ("r2", second), ("r3", third)):
        assert answers(reader, Scope(release_id=release)) == everywhere(f"world/{name}/{DE}", f"world/{name}/{BE}")
    assert answers(reader, Scope(["moon"], release_id=first)) == everywhere()
    [match] = Places(reader).for_point(10.5, 50.5, Scope(types=["country"], release_id=first))
    assert match.release_id == first


def test_a_release_that_is_not_there_for_readers_is_refused_by_name(database: Database, reader: Database) -> None:
    retired, _ = imported(database), imported(database, release="r2")
    Publications(database).retire("world", 1)
    building = imported(database, indexing, release="r3")
    assert refusals(reader, ReleaseId(uuid4())) == {"UnknownRelease"}
    assert refusals(reader, building) == {"ReleaseIncomplete"}
    assert refusals(reader, retired) == {"ReleaseRetired"}


def test_questions_to_a_catalog_without_releases_find_nothing(reader: Database) -> None:
    assert answers(reader, Scope()) == everywhere()


def test_a_host_program_asks_through_its_context_with_the_rights_of_a_reader(
    postgres: PostgresCluster, dbname: str, database: Database, sql: Sql
) -> None:
    imported(database)
    detailed(sql)
    with Context.open(postgres.conninfo(dbname, READER)) as context:
        germany = Scope(types=["country"])
        [by_place] = context.places.for_point(10.5, 50.5, germany)
        [by_code] = context.lookup.by_code("iso", "DE")
        [above] = context.hierarchy.ancestors_of(DE)
    assert (by_place.area_key, by_code.area_key, above.area_key) == (DE, DE, EU)


def test_a_pinned_release_answers_the_same_after_another_one_is_published(
    database: Database, reader: Database, sql: Sql
) -> None:
    pinned = imported(database)
    detailed(sql)
    before = answers(reader, Scope(release_id=pinned))
    imported(database, release="r2")
    assert answers(reader, Scope(release_id=pinned)) == before == everywhere(f"world/r1/{DE}", f"world/r1/{BE}")


def test_an_area_without_a_boundary_is_found_by_everything_but_its_place(
    database: Database, reader: Database, sql: Sql
) -> None:
    areas = [an_area(1, "EU", None, area_type="continent"), an_area(2, "DE", None, name="Here")]
    published(database, an_atlas(), areas=areas)
    relate(sql, EU, DE)
    [match] = Lookup(reader).by_code("iso", "DE")
    assert match.centroid is None
    assert [m.code for m in Lookup(reader).search("here")] == ["DE"]
    assert [m.code for m in Hierarchy(reader).children_of(EU)] == ["DE"]
    for place in ("point", "polygon", "radius"):
        assert QUESTIONS[place](reader, Scope()) == []
