"""What `bench.catalog` measures on: many releases, polygons, names; all of it made through the catalog itself."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

from geogenius.catalog import Runs
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from tests.support.catalog import a_manifest, an_area, completed, polygon_wkb

COLLECTIONS = 100
COLUMNS, ROWS = 250, 200
POLYGONS = COLUMNS * ROWS
VERTICES = 24
NAMES = 1_000_000
PLAIN = [{"key": "country", "rank": 10, "requires_geometry": False}]
CONSONANTS = "b br d f g gr h k kl l m n p r s sch st t tr w z".split()  # noqa: SIM905
VOWELS = "a e i o u ä ö ü au ei ie".split()  # noqa: SIM905
ENDS = "hausen dorf heim berg bach stadt felde ingen rode walde leben au kirchen münster hagen stein".split()  # noqa: SIM905
BESIDE = "Bad Burg Klein Neu Ober Alt Groß Sankt Hohen Unter Nieder".split()  # noqa: SIM905


def manifest_of(collection: str, release: str) -> dict[str, Any]:
    """One source and file per collection, so that every release uses a known definition."""
    return a_manifest(collection=collection, release=release, area_types=PLAIN)


def complete(database: Database, collection: str, release: str, areas: Sequence[StagedArea]) -> UUID:
    """A complete release holding these areas, not published; its id."""
    fence = completed(database, manifest_of(collection, release), areas=areas)
    run = Runs(database).get(fence.run_id)
    assert run is not None
    return run.release_id


def a_few() -> list[StagedArea]:
    """Ten small areas: a release that holds data."""
    return [an_area(number, f"A{number}", polygon(number, number, 0.4)) for number in range(1, 11)]


def polygon(longitude: float, latitude: float, radius: float) -> bytes:
    """A round polygon of VERTICES vertices."""
    turns = [2 * math.pi * corner / VERTICES for corner in range(VERTICES)]
    ring = [(longitude + radius * math.cos(turn), latitude + radius * math.sin(turn)) for turn in turns]
    return polygon_wkb([*ring, ring[0]])


def grid() -> list[StagedArea]:
    """POLYGONS round areas that overlap their neighbours, over most of the earth."""
    places = ((number % COLUMNS, number // COLUMNS) for number in range(POLYGONS))
    return [
        an_area(number, f"P{number}", polygon(-150 + column * 1.2, -60 + row * 0.6, 0.5), attributes={})
        for number, (column, row) in enumerate(places, start=1)
    ]


def a_point(random: Random) -> tuple[float, float]:
    """A place inside the grid."""
    return random.uniform(-149, 148), random.uniform(-59, 59)


def a_name(random: Random) -> str:
    """A place name of one to four syllables, half of them with a common end, a third with a common word before it."""
    syllables = (random.choice(CONSONANTS) + random.choice(VOWELS) for _ in range(random.randint(1, 3)))
    name = "".join(syllables) + random.choice(["n", "l", "r", "s", ""])
    if random.random() < 0.5:
        name += random.choice(ENDS)
    return f"{random.choice(BESIDE)} {name.capitalize()}" if random.random() < 0.3 else name.capitalize()


def names() -> list[StagedArea]:
    """NAMES areas without boundaries, the same every time."""
    random = Random(7)  # noqa: S311  no secret
    return [an_area(number, f"N{number}", None, name=a_name(random), attributes={}) for number in range(1, NAMES + 1)]
