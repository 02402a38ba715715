"""What questions are put to, and what they are answered with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import ReleaseId


class MatchMethod(StrEnum):
    """Why an area is in an answer."""

    CONTAINMENT = "containment"
    OVERLAP = "overlap"
    PROXIMITY = "proximity"
    CODE = "code"
    NAME = "name"
    RELATION = "relation"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which areas may answer; None lets all pass, an empty sequence none.

    Without a release, the published releases of all collections (or of `collections`) are asked at once. Areas that
    are no more (`Publications.retire_area`) answer only if wanted.
    """

    collections: Sequence[str] | None = None
    types: Sequence[str] | None = None
    release_id: ReleaseId | None = None
    include_retired: bool = False


EVERYTHING = Scope()
"""Every area that readers see."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What is known of an area that is sought: a point (degrees, WGS 84), a code, a name, or several of them.

    `longitude` goes with `latitude`, `code_type` with `code_value`. `radius_m` (None: 25,000) is how far an area may be
    from the point; codes and names are sought one step below `parent_area_key`, where that is given.
    """

    longitude: float | None = None
    latitude: float | None = None
    radius_m: float | None = None
    code_type: str | None = None
    code_value: str | None = None
    name: str | None = None
    parent_area_key: str | None = None


@dataclass(frozen=True, slots=True)
class AreaMatch:
    """An area that answers a question. What the question does not measure is None.

    A low `type_rank` is a broad area. `codes` has all codes by their type, the own code under its authority.
    `centroid` is (longitude, latitude) in degrees; None for an area that has no place. `retired_at` is None for an area
    that is still there.

    `distance_m` is 0 inside. `coverage_of_input` is how many per cent (0 to 100) of what was asked lie in the area,
    `coverage_of_area` the other way round. `score` is the similarity of the best name, 0 to 1. `depth` counts steps;
    `relation_type` is that of the last one.
    """

    collection: str
    release_id: ReleaseId
    release: str
    area_key: str
    authority: str
    area_type: str
    type_rank: int
    code: str
    name: str | None
    codes: Mapping[str, Sequence[str]]
    centroid: tuple[float, float] | None
    attributes: Mapping[str, JsonValue]
    retired_at: datetime | None
    successor_key: str | None
    match_method: MatchMethod
    distance_m: float | None
    intersection_area_m2: float | None
    coverage_of_input: float | None
    coverage_of_area: float | None
    score: float | None
    depth: int | None
    relation_type: str | None


_SAME = AreaMatch.__dataclass_fields__.keys() - {"collection", "release", "centroid", "match_method"}


def match_of(row: Mapping[str, Any]) -> AreaMatch:
    """One row of an answer; columns that this version does not know are left out."""
    return AreaMatch(
        collection=row["collection_key"],
        release=row["release_key"],
        centroid=None if row["longitude"] is None else (row["longitude"], row["latitude"]),
        match_method=MatchMethod(row["match_method"]),
        **{name: row[name] for name in _SAME},
    )


def matches_by_seed(rows: Sequence[Mapping[str, Any]], seeds: int) -> list[list[AreaMatch]]:
    """The answers to each of several seeds (the database counts them from 1), in their order."""
    answers: list[list[AreaMatch]] = [[] for _ in range(seeds)]
    for row in rows:
        answers[row["seed"] - 1].append(match_of(row))
    return answers


def arguments_of(scope: Scope) -> dict[str, object]:
    """The parameters that all questions have in common."""
    return {
        "collections": listed(scope.collections),
        "types": listed(scope.types),
        "release": scope.release_id,
        "include_retired": scope.include_retired,
    }


def listed(values: Sequence[str] | None) -> list[str] | None:
    """A sequence as the driver makes an array of it."""
    return None if values is None else list(values)


def input_of(clues: Clues) -> dict[str, JsonValue]:
    """The input of `resolve`: what is not known is not there."""
    known = {"lon": clues.longitude, "lat": clues.latitude, **asdict(clues)}
    return {name: value for name, value in known.items() if value is not None and name not in {"longitude", "latitude"}}
