"""What every function of the library works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from geogenius.catalog.hierarchy import Hierarchy
from geogenius.catalog.lookup import Lookup
from geogenius.catalog.places import Places
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs
from geogenius.db.pool import Database
from geogenius.domain.executed import Executed
from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.pipeline import Pipeline, Workplace
from geogenius.importer.recipe import Recipe
from geogenius.library.offer import RunnerOptions, offered
from geogenius.runners.contract import Runner
from geogenius.runners.resolution import resolve


@dataclass(frozen=True, slots=True)
class Context:
    """One catalog, and the runner that starts imports into it. Safe to share between threads, as its runner is.

    For `places`, `lookup` and `hierarchy`, which answer questions, the rights of a reader are enough.
    """

    runs: Runs
    publications: Publications
    places: Places
    lookup: Lookup
    hierarchy: Hierarchy
    runner: Runner

    @classmethod
    def on(cls, database: Database, runner: Runner) -> "Context":
        """A context on a database that the caller closes."""
        return cls(
            Runs(database), Publications(database), Places(database), Lookup(database), Hierarchy(database), runner
        )

    @classmethod
    @contextmanager
    def open(
        cls,
        conninfo: str,
        *,
        schema: str = "geogenius",
        runner: object = None,
        workplace: Workplace | None = None,
        options: RunnerOptions | None = None,
    ) -> Iterator["Context"]:
        """A context for a program without settings of its own; everything is closed at the end of the block.

        `runner` is a runner, a class that makes one, `module:attribute`, or the name of one that is shipped or
        installed. Without one, imports are executed in child processes, with files from `workplace`; the end of the
        block waits for those, but an error that leaves it stops them. Nothing is connected, and no process started,
        before the first use. Raises Misconfigured.
        """
        database = Database(conninfo, application_name="geogenius", schema=schema)
        workplace = workplace or Workplace()
        recipe = Recipe(conninfo, schema, workplace)
        pipeline = Pipeline.on(database, workplace, Cancellation())

        def execute(run_id: RunId) -> Executed:
            return pipeline.execute(run_id, ExecutorId(uuid4()))

        try:
            with offered(database, recipe, execute, options or RunnerOptions()) as offer:
                yield cls.on(database, resolve(runner, None, offer))
        finally:
            database.close()
