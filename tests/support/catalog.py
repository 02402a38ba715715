"""Builds manifests and drives runs through the real catalog; a test names only what matters to it."""

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from geogenius.catalog import Areas, Runs
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from geogenius.domain.intent import ImportIntent
from geogenius.domain.prepared import Registered
from geogenius.domain.run import ExecutorId, Fence, RequestRef, RunId, RunState, Workload, workload_name

SHA = "ab" * 32
CLUSTER_ID = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
ORDER = [
    RunState.DOWNLOADING,
    RunState.VALIDATING,
    RunState.STAGING,
    RunState.NORMALIZING,
    RunState.RELATING,
    RunState.INDEXING,
    RunState.VERIFYING,
    RunState.PUBLISHING,
]


def an_artifact(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    known = {"logical_name": "countries.geojson", "format": "geojson", "sha256": SHA, "bytes": 100, "url": None}
    return {**known, "operator_supplied": True, **changes}


def a_source(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    return {
        "source_key": "natural_earth",
        "provider": "geojson",
        "license": "public domain",
        "release_key": "5.1",
        "attribution": None,
        "source_date": "2022-05-13",
        "artifacts": [an_artifact()],
        **changes,
    }


def a_manifest(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    """A manifest in normal form: countries that need a boundary, of the authority iso."""
    return {
        "collection": "world",
        "release": "r1",
        "provider": "geojson",
        "authorities": [{"key": "iso", "name": "ISO"}],
        "area_types": [{"key": "country", "rank": 10, "requires_geometry": True}],
        "sources": [a_source()],
        "options": {},
        **changes,
    }


def an_intent(**changes: Any) -> ImportIntent:  # noqa: ANN401  any field
    """An intent with a run id of its own."""
    return ImportIntent(
        **{"run_id": RunId(uuid4()), "owner": "maps/world", "runner": "inline", "publish": False, **changes}
    )


def a_job_intent(request_uid: UUID | None = None) -> ImportIntent:
    """The intent of a run that a Kubernetes Job carries."""
    run_id = RunId(uuid4())
    return an_intent(
        run_id=run_id,
        runner="kubernetes_job",
        workload=Workload(CLUSTER_ID, "maps", workload_name(run_id)),
        request=RequestRef("maps", "world", request_uid or uuid4()),
    )


def polygon_wkb(ring: Sequence[tuple[float, float]]) -> bytes:
    """A little-endian MultiPolygon of one polygon with one ring, without SRID."""
    polygon = struct.pack("<BIII", 1, 3, 1, len(ring)) + b"".join(struct.pack("<dd", *point) for point in ring)
    return struct.pack("<BII", 1, 6, 1) + polygon


def square(west: float, south: float, side: float = 1.0) -> bytes:
    """A square as WKB."""
    east, north = west + side, south + side
    return polygon_wkb([(west, south), (east, south), (east, north), (west, north), (west, south)])


BOWTIE = polygon_wkb([(0, 0), (1, 1), (1, 0), (0, 1), (0, 0)])
"""Crosses itself: repaired into two triangles."""

NEEDLE = polygon_wkb([(0, 0), (1, 1), (0, 0), (0, 0)])
"""Has no area: no polygon is left of it."""


def an_area(position: int, code: str, wkb: bytes | None, **changes: Any) -> StagedArea:  # noqa: ANN401  any field
    known = {"authority": "iso", "area_type": "country", "name": f"Country {code}", "attributes": {"code": code}}
    return StagedArea(**{"position": position, "code": code, "wkb": wkb, **known, **changes})


GERMANY_AND_FRANCE = (an_area(1, "DE", square(10, 50)), an_area(2, "FR", square(2, 46)))


def registered(database: Database, manifest: dict[str, Any] | None = None, intent: ImportIntent | None = None) -> RunId:
    """A new run, registered."""
    answer = Runs(database).prepare(manifest or a_manifest(), intent or an_intent())
    assert isinstance(answer, Registered), answer
    return answer.run_id


def claimed(database: Database, manifest: dict[str, Any] | None = None, intent: ImportIntent | None = None) -> Fence:
    """A new run, claimed by an executor."""
    fence = Fence(registered(database, manifest, intent), ExecutorId(uuid4()))
    assert Runs(database).claim(fence) == "claimed"
    return fence


def driven(
    database: Database,
    goal: RunState,
    manifest: dict[str, Any] | None = None,
    areas: Sequence[StagedArea] = GERMANY_AND_FRANCE,
    intent: ImportIntent | None = None,
) -> Fence:
    """A new run in the phase `goal`, with the work of every earlier phase done."""
    fence = claimed(database, manifest, intent)
    for phase in ORDER[: ORDER.index(goal)]:
        Runs(database).advance(fence, phase, {})
        _work(database, fence, phase, areas)
    Runs(database).advance(fence, goal, {})
    return fence


def completed(database: Database, manifest: dict[str, Any] | None = None, **options: Any) -> Fence:  # noqa: ANN401
    """A run whose release is complete and not published."""
    fence = driven(database, RunState.VERIFYING, manifest, **options)
    Areas(database).verify(fence)
    Runs(database).complete(fence, {})
    return fence


def published(database: Database, manifest: dict[str, Any] | None = None, **options: Any) -> Fence:  # noqa: ANN401
    """A run whose release is complete and published."""
    fence = driven(database, RunState.PUBLISHING, manifest, **options)
    Runs(database).publish(fence)
    return fence


def _work(database: Database, fence: Fence, phase: RunState, areas: Sequence[StagedArea]) -> None:
    match phase:
        case RunState.VALIDATING:
            for artifact in Runs(database).artifacts(fence.run_id):
                Runs(database).record_artifact(fence, artifact.artifact_id, artifact.sha256, artifact.bytes)
        case RunState.STAGING:
            Areas(database).create_staging(fence)
            Areas(database).stage(fence, "countries.geojson", areas, [])
        case RunState.NORMALIZING:
            Areas(database).merge(fence, len(areas))
        case RunState.INDEXING:
            Areas(database).index(fence)
        case RunState.VERIFYING:
            Areas(database).verify(fence)
        case _:
            pass
