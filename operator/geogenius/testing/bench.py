"""The catalog on the test bench: registers small imports, executes them, and tells what became of them."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event
from time import monotonic
from uuid import uuid4

from geogenius.catalog.runs import Runs
from geogenius.db.pool import Database
from geogenius.domain.deadline import Deadline
from geogenius.domain.enqueued import Enqueued
from geogenius.domain.executed import Executed
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import AreaType, Artifact, Authority, Manifest, Source
from geogenius.domain.prepared import Registered
from geogenius.domain.run import ExecutorId, Run, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.pipeline import Pipeline, Workplace
from geogenius.manifest import normal_form
from geogenius.runners.contract import Arguments, Runner, arguments, enqueue_with

STALE_AFTER = timedelta(minutes=7)
"""The window of every run: unlike the default, so that a lost one is noticed."""

END_SECONDS = 30.0
"""How long a run of two areas may take on a busy machine."""

LOOK_SECONDS = 0.02

_FILE = "areas.geojson"
_AREAS = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "properties": {"id": code}, "geometry": None} for code in ("DE", "FR")],
    }
).encode()


@dataclass(frozen=True, slots=True)
class Arrived:
    """What the executing side of a run was told."""

    publish: bool
    stale_after_seconds: int | None


class CatalogBench:
    """A prepared catalog, seen from the pipeline (`database`) and from the side of the runner (`starter`).

    A run is given up that has not ended after `end_seconds`.
    """

    end_seconds = END_SECONDS

    def __init__(self, database: Database, starter: Database, folder: Path) -> None:
        self.database = database
        self.starter = starter
        self.runs = Runs(database)
        self.workplace = Workplace(folder / "work", folder / "supplied", fail_pause_seconds=0.01)

    @classmethod
    @contextmanager
    def open(cls, writer: str, starter: str, folder: Path, *, schema: str = "geogenius") -> Iterator["CatalogBench"]:
        """A bench on two connection strings of the roles of `prepare_catalog`; files are kept in the folder."""
        database = Database(writer, application_name="geogenius-bench", schema=schema)
        side = Database(starter, application_name="geogenius-starter", schema=schema)
        (folder / "supplied").mkdir(parents=True, exist_ok=True)
        (folder / "supplied" / _FILE).write_bytes(_AREAS)
        try:
            yield cls(database, side, folder)
        finally:
            side.close()
            database.close()

    def intent(self, runner: str, *, publish: bool = False) -> ImportIntent:
        """The intent of a new run that this runner shall start."""
        return ImportIntent(RunId(uuid4()), "conformance", runner, publish=publish, stale_after=STALE_AFTER)

    def register(self, intent: ImportIntent, *, sound: bool = True) -> Run:
        """An import of two areas into a collection of its own, registered and committed.

        One that is not sound fails by itself: its file is not the one that was reviewed.
        """
        prepared = self.runs.prepare(normal_form(_manifest(sound=sound)), intent)
        if not isinstance(prepared, Registered):
            raise TypeError(f"the bench could not register a run: {prepared}")
        return self.run(prepared.run_id)

    def run(self, run_id: RunId) -> Run:
        """The run as the catalog has it now."""
        run = self.runs.get(run_id)
        if run is None:
            raise LookupError(f"run {run_id} is not in the catalog")
        return run

    def ask(self, runner: Runner, run_id: RunId, args: Arguments | None = None) -> Enqueued:
        """Ask a runner as the launcher does: arguments after a round trip through JSON, the answer recorded."""
        run = self.run(run_id)
        wanted = arguments(publish=run.publish, stale_after=run.stale_after) if args is None else args
        answer = enqueue_with(runner, run_id, json.loads(json.dumps(wanted)))
        self.runs.record_enqueue(run_id, answer)
        return answer

    def execute(self, run_id: RunId, database: Database | None = None) -> Executed:
        """Execute the run in this process, as an executor of its own; through another database where one is given."""
        pipeline = Pipeline.on(database or self.database, self.workplace, Cancellation())
        return pipeline.execute(run_id, ExecutorId(uuid4()))

    def arrived(self, run_id: RunId) -> Arrived | None:
        """What an executor reads that is told nothing but the run; None where none has claimed it."""
        run = self.run(run_id)
        return None if run.executor_id is None else Arrived(run.publish, int(run.stale_after.total_seconds()))

    def ended(self, run_id: RunId) -> Run:
        """The run once it has ended; raises TimeoutError where it has not in time."""
        deadline = Deadline.after(self.end_seconds, monotonic)
        while not (run := self.run(run_id)).state.terminal:
            if deadline.passed:
                raise TimeoutError(f"run {run_id} has not ended after {self.end_seconds} s: it is {run.state}")
            Event().wait(LOOK_SECONDS)
        return run


def _manifest(*, sound: bool) -> Manifest:
    reviewed = hashlib.sha256(_AREAS if sound else b"another file").hexdigest()
    artifact = Artifact(_FILE, "geojson", reviewed, len(_AREAS), None)
    return Manifest(
        collection=f"conformance_{uuid4().hex}",
        release="1",
        provider="geojson",
        authorities=(Authority("iso", "ISO"),),
        area_types=(AreaType("country", 10, requires_geometry=False),),
        sources=(
            Source(
                source_key="conformance",
                provider="geojson",
                license="CC0-1.0",
                release_key=uuid4().hex,
                attribution=None,
                source_date=None,
                artifacts=(artifact,),
            ),
        ),
        options={"area_type": "country", "code_property": "id"},
    )
