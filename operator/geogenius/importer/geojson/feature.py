"""One GeoJSON feature: its text parsed strictly, its geometry as WKB."""

import json
import re
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn

from geogenius.domain.manifest import JsonValue
from geogenius.importer.geojson.geometry import GeometryRefused, multipolygon_wkb
from geogenius.importer.text import shortened, storable

TEXT_DEPTH = 64


class FeatureRefused(Exception):
    """This feature cannot be imported. `reason` is a stable snake_case word, `detail` a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Feature:
    """The parts of a feature that make an area."""

    properties: dict[str, JsonValue]
    wkb: bytes | None


class _NotFinite(Exception):
    """NaN or Infinity, which some programs write and JSON does not know."""


def read_feature(text: bytes) -> Feature:
    """The feature in this text.

    Raises FeatureRefused: bad_encoding, bad_json, duplicate_key, bad_number, not_a_feature, no_geometry_member,
    and the reasons of geometry.py.
    """
    try:
        document = json.loads(_decoded(text), object_pairs_hook=_each_key_once, parse_constant=_no_constant)
    except _NotFinite as error:
        raise _not_finite(text, str(error)) from error
    except RecursionError as error:
        raise FeatureRefused("bad_json", "the feature is nested too deep") from error
    except ValueError as error:
        raise FeatureRefused("bad_json", f"the feature is not JSON: {error}") from error
    return _feature(document)


def check_storable(value: JsonValue, what: str, depth: int = 0) -> None:
    """Refuse a property that PostgreSQL cannot keep: NUL, half a surrogate pair, a number without end."""
    match value:
        case str() if not storable(value):
            raise FeatureRefused("bad_text", f"{what} has a NUL character or broken Unicode: {shortened(value)}")
        case float() if not isfinite(value):
            raise FeatureRefused("bad_number", f"{what} is a number without end")
        case list() | dict() if depth > TEXT_DEPTH:
            raise FeatureRefused("bad_json", f"{what} is nested too deep")
        case list():
            for item in value:
                check_storable(item, what, depth + 1)
        case dict():
            for key, item in value.items():
                check_storable(key, what, depth + 1)
                check_storable(item, what, depth + 1)
        case _:
            pass


def _feature(document: object) -> Feature:
    if not isinstance(document, dict) or document.get("type") != "Feature":
        shown = shortened(document.get("type") if isinstance(document, dict) else document)
        raise FeatureRefused("not_a_feature", f"the element is {shown}, not a Feature")
    if "geometry" not in document:
        raise FeatureRefused("no_geometry_member", "has no member 'geometry'; null means an area without boundary")
    properties = document.get("properties")
    if not isinstance(properties, dict | None):
        raise FeatureRefused("not_a_feature", f"its properties are {shortened(properties)}, not an object")
    try:
        return Feature(properties or {}, multipolygon_wkb(document["geometry"]))
    except GeometryRefused as error:
        raise FeatureRefused(error.reason, error.detail) from error


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        around = shortened(text[max(0, error.start - 10) : error.start + 10])
        detail = f"is not UTF-8 at byte {error.start} of the feature: {around}; save the file as UTF-8"
        raise FeatureRefused("bad_encoding", detail) from error


def _each_key_once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise FeatureRefused("duplicate_key", f"the feature has the key {shortened(twice)} twice in one object")
    return document


def _no_constant(constant: str) -> NoReturn:
    raise _NotFinite(constant)


def _not_finite(text: bytes, constant: str) -> FeatureRefused:
    """Where the constant stands: in the coordinates, if taking it for a number makes them impossible."""
    try:
        _feature(json.loads(text))
    except FeatureRefused as error:
        return error
    except (ValueError, RecursionError):
        pass
    key = re.search(rb'"([^"\\]{1,64})"\s*:\s*' + constant.encode(), text)
    place = f"the property {shortened(key.group(1).decode(errors='replace'))}" if key else "a property"
    return FeatureRefused("bad_number", f"{place} is {constant}, which JSON does not know; write null")
