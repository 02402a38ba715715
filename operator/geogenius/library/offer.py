"""The runners of this package on one catalog, each built when it is first asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.util import find_spec

from geogenius.db.pool import Database
from geogenius.domain.errors import Misconfigured
from geogenius.importer.pipeline import Workplace
from geogenius.importer.recipe import Recipe
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners import inline, kubernetes_job, pgflow, task
from geogenius.runners.contract import Runner
from geogenius.runners.inline import Execute, InlineRunner
from geogenius.runners.pgflow import PgflowRunner
from geogenius.runners.resolution import Offer, Shipped, installed_runners
from geogenius.runners.task import TaskRunner

_OF_THE_OPERATOR = "a Job belongs to the operator, which sees to its end: apply an ImportRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """What runners need beside the catalog.

    `supervisor` is the host's own, which the host stops; without one, `task` makes another with `max_children` and
    `grace` (how long an executor that is asked to end may take). `deadline` and `worker_required` are those of the
    queue, as in PgflowRunner.
    """

    supervisor: TaskSupervisor | None = None
    max_children: int = 2
    grace: timedelta = timedelta(seconds=20)
    deadline: timedelta | None = None
    worker_required: bool = True


def task_supervisor(
    conninfo: str,
    *,
    schema: str = "geogenius",
    workplace: Workplace | None = None,
    max_children: int = 2,
    grace: timedelta = timedelta(seconds=20),
) -> TaskSupervisor:
    """A supervisor for a host that keeps one for its whole life, and stops it; for RunnerOptions.

    Nothing is started before its `start` or the first run. `grace`: how long an executor that is asked to end may take.
    """
    recipe = Recipe(conninfo, schema, workplace or Workplace())
    return TaskSupervisor(NURSERY, recipe.to_json(), max_children=max_children, grace=grace)


@contextmanager
def offered(database: Database, recipe: Recipe, execute: Execute, options: RunnerOptions) -> Iterator[Offer]:
    """What can be chosen on the catalog in a database that the caller closes.

    The end of the block waits for the imports that a supervisor of ours executes; an error or an interrupt that leaves
    the block has them stopped, and that is recorded. Raises Misconfigured for a supervisor of another schema.
    """
    if options.supervisor is not None and options.supervisor.schema != database.schema:
        raise Misconfigured(
            f"the supervisor executes runs of the schema {options.supervisor.schema!r}, not of {database.schema!r}"
        )
    own = TaskSupervisor(NURSERY, recipe.to_json(), max_children=options.max_children, grace=options.grace)
    queue = cache(lambda: PgflowRunner(database, options.deadline, worker_required=options.worker_required))
    shipped = {
        task.NAME: Shipped(cache(lambda: TaskRunner(options.supervisor or own))),
        inline.NAME: Shipped(cache(lambda: InlineRunner(execute))),
        pgflow.NAME: Shipped(queue, _missing_extra),
        kubernetes_job.NAME: Shipped(_no_job, lambda: _OF_THE_OPERATOR),
    }
    with own:
        yield Offer(shipped, installed_runners(), supervised=options.supervisor is not None)
        own.finish()


def _missing_extra() -> str | None:
    return None if find_spec("pgmq") else "it needs the queue's extra: pip install 'geogenius[pgflow]'"


def _no_job() -> Runner:
    raise Misconfigured(_OF_THE_OPERATOR, reason="RunnerUnknown")
