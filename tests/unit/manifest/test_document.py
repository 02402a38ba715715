import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from geogenius.domain.errors import ManifestInvalid
from geogenius.domain.manifest import AreaType, Artifact, Authority, Manifest, Source
from geogenius.manifest import load, normal_form, parse

SHA256 = "ab" * 32


def document(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    """A manifest in snake_case, as a file has it."""
    return {
        "collection": "parcels_de",
        "release": "2026.1",
        "provider": "geojson",
        "authorities": [{"key": "stadt", "name": "Stadt"}],
        "area_types": [{"key": "bezirk", "rank": 10, "requires_geometry": True}, {"key": "quartier", "rank": 20}],
        "sources": [source()],
        "options": {"area_type": "quartier", "code_property": "id"},
    } | changes


def source(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "source_key": "stadt:quartiere",
        "license": "CC0-1.0",
        "release_key": "2026-01",
        "artifacts": [artifact()],
    } | changes


def artifact(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "logical_name": "q.geojson",
        "format": "geojson",
        "sha256": SHA256,
        "bytes": 12345,
        "url": "https://example.org/q.geojson",
    } | changes


def camel(value: object, *, below_options: bool = False) -> object:
    if isinstance(value, list):
        return [camel(item) for item in value]
    if isinstance(value, dict) and not below_options:
        return {to_camel(key): camel(item) for key, item in value.items()}
    return value


def errors(text: object) -> str:
    with pytest.raises(ManifestInvalid) as caught:
        parse(text)  # type: ignore[arg-type]  # users write anything
    return str(caught.value)


def test_a_document_becomes_the_manifest_with_its_defaults() -> None:
    manifest = parse(document())
    assert manifest == Manifest(
        collection="parcels_de",
        release="2026.1",
        provider="geojson",
        authorities=(Authority("stadt", "Stadt"),),
        area_types=(AreaType("bezirk", 10, requires_geometry=True), AreaType("quartier", 20, requires_geometry=False)),
        sources=(
            Source(
                source_key="stadt:quartiere",
                provider="geojson",
                license="CC0-1.0",
                release_key="2026-01",
                attribution=None,
                source_date=None,
                artifacts=(Artifact("q.geojson", "geojson", SHA256, 12345, "https://example.org/q.geojson"),),
            ),
        ),
        options={"area_type": "quartier", "code_property": "id"},
    )


def test_both_spellings_and_both_languages_give_the_same_manifest() -> None:
    snake = document(sources=[source(source_date="2026-01-05", attribution="Stadt")])
    texts = [json.dumps(snake), json.dumps(camel(snake)), yaml.safe_dump(snake), yaml.safe_dump(camel(snake))]
    assert len({json.dumps(normal_form(load(text)), sort_keys=True) for text in texts}) == 1


def test_a_day_in_yaml_needs_no_quotes() -> None:
    text = yaml.safe_dump(document(sources=[source(source_date="2026-01-05")])).replace("'2026-01-05'", "2026-01-05")
    assert str(load(text).sources[0].source_date) == "2026-01-05"


def test_a_source_may_name_a_provider_of_its_own() -> None:
    assert parse(document(sources=[source(provider="other")])).sources[0].provider == "other"


def test_names_below_an_option_stay_as_they_are() -> None:
    assert parse(document(options={"areaType": "x", "some": {"aB": [{"cD": 1}]}})).options == {
        "area_type": "x",
        "some": {"aB": [{"cD": 1}]},
    }


def test_an_option_in_both_spellings_is_refused() -> None:
    assert errors(document(options={"areaType": "x", "area_type": "y"})).startswith("options.area_type: is given twice")


NAMES = st.from_regex(r"\A[a-z_][a-z0-9_]{0,20}\Z")
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20).filter(
    str.strip
)
ARTIFACTS = st.builds(
    artifact,
    sha256=st.from_regex(r"\A[0-9a-f]{64}\Z"),
    bytes=st.integers(1, 1 << 40),
    url=st.none() | st.just("http://h/x"),
).map(lambda made: made | {"operator_supplied": made["url"] is None})


@given(
    names=st.lists(NAMES, min_size=2, max_size=5, unique=True),
    texts=st.tuples(TEXTS, TEXTS),
    files=st.lists(ARTIFACTS, min_size=1, max_size=3),
    options=st.dictionaries(NAMES, st.integers() | TEXTS | st.lists(TEXTS), max_size=4),
    day=st.none() | st.dates().map(str),
)
def test_the_normal_form_reads_back_as_the_same_manifest(
    names: list[str], texts: tuple[str, str], files: list[dict[str, Any]], options: dict[str, Any], day: str | None
) -> None:
    manifest = parse(
        document(
            authorities=[{"key": name, "name": texts[0]} for name in names],
            area_types=[{"key": name, "rank": rank} for rank, name in enumerate(names, start=1)],
            sources=[
                source(
                    license=texts[1],
                    source_date=day,
                    artifacts=[file | {"logical_name": f"f{at}"} for at, file in enumerate(files)],
                )
            ],
            options=options,
        )
    )
    form = normal_form(manifest)
    assert parse(form) == manifest
    assert normal_form(parse(form)) == form
    assert json.loads(json.dumps(form)) == form


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"collection": "2026"}, "collection: must consist of lower-case letters"),
        ({"collection": "a" * 64}, "collection: must not be longer than 63 characters"),
        ({"collection": "a\n"}, "collection: must consist of"),
        ({"collection": " "}, "collection: must not be blank"),
        ({"collection": None}, "collection: must be a string"),
        ({"release": 2026.1}, "release: must be a string; put the value in quotes"),
        ({"release": ".1"}, "release: must consist of"),
        ({"authorities": []}, "authorities: must not be empty"),
        ({"authorities": "x"}, "authorities: must be a list"),
        ({"authorities": [{"key": "Ä", "name": "x"}]}, "authorities[0].key: must consist of"),
        (
            {"authorities": [{"key": "a", "name": "\u0000x"}]},
            "authorities[0].name: must not contain control characters",
        ),
        ({"authorities": [{"key": "a", "name": "x"}] * 2}, "authorities[1].key: a is used already"),
        ({"area_types": None}, "area_types: must be a list"),
        ({"area_types": [{"key": "a", "rank": "1"}]}, "area_types[0].rank: must be a whole number without quotes"),
        ({"area_types": [{"key": "a", "rank": True}]}, "area_types[0].rank: must be a whole number"),
        ({"area_types": [{"key": "a", "rank": 0}]}, "area_types[0].rank: must be at least 1"),
        (
            {"area_types": [{"key": "a", "rank": 1, "requires_geometry": "yes"}]},
            "area_types[0].requires_geometry: must",
        ),
        ({"area_types": [{"key": k, "rank": 1} for k in "ab"]}, "area_types[1].rank: 1 is used already"),
        ({"sources": [source(), source(artifacts=[artifact(logical_name="r")])]}, "sources[1].source_key: stadt:"),
        ({"sources": [source(artifacts=[artifact()] * 2)]}, "sources[0].artifacts[1].logical_name: q.geojson is used"),
        ({"sources": [source(), source(source_key="b")]}, "sources[1].artifacts[0].logical_name: q.geojson is used"),
        ({"sources": [source(license="")]}, "sources[0].license: must not be blank"),
        ({"sources": [source(source_date="2026-02-30")]}, "sources[0].source_date: must be a day as YYYY-MM-DD"),
        *(
            ({"sources": [source(source_date=day)]}, "sources[0].source_date: must be a day as YYYY-MM-DD")
            for day in (
                0,
                86_400,
                "86400",
                "20260105",
                True,
                "2026-01-05T00:00:00",
                "2026-01-05\n",
                "\u0662\u0660\u0662\u0666-01-05",
            )
        ),
        ({"sources": [source(colour=1)]}, "sources[0].colour: is not a known field"),
        ({"options": []}, "options: must be an object"),
        ({"options": {"x": float("nan")}}, "options.x: must be a finite number"),
        ({"options": {"x": ["a\u0000"]}}, "options.x[0]: must not contain control characters"),
        ({"options": {"x": "y" * 70_000}}, "options: must not be larger than 65536 characters"),
    ],
)
def test_a_wrong_field_is_named_with_what_to_do(changes: dict[str, Any], message: str) -> None:
    assert errors(document(**changes)).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": SHA256.upper()}, ".sha256: must be 64 lower-case hexadecimal digits"),
        ({"sha256": SHA256 + "\n"}, ".sha256: must"),
        ({"bytes": 0}, ".bytes: must be at least 1"),
        ({"logical_name": "../x"}, ".logical_name: must be a plain file name"),
        ({"logical_name": ".part"}, ".logical_name: must be a plain file name"),
        ({"url": None}, ": give a url, or operatorSupplied: true"),
        ({"operator_supplied": True}, ": give either a url or operatorSupplied: true, not both"),
        ({"url": "ftp://h/x"}, ".url: must be an http or https URL"),
        ({"url": "https://me:secret@h/x"}, ".url: must be an http or https URL without user name and password"),
        ({"url": "https://h:0/x"}, ".url: must be a URL with a host"),
        ({"url": "https://[::1/x"}, ".url: must be a URL with a host"),
        ({"url": "https:///x"}, ".url: must be an http or https URL"),
        ({"url": "https://h/a b"}, ".url: must be an http or https URL"),
    ],
)
def test_a_wrong_artifact_is_named_with_what_to_do(changes: dict[str, Any], message: str) -> None:
    text = errors(document(sources=[source(artifacts=[artifact(**changes)])]))
    assert text.startswith(f"sources[0].artifacts[0]{message}")


def test_all_errors_are_told_at_once() -> None:
    text = errors({"release": 5})
    assert text.split("; ") == [
        "collection: is required",
        "release: must be a string",
        "put the value in quotes",
        "provider: is required",
        "authorities: is required",
        "sources: is required",
    ]


def test_missing_fields_are_spelt_as_the_document_spells_its_keys() -> None:
    assert errors(document(sources=[source(artifacts=[{"format": "x", "operator_supplied": True}])])).startswith(
        "sources[0].artifacts[0].logical_name: is required"
    )
    kubernetes: Any = camel(document())
    del kubernetes["sources"][0]["sourceKey"]
    assert errors(kubernetes) == "sources[0].sourceKey: is required"


def test_many_errors_are_cut_short() -> None:
    text = errors(document(authorities=[{"key": "Ä", "name": "x"}] * 30))
    assert text.endswith("and 20 more errors")


def test_deep_options_are_refused() -> None:
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    assert "options.x" in errors(document(options={"x": deep}))
