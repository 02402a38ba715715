from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Event
from typing import Any

import psycopg
import pytest
from typing_extensions import override

from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.domain.errors import DatabaseUnavailable, LeaseLost
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId
from geogenius.importer.heartbeat import Heartbeat, interval_of
from tests.support.geojson import an_artifact

FAST = timedelta(milliseconds=60)
SOON = 10.0


class Watched(Executions):
    """Tells the test about every beat."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.beat = Event()
        self.error: Exception | None = None

    @override
    def heartbeat(self, fence: Fence, progress: Mapping[str, int], connection: Any = None) -> None:
        try:
            if self.error:
                raise self.error
            super().heartbeat(fence, progress, connection)
        finally:
            self.beat.set()

    def next_beat(self) -> None:
        self.beat.clear()
        assert self.beat.wait(SOON)


@pytest.fixture
def watched(database: Database) -> Watched:
    return Watched(database)


@pytest.fixture
def fence(database: Database, register: Callable[..., RunId], executor: ExecutorId) -> Fence:
    fence = Fence(register(an_artifact()), executor)
    Executions(database).claim(fence)
    return fence


def ended(heartbeat: Heartbeat) -> Heartbeat:
    """The heart after it stopped by itself."""
    heartbeat._thread.join(SOON)
    assert not heartbeat._thread.is_alive()
    return heartbeat


@pytest.mark.parametrize(("window", "interval"), [(900, 30), (60, 10), (6, 1)])
def test_six_beats_fit_into_the_window_and_none_is_later_than_30_s(window: int, interval: int) -> None:
    assert interval_of(timedelta(seconds=window)) == timedelta(seconds=interval)


def test_beats_carry_the_progress_of_their_moment(database: Database, watched: Watched, fence: Fence) -> None:
    news = {"rows": 1}
    with Heartbeat(watched, database, fence, FAST, lambda: dict(news)) as heartbeat:
        watched.next_beat()
        news["rows"] = 7
        watched.next_beat()
        watched.next_beat()
        heartbeat.check()
    run = Runs(database).get(fence.run_id)
    assert run is not None
    assert run.progress["rows"] == 7


def test_a_beat_does_not_wait_for_a_write_that_holds_the_fence(
    database: Database, watched: Watched, fence: Fence, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("begin")
    sql.execute("select assert_import_write(%s, %s, array['pending']::run_state[])", (fence.run_id, fence.executor_id))
    with Heartbeat(watched, database, fence, FAST, dict):
        watched.next_beat()
        watched.next_beat()
    sql.execute("rollback")


def test_a_lost_lease_is_told_at_the_next_check(database: Database, watched: Watched, fence: Fence) -> None:
    with Heartbeat(watched, database, fence, FAST, dict) as heartbeat:
        watched.next_beat()
        Runs(database).fail(fence, RunError("pending", "Stopped", "enough"))
        with pytest.raises(LeaseLost):
            ended(heartbeat).check()


@pytest.mark.parametrize("error", [DatabaseUnavailable("gone"), ZeroDivisionError("a defect")])
def test_an_outage_is_told_only_after_the_window(
    database: Database, watched: Watched, fence: Fence, error: Exception
) -> None:
    watched.error = error
    with Heartbeat(watched, database, fence, timedelta(hours=1), dict) as heartbeat:
        assert watched.beat.wait(SOON)
        heartbeat.check()
    watched.beat.clear()
    with (
        Heartbeat(watched, database, fence, FAST, dict) as heartbeat,
        pytest.raises(DatabaseUnavailable, match="no heartbeat could be written") as raised,
    ):
        ended(heartbeat).check()
    assert raised.value.__cause__ is error


def test_beats_go_on_after_an_outage(
    database: Database, watched: Watched, fence: Fence, sql: psycopg.Connection[Any]
) -> None:
    with Heartbeat(watched, database, fence, timedelta(seconds=6), dict) as heartbeat:
        watched.next_beat()
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where pid <> pg_backend_pid() and datname = current_database()"
        )
        watched.next_beat()
        watched.next_beat()
        heartbeat.check()
