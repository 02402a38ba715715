"""What an execution does, phase by phase. Each phase gives its figures, which the next boundary stores."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.runs import Runs
from geogenius.domain.errors import DataRefused
from geogenius.domain.manifest import Artifact, Manifest, Source
from geogenius.domain.run import Fence, Run, RunState
from geogenius.importer.artifacts import ArtifactStore, Obtained
from geogenius.importer.progress import Progress
from geogenius.importer.providers import check_manifest, provider_named

REJECTS_SHOWN = 5
REJECTS_BEYOND_LIMIT = 1000
"""Reading goes on beyond the limit, so that people see more than the first error, but not for ever."""

Metrics = Mapping[str, int]


@dataclass(slots=True)
class Execution:
    """One execution of one run. `check` raises when it must stop; `files` fills while files are obtained.

    `staged` is how many areas were written to the staging table.
    """

    run: Run
    fence: Fence
    manifest: Manifest
    runs: Runs
    executions: Executions
    areas: Areas
    store: ArtifactStore
    work_dir: Path
    progress: Progress
    check: Callable[[], None]
    files: dict[str, Obtained] = field(default_factory=dict)
    staged: int = 0

    def artifacts(self) -> Iterator[tuple[Source, Artifact]]:
        """All files of the manifest with their sources, in order."""
        for source in self.manifest.sources:
            for artifact in source.artifacts:
                yield source, artifact


def download(execution: Execution) -> Metrics:
    """Obtain every file, compare it with its review and record what was seen."""
    check_manifest(execution.manifest)
    ids = {known.logical_name: known.artifact_id for known in execution.runs.artifacts(execution.run.run_id)}
    wanted = [artifact for _, artifact in execution.artifacts()]
    total = sum(artifact.bytes for artifact in wanted)
    execution.progress.expect_bytes(total)
    downloaded = 0
    for artifact in wanted:
        execution.check()
        obtained = execution.store.obtain(artifact, execution.work_dir)
        seen = obtained.observed
        execution.executions.record_artifact(execution.fence, ids[artifact.logical_name], seen.sha256, seen.bytes)
        execution.files[artifact.logical_name] = obtained
        downloaded += obtained.downloaded
    return {"artifacts": len(wanted), "downloaded": downloaded, "bytes": total}


def validate(execution: Execution) -> Metrics:
    """Ask the catalog whether every file of the run was seen as reviewed."""
    known = execution.runs.artifacts(execution.run.run_id)
    missing = [artifact.logical_name for artifact in known if not artifact.observed]
    if missing:
        raise DataRefused(f"these files were not checked: {', '.join(missing)}", reason="ArtifactUnobserved")
    return {"required": len(known)}


def stage(execution: Execution) -> Metrics:
    """Read every file in batches, each written in one fenced transaction; rejected rows are kept with their place."""
    execution.areas.create_staging(execution.fence)
    execution.progress.expect_bytes(sum(artifact.bytes for _, artifact in execution.artifacts()))
    rejected = 0
    for source, artifact in execution.artifacts():
        read = 0
        file = execution.files[artifact.logical_name]
        for batch in provider_named(source.provider).read(execution.manifest, source, artifact, file.path):
            execution.check()
            execution.areas.stage(execution.fence, artifact.logical_name, batch.areas, batch.rejects)
            execution.staged += len(batch.areas)
            rejected += len(batch.rejects)
            execution.progress.add_rows(len(batch.areas) + len(batch.rejects), len(batch.rejects))
            execution.progress.add_bytes(batch.bytes_read - read)
            read = batch.bytes_read
            if rejected > execution.run.reject_limit + REJECTS_BEYOND_LIMIT:
                _check_rejects(execution, rejected, more=True)
        file.check_unchanged()
    _check_rejects(execution, rejected)
    return {"rows": execution.staged + rejected, "staged": execution.staged}


def normalize(execution: Execution) -> Metrics:
    """Merge the staged rows into the release, set-wise; duplicates and hopeless geometries are rejects."""
    counts = execution.areas.merge(execution.fence, execution.staged)
    _check_rejects(execution, counts.rejected)
    return {
        "areas": counts.areas,
        "boundaries": counts.boundaries,
        "repaired": counts.repaired,
        "rejected": counts.rejected,
        "merged": counts.merged,
        "boundaries_unused": counts.boundaries_unused,
    }


def relate(execution: Execution) -> Metrics:
    """Relations that rows assert, and measured ones if a provider of the manifest wants them."""
    manifest = execution.manifest
    measured = any(provider_named(source.provider).measures_relations(manifest) for source in manifest.sources)
    counts = execution.areas.relate(execution.fence, measured=measured)
    return {"asserted_relations": counts.asserted, "relations": counts.measured}


def index(execution: Execution) -> Metrics:
    """Index the tables of the release."""
    execution.areas.index(execution.fence)
    return {}


def verify(execution: Execution) -> Metrics:
    """Check the release; only a verified one can be completed."""
    report = execution.areas.verify(execution.fence)
    if not report.ok:
        raise DataRefused(f"the release is not sound: {'; '.join(report.failures)}", reason="VerificationFailed")
    return {"area_count": report.area_count, "boundary_count": report.boundary_count}


PHASES: tuple[tuple[RunState, Callable[[Execution], Metrics]], ...] = (
    (RunState.DOWNLOADING, download),
    (RunState.VALIDATING, validate),
    (RunState.STAGING, stage),
    (RunState.NORMALIZING, normalize),
    (RunState.RELATING, relate),
    (RunState.INDEXING, index),
    (RunState.VERIFYING, verify),
)
"""The phases in order. What ends a run, completion or publication, is the pipeline's."""


def _check_rejects(execution: Execution, rejected: int, *, more: bool = False) -> None:
    """Refuse the data of a run that rejected more rows than it may; the rejects stay stored."""
    limit = execution.run.reject_limit
    if rejected <= limit:
        return
    first = "; ".join(
        f"{reject.artifact} row {reject.position}: {reject.reason} ({reject.detail})"
        for reject in execution.areas.rejects(execution.run.run_id, REJECTS_SHOWN)
    )
    amount = f"{'at least ' if more else ''}{rejected} {'row' if rejected == 1 else 'rows'}"
    raise DataRefused(f"{amount} rejected, {limit} allowed; first: {first}", reason="TooManyRejects")
