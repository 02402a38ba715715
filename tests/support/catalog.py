"""Builds manifests and drives runs through the real catalog; a test names only what matters to it."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from geogenius.domain.intent import ImportIntent
from geogenius.domain.prepared import Registered
from geogenius.domain.run import ExecutorId, Fence, ReleaseId, RequestRef, RunId, RunState, Workload, workload_name

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


def point_wkb(longitude: float, latitude: float) -> bytes:
    """A little-endian point without SRID."""
    return struct.pack("<BIdd", 1, 1, longitude, latitude)


StagedFiles = Sequence[StagedArea] | Mapping[str, Sequence[StagedArea]]
"""Areas of the file of `a_manifest`, or of several files by their logical names, in the order of staging."""

GERMANY_AND_FRANCE = (an_area(1, "DE", square(10, 50)), an_area(2, "FR", square(2, 46)))


def registered(database: Database, manifest: dict[str, Any] | None = None, intent: ImportIntent | None = None) -> RunId:
    """A new run, registered."""
    answer = Runs(database).prepare(manifest or a_manifest(), intent or an_intent())
    assert isinstance(answer, Registered), answer
    return answer.run_id


def claimed(database: Database, manifest: dict[str, Any] | None = None, intent: ImportIntent | None = None) -> Fence:
    """A new run, claimed by an executor."""
    return claimed_run(database, registered(database, manifest, intent))


def claimed_run(database: Database, run_id: RunId) -> Fence:
    """A registered run, claimed by an executor."""
    fence = Fence(run_id, ExecutorId(uuid4()))
    assert Executions(database).claim(fence) == "claimed"
    return fence


def driven(
    database: Database,
    goal: RunState,
    manifest: dict[str, Any] | None = None,
    areas: StagedFiles = GERMANY_AND_FRANCE,
    intent: ImportIntent | None = None,
    run_id: RunId | None = None,
) -> Fence:
    """A run in the phase `goal`, with the work of every earlier phase done; a new one unless `run_id` names one."""
    fence = claimed(database, manifest, intent) if run_id is None else claimed_run(database, run_id)
    for phase in ORDER[: ORDER.index(goal)]:
        Executions(database).advance(fence, phase, {})
        _work(database, fence, phase, areas)
    Executions(database).advance(fence, goal, {})
    return fence


def completed(database: Database, manifest: dict[str, Any] | None = None, **options: Any) -> Fence:  # noqa: ANN401
    """A run whose release is complete and not published."""
    fence = driven(database, RunState.VERIFYING, manifest, **options)
    Areas(database).verify(fence)
    Executions(database).complete(fence, {})
    return fence


def published(database: Database, manifest: dict[str, Any] | None = None, **options: Any) -> Fence:  # noqa: ANN401
    """A run whose release is complete and published."""
    fence = driven(database, RunState.PUBLISHING, manifest, **options)
    Executions(database).publish(fence)
    return fence


def release_of(database: Database, fence: Fence) -> ReleaseId:
    """The release that a run builds."""
    run = Runs(database).get(fence.run_id)
    assert run is not None
    return run.release_id


def _work(database: Database, fence: Fence, phase: RunState, areas: StagedFiles) -> None:
    """What an importer does in a phase."""
    files = areas if isinstance(areas, Mapping) else {"countries.geojson": areas}
    own = Areas(database)
    works: dict[RunState, Callable[[], object]] = {
        RunState.VALIDATING: lambda: _observe(database, fence),
        RunState.STAGING: lambda: _stage(own, fence, files),
        RunState.NORMALIZING: lambda: own.merge(fence, sum(map(len, files.values()))),
        RunState.RELATING: lambda: own.relate(fence, measured=True),
        RunState.INDEXING: lambda: own.index(fence),
        RunState.VERIFYING: lambda: own.verify(fence),
    }
    if phase in works:
        works[phase]()


def _observe(database: Database, fence: Fence) -> None:
    for artifact in Runs(database).artifacts(fence.run_id):
        Executions(database).record_artifact(fence, artifact.artifact_id, artifact.sha256, artifact.bytes)


def _stage(areas: Areas, fence: Fence, files: Mapping[str, Sequence[StagedArea]]) -> None:
    areas.create_staging(fence)
    for name, staged in files.items():
        areas.stage(fence, name, staged, [])
