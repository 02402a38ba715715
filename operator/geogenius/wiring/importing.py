"""Imports without a cluster: executed in this process, or started by the runner that the settings name."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from geogenius.domain.executed import Executed
from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Pipeline, Workplace
from geogenius.importer.recipe import Recipe
from geogenius.library.context import Context
from geogenius.library.offer import RunnerOptions, offered
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners import inline
from geogenius.runners.inline import InlineRunner
from geogenius.runners.resolution import Listed, Offer, listing, resolve
from geogenius.settings import Settings
from geogenius.wiring.catalog import CatalogContext, database_url, opened, started


@dataclass(frozen=True, slots=True)
class ImportContext:
    """The catalog and the pipeline in this process."""

    catalog: CatalogContext
    pipeline: Pipeline
    cancellation: Cancellation

    def execute(self, run_id: RunId) -> Executed:
        """Execute the run as an executor of its own; SIGTERM ends it at the next batch."""
        with self.cancellation.on_signals():
            return self.pipeline.execute(run_id, ExecutorId(uuid4()))

    @property
    def library(self) -> Context:
        """The same catalog for the library, with a runner that executes runs right here."""
        return Context.on(self.catalog.database, InlineRunner(self.execute))


@contextmanager
def import_context() -> Iterator[ImportContext]:
    """Open the catalog and build the pipeline."""
    settings = started()
    with opened(settings, "geogenius-importer") as catalog:
        yield _importing(settings, catalog)


@contextmanager
def library_context() -> Iterator[Context]:
    """Open the catalog for the library, with the runner `inline`."""
    settings = started()
    with opened(settings, "geogenius") as catalog:
        yield _importing(settings, catalog).library


@contextmanager
def starting_context(runner: str | None) -> Iterator[Context]:
    """Open the catalog for the library, with the runner of this name, else the one that is set, else `inline`.

    Raises Misconfigured for a runner that cannot be used here.
    """
    settings = started()
    with _offering(settings) as (catalog, offer):
        chosen = resolve(runner, settings.runner.name or inline.NAME, offer)
        yield Context.on(catalog.database, chosen)


def listed_runners() -> tuple[Listed, ...]:
    """Every runner that could start imports here. Raises Misconfigured where the settings are wrong."""
    with _offering(started()) as (_, offer):
        return listing(offer)


@contextmanager
def _offering(settings: Settings) -> Iterator[tuple[CatalogContext, Offer]]:
    options = RunnerOptions(
        max_children=settings.runner.max_children,
        grace=timedelta(seconds=settings.runner.grace_seconds),
        deadline=deadline_of(settings),
        worker_required=settings.pgflow.worker_required,
    )
    with opened(settings, "geogenius") as catalog:
        execute = _importing(settings, catalog).execute
        with offered(catalog.database, _recipe(settings), execute, options) as offer:
            yield catalog, offer


def supervisor_of(settings: Settings, max_children: int) -> TaskSupervisor:
    """A supervisor whose executors work as the settings say; the caller stops it."""
    grace = timedelta(seconds=settings.runner.grace_seconds)
    return TaskSupervisor(NURSERY, _recipe(settings).to_json(), max_children=max_children, grace=grace)


def deadline_of(settings: Settings) -> timedelta | None:
    """How long an execution of the queue may take, if that is set."""
    seconds = settings.pgflow.deadline_seconds
    return None if seconds is None else timedelta(seconds=seconds)


def _recipe(settings: Settings) -> Recipe:
    return Recipe(
        conninfo=database_url(settings),
        schema=settings.database.schema_name,
        workplace=_workplace(settings),
        log_level=settings.telemetry.level,
        log_format=settings.telemetry.format,
    )


def _importing(settings: Settings, catalog: CatalogContext) -> ImportContext:
    cancellation = Cancellation()
    pipeline = Pipeline.on(catalog.database, _workplace(settings), cancellation)
    return ImportContext(catalog, pipeline, cancellation)


def _workplace(settings: Settings) -> Workplace:
    download, importer = settings.download, settings.importer
    policy = DownloadPolicy(
        allow_http=download.allow_http,
        allow_private=download.allow_private_addresses,
        connect_seconds=download.connect_timeout_seconds,
        read_seconds=download.read_timeout_seconds,
    )
    base = importer.work_dir or Path(tempfile.gettempdir()) / "geogenius"
    return Workplace(work_dir=base, artifact_folder=importer.artifact_dir, download=policy)
