"""Small GeoJSON files, built from what a test cares about."""

import json
from collections.abc import Iterable
from typing import Any

from geogenius.domain.manifest import AreaType, Artifact, Authority, JsonValue, Manifest, Source

Json = dict[str, Any]


def square(west: float = 0.0, south: float = 0.0, side: float = 1.0) -> Json:
    """A closed square, counter-clockwise."""
    east, north = west + side, south + side
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def feature(code: object = "a", geometry: object = None, **properties: object) -> Json:
    """A feature with the property `id`; without a geometry, null."""
    return {"type": "Feature", "properties": {"id": code, **properties}, "geometry": geometry}


def squares(count: int) -> list[Json]:
    """Features `c1`, `c2`, ... whose squares do not meet."""
    return [
        feature(f"c{number}", square(number % 170, number // 170), name=f"Area {number}")
        for number in range(1, count + 1)
    ]


def collection(features: Iterable[object], **members: object) -> bytes:
    """The text of a FeatureCollection."""
    return json.dumps({"type": "FeatureCollection", **members, "features": list(features)}).encode()


def a_manifest(*artifacts: Artifact, release: str = "2030.1", **options: JsonValue) -> Manifest:
    """A manifest of the collection `world` with areas `iso:country:<id>`, read by `geojson`."""
    return Manifest(
        collection="world",
        release=release,
        provider="geojson",
        authorities=(Authority("iso", "ISO"),),
        area_types=(AreaType("country", 10, requires_geometry=False),),
        sources=(
            Source(
                source_key="naturalearth",
                provider="geojson",
                license="CC0-1.0",
                release_key=release,
                attribution=None,
                source_date=None,
                artifacts=artifacts or (an_artifact(),),
            ),
        ),
        options={"area_type": "country", "code_property": "id", **options},
    )


def an_artifact(name: str = "areas.geojson", sha256: str = "0" * 64, size: int = 1, url: str | None = None) -> Artifact:
    """An operator-supplied file unless a url is given."""
    return Artifact(name, "geojson", sha256, size, url)
