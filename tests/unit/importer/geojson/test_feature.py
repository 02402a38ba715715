import json

import pytest

from geogenius.importer.geojson.feature import FeatureRefused, check_storable, read_feature
from tests.support.geojson import feature, square


def refusal(text: bytes) -> FeatureRefused:
    with pytest.raises(FeatureRefused) as caught:
        read_feature(text)
    return caught.value


@pytest.mark.parametrize("properties", ['"properties":null,', '"properties":{},', ""])
def test_a_feature_without_properties_is_read(properties: str) -> None:
    read = read_feature(f'{{"type":"Feature",{properties}"geometry":null}}'.encode())
    assert (read.properties, read.wkb) == ({}, None)


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        (b'{"a":}', "bad_json", "not JSON"),
        (b'{"a":01}', "bad_json", "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "bad_json", "not JSON"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad_json", "too deep"),
        (b'{"a":"\xe4"}', "bad_encoding", "not UTF-8 at byte 6"),
        (b'{"type":"Feature","a":1,"a":1}', "duplicate_key", "'a' twice"),
        (b"null", "not_a_feature", "None"),
        (b"7", "not_a_feature", "7"),
        (b'{"type":"Polygon"}', "not_a_feature", "'Polygon'"),
        (b'{"type":"Feature","properties":[],"geometry":null}', "not_a_feature", "[]"),
        (b'{"type":"Feature","properties":{}}', "no_geometry_member", "no member 'geometry'"),
        (b'{"type":"Feature","properties":{"pop": NaN},"geometry":null}', "bad_number", "the property 'pop' is NaN"),
        (b'{"type":"Feature","properties":{},"geometry":{"type":"Point"}}', "non_polygon_geometry", "'Point'"),
    ],
)
def test_a_bad_feature_is_refused_by_name(text: bytes, reason: str, words: str) -> None:
    error = refusal(text)
    assert error.reason == reason
    assert words in error.detail


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_coordinates_that_are_no_numbers_are_refused_as_coordinates(constant: str) -> None:
    text = json.dumps(feature("a", square(west=77.5))).replace("77.5", constant)
    error = refusal(text.encode())
    assert error.reason == "bad_coordinates"
    assert "position 1 of ring 1 of polygon 1 is longitude" in error.detail


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a\x00b", "bad_text"),
        ("\ud800", "bad_text"),
        ({"\x00": 1}, "bad_text"),
        ([{"x": ["\udfff"]}], "bad_text"),
        (float("inf"), "bad_number"),
    ],
)
def test_what_the_catalog_cannot_keep_is_refused(value: object, reason: str) -> None:
    with pytest.raises(FeatureRefused) as caught:
        check_storable(value, "the property 'x'")  # type: ignore[arg-type]
    assert caught.value.reason == reason


def test_nesting_is_bounded() -> None:
    value: list[object] = []
    for _ in range(200):
        value = [value]
    with pytest.raises(FeatureRefused, match="too deep"):
        check_storable(value, "x")  # type: ignore[arg-type]
