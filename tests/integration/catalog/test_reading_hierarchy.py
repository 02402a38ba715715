"""Questions about what lies below, above and beside an area, asked with the rights of a reader."""

from itertools import combinations, permutations, product

import pytest

from geogenius.catalog import Hierarchy, MatchMethod, Scope
from geogenius.db import Database
from geogenius.domain.errors import InvalidRequest
from tests.support.catalog import an_area
from tests.support.reading import Sql, bare, codes, key, read, relate

EU, DE, BE, MITTE = key("EU", "continent"), key("DE"), key("BE", "state"), key("MITTE", "county")
NODES = "ABCDEFGH"


@pytest.fixture
def hierarchy(database: Database, reader: Database, sql: Sql) -> Hierarchy:
    """EU contains DE and FR; DE mostly contains BE and overlaps MITTE; BE contains MITTE."""
    kinds = {"EU": "continent", "DE": "country", "FR": "country", "BE": "state", "MITTE": "county"}
    read(database, [an_area(n, code, None, area_type=kind) for n, (code, kind) in enumerate(kinds.items(), 1)])
    relate(sql, EU, DE)
    relate(sql, EU, key("FR"))
    relate(sql, DE, BE, "mostly_contains")
    relate(sql, DE, MITTE, "overlaps", (9e6, 0.25, 0.75))
    relate(sql, BE, MITTE)
    return Hierarchy(reader)


def test_children_are_one_step_below_unless_more_are_asked_for(hierarchy: Hierarchy) -> None:
    assert codes(hierarchy.children_of(EU)) == ["DE", "FR"]
    assert codes(hierarchy.children_of(EU, max_depth=2)) == ["DE", "FR", "BE", "MITTE"]
    assert codes(hierarchy.children_of(MITTE, max_depth=5)) == []
    [mitte] = [match for match in hierarchy.children_of(EU, max_depth=3) if match.code == "MITTE"]
    assert (mitte.depth, mitte.relation_type) == (2, "overlaps"), "the shortest way counts"
    assert mitte.match_method is MatchMethod.RELATION


def test_ancestors_are_the_other_way_round(hierarchy: Hierarchy) -> None:
    assert codes(hierarchy.ancestors_of(MITTE)) == ["DE", "BE"]
    found = hierarchy.ancestors_of(MITTE, max_depth=9)
    assert [(match.code, match.depth) for match in found] == [("DE", 1), ("BE", 1), ("EU", 2)]


def test_types_choose_what_is_found_and_not_the_way_to_it(hierarchy: Hierarchy) -> None:
    assert codes(hierarchy.children_of(EU, Scope(types=["county"]), max_depth=2)) == ["MITTE"]
    assert codes(hierarchy.ancestors_of(MITTE, Scope(types=["continent"]), max_depth=2)) == ["EU"]


def test_classifications_choose_the_way(hierarchy: Hierarchy) -> None:
    def below(*classes: str) -> list[tuple[str, int | None]]:
        found = hierarchy.children_of(EU, classifications=classes, max_depth=9)
        return [(match.code, match.depth) for match in found]

    assert below("contains") == [("DE", 1), ("FR", 1)]
    assert below("contains", "mostly_contains") == [("DE", 1), ("FR", 1), ("BE", 2), ("MITTE", 3)]
    assert below("overlaps") == below() == below("nonsense") == []
    assert codes(hierarchy.ancestors_of(MITTE, classifications=["contains"])) == ["BE"]


def test_related_areas_lie_on_both_sides_and_carry_what_was_measured(hierarchy: Hierarchy) -> None:
    assert [(match.code, match.depth) for match in hierarchy.related(DE)] == [("EU", -1), ("BE", 1), ("MITTE", 1)]
    [below] = hierarchy.related(DE, classifications=["overlaps"])
    assert (below.intersection_area_m2, below.coverage_of_input, below.coverage_of_area) == (9e6, 25, 75)
    [above] = hierarchy.related(MITTE, classifications=["overlaps"])
    assert (above.code, above.depth, above.coverage_of_input, above.coverage_of_area) == ("DE", -1, 75, 25)
    [asserted] = hierarchy.related(DE, classifications=["mostly_contains"])
    assert (asserted.code, asserted.intersection_area_m2, asserted.coverage_of_input) == ("BE", None, None)


def test_two_relations_of_two_areas_are_one_child_and_two_relatives(
    database: Database, reader: Database, sql: Sql
) -> None:
    read(database, bare("A", "B"))
    relate(sql, key("A"), key("B"))
    relate(sql, key("A"), key("B"), "overlaps", (1, 0.1, 0.1))
    assert codes(Hierarchy(reader).children_of(key("A"))) == ["B"]
    assert sorted(str(match.relation_type) for match in Hierarchy(reader).related(key("A"))) == ["contains", "overlaps"]


def test_a_cycle_ends_and_an_area_is_not_below_itself(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare("A", "B", "C"))
    for parent, child in ("AB", "BC", "CA"):
        relate(sql, key(parent), key(child))
    below = Hierarchy(reader).children_of(key("A"), max_depth=100)
    above = Hierarchy(reader).ancestors_of(key("A"), max_depth=100)
    assert [(match.code, match.depth) for match in below] == [("B", 1), ("C", 2)]
    assert [(match.code, match.depth) for match in above] == [("C", 1), ("B", 2)]


def test_a_dense_graph_gives_each_area_once_at_its_least_depth(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare(*NODES))
    for parent, child in permutations(NODES, 2):
        relate(sql, key(parent), key(child))
    found = Hierarchy(reader).children_of_many([key(code) for code in NODES], max_depth=10)
    for code, below in zip(NODES, found, strict=True):
        assert [(match.code, match.depth) for match in below] == [(other, 1) for other in NODES if other != code]


def test_many_ways_down_cost_no_more_than_the_areas_they_pass(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare(*(f"{layer}{place}" for layer, place in product("ABCDEFGH", range(8)))))
    for upper, lower in (pair for pair in combinations("ABCDEFGH", 2) if ord(pair[1]) == ord(pair[0]) + 1):
        for one, other in product(range(8), repeat=2):
            relate(sql, key(f"{upper}{one}"), key(f"{lower}{other}"))
    found = Hierarchy(reader).children_of(key("A0"), max_depth=10)  # 8 to the power of 7 ways
    assert [(match.code, match.depth) for match in found] == [
        (f"{layer}{place}", depth) for depth, layer in enumerate("BCDEFGH", 1) for place in range(8)
    ]


@pytest.mark.parametrize("max_depth", [0, -1, None])
def test_a_depth_below_one_is_refused(hierarchy: Hierarchy, max_depth: int) -> None:
    for ask in (hierarchy.children_of, hierarchy.ancestors_of):
        with pytest.raises(InvalidRequest) as refused:
            ask(EU, max_depth=max_depth)
        assert refused.value.reason == "BadDepth"


def test_several_areas_are_answered_in_their_order_and_those_without_relatives_by_an_empty_list(
    hierarchy: Hierarchy,
) -> None:
    seeds = [BE, "iso:country:nowhere", EU, BE, MITTE]
    assert [codes(found) for found in hierarchy.children_of_many(seeds)] == [["MITTE"], [], ["DE", "FR"], ["MITTE"], []]
    assert [codes(found) for found in hierarchy.ancestors_of_many(seeds)] == [["DE"], [], [], ["DE"], ["DE", "BE"]]
    related = [codes(found) for found in hierarchy.related_many(seeds)]
    assert related == [["DE", "MITTE"], [], ["DE", "FR"], ["DE", "MITTE"], ["DE", "BE"]]
    for ask in (hierarchy.children_of, hierarchy.ancestors_of, hierarchy.related):
        assert ask("iso:country:nowhere") == []


def test_the_plural_forms_say_what_the_singular_ones_say(hierarchy: Hierarchy) -> None:
    seeds = [EU, DE, BE, MITTE]
    assert hierarchy.children_of_many(seeds, max_depth=3) == [
        hierarchy.children_of(seed, max_depth=3) for seed in seeds
    ]
    assert hierarchy.ancestors_of_many(seeds) == [hierarchy.ancestors_of(seed) for seed in seeds]
    assert hierarchy.related_many(seeds) == [hierarchy.related(seed) for seed in seeds]


def test_no_areas_have_no_relatives_and_none_among_them_is_refused(hierarchy: Hierarchy) -> None:
    for ask in (hierarchy.children_of_many, hierarchy.ancestors_of_many, hierarchy.related_many):
        assert ask([]) == []
        with pytest.raises(InvalidRequest) as refused:
            ask([EU, None])  # type: ignore[list-item]  # what a careless program gives
        assert refused.value.reason == "NullArgument"


@pytest.mark.parametrize("question", ["children_of", "ancestors_of", "related_areas"])
def test_a_list_that_is_null_is_refused_in_sql_too(reader: Database, question: str) -> None:
    for call in (f"{question}_many(null)", f"{question}(null)"):
        with pytest.raises(InvalidRequest) as refused, reader.connection() as connection:
            connection.execute(f"select * from {call}".encode())
        assert refused.value.reason == "NullArgument"


def test_the_singular_questions_of_sql_are_the_plural_ones_of_one_area(hierarchy: Hierarchy, reader: Database) -> None:
    with reader.connection() as connection:
        for question, expected in (
            ("children_of(%s)", hierarchy.children_of(DE)),
            ("ancestors_of(%s)", hierarchy.ancestors_of(DE)),
            ("related_areas(%s)", hierarchy.related(DE)),
        ):
            rows = connection.execute(f"select area_key from {question}".encode(), [DE]).fetchall()
            assert [row["area_key"] for row in rows] == [match.area_key for match in expected]
