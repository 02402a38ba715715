"""Bad input ends as a failed request that says what is wrong and where; nothing is published by it."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.desk import Desk, collection_of, condition, square
from tests.support.file_server import FileServer

GOOD = [square(1), square(2)]
UNREACHABLE = "http://10.255.255.1:9/areas.geojson"


@dataclass(frozen=True, slots=True)
class Bad:
    """One request that must fail: its content, how its request differs, and what the status must say."""

    content: bytes
    reason: str
    says: tuple[str, ...]
    url: str | None = None
    artifact: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    served: bool = False
    supplied: bool = True


def with_geometry(geometry: str) -> bytes:
    """Two good features, and between them one with this geometry."""
    first, last = (json.dumps(feature) for feature in GOOD)
    bad = f'{{"type": "Feature", "properties": {{"code": "bad"}}, "geometry": {geometry}}}'
    return f'{{"type": "FeatureCollection", "features": [{first}, {bad}, {last}]}}'.encode()


CASES = {
    "a-web-page": Bad(b"<html>no</html>", "NotJson", ("a-web-page.geojson", "HTML")),
    "not-json": Bad(b'{"type": nonsense}', "NotJson", ("not-json.geojson", "byte")),
    "not-a-collection": Bad(json.dumps(GOOD[0]).encode(), "NotAFeatureCollection", ("Feature",)),
    "cut-short": Bad(collection_of(GOOD)[:-30], "Truncated", ("cut-short.geojson", "feature 2")),
    "wrong-checksum": Bad(collection_of(GOOD), "ChecksumMismatch", ("ab" * 32,), artifact={"sha256": "ab" * 32}),
    "missing-file": Bad(collection_of(GOOD), "ArtifactMissing", ("missing-file.geojson",), supplied=False),
    "not-there": Bad(collection_of(GOOD), "SourceUnavailable", ("404",), served=True),
    "unreachable": Bad(collection_of(GOOD), "SourceUnavailable", ("10.255.255.1",), url=UNREACHABLE),
    "unknown-provider": Bad(
        collection_of(GOOD), "ManifestInvalid", ("provider", "topojson", "geojson"), manifest={"provider": "topojson"}
    ),
    "blank-code": Bad(collection_of([*GOOD, square(3, code=" ")]), "TooManyRejects", ("blank_code", "3")),
    "duplicate-code": Bad(collection_of([*GOOD, square(3, code="A1")]), "TooManyRejects", ("duplicate_code", "3")),
    "a-point": Bad(
        with_geometry('{"type": "Point", "coordinates": [1, 2]}'), "TooManyRejects", ("non_polygon_geometry", "2")
    ),
    "not-a-number": Bad(
        with_geometry('{"type": "Polygon", "coordinates": [[[0, 0], [NaN, 1], [1, 1], [0, 0]]]}'),
        "TooManyRejects",
        ("bad_coordinates", "2"),
    ),
}


@pytest.fixture
def failed(desk: Desk, files: FileServer) -> dict[str, dict[str, Any]]:
    """The statuses of all bad requests, handed in together after a good release was published."""
    for name, bad in CASES.items():
        url = bad.url or (files.url(f"{name}.nowhere") if bad.served else None)
        if url is None:
            desk.supply(name if bad.supplied else f"{name}-elsewhere", bad.content)
        document = desk.request(name, bad.content, url, artifact=bad.artifact, manifest=bad.manifest)
        if not bad.supplied:
            document["spec"]["files"][0]["configMap"]["name"] = f"{name}-elsewhere"
        desk.apply(document)
    return {name: desk.finished(name, 180) for name in CASES}


def test_every_bad_input_fails_with_a_reason_and_a_position_and_publishes_nothing(
    desk: Desk, failed: dict[str, dict[str, Any]]
) -> None:
    for name, bad in CASES.items():
        succeeded = condition(failed[name], "Succeeded")
        assert (failed[name]["state"], succeeded["status"]) == ("Failed", "False"), name
        assert succeeded["reason"] == bad.reason, (name, succeeded)
        for words in bad.says:
            assert words in succeeded["message"], (name, succeeded["message"])
        assert desk.count("published_areas", name) == 0, name


def test_after_a_bad_release_the_previous_one_stays_and_the_operator_goes_on(desk: Desk) -> None:
    content = collection_of(GOOD)
    desk.supply("first", content)
    desk.apply(desk.request("first", content))
    assert desk.finished("first")["state"] == "Succeeded"
    collection = desk.collection("first")

    broken = collection_of([square(3, code="")])
    desk.supply("second", broken)
    second = desk.request("second", broken, manifest={"release": "2"})
    second["spec"]["manifest"]["collection"] = collection
    second["spec"]["manifest"]["sources"][0]["releaseKey"] = "2"
    desk.apply(second)
    assert desk.finished("second")["state"] == "Failed"
    release = "select distinct release_key from published_areas where collection_key = :'collection'"
    assert desk.value(release, collection=collection) == "1"

    third = desk.request("third", content, manifest={"release": "3"})
    third["spec"]["manifest"]["collection"] = collection
    third["spec"]["manifest"]["sources"][0]["releaseKey"] = "3"
    desk.supply("third", content)
    desk.apply(third)
    assert desk.finished("third")["state"] == "Succeeded"
    assert desk.value(release, collection=collection) == "3"


def test_a_request_that_breaks_the_schema_is_refused_by_name_of_the_field(desk: Desk) -> None:
    document = desk.request("wrong", collection_of(GOOD), artifact={"sha256": "short"})

    answer = desk.refused(document)

    assert "spec.manifest.sources[0].artifacts[0].sha256" in answer
