"""Make `countries.geojson` from `countries-110m.json` of the npm package world-atlas 2.0.2.

python3 make_countries.py countries-110m.json > countries.geojson
"""

import json
import sys
from pathlib import Path
from typing import Any

DECIMALS = 3
"""About 100 m: finer than the 1:110 million source."""

Point = list[float]
Ring = list[Point]


def main() -> None:
    """Read the topology, write one Feature a line."""
    topology = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    arcs = decoded_arcs(topology)
    lines = [feature(country, arcs) for country in topology["objects"]["countries"]["geometries"]]
    sys.stdout.write('{"type": "FeatureCollection", "features": [\n')
    sys.stdout.write(",\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines))
    sys.stdout.write("\n]}\n")


def decoded_arcs(topology: dict[str, Any]) -> list[Ring]:
    """The arcs in degrees: stored as differences of quantised positions (TopoJSON 1.0, 2.1.3 and 2.1.4)."""
    (scale_x, scale_y), (origin_x, origin_y) = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = []
    for deltas in topology["arcs"]:
        x = y = 0
        arc = []
        for step_x, step_y in deltas:
            x, y = x + step_x, y + step_y
            arc.append([round(x * scale_x + origin_x, DECIMALS), round(y * scale_y + origin_y, DECIMALS)])
        arcs.append(arc)
    return arcs


def feature(country: dict[str, Any], arcs: list[Ring]) -> dict[str, Any]:
    """One country. Three have no ISO number in the source; their code is their name."""
    name = country["properties"]["name"]
    code = country.get("id") or f"name:{name}"
    shape = country["arcs"]
    single = country["type"] == "Polygon"
    polygons = [[ring(indices, arcs) for indices in polygon] for polygon in ([shape] if single else shape)]
    coordinates = polygons[0] if single else polygons
    geometry = {"type": country["type"], "coordinates": coordinates}
    return {"type": "Feature", "properties": {"code": code, "name": name}, "geometry": geometry}


def ring(indices: list[int], arcs: list[Ring]) -> Ring:
    """Arcs joined end to end; a negative index stands for the arc backwards (TopoJSON 1.0, 2.1.4)."""
    points: Ring = []
    for index in indices:
        arc = arcs[index] if index >= 0 else arcs[~index][::-1]
        points += arc[1:] if points else arc
    return points


if __name__ == "__main__":
    main()
