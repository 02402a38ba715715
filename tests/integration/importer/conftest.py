import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.runs import Runs
from geogenius.db import Database
from geogenius.domain.executed import Executed
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import Artifact, JsonValue, Manifest
from geogenius.domain.prepared import Registered
from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Pipeline, RunCatalog, Workplace
from geogenius.manifest import normal_form
from tests.support.geojson import a_manifest

Register = Callable[..., RunId]
Supply = Callable[..., Artifact]
Build = Callable[..., Pipeline]


@pytest.fixture
def runs(database: Database) -> Runs:
    return Runs(database)


@pytest.fixture
def areas(database: Database) -> Areas:
    return Areas(database)


@pytest.fixture
def cancellation() -> Cancellation:
    return Cancellation()


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Local downloads allowed; operator-supplied files in `supplied`."""
    (tmp_path / "supplied").mkdir()
    policy = DownloadPolicy(allow_http=True, allow_private=True, pause_seconds=0.01)
    return Workplace(tmp_path / "work", tmp_path / "supplied", policy, fail_pause_seconds=0.01)


@pytest.fixture
def build(database: Database, runs: Runs, areas: Areas, workplace: Workplace, cancellation: Cancellation) -> Build:
    """Build a pipeline; parts of the catalog may be ones that something happens to."""
    untouched = Executions(database)

    def pipeline(*, runs: Runs = runs, executions: Executions = untouched, areas: Areas = areas) -> Pipeline:
        return Pipeline(database, RunCatalog(runs, executions, areas), workplace, cancellation)

    return pipeline


@pytest.fixture
def pipeline(build: Build) -> Pipeline:
    return build()


@pytest.fixture
def executor() -> ExecutorId:
    return ExecutorId(uuid4())


@pytest.fixture
def supply(workplace: Workplace) -> Callable[..., Artifact]:
    """Put a file into the folder of operator-supplied artifacts; gives its review."""

    def put(text: bytes, name: str = "areas.geojson") -> Artifact:
        assert workplace.artifact_folder is not None
        (workplace.artifact_folder / name).write_bytes(text)
        return Artifact(name, "geojson", hashlib.sha256(text).hexdigest(), len(text), None)

    return put


@pytest.fixture
def register(runs: Runs) -> Register:
    """Register an import of these artifacts; gives the id of the run."""

    def prepare(
        *artifacts: Artifact,
        publish: bool = False,
        reject_limit: int = 0,
        release: str = "2030.1",
        manifest: Manifest | None = None,
        **options: JsonValue,
    ) -> RunId:
        document = normal_form(manifest or a_manifest(*artifacts, release=release, **options))
        intent = ImportIntent(RunId(uuid4()), "tests", "inline", publish=publish, reject_limit=reject_limit)
        prepared = runs.prepare(document, intent)
        assert isinstance(prepared, Registered), prepared
        return prepared.run_id

    return prepare


@pytest.fixture
def imported(
    pipeline: Pipeline, supply: Supply, register: Register, executor: ExecutorId
) -> Callable[..., tuple[RunId, Executed]]:
    """Supply, register and execute one file."""

    def run(text: bytes, name: str = "areas.geojson", **intent: Any) -> tuple[RunId, Executed]:  # noqa: ANN401
        run_id = register(supply(text, name), **intent)
        return run_id, pipeline.execute(run_id, executor)

    return run
