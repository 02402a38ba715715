"""Which runner a program gets, and what the end of its context means for imports under way."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from geogenius.catalog import Runs
from geogenius.db import Database
from geogenius.domain.enqueued import Accepted
from geogenius.domain.errors import Misconfigured
from geogenius.domain.manifest import Manifest
from geogenius.domain.run import RunState
from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Workplace
from geogenius.launcher.launch import Rejected, Started
from geogenius.library import Context, RunnerOptions, import_release, status, task_supervisor
from tests.support.file_server import serving_files
from tests.support.host_processes import SlowRuns

Reviewed = Callable[..., Manifest]


def test_without_a_word_imports_are_executed_in_children_and_the_end_of_the_context_waits_for_them(
    conninfo: str, workplace: Workplace, reviewed: Reviewed
) -> None:
    with Context.open(conninfo, workplace=workplace) as context:
        answer = import_release(context, reviewed())
        assert context.runner.name() == "task"

    assert isinstance(answer, Started)
    with Context.open(conninfo, runner="inline") as context:
        run = status(context, answer.run_id)
    assert run is not None
    assert (run.state, run.runner) == (RunState.COMPLETED, "task")


def test_an_error_that_leaves_the_context_stops_them_and_that_is_recorded(
    conninfo: str, workplace: Workplace, database: Database
) -> None:
    generous = replace(workplace, download=DownloadPolicy(allow_http=True, allow_private=True, read_seconds=0.3))
    with serving_files("127.0.0.1") as server:
        slow = SlowRuns(Runs(database), server)
        run_id = slow.register()
        with suppress(ZeroDivisionError), Context.open(conninfo, workplace=generous) as context:
            assert context.runner.enqueue(run_id, {}) == Accepted()
            slow.until_under_way(run_id)
            raise ZeroDivisionError

    run = Runs(database).get(run_id)
    assert run is not None
    assert run.error is not None
    assert run.error.reason == "SupervisorStopped"


def test_a_supervisor_of_the_host_is_used_even_if_it_is_dead(
    conninfo: str, workplace: Workplace, reviewed: Reviewed
) -> None:
    dead = task_supervisor(conninfo)
    dead.stop()
    with Context.open(conninfo, workplace=workplace, options=RunnerOptions(supervisor=dead)) as context:
        answer = import_release(context, reviewed())

    assert isinstance(answer, Rejected)
    assert (answer.error.reason, answer.recorded) == ("SupervisorStopped", True)


@pytest.mark.parametrize("named", ["nobody", "kubernetes_job"])
def test_a_runner_that_is_not_for_programs_is_refused_when_the_context_is_opened(named: str, conninfo: str) -> None:
    with pytest.raises(Misconfigured) as refusal, Context.open(conninfo, runner=named):
        pass

    assert refusal.value.reason == "RunnerUnknown"
