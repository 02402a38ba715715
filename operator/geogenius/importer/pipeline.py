"""Executes one run from its claim to its recorded end. Whatever happens, the answer says what is recorded."""

import logging
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.runs import Runs
from geogenius.db.pool import Database
from geogenius.domain.errors import Conflict, DatabaseUnavailable, GeogeniusError
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.run import ExecutorId, Fence, Run, RunError, RunId, RunState
from geogenius.importer.artifacts import ArtifactStore
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.downloader import Downloader, DownloadPolicy, Surroundings
from geogenius.importer.failures import run_error, unexpected
from geogenius.importer.heartbeat import Heartbeat
from geogenius.importer.interruption import Interruption
from geogenius.importer.phases import PHASES, Execution, Metrics
from geogenius.importer.progress import Progress
from geogenius.manifest import parse

CLAIM_TRIES = 2
FAIL_TRIES = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where an execution works. `artifact_folder` holds operator-supplied files."""

    work_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "geogenius")
    artifact_folder: Path | None = None
    download: DownloadPolicy = field(default_factory=DownloadPolicy)
    fail_pause_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class RunCatalog:
    """The parts of the catalog that an execution writes."""

    runs: Runs
    executions: Executions
    areas: Areas


class Pipeline:
    """Executes runs, one at a time. It alone records the failure of a run that it claimed."""

    def __init__(
        self, database: Database, catalog: RunCatalog, workplace: Workplace, cancellation: Cancellation
    ) -> None:
        self._database = database
        self._runs = catalog.runs
        self._executions = catalog.executions
        self._areas = catalog.areas
        self._workplace = workplace
        self._cancellation = cancellation

    @classmethod
    def on(cls, database: Database, workplace: Workplace, cancellation: Cancellation) -> "Pipeline":
        """A pipeline on the catalog in a database that the caller closes."""
        catalog = RunCatalog(Runs(database), Executions(database), Areas(database))
        return cls(database, catalog, workplace, cancellation)

    def execute(self, run_id: RunId, executor_id: ExecutorId) -> Executed:
        """Run all phases of a run under this executor id. Raises nothing that an import can bring about.

        A second call for the same run does nothing and says so: the run has an executor, or has ended.
        """
        fence = Fence(run_id, executor_id)
        try:
            run = self._runs.get(run_id)
        except GeogeniusError as error:
            return Unrecorded(run_id, started=False, message=f"the run cannot be read: {error}")
        if run is None:
            return Unrecorded(run_id, started=False, message=f"there is no run {run_id}")
        if run.state.terminal:
            return _ended(run)
        try:
            claim = self._claim(fence)
        except GeogeniusError as error:
            return self._record(fence, run_error(RunState.PENDING, error))
        return self._after_claim(claim, run, fence)

    def _claim(self, fence: Fence) -> Claim:
        """Claim; an error is answered by one more try under the same executor id, which the catalog recognizes."""
        for _ in range(CLAIM_TRIES - 1):
            try:
                return self._executions.claim(fence)
            except GeogeniusError as error:
                _log.warning("the claim is tried again: %s", error, extra=_ids(fence))
        return self._executions.claim(fence)

    def _after_claim(self, claim: Claim, run: Run, fence: Fence) -> Executed:
        match claim:
            case Claim.CLAIMED:
                return self._guarded(run, fence)
            case Claim.MISSING:
                return Unrecorded(run.run_id, started=False, message=f"there is no run {run.run_id}")
            case Claim.OCCUPIED | Claim.SUPERSEDED:
                return NoOp(run.run_id, claim)
            case Claim.COMPLETED | Claim.FAILED:
                return self._reread(fence) or NoOp(run.run_id, claim)

    def _guarded(self, run: Run, fence: Fence) -> Executed:
        """The phases, with every way they can end turned into an answer."""
        progress = Progress()
        try:
            return self._work(run, fence, progress)
        except Conflict as error:
            return self._not_ours(fence, progress.phase, error)
        except Exception as error:  # noqa: BLE001  # any end of a phase must be recorded
            if unexpected(error):
                _log.exception("defect in phase %s", progress.phase, extra=_ids(fence))
            return self._record(fence, run_error(progress.phase, error))

    def _work(self, run: Run, fence: Fence, progress: Progress) -> Executed:
        with (
            _folder_of(fence, self._workplace.work_dir) as work_dir,
            Heartbeat(self._executions, self._database, fence, run.stale_after, progress.snapshot) as heartbeat,
        ):

            def check() -> None:
                self._cancellation.check()
                heartbeat.check()

            def report(count: int) -> None:
                progress.add_bytes(count)
                check()

            execution = Execution(
                run=run,
                fence=fence,
                manifest=parse(self._runs.manifest(run.run_id)),
                runs=self._runs,
                executions=self._executions,
                areas=self._areas,
                store=self._store(report),
                work_dir=work_dir,
                progress=progress,
                check=check,
            )
            metrics = self._phases(execution)
            return self._finish(execution, {**metrics, "peak_memory_bytes": _peak_memory_bytes()})

    def _store(self, report: Callable[[int], None]) -> ArtifactStore:
        surroundings = Surroundings(time.monotonic, self._cancellation.wait, report)
        downloader = Downloader(self._workplace.download, surroundings)
        return ArtifactStore(self._workplace.artifact_folder, downloader, report)

    def _phases(self, execution: Execution) -> Metrics:
        """Every phase in order; the figures of each are stored when the next one begins."""
        metrics: Metrics = {}
        with Interruption(execution.check, self._database.interrupt):
            try:
                for state, work in PHASES:
                    execution.check()
                    self._executions.advance(execution.fence, state, metrics)
                    execution.progress.enter(state)
                    _log.info("phase %s", state, extra=_ids(execution.fence))
                    metrics = work(execution)
            except DatabaseUnavailable:
                execution.check()  # of a statement that was interrupted, this says why
                raise
        execution.check()
        return metrics

    def _finish(self, execution: Execution, metrics: Metrics) -> Executed:
        """Complete or publish. If the reply is lost, the run itself tells; if it cannot be read, nothing is claimed."""
        fence = execution.fence
        try:
            if execution.run.publish:
                self._executions.advance(fence, RunState.PUBLISHING, metrics)
                execution.progress.enter(RunState.PUBLISHING)
                self._executions.publish(fence)
            else:
                self._executions.complete(fence, metrics)
        except DatabaseUnavailable as lost:
            try:
                run = self._runs.get(fence.run_id)
            except GeogeniusError as error:
                message = f"the reply to the last write was lost ({lost}) and the run cannot be read: {error}"
                return Unrecorded(fence.run_id, started=True, message=message)
            if run is None or run.state is not RunState.COMPLETED:
                raise
        return Done(fence.run_id)

    def _record(self, fence: Fence, error: RunError) -> Executed:
        """Record a failure, several times if need be: a repeated record changes nothing."""
        last: GeogeniusError | None = None
        for attempt in range(FAIL_TRIES):
            if attempt:
                time.sleep(self._workplace.fail_pause_seconds)
            try:
                self._runs.fail(fence, error)
            except Conflict as conflict:
                return self._reread(fence) or NoOp(fence.run_id, _claim_of(conflict))
            except GeogeniusError as failure:
                last = failure
            else:
                _log.warning("the run failed in %s: %s", error.phase, error.message, extra=_ids(fence))
                return Failed(fence.run_id, error)
        message = f"{error.reason}: {error.message}; this could not be recorded: {last}"
        return Unrecorded(fence.run_id, started=True, message=message)

    def _not_ours(self, fence: Fence, phase: RunState, conflict: Conflict) -> Executed:
        """After a refused write: the run has ended, or is somebody else's; if it is still ours, the write was wrong."""
        try:
            run = self._runs.get(fence.run_id)
        except GeogeniusError:
            run = None
        if run is None:
            return NoOp(fence.run_id, _claim_of(conflict))
        if run.state is RunState.COMPLETED and run.executor_id == fence.executor_id:
            return Done(fence.run_id)
        if run.state.terminal:
            return NoOp(fence.run_id, Claim(run.state.value))
        if run.executor_id == fence.executor_id and _claim_of(conflict) is not Claim.SUPERSEDED:
            return self._record(fence, run_error(phase, conflict))
        return NoOp(fence.run_id, _claim_of(conflict))

    def _reread(self, fence: Fence) -> Executed | None:
        """How the run ended, if it has and can be read."""
        try:
            run = self._runs.get(fence.run_id)
        except GeogeniusError:
            return None
        return _ended(run) if run is not None and run.state.terminal else None


def _ended(run: Run) -> Executed:
    if run.state is RunState.COMPLETED:
        return Done(run.run_id)
    unknown = RunError(RunState.PENDING, "Unknown", "the run failed without a record of why")
    return Failed(run.run_id, run.error or unknown)


def _peak_memory_bytes() -> int:
    """The largest resident size of this process so far; Linux counts it in KiB (getrusage(2))."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _claim_of(conflict: Conflict) -> Claim:
    return Claim.SUPERSEDED if conflict.reason == "Superseded" else Claim.OCCUPIED


def _ids(fence: Fence) -> dict[str, str]:
    return {"run_id": str(fence.run_id), "executor_id": str(fence.executor_id)}


def remove_folders_of(fence: Fence, base: Path) -> None:
    """Remove what this executor of a run has left behind when it was killed; nobody else's."""
    for folder in base.glob(f"run_{fence.run_id.hex}_{fence.executor_id.hex}_*"):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _folder_of(fence: Fence, base: Path) -> Iterator[Path]:
    """A new folder for one execution, removed at the end whatever happened."""
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"run_{fence.run_id.hex}_{fence.executor_id.hex}_", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
