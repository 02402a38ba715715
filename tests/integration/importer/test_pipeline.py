import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
from typing_extensions import override

from geogenius.catalog.answers import MergeCounts
from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.places import Places
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs
from geogenius.db import Database
from geogenius.domain.area import StagedArea
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.manifest import Artifact
from geogenius.domain.run import NEXT_PHASE, ExecutorId, Fence, Run, RunError, RunId, RunState
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.exit_code import exit_code
from geogenius.importer.pipeline import Pipeline, Workplace
from tests.support.databases import session
from tests.support.geojson import a_manifest, collection, feature, square, squares
from tests.support.web import ok, serving, status

Supply = Callable[..., Artifact]
Register = Callable[..., RunId]
Build = Callable[..., Pipeline]
Imported = Callable[..., tuple[RunId, Executed]]
GOOD = collection(squares(10))


def read(runs: Runs, run_id: RunId) -> Run:
    run = runs.get(run_id)
    assert run is not None
    return run


def test_a_run_completes_with_every_row_accounted_for(
    pipeline: Pipeline, runs: Runs, workplace: Workplace, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(GOOD), supply(collection([feature("x", None)]), "more.geojson"))
    assert pipeline.execute(run_id, executor) == Done(run_id)
    run = read(runs, run_id)
    assert (run.state, run.executor_id, run.published) == (RunState.COMPLETED, executor, False)
    figures = {"artifacts": 2, "downloaded": 0, "rows": 11, "staged": 11, "areas": 11, "boundaries": 10, "repaired": 0}
    assert run.metrics.items() >= {**figures, "rejected": 0, "area_count": 11, "boundary_count": 10}.items()
    assert list(workplace.work_dir.iterdir()) == []


def test_a_published_run_is_visible(
    pipeline: Pipeline, database: Database, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(GOOD), publish=True)
    assert pipeline.execute(run_id, executor) == Done(run_id)
    assert [match.code for match in Places(database).for_point(3.5, 0.5)] == ["c3"]


def test_executing_again_does_nothing_and_says_so(
    pipeline: Pipeline, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(GOOD))
    assert pipeline.execute(run_id, executor) == Done(run_id)
    assert pipeline.execute(run_id, ExecutorId(uuid4())) == Done(run_id)


def test_a_run_of_another_executor_is_left_alone(
    pipeline: Pipeline,
    database: Database,
    runs: Runs,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    run_id = register(supply(GOOD))
    Executions(database).claim(Fence(run_id, ExecutorId(uuid4())))
    assert pipeline.execute(run_id, executor) == NoOp(run_id, Claim.OCCUPIED)
    assert read(runs, run_id).state is RunState.PENDING


def test_a_run_that_does_not_exist_is_told(pipeline: Pipeline, executor: ExecutorId) -> None:
    run_id = RunId(uuid4())
    assert pipeline.execute(run_id, executor) == Unrecorded(run_id, started=False, message=f"there is no run {run_id}")


def point() -> dict[str, Any]:
    return feature("p", {"type": "Point", "coordinates": [1, 1]})


NAN = collection([feature("good", square()), feature("bad", square(west=77.5))]).replace(b"77.5", b"NaN")


@pytest.mark.parametrize(
    ("text", "phase", "reason", "words"),
    [
        (b"code;name\n", "staging", "NotJson", "areas.geojson is not JSON"),
        (b'{"type":"Feature"}', "staging", "NotAFeatureCollection", "has the type 'Feature'"),
        (GOOD[:-30], "staging", "Truncated", "inside feature 10, which starts at byte"),
        (collection([feature("a"), feature(" ")]), "staging", "TooManyRejects", "areas.geojson row 2: blank_code"),
        (collection([feature("a"), point()]), "staging", "TooManyRejects", "row 2: non_polygon_geometry"),
        (
            NAN,
            "staging",
            "TooManyRejects",
            "row 2: bad_coordinates (position 1 of ring 1 of polygon 1 is longitude nan",
        ),
        (collection([feature("a"), feature("a")]), "normalizing", "TooManyRejects", "row 2: duplicate_code"),
        (collection([]), "verifying", "VerificationFailed", "no areas"),
    ],
)
def test_bad_data_fails_the_run_with_a_reason_and_a_place(
    imported: Imported, runs: Runs, text: bytes, phase: str, reason: str, words: str
) -> None:
    run_id, executed = imported(text, publish=True)
    assert isinstance(executed, Failed), executed
    assert (executed.error.phase, executed.error.reason, exit_code(executed)) == (phase, reason, 65)
    assert words in executed.error.message
    run = read(runs, run_id)
    assert (run.state, run.error, run.published) == (RunState.FAILED, executed.error, False)


def test_a_failure_leaves_the_previous_release_in_place(
    pipeline: Pipeline, database: Database, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    pipeline.execute(register(supply(GOOD), publish=True), executor)
    before = Publications(database).current("world")
    bad = register(supply(GOOD[:-1], "bad.geojson"), release="2030.2", publish=True)
    assert isinstance(pipeline.execute(bad, ExecutorId(uuid4())), Failed)
    assert Publications(database).current("world") == before


def test_rejects_within_the_limit_are_kept_and_the_rest_is_imported(
    pipeline: Pipeline, runs: Runs, areas: Areas, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    text = collection([feature("a", square()), feature(" "), feature("a", square(5)), point(), feature("b", None)])
    run_id = register(supply(text), reject_limit=3)
    assert pipeline.execute(run_id, executor) == Done(run_id)
    assert [(kept.position, kept.reason) for kept in areas.rejects(run_id, 10)] == [
        (2, "blank_code"),
        (3, "duplicate_code"),
        (4, "non_polygon_geometry"),
    ]
    metrics = read(runs, run_id).metrics
    assert metrics["rows"] == metrics["areas"] + metrics["rejected"] == 5


def test_the_refusal_names_the_count_the_limit_and_the_first_places(
    pipeline: Pipeline, areas: Areas, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(collection([feature("")] * 9)), reject_limit=2)
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert executed.error.message.startswith("9 rows rejected, 2 allowed; first: areas.geojson row 1: blank_code (")
    assert executed.error.message.count("areas.geojson row") == 5
    assert len(areas.rejects(run_id, 5000)) == 9


def test_reading_stops_well_beyond_the_limit(
    pipeline: Pipeline, areas: Areas, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(collection([feature("")] * 5000)))
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert executed.error.message.startswith("at least 1500 rows rejected, 0 allowed; first: ")
    assert len(areas.rejects(run_id, 5000)) == 1500


def test_a_wrong_checksum_fails_before_anything_is_read(
    pipeline: Pipeline, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(replace(supply(GOOD), sha256="0" * 64))
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.phase, executed.error.reason) == ("downloading", "ChecksumMismatch")
    assert hashlib.sha256(GOOD).hexdigest() in executed.error.message


def test_a_missing_file_is_told_with_its_path(
    pipeline: Pipeline, workplace: Workplace, register: Register, executor: ExecutorId
) -> None:
    executed = pipeline.execute(register(Artifact("gone.geojson", "geojson", "0" * 64, 1, None)), executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, exit_code(executed)) == ("ArtifactMissing", 65)
    assert f"{workplace.artifact_folder}/gone.geojson" in executed.error.message


def test_a_download_is_imported_and_removed(
    pipeline: Pipeline, runs: Runs, workplace: Workplace, register: Register, executor: ExecutorId
) -> None:
    with serving(status(503), ok(GOOD)) as server:
        wanted = Artifact("areas.geojson", "geojson", hashlib.sha256(GOOD).hexdigest(), len(GOOD), server.url())
        run_id = register(wanted)
        assert pipeline.execute(run_id, executor) == Done(run_id)
    assert read(runs, run_id).metrics["downloaded"] == 1
    assert list(workplace.work_dir.iterdir()) == []


def test_an_unreachable_url_is_a_source_unavailable(
    pipeline: Pipeline, register: Register, executor: ExecutorId
) -> None:
    with serving(ok(GOOD)) as server:
        url = server.url()
    executed = pipeline.execute(register(Artifact("a.geojson", "geojson", "0" * 64, 1, url)), executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, exit_code(executed)) == ("SourceUnavailable", 69)


def test_an_unknown_provider_or_option_is_told_by_its_field(
    pipeline: Pipeline, register: Register, executor: ExecutorId
) -> None:
    unknown = pipeline.execute(register(manifest=replace(a_manifest(), provider="csv")), executor)
    assert isinstance(unknown, Failed)
    assert unknown.error.message == "provider: there is no provider 'csv'; known are: geojson"
    option = pipeline.execute(register(release="2030.2", colour="red"), executor)
    assert isinstance(option, Failed)
    assert (option.error.reason, exit_code(option)) == ("ManifestInvalid", 65)


def test_a_request_to_stop_is_recorded_as_cancelled(
    pipeline: Pipeline, runs: Runs, cancellation: Cancellation, supply: Supply, register: Register, executor: ExecutorId
) -> None:
    run_id = register(supply(GOOD))
    cancellation.request("received SIGTERM")
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, exit_code(executed)) == ("Cancelled", 77)
    assert read(runs, run_id).state is RunState.FAILED


class FailedMeanwhile(Areas):
    """Somebody records a failure while the first batch is on its way."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = Runs(database)

    @override
    def stage(self, fence: Fence, artifact: str, areas: Any, rejects: Any) -> None:
        self._runs.fail(fence, RunError("staging", "StoppedByOperator", "enough"))
        super().stage(fence, artifact, areas, rejects)


def test_a_run_failed_from_outside_is_left_with_that_failure(
    build: Build,
    database: Database,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    run_id = register(supply(GOOD))
    pipeline = build(areas=FailedMeanwhile(database))
    assert pipeline.execute(run_id, executor) == NoOp(run_id, Claim.FAILED)
    error = read(Runs(database), run_id).error
    assert error is not None
    assert error.reason == "StoppedByOperator"


class Defective(Areas):
    """A defect of ours in the middle of the run."""

    @override
    def merge(self, fence: Fence, staged: int) -> MergeCounts:
        raise ZeroDivisionError(f"a defect of {type(fence).__name__} with {staged} areas")


def test_a_defect_is_recorded_and_logged_with_its_traceback(
    build: Build,
    database: Database,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_id = register(supply(GOOD))
    executed = build(areas=Defective(database)).execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, executed.error.phase, exit_code(executed)) == ("InternalError", "normalizing", 70)
    assert executed.error.message == "ZeroDivisionError: a defect of Fence with 10 areas"
    assert "Traceback" in caplog.text


@dataclass(slots=True)
class Loss:
    """The reply of one method is lost, after the write or before it; reading may be impossible from then on."""

    method: str
    written: bool
    readable: bool = True
    calls: int = 0

    def of(self, method: str, write: Callable[[], object]) -> None:
        lost = method == self.method
        if not lost or self.written:
            write()
        if lost:
            self.calls += 1
            raise DatabaseUnavailable("the connection broke")


class LosingExecutions(Executions):
    """Loses replies of an executor's calls."""

    def __init__(self, database: Database, loss: Loss) -> None:
        super().__init__(database)
        self._loss = loss

    @override
    def complete(self, fence: Fence, metrics: Any) -> None:
        self._loss.of("complete", lambda: super(LosingExecutions, self).complete(fence, metrics))

    @override
    def publish(self, fence: Fence) -> None:
        self._loss.of("publish", lambda: super(LosingExecutions, self).publish(fence))

    @override
    def claim(self, fence: Fence) -> Claim:
        if self._loss.method == "claim" and not self._loss.calls:
            self._loss.of("claim", lambda: super(LosingExecutions, self).claim(fence))
        return super().claim(fence)


class LosingRuns(Runs):
    """Loses replies of calls about runs."""

    def __init__(self, database: Database, loss: Loss) -> None:
        super().__init__(database)
        self._loss = loss

    @override
    def fail(self, fence: Fence, error: RunError) -> None:
        self._loss.of("fail", lambda: super(LosingRuns, self).fail(fence, error))

    @override
    def get(self, run_id: RunId) -> Run | None:
        if self._loss.calls and not self._loss.readable:
            raise DatabaseUnavailable("the network is down")
        return super().get(run_id)


Losing = Callable[..., tuple[Loss, Pipeline]]


@pytest.fixture
def losing(build: Build, database: Database) -> Losing:
    """Build a pipeline whose catalog loses a reply."""

    def pipeline(method: str, *, written: bool, readable: bool = True) -> tuple[Loss, Pipeline]:
        loss = Loss(method, written, readable)
        return loss, build(runs=LosingRuns(database, loss), executions=LosingExecutions(database, loss))

    return pipeline


@pytest.mark.parametrize("publish", [False, True])
def test_a_lost_reply_to_the_last_write_is_read_back(
    losing: Losing,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
    *,
    publish: bool,
) -> None:
    run_id = register(supply(GOOD), publish=publish)
    loss, pipeline = losing("publish" if publish else "complete", written=True)
    assert pipeline.execute(run_id, executor) == Done(run_id)
    assert loss.calls == 1


def test_a_last_write_that_did_not_happen_is_a_recorded_failure(
    losing: Losing,
    runs: Runs,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    run_id = register(supply(GOOD))
    _, pipeline = losing("complete", written=False)
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, exit_code(executed)) == ("DatabaseUnavailable", 70)
    assert read(runs, run_id).state is RunState.FAILED


@pytest.mark.parametrize("written", [False, True])
def test_a_last_write_of_unknown_outcome_is_told_as_unknown(
    losing: Losing,
    database: Database,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
    *,
    written: bool,
) -> None:
    run_id = register(supply(GOOD))
    _, pipeline = losing("complete", written=written, readable=False)
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Unrecorded)
    assert executed.started
    assert read(Runs(database), run_id).state is (RunState.COMPLETED if written else RunState.VERIFYING)


def test_a_lost_reply_to_the_claim_is_asked_again_with_the_same_executor(
    losing: Losing,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    run_id = register(supply(GOOD))
    loss, pipeline = losing("claim", written=True)
    assert pipeline.execute(run_id, executor) == Done(run_id)
    assert loss.calls == 1


def test_a_failure_that_cannot_be_recorded_is_unrecorded_with_its_cause(
    losing: Losing,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    run_id = register(supply(b"nonsense"))
    loss, pipeline = losing("fail", written=False)
    executed = pipeline.execute(run_id, executor)
    assert isinstance(executed, Unrecorded)
    assert executed.started
    assert executed.message.startswith("NotJson: areas.geojson is not JSON")
    assert loss.calls == 3
    assert exit_code(executed) == 75


class Recorder(Executions):
    """Notes the phases."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.phases: list[RunState] = []

    @override
    def advance(self, fence: Fence, next_phase: RunState, metrics: Any) -> None:
        self.phases.append(next_phase)
        super().advance(fence, next_phase, metrics)


def test_every_phase_is_passed_in_order(
    build: Build,
    database: Database,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
) -> None:
    recorder = Recorder(database)
    build(executions=recorder).execute(register(supply(GOOD), publish=True), executor)
    assert recorder.phases == list(NEXT_PHASE.values())


class CancelsInStaging(Areas):
    """SIGTERM arrives while a batch is written."""

    def __init__(self, database: Database, cancellation: Cancellation) -> None:
        super().__init__(database)
        self._cancellation = cancellation
        self.batches: list[list[StagedArea]] = []

    @override
    def stage(self, fence: Fence, artifact: str, areas: Any, rejects: Any) -> None:
        super().stage(fence, artifact, areas, rejects)
        self.batches.append(areas)
        self._cancellation.request("received SIGTERM")


def test_a_request_to_stop_is_noticed_at_the_next_batch(
    build: Build,
    database: Database,
    supply: Supply,
    register: Register,
    executor: ExecutorId,
    cancellation: Cancellation,
) -> None:
    run_id = register(supply(collection(squares(2000))))
    areas = CancelsInStaging(database, cancellation)
    executed = build(areas=areas).execute(run_id, executor)
    assert isinstance(executed, Failed)
    assert (executed.error.reason, executed.error.phase, len(areas.batches)) == ("Cancelled", "staging", 1)
    with session(database) as sql:
        assert sql.execute("select relname from pg_class where relname like 'staging_%'").fetchall() == []
