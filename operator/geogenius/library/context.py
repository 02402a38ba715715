"""What every function of the library works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.hierarchy import Hierarchy
from geogenius.catalog.lookup import Lookup
from geogenius.catalog.places import Places
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs
from geogenius.db.pool import Database
from geogenius.domain.executed import Executed
from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.pipeline import Pipeline, RunCatalog, Workplace
from geogenius.runners.contract import Runner
from geogenius.runners.explicit import explicit_runner
from geogenius.runners.inline import InlineRunner


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
        cls, conninfo: str, *, schema: str = "geogenius", runner: object = None, workplace: Workplace | None = None
    ) -> Iterator["Context"]:
        """A context for a program without settings of its own; everything is closed at the end of the block.

        `runner` is a runner, a class that makes one, or `module:attribute`; without one, imports are executed by the
        calling thread, with files from `workplace`. Nothing is connected before the first use. Raises Misconfigured.
        """
        database = Database(conninfo, application_name="geogenius", schema=schema)
        try:
            chosen = _inline(database, workplace) if runner is None else explicit_runner(runner)
            yield cls.on(database, chosen)
        finally:
            database.close()


def _inline(database: Database, workplace: Workplace | None) -> Runner:
    written = RunCatalog(Runs(database), Executions(database), Areas(database))
    pipeline = Pipeline(database, written, workplace or Workplace(), Cancellation())

    def execute(run_id: RunId) -> Executed:
        return pipeline.execute(run_id, ExecutorId(uuid4()))

    return InlineRunner(execute)
