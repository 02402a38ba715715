"""Waiting for the end of a run, whoever executes it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Event
from uuid import uuid4

import pytest
from typing_extensions import override

from geogenius.catalog import Runs
from geogenius.db import Database
from geogenius.domain.enqueued import Accepted
from geogenius.domain.run import ExecutorId, Fence, Run, RunError, RunId
from geogenius.library import Completed, Context, FailedRun, TimedOut, UnknownRun, await_run
from geogenius.library.imports import AWAIT_TIMEOUT
from tests.support.builders import RUN_ID
from tests.support.catalog import a_manifest, completed, registered
from tests.support.library import Scripted

ERROR = RunError("staging", "DataRefused", "row 7")
SOON = 10.0


class Watched(Runs):
    """Tells the test about looks at a run."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked = Event()

    @override
    def get(self, run_id: RunId) -> Run | None:
        run = super().get(run_id)
        self.looked.set()
        return run


@pytest.fixture
def context(scripted: Callable[..., tuple[Scripted, Context]]) -> Context:
    return scripted(Accepted())[1]


def fail(database: Database, run_id: RunId) -> None:
    Runs(database).fail(Fence(run_id, ExecutorId(uuid4())), ERROR)


def test_the_ways_a_run_can_end_are_told_apart(context: Context, database: Database) -> None:
    done = await_run(context, completed(database).run_id)
    assert isinstance(done, Completed)
    lost = registered(database, a_manifest(release="lost"))
    fail(database, lost)
    failed = await_run(context, lost)
    assert isinstance(failed, FailedRun)
    assert failed.run.error == ERROR
    assert await_run(context, RUN_ID) == UnknownRun(RUN_ID)


@pytest.mark.parametrize("milliseconds", [0, 300])
def test_the_time_that_is_up_is_an_answer_of_its_own(context: Context, database: Database, milliseconds: int) -> None:
    run_id = registered(database)
    waited = await_run(context, run_id, timedelta(milliseconds=milliseconds))
    assert isinstance(waited, TimedOut)
    assert (waited.run.run_id, waited.run.completed_at) == (run_id, None)


@pytest.mark.parametrize("timeout", [None, timedelta(seconds=SOON), AWAIT_TIMEOUT], ids=["endless", "given", "usual"])
def test_an_end_that_comes_later_is_noticed(context: Context, database: Database, timeout: timedelta | None) -> None:
    run_id = registered(database)
    watched = Watched(database)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(await_run, replace(context, runs=watched), run_id, timeout)
        assert watched.looked.wait(SOON)
        fail(database, run_id)
        assert isinstance(waiting.result(SOON), FailedRun)


def test_a_run_is_waited_for_half_an_hour() -> None:
    assert timedelta(seconds=1800) == AWAIT_TIMEOUT
