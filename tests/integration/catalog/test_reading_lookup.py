"""Questions about codes and names, and resolve, asked with the rights of a reader."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from geogenius.catalog import Clues, Lookup, MatchMethod, Scope
from geogenius.db import Database
from geogenius.domain.errors import InvalidRequest
from tests.support.catalog import an_area, square
from tests.support.reading import Sql, add_code, add_name, bare, codes, key, read, relate, set_point

CODE, NAME, PROXIMITY, CONTAINMENT = (
    MatchMethod.CODE,
    MatchMethod.NAME,
    MatchMethod.PROXIMITY,
    MatchMethod.CONTAINMENT,
)
STRANGE = ["100% Town", "100 Town", "A_B", "AxB", "back\\slash", "backslash", "%", "_", "\\", "a%b\\_c", "Å_ß"]
SIMILAR = """
select coalesce(array_agg(name), '{}') as names from unnest(%s::text[]) name where similarity(name, %s) >= 0.3
"""


def named(*names: str, **changes: Any) -> list[Any]:  # noqa: ANN401  any field
    return [an_area(n, f"c{n:03}", None, name=name, **changes) for n, name in enumerate(names, 1)]


def names(lookup: Lookup, text: str, **options: Any) -> list[str | None]:  # noqa: ANN401  any option
    return [match.name for match in lookup.search(text, **options)]


def test_an_area_is_found_by_its_own_code_and_by_further_ones(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare("DE", "FR"))
    add_code(sql, key("DE"), "fips", "GM")
    add_code(sql, key("DE"), "fips", "G2")
    add_code(sql, key("DE"), "iso", "DEU")
    lookup = Lookup(reader)
    for code_type, value in (("iso", "DE"), ("fips", "GM"), ("fips", "G2"), ("iso", "DEU")):
        [match] = lookup.by_code(code_type, value)
        assert (match.code, match.match_method) == ("DE", CODE)
        assert match.codes == {"iso": ["DE", "DEU"], "fips": ["G2", "GM"]}
    for code_type, value in (("fips", "DE"), ("iso", "de"), ("iso", ""), ("nonsense", "DE"), ("", "DE")):
        assert lookup.by_code(code_type, value) == []


def test_a_code_that_several_areas_have_finds_broad_types_first(database: Database, reader: Database, sql: Sql) -> None:
    read(database, [an_area(1, "X", None, area_type="county"), an_area(2, "X", None, area_type="country"), *bare("Y")])
    add_code(sql, key("Y"), "iso", "X")
    assert [match.area_key for match in Lookup(reader).by_code("iso", "X")] == [key("X"), key("Y"), key("X", "county")]


def test_with_a_parent_only_areas_below_it_are_found(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare("US", "CA", "SPRINGFIELD", "ELSEWHERE"))
    for code in ("US", "SPRINGFIELD", "ELSEWHERE"):
        add_code(sql, key(code), "post", "1")
    relate(sql, key("US"), key("CA"))
    relate(sql, key("CA"), key("SPRINGFIELD"))
    lookup = Lookup(reader)
    assert codes(lookup.by_code("post", "1")) == ["ELSEWHERE", "SPRINGFIELD", "US"]
    assert codes(lookup.by_code("post", "1", parent=key("CA"))) == ["SPRINGFIELD"]
    assert codes(lookup.by_code("post", "1", parent=key("US"))) == []
    assert codes(lookup.by_code("post", "1", parent=key("US"), max_depth=2)) == ["SPRINGFIELD"]
    assert codes(lookup.by_code("post", "1", parent="iso:country:nowhere")) == []
    with pytest.raises(InvalidRequest) as refused:
        lookup.by_code("post", "1", parent=key("US"), max_depth=0)
    assert refused.value.reason == "BadDepth"


def test_a_parent_in_a_cycle_is_not_below_itself(database: Database, reader: Database, sql: Sql) -> None:
    read(database, bare("A", "B"))
    for parent, child in ("AB", "BA"):
        relate(sql, key(parent), key(child))
    assert codes(Lookup(reader).by_code("iso", "A", parent=key("A"), max_depth=5)) == []
    assert codes(Lookup(reader).by_code("iso", "B", parent=key("A"), max_depth=5)) == ["B"]


def test_several_codes_are_answered_in_their_order(database: Database, reader: Database) -> None:
    read(database, bare("DE", "FR"))
    lookup = Lookup(reader)
    pairs = [("iso", "FR"), ("iso", "XX"), ("iso", "DE"), ("iso", "FR")]
    assert [codes(found) for found in lookup.by_code_many(pairs)] == [["FR"], [], ["DE"], ["FR"]]
    assert lookup.by_code_many(pairs) == [lookup.by_code(*pair) for pair in pairs]
    assert lookup.by_code_many([]) == []


@pytest.mark.parametrize("pair", [("iso", None), (None, "DE"), (None, None)])
def test_a_code_that_is_not_there_is_refused(reader: Database, pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Lookup(reader).by_code_many([("iso", "DE"), pair])
    assert refused.value.reason == "NullArgument"


def test_the_lists_of_a_plural_question_have_one_length_and_are_there(reader: Database) -> None:
    for lists, reason in (
        ("'{iso}', '{}'", "BadLists"),
        ("null, '{}'", "NullArgument"),
        ("'{}', null", "NullArgument"),
    ):
        with pytest.raises(InvalidRequest) as refused, reader.connection() as connection:
            connection.execute(f"select * from areas_by_code_many({lists})".encode())
        assert refused.value.reason == reason


def test_the_best_of_several_names_counts_and_an_area_answers_once(
    database: Database, reader: Database, sql: Sql
) -> None:
    read(database, named("Deutschland", "Germania Superior"))
    add_name(sql, key("c001"), "Germany", locale="en")
    add_name(sql, key("c001"), "Federal Republic of Germany", "mailing")
    best, other = Lookup(reader).search("germany", min_score=0.25)
    assert (best.name, best.score, best.match_method) == ("Deutschland", 1, NAME)
    assert other.name == "Germania Superior"
    assert other.score is not None
    assert 0 < other.score < 1


def test_a_name_is_found_by_its_beginning_misspelt_and_in_any_case(database: Database, reader: Database) -> None:
    village = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"
    read(database, named(village, "Mecklenburg-Vorpommern", "Österreich"))
    lookup = Lookup(reader)
    assert names(lookup, "lLaN") == names(lookup, "Llanfair") == [village]
    assert names(lookup, "Meklenburg Forpommern") == ["Mecklenburg-Vorpommern"]
    assert names(lookup, "MECKLENBURG-VORPOMMERN") == ["Mecklenburg-Vorpommern"]
    assert names(lookup, "  Österreich ") == ["Österreich"]
    assert names(lookup, "Zanzibar") == []


def test_wildcards_are_taken_literally(database: Database, reader: Database) -> None:
    read(database, named(*STRANGE))
    lookup = Lookup(reader)
    assert names(lookup, "%") == ["%"]
    assert names(lookup, "_") == ["_"]
    assert names(lookup, "\\") == ["\\"]
    assert names(lookup, "100%") == ["100% Town"]
    assert names(lookup, "100%", min_score=0.3) == ["100 Town", "100% Town"], "both resemble it"
    assert names(lookup, "a%b\\_") == ["A_B", "a%b\\_c"]

    @settings(max_examples=60, deadline=None)
    @given(
        st.text("aAbB%_\\ 1xsß", min_size=1, max_size=6).filter(lambda text: text.strip()) | st.sampled_from(STRANGE)
    )
    def literal(text: str) -> None:
        with reader.connection() as connection:
            similar = connection.execute(SIMILAR, [STRANGE, text.strip()]).fetchall()[0]["names"]
        begins = [name for name in STRANGE if name.lower().startswith(text.strip().lower())]
        assert set(names(lookup, text, min_score=0.3)) == {*similar, *begins}

    literal()


def test_what_does_not_count_is_left_out_before_the_cut(database: Database, reader: Database, sql: Sql) -> None:
    areas = [an_area(n, f"c{n:03}", None, name="Berlin") for n in range(1, 61)]
    read(database, [*areas, an_area(61, "s", None, area_type="state", name="Berlins")])
    read(database, bare("m"), collection="moon")
    add_name(sql, key("m"), "Berlinum")
    lookup = Lookup(reader)
    assert codes(lookup.search("Berlin", Scope(types=["state"]), limit=1)) == ["s"]
    assert codes(lookup.search("Berlin", Scope(["moon"]), limit=1)) == ["m"]
    assert len(lookup.search("Berlin")) == 50
    assert len(lookup.search("Berlin", limit=None)) == 62


def test_the_best_come_first_then_names_then_keys_whatever_the_limit(database: Database, reader: Database) -> None:
    world = named("Neustadt", "Neustadt an der Weinstraße", "Neustadt", "Neustädtchen", "Neustadt (Dosse)", "Altstadt")
    read(database, world)
    read(database, world, collection="moon")
    lookup = Lookup(reader)
    found = lookup.search("Neustadt", limit=None)
    order = [(-(match.score or 0), match.name or "", match.collection, match.area_key) for match in found]
    assert all(one < other for one, other in pairwise(order))
    assert [(match.collection, match.code) for match in found[:4]] == [
        ("moon", "c001"),
        ("moon", "c003"),
        ("world", "c001"),
        ("world", "c003"),
    ]
    for limit in range(1, len(found) + 2):
        assert lookup.search("Neustadt", limit=limit) == found[:limit]


def test_names_that_resemble_the_text_less_are_sought_only_while_nothing_is_found(
    database: Database, reader: Database
) -> None:
    read(database, named("Brandenburg", "Brandenburgerdorf", "Brandis"))
    lookup = Lookup(reader)
    assert names(lookup, "Brandenburg") == ["Brandenburg", "Brandenburgerdorf"]
    assert names(lookup, "Brandenbarg") == ["Brandenburg"]
    assert names(lookup, "Brandenbarg", min_score=0.2) == ["Brandenburg", "Brandenburgerdorf", "Brandis"]
    assert names(lookup, "Brandenburg", min_score=1) == ["Brandenburg", "Brandenburgerdorf"], "it begins with it"


@pytest.mark.parametrize("min_score", [0, -0.1, 1.1, float("nan")])
def test_a_score_that_no_name_or_every_name_has_is_refused(reader: Database, min_score: float) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Lookup(reader).search("a", min_score=min_score)
    assert refused.value.reason == "BadScore"


@pytest.mark.parametrize(("text", "reason"), [("", "BlankQuery"), (" \t\n", "BlankQuery"), (None, "NullArgument")])
def test_a_blank_name_is_refused(reader: Database, text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Lookup(reader).search(text)
    assert refused.value.reason == reason


def test_names_are_sought_in_queries_that_run_in_parallel_too(database: Database, reader: Database) -> None:
    read(database, named("Berlin"))
    with reader.connection() as connection:
        connection.execute("set local force_parallel_mode = on")
        for question in ("""resolve('{"name": "berlin"}')""", "search_areas('berlin')"):
            rows = connection.execute(f"select name from {question}".encode()).fetchall()
            assert rows == [{"name": "Berlin"}]
        left = connection.execute("show pg_trgm.similarity_threshold").fetchall()
        assert left == [{"pg_trgm.similarity_threshold": "0.3"}], "the session keeps its own threshold"


@pytest.fixture
def places(database: Database, reader: Database, sql: Sql) -> Lookup:
    """HERE has a boundary, NEAR and FAR a point; each is called like its code and has its post code."""
    read(database, [an_area(1, "HERE", square(10, 50), name="Here"), *bare("NEAR", "FAR", "LAND")])
    set_point(sql, key("NEAR"), 11.1, 50.5)
    set_point(sql, key("FAR"), 12, 50.5)
    for code in ("HERE", "NEAR", "FAR"):
        add_code(sql, key(code), "post", code)
    relate(sql, key("LAND"), key("NEAR"))
    relate(sql, key("NEAR"), key("FAR"))
    return Lookup(reader)


ALL = Clues(10.5, 50.5, code_type="post", code_value="NEAR", name="Far")


def test_the_first_strategy_that_finds_anything_answers(places: Lookup) -> None:
    def found(clues: Clues, *strategies: MatchMethod) -> list[tuple[str, MatchMethod]]:
        return [(m.code, m.match_method) for m in places.resolve(clues, strategies=strategies or None)]

    assert found(ALL) == [("HERE", CONTAINMENT)]
    assert found(ALL, NAME, CONTAINMENT) == [("FAR", NAME)]
    assert found(ALL, CODE) == [("NEAR", CODE)]
    assert found(Clues(11.2, 50.5, code_type="post", code_value="XX", name="Zanzibar")) == [
        ("NEAR", PROXIMITY),
        ("HERE", PROXIMITY),
    ]
    assert found(Clues(11.2, 50.5, code_type="post", code_value="XX", name="Zanzibar"), CODE, NAME) == []
    assert found(Clues(code_type="post", code_value="FAR"), PROXIMITY, CODE) == [("FAR", CODE)]


def test_nearness_is_25_km_unless_it_is_said(places: Lookup) -> None:
    assert codes(places.resolve(Clues(11.2, 50.5))) == ["NEAR", "HERE"]
    assert codes(places.resolve(Clues(11.2, 50.5, radius_m=1e5))) == ["NEAR", "HERE", "FAR"]
    assert codes(places.resolve(Clues(11.2, 50.5, radius_m=10_000))) == ["NEAR"]
    with pytest.raises(InvalidRequest) as refused:
        places.resolve(Clues(11.2, 50.5, radius_m=-1))
    assert refused.value.reason == "BadRadius"


def test_a_parent_narrows_codes_and_names_to_one_step_below_it(places: Lookup) -> None:
    def found(parent: str, **clues: Any) -> list[str]:  # noqa: ANN401  any clue
        return codes(places.resolve(Clues(parent_area_key=key(parent), **clues)))

    assert found("LAND", name="near") == found("LAND", code_type="post", code_value="NEAR") == ["NEAR"]
    assert found("LAND", name="far") == found("LAND", code_type="post", code_value="FAR") == []
    assert found("NEAR", name="far") == ["FAR"]


def test_25_areas_of_a_name_are_enough_and_a_parent_chooses_before_the_cut(
    database: Database, reader: Database, sql: Sql
) -> None:
    read(database, [an_area(n, f"c{n:03}", None, name="Springfield") for n in range(1, 101)])
    relate(sql, key("c001"), key("c100"))
    lookup = Lookup(reader)
    assert len(lookup.resolve(Clues(name="Springfield"))) == 25
    assert codes(lookup.resolve(Clues(name="Springfield", parent_area_key=key("c001")))) == ["c100"]


@pytest.mark.parametrize(
    "given_input",
    [
        None,
        [],
        "name",
        {},
        {"lon": 1},
        {"lat": 1, "name": "a"},
        {"code_type": "iso"},
        {"code_value": "DE", "name": "a"},
        {"radius_m": 5},
        {"parent_area_key": "a"},
        {"lon": "1", "lat": "1"},
        {"lon": 1, "lat": None},
        {"name": 7},
        {"name": "a", "radius_m": "far"},
        {"name": "a", "title": "b"},
    ],
)
def test_an_input_that_cannot_be_understood_is_refused(reader: Database, given_input: object) -> None:
    with pytest.raises(InvalidRequest) as refused, reader.connection() as connection:
        connection.execute("select * from resolve(%s)", [None if given_input is None else Jsonb(given_input)])
    assert refused.value.reason == "BadResolveInput"


@pytest.mark.parametrize(
    ("clues", "reason"),
    [
        (Clues(), "BadResolveInput"),
        (Clues(longitude=1), "BadResolveInput"),
        (Clues(latitude=1, name="a"), "BadResolveInput"),
        (Clues(code_type="iso"), "BadResolveInput"),
        (Clues(181, 0), "BadCoordinate"),
        (Clues(name=" "), "BlankQuery"),
    ],
)
def test_clues_that_mean_nothing_are_refused(reader: Database, clues: Clues, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Lookup(reader).resolve(clues)
    assert refused.value.reason == reason


def test_strategies_are_known_and_have_what_they_need(reader: Database) -> None:
    for strategies, reason in (
        ([MatchMethod.RELATION], "BadStrategy"),
        ([NAME, None], "BadStrategy"),
        ([], "BadResolveInput"),
        ([CODE, CONTAINMENT], "BadResolveInput"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            Lookup(reader).resolve(Clues(name="a"), strategies=strategies)  # type: ignore[arg-type]  # None is refused
        assert refused.value.reason == reason
