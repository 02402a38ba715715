import json
from pathlib import Path
from typing import Any

import pytest

from geogenius.domain.area import Reject, StagedArea
from geogenius.domain.errors import DataRefused, ManifestInvalid
from geogenius.domain.manifest import Authority, Manifest
from geogenius.importer.providers import Batch, check_manifest, provider_named
from geogenius.importer.providers.batches import BATCH_BYTES, BATCH_ROWS
from tests.support.geojson import a_manifest, collection, feature, square, squares


def batches(tmp_path: Path, text: bytes, **options: Any) -> list[Batch]:  # noqa: ANN401  options are JSON
    path = tmp_path / "areas.geojson"
    path.write_bytes(text)
    manifest = a_manifest(**options)
    source = manifest.sources[0]
    return list(provider_named("geojson").read(manifest, source, source.artifacts[0], path))


def one(tmp_path: Path, document: object, **options: Any) -> StagedArea | Reject:  # noqa: ANN401
    (batch,) = batches(tmp_path, collection([document]), **options)
    rows: list[StagedArea | Reject] = [*batch.areas, *batch.rejects]
    assert len(rows) == 1
    return rows[0]


def test_a_feature_becomes_an_area(tmp_path: Path) -> None:
    document = feature(" DE ", square(), name=" Germany ", pop=83, tags=["eu"], ignored=1)
    area = one(tmp_path, document, attribute_properties=["pop", "tags", "absent"])
    assert isinstance(area, StagedArea)
    assert area.wkb is not None
    assert (area.position, area.authority, area.area_type, area.code, area.name, area.attributes) == (
        1, "iso", "country", "DE", "Germany", {"pop": 83, "tags": ["eu"]},
    )  # fmt: skip


def test_without_attribute_properties_none_are_kept(tmp_path: Path) -> None:
    area = one(tmp_path, feature("DE", None, pop=83))
    assert isinstance(area, StagedArea)
    assert (area.attributes, area.wkb, area.name) == ({}, None, None)


@pytest.mark.parametrize(
    ("code", "text"), [("01001", "01001"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (10**20, str(10**20))]
)
def test_numbers_become_text_and_leading_zeros_stay(tmp_path: Path, code: object, text: str) -> None:
    area = one(tmp_path, feature(code))
    assert isinstance(area, StagedArea)
    assert area.code == text


@pytest.mark.parametrize("name", [None, "", "  "])
def test_a_blank_name_is_no_name(tmp_path: Path, name: object) -> None:
    area = one(tmp_path, feature("a", None, name=name))
    assert isinstance(area, StagedArea)
    assert area.name is None


@pytest.mark.parametrize("word", ["NA", "NULL", "None", "nan"])
def test_words_that_look_like_nothing_stay_codes(tmp_path: Path, word: str) -> None:
    area = one(tmp_path, feature(word))
    assert isinstance(area, StagedArea)
    assert area.code == word


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (feature("  "), "blank_code"),
        (feature(""), "blank_code"),
        (feature(None), "blank_code"),
        ({"type": "Feature", "properties": {}, "geometry": None}, "blank_code"),
        (feature(True), "bad_code"),  # noqa: FBT003
        (feature(["a"]), "bad_code"),
        (feature({}), "bad_code"),
        (feature("x" * 300), "bad_code"),
        (feature("a", None, name=["x"]), "bad_name"),
        (feature("a\x00"), "bad_text"),
        (feature("a", None, name="\ud800"), "bad_text"),
        (feature("a", {"type": "Point", "coordinates": [0, 0]}), "non_polygon_geometry"),
        (None, "not_a_feature"),
    ],
)
def test_a_bad_feature_is_one_reject_with_its_place(tmp_path: Path, document: object, reason: str) -> None:
    better = json.dumps(feature("better")).encode()
    text = collection([feature("good"), document, feature("better")])
    (batch,) = batches(tmp_path, text)
    assert [area.code for area in batch.areas] == ["good", "better"]
    (reject,) = batch.rejects
    assert (reject.position, reject.reason) == (2, reason)
    assert reject.byte_offset is not None
    assert text[reject.byte_offset :].startswith(json.dumps(document).encode() + b", " + better)
    assert len(reject.detail) <= 200


def test_an_attribute_the_catalog_cannot_keep_is_a_reject(tmp_path: Path) -> None:
    text = collection([feature("a", None, pop=77.5)]).replace(b"77.5", b"1e400")
    (batch,) = batches(tmp_path, text, attribute_properties=["pop"])
    assert [reject.reason for reject in batch.rejects] == ["bad_number"]


def test_batches_are_bounded_in_rows(tmp_path: Path) -> None:
    text = collection(squares(1201))
    read = batches(tmp_path, text)
    assert [len(batch.areas) for batch in read] == [BATCH_ROWS, BATCH_ROWS, 201]
    assert [area.position for batch in read for area in batch.areas] == list(range(1, 1202))
    assert sorted(batch.bytes_read for batch in read) == [batch.bytes_read for batch in read]
    assert read[-1].bytes_read == len(text) - 2


def test_batches_are_bounded_in_bytes(tmp_path: Path) -> None:
    big = "x" * (BATCH_BYTES // 3)
    read = batches(tmp_path, collection(feature(f"c{at}", None, text=big) for at in range(7)))
    assert [len(batch.areas) for batch in read] == [2, 2, 2, 1]


def test_a_broken_file_names_the_artifact(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"^areas\.geojson ends at byte .* inside feature 2"):
        batches(tmp_path, collection(squares(2))[:-20])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"area_type": None}, "options.area_type: is required"),
        ({"area_type": "town"}, "options.area_type: 'town' is not among the manifest's areaTypes: country"),
        ({"code_property": None}, "options.code_property: is required"),
        ({"code_property": 5}, "options.code_property: must be a string, not 5"),
        ({"code_property": " "}, "options.code_property: must not be blank"),
        ({"authority": "un"}, "options.authority: 'un' is not among the manifest's authorities: iso"),
        ({"name_property": []}, "options.name_property: must be a string, not []"),
        ({"attribute_properties": "pop"}, "options.attribute_properties: must be a list of strings, not 'pop'"),
        ({"attribute_properties": ["a", 1]}, "options.attribute_properties[1]: must be a string that is not blank"),
        ({"attribute_properties": ["a", "a"]}, "options.attribute_properties[1]: 'a' is listed twice"),
        ({"colour": "red"}, "options.colour: is not an option of this provider"),
    ],
)
def test_a_wrong_option_is_refused_with_its_path(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        check_manifest(a_manifest(**options))
    assert str(caught.value).startswith(message)


def test_several_authorities_need_a_choice() -> None:
    manifest = a_manifest()
    several = Manifest(
        **{name: getattr(manifest, name) for name in Manifest.__slots__}
        | {"authorities": (Authority("iso", "ISO"), Authority("un", "UN"))}
    )
    with pytest.raises(ManifestInvalid, match=r"^options\.authority: is required; the manifest has several: iso, un"):
        check_manifest(several)


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ManifestInvalid, match=r"^sources\[2\]\.provider: there is no provider 'csv'; known are: geojson"
    ):
        provider_named("csv", "sources[2].provider")
