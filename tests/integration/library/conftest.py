import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geogenius.db import Database
from geogenius.domain.manifest import Artifact, Manifest
from geogenius.importer.pipeline import Workplace
from geogenius.library import Context
from geogenius.runners.contract import Runner
from tests.support.geojson import a_manifest, collection, squares
from tests.support.library import FaultyDatabase, Scripted

GOOD = collection(squares(4))


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Operator-supplied files in `supplied`."""
    (tmp_path / "supplied").mkdir()
    return Workplace(tmp_path / "work", tmp_path / "supplied")


@pytest.fixture
def reviewed(workplace: Workplace) -> Callable[..., Manifest]:
    """Supply a file and give a manifest that imports it."""

    def manifest(text: bytes = GOOD, release: str = "2030.1", **options: str) -> Manifest:
        assert workplace.artifact_folder is not None
        name = f"areas-{release}.geojson"
        (workplace.artifact_folder / name).write_bytes(text)
        artifact = Artifact(name, "geojson", hashlib.sha256(text).hexdigest(), len(text), None)
        return a_manifest(artifact, release=release, **options)

    return manifest


@pytest.fixture
def context(conninfo: str, workplace: Workplace) -> Iterator[Context]:
    """Imports are executed right here."""
    with Context.open(conninfo, runner="inline", workplace=workplace) as context:
        yield context


@pytest.fixture
def scripted(database: Database) -> Callable[..., tuple[Scripted, Context]]:
    """A runner that answers as it is told, and a context with it."""

    def build(*answers: object, returned: bool = False) -> tuple[Scripted, Context]:
        runner = Scripted(list(answers), returned=returned)
        return runner, context_on(database, runner)

    return build


@pytest.fixture
def faulty(conninfo: str) -> Iterator[FaultyDatabase]:
    with closing(FaultyDatabase(conninfo, application_name="faulty")) as database:
        yield database


def context_on(database: Database, runner: Runner) -> Context:
    return Context.on(database, runner)
