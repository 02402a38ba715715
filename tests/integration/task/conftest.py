from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta

import pytest

from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Workplace
from geogenius.importer.recipe import Recipe
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners.task import TaskRunner
from geogenius.testing import CatalogBench

PASSWORD = "hush-hush-hush"
"""The server wants none; it stands for all that is secret in a connection string."""

GRACE = timedelta(seconds=10)
"""Enough for an executor to end by itself on a busy machine."""

Supervise = Callable[..., TaskSupervisor]


@pytest.fixture
def recipe(bench: CatalogBench, conninfo: str) -> Recipe:
    """A download that stands still is tried again and again, and looks around in between."""
    policy = DownloadPolicy(
        allow_http=True, allow_private=True, read_seconds=0.3, attempts=20, pause_seconds=0.001, total_seconds=1e9
    )
    place = bench.workplace
    workplace = Workplace(place.work_dir, place.artifact_folder, policy, fail_pause_seconds=0.01)
    return Recipe(conninfo=f"{conninfo} password={PASSWORD}", workplace=workplace)


@pytest.fixture
def supervise(recipe: Recipe) -> Iterator[Supervise]:
    """Make supervisors, which are stopped in the end."""
    with ExitStack() as stack:

        def make(
            command: Sequence[str] = NURSERY, *, max_children: int = 2, grace: timedelta = GRACE
        ) -> TaskSupervisor:
            return stack.enter_context(
                TaskSupervisor(command, recipe.to_json(), max_children=max_children, grace=grace)
            )

        yield make


@pytest.fixture
def supervisor(supervise: Supervise) -> TaskSupervisor:
    return supervise()


@pytest.fixture
def runner(supervisor: TaskSupervisor) -> TaskRunner:
    return TaskRunner(supervisor)
