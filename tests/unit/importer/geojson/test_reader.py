import io
import json
import tracemalloc
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from geogenius.domain.errors import DataRefused
from geogenius.importer.geojson.reader import FeatureCollectionReader, RawFeature
from tests.support.geojson import collection, feature, square, squares

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAUGHTY = [feature('{"}]\\', square(), name='a "quoted\\" {brace'), feature("ä{", None), feature("z", square(3))]


def read(text: bytes, **limits: int) -> list[RawFeature]:
    return list(FeatureCollectionReader(io.BytesIO(text), "areas.geojson", **limits))


def refusal(text: bytes, **limits: int) -> DataRefused:
    with pytest.raises(DataRefused) as caught:
        read(text, **limits)
    return caught.value


@given(
    st.lists(JSON, max_size=6),
    st.dictionaries(st.text(), JSON, max_size=3),
    st.integers(1, 64),
    st.sampled_from(["ascii", "utf-8"]),
)
def test_any_chunk_size_gives_the_same_features(
    elements: list[object], foreign: dict[str, object], chunk: int, letters: str
) -> None:
    members = {key: value for key, value in foreign.items() if key not in {"type", "features", "crs"}}
    document = {**members, "features": elements, "type": "FeatureCollection"}
    text = json.dumps(document, ensure_ascii=letters == "ascii").encode(errors="replace")
    raws = read(text, chunk_bytes=chunk)
    assert raws == read(text)
    assert [raw.position for raw in raws] == list(range(1, len(elements) + 1))
    assert [text[raw.byte_offset :][: len(raw.text)] for raw in raws] == [raw.text for raw in raws]
    assert [json.loads(raw.text) for raw in raws] == json.loads(text)["features"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
def test_a_file_cut_at_any_byte_is_refused(chunk: int) -> None:
    text = collection(NAUGHTY, name="n")
    for end in range(len(text)):
        error = refusal(text[:end], chunk_bytes=chunk)
        assert error.reason == ("NotJson" if end == 0 else "Truncated"), error


def test_a_cut_inside_a_feature_names_the_feature_and_the_byte() -> None:
    text = collection(squares(3))
    start = text.index(b'{"type": "Feature"', text.index(b"c2"))
    message = str(refusal(text[: start + 20]))
    assert message == f"areas.geojson ends at byte {start + 20} inside feature 3, which starts at byte {start}"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_layout_and_a_byte_order_mark_do_not_matter(indent: int | None, mark: bytes) -> None:
    document = {"bbox": [0, 0, 1, 1], "features": NAUGHTY, "type": "FeatureCollection", "more": {"features": [1]}}
    text = mark + json.dumps(document, indent=indent).encode() + b"\r\n \n"
    assert [json.loads(raw.text) for raw in read(text, chunk_bytes=5)] == NAUGHTY


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        (b"", "NotJson", "is empty"),
        (b" \n", "NotJson", "is empty"),
        (b"code,name\nx,y", "NotJson", "starts with 'code,name"),
        (b"<!doctype html>", "NotJson", "error page"),
        (b"\x1f\x8b\x08\x00abc", "NotJson", "gzip"),
        (b"PK\x03\x04abc", "NotJson", "zip archive"),
        (b'\x1e{"type":"Feature"}', "NotAFeatureCollection", "sequence"),
        (b"[]", "NotAFeatureCollection", "array"),
        (b"{}", "NotAFeatureCollection", "no member 'type'"),
        (b'{"type":"FeatureCollection"}', "NotAFeatureCollection", "no member 'features'"),
        (json.dumps(feature("a", square())).encode(), "NotAFeatureCollection", "has the type 'Feature'"),
        (b'{"type":"Topology","features":[]}', "NotAFeatureCollection", "has the type 'Topology'"),
        (b'{"features":[],"type":"Topology"}', "NotAFeatureCollection", "has the type 'Topology'"),
        (b'{"features":[]}', "NotAFeatureCollection", "no member 'type'"),
        (b'{"type":"FeatureCollection","features":{}}', "NotAFeatureCollection", "not an array"),
        (b'{"type":"FeatureCollection","features":[]} {}', "NotJson", "goes on after the end"),
        (b'{"type":"FeatureCollection","features":[{},]}', "NotJson", "where feature 2 should be, expected a feature"),
        (b'{"type":"FeatureCollection","features":[{}}]}', "NotJson", "after feature 1, expected ',' or ']'"),
        (b'{"type":"FeatureCollection","features":[{}{}]}', "NotJson", "after feature 1, expected ',' or ']'"),
        (b'{"type":"FeatureCollection","features":[],"features":[]}', "NotJson", "'features' twice"),
        (b'{"type":"FeatureCollection","x":nope,"features":[]}', "NotJson", "inside the member 'x'"),
        (b'{"type" "FeatureCollection"}', "NotJson", "expected ':'"),
        (b"{type:1}", "NotJson", "expected the name of a member"),
        ('{"type":"FeatureCollection"}'.encode("utf-16"), "EncodingRefused", "UTF-16"),
        ('{"type":"FeatureCollection"}'.encode("utf-16-le"), "EncodingRefused", "UTF-16"),
        (b'{"n\xe4me":1}', "EncodingRefused", "not UTF-8"),
        (b'{"x":"\xed\xa0\x80"}', "EncodingRefused", "not UTF-8"),
    ],
)
def test_what_is_no_collection_is_refused_by_name(text: bytes, reason: str, words: str) -> None:
    for chunk in (1, 4, 1 << 20):
        error = refusal(text, chunk_bytes=chunk)
        assert error.reason == reason
        assert words in str(error)
        assert str(error).startswith("areas.geojson ")


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326", "urn:ogc:def:crs:EPSG::4326"])
def test_longitude_and_latitude_may_be_named(name: str) -> None:
    assert read(collection([], crs={"type": "name", "properties": {"name": name}})) == []


@pytest.mark.parametrize("crs", [{"type": "name", "properties": {"name": "EPSG:3857"}}, {"type": "link"}, "x"])
def test_another_coordinate_system_is_refused_by_name(crs: object) -> None:
    assert refusal(collection([], crs=crs)).reason == "UnsupportedCrs"


@pytest.mark.parametrize("element", [{"x": "y" * 100}, "y" * 100, [0] * 50, int("9" * 100)])
def test_a_feature_above_the_limit_is_refused_with_its_position(element: object) -> None:
    for chunk in (1, 16, 1 << 20):
        error = refusal(collection([{}, element]), feature_bytes=50, chunk_bytes=chunk)
        assert error.reason == "FeatureTooLarge"
        assert "feature 2 at byte" in str(error)


def test_a_value_without_end_outside_of_features_is_refused() -> None:
    assert "value of more than" in str(refusal(b'{"' + b"x" * (5 << 20), chunk_bytes=1 << 20))


def test_one_bad_feature_does_not_hide_the_next() -> None:
    text = b'{"type":"FeatureCollection","features":[{"a":},null,7,"x",{"type":"Feature"}]}'
    assert [raw.text for raw in read(text)] == [b'{"a":}', b"null", b"7", b'"x"', b'{"type":"Feature"}']


class EndlessCollection(io.RawIOBase):
    """A collection of many megabytes that is never in memory."""

    def __init__(self, features: int) -> None:
        self._parts = iter([b'{"type":"FeatureCollection","features":[{}', *([b",{}" + b" " * 1021] * features), b"]}"])

    @override
    def read(self, size: int = -1) -> bytes:
        parts = []
        while size > 0 and (part := next(self._parts, b"")):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def test_memory_is_bounded_whatever_the_size_of_the_file() -> None:
    def peak(features: int) -> int:
        file: BinaryIO = EndlessCollection(features)  # type: ignore[assignment]
        tracemalloc.start()
        count = sum(1 for _ in FeatureCollectionReader(file, "endless", chunk_bytes=1 << 16))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == features + 1
        return used

    assert peak(8_000) < 2 << 20
