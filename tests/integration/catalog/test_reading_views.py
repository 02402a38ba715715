"""The views for readers: what they show, and that planning opens no table of another collection or release."""

from typing import Any

import pytest

from geogenius.catalog import Publications
from geogenius.db import Database
from geogenius.domain.run import RunState
from tests.support.catalog import a_manifest, an_area, completed, driven, published, square
from tests.support.reading import Sql, add_code, add_name, an_atlas, bare, key, read, relate, release_of

VIEWS = [
    f"{scope}_{what}"
    for scope in ("release", "published")
    for what in ("areas", "boundaries", "area_names", "area_codes", "relations")
]
FOREIGN = """
select release_table(parent, r.id) as name
from release r join collection c on c.id = r.collection_id, unnest(release_parents()) parent
where c.key <> 'moon' or r.release_key <> %s
"""
ROWS = {"areas": 2, "boundaries": 2, "area_names": 3, "area_codes": 3, "relations": 1}


def shown(reader: Database, question: str) -> list[dict[str, Any]]:
    with reader.connection() as connection:
        return connection.execute(question.encode()).fetchall()


def plan(reader: Database, question: str) -> str:
    return "\n".join(row["QUERY PLAN"] for row in shown(reader, f"explain (costs off) {question}"))


def releases_in(reader: Database, view: str) -> list[str]:
    rows = shown(reader, f"select distinct collection_key || '/' || release_key as release from {view} order by 1")
    return [row["release"] for row in rows]


@pytest.fixture
def moon(database: Database, sql: Sql) -> dict[str, str]:
    """The releases of the moon by their names (r2 is published) beside two other collections."""
    for collection in ("world", "mars", "moon"):
        release = release_of(database, published(database, a_manifest(collection=collection)))
    second = release_of(database, published(database, a_manifest(collection="moon", release="r2")))
    add_name(sql, key("DE"), "Allemagne", locale="fr")
    add_code(sql, key("DE"), "fips", "GM")
    relate(sql, key("DE"), key("FR"), "overlaps", (5, 0.5, 0.25))
    return {"r1": str(release), "r2": str(second)}


@pytest.mark.parametrize("view", VIEWS)
def test_a_collection_or_a_release_is_found_while_planning(
    reader: Database, sql: Sql, moon: dict[str, str], view: str
) -> None:
    scope, _, what = view.partition("_")
    question = f"select * from {view} where collection_key = 'moon'"
    everything = shown(reader, question)
    others = {row["name"] for row in sql.execute(FOREIGN, ["r2" if scope == "published" else "r1"])}
    elsewhere = {name for name in others if name[-32:] not in {release.replace("-", "") for release in moon.values()}}
    assert not [name for name in elsewhere if name in plan(reader, question)]
    assert len(everything) == ROWS[what] * (1 if scope == "published" else 2)

    release = "r2" if scope == "published" else "r1"
    question = f"select * from {view} where release_id = '{moon[release]}'"
    expected = [row for row in everything if row["release_key"] == release]
    assert sorted(map(str, shown(reader, question))) == sorted(map(str, expected))
    assert not [name for name in others if name in plan(reader, question)]


@pytest.mark.parametrize("view", VIEWS)
def test_views_begin_with_the_same_columns_and_come_in_pairs(reader: Database, view: str) -> None:
    with reader.connection() as connection:
        one = connection.execute(f"select * from {view}".encode()).description or []
        other = connection.execute(f"select * from release_{view.partition('_')[2]}".encode()).description or []
    names = [column.name for column in one]
    assert names == [column.name for column in other]
    assert names[:3] == ["collection_key", "release_id", "release_key"]


def test_published_views_show_what_the_pointer_names_and_release_views_all_that_is_complete(
    database: Database, reader: Database
) -> None:
    areas = [an_area(1, "DE", square(10, 50))]
    for release in ("old", "r1", "r2"):
        read(database, areas, release=release)
    Publications(database).retire("world", 2)
    completed(database, an_atlas(release="ready"), areas=areas)
    driven(database, RunState.INDEXING, an_atlas(release="building"), areas=areas)
    for what in ("areas", "boundaries", "area_names", "area_codes"):
        assert releases_in(reader, f"published_{what}") == ["world/r2"]
        assert releases_in(reader, f"release_{what}") == ["world/r1", "world/r2", "world/ready"]
    Publications(database).rollback("world")
    assert releases_in(reader, "published_areas") == ["world/r1"]


def test_areas_are_shown_with_their_succession_and_their_rank(database: Database, reader: Database) -> None:
    read(database, bare("DE", "FR"))
    Publications(database).retire_area("world", key("DE"), key("EU"))
    question = "select area_key, type_rank, name, retired_at is null as here, successor_key from {} order by area_key"
    for view in ("published_areas", "release_areas"):
        assert [tuple(row.values()) for row in shown(reader, question.format(view))] == [
            (key("DE"), 10, "DE", False, key("EU")),
            (key("FR"), 10, "FR", True, None),
        ]


def test_names_and_codes_are_shown_with_the_official_and_the_own_one(
    database: Database, reader: Database, sql: Sql
) -> None:
    read(database, [an_area(1, "DE", None, name="Deutschland"), an_area(2, "XX", None, name=None)])
    add_name(sql, key("DE"), "Allemagne", locale="fr")
    add_name(sql, key("XX"), "Nobody's land")
    add_code(sql, key("DE"), "fips", "GM")
    names = shown(reader, "select area_key, name, kind, locale from published_area_names order by area_key, name desc")
    assert [tuple(row.values()) for row in names] == [
        (key("DE"), "Deutschland", "official", None),
        (key("DE"), "Allemagne", "alias", "fr"),
        (key("XX"), "Nobody's land", "alias", None),
    ]
    codes = shown(reader, "select area_key, code_type, code_value from published_area_codes order by 1, 2")
    assert [tuple(row.values()) for row in codes] == [
        (key("DE"), "fips", "GM"),
        (key("DE"), "iso", "DE"),
        (key("XX"), "iso", "XX"),
    ]


def test_boundaries_are_shown_whole_and_with_what_was_repaired(database: Database, reader: Database) -> None:
    read(database, [an_area(1, "DE", square(10, 50)), *bare("FR")])
    question = "select area_key, ST_AsText(geom) as geom, repaired, repair_reason from published_boundaries"
    assert [tuple(row.values()) for row in shown(reader, question)] == [
        (key("DE"), "MULTIPOLYGON(((10 50,11 50,11 51,10 51,10 50)))", False, None)
    ]


def test_relations_are_shown_by_the_keys_of_their_areas(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare("A", "B", "C"))
    relate(sql, key("A"), key("B"))
    relate(sql, key("A"), key("C"), "overlaps", (5, 0.5, 0.25))
    question = """
        select parent_area_key, child_area_key, relation_type, intersection_area_m2, parent_coverage, child_coverage
        from published_relations order by child_area_key
    """
    assert [tuple(row.values()) for row in shown(reader, question)] == [
        (key("A"), key("B"), "contains", None, None, None),
        (key("A"), key("C"), "overlaps", 5, 0.5, 0.25),
    ]


def test_a_collection_of_codes_alone_is_shown_without_boundaries(database: Database, reader: Database) -> None:
    release = read(database, bare("DE", "FR"))
    report = Publications(database).verify(release)
    assert (report.ok, report.area_count, report.boundary_count) == (True, 2, 0)
    assert len(shown(reader, "select from published_areas")) == 2
    assert shown(reader, "select from published_boundaries") == []


def test_readers_cannot_write_through_the_views(database: Database, sql: Sql) -> None:
    published(database)
    for view in VIEWS:
        granted = sql.execute(
            "select privilege_type from information_schema.role_table_grants"
            " where grantee = 'geogenius_reader' and table_name = %s",
            [view],
        ).fetchall()
        assert granted == [{"privilege_type": "SELECT"}]
