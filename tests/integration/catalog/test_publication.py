"""Completion attaches a release where readers find it; publication moves the pointer; readers never wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Areas, Executions, Places, Publications, Runs, Scope
from geogenius.db import Database
from geogenius.domain.errors import Conflict, DataRefused, LeaseLost
from geogenius.domain.run import Fence, ReleaseId, Run, RunError, RunId, RunState
from tests.support.catalog import a_manifest, completed, driven, published, release_of
from tests.support.databases import opened, until_waiting_for_lock

Sql = psycopg.Connection[psycopg.rows.DictRow]
R2 = a_manifest(release="r2")
EVENTS = "select release_id, previous_release_id, kind from publication_event order by sequence"


def run_of(database: Database, run_id: RunId) -> Run:
    run = Runs(database).get(run_id)
    assert run is not None
    return run


@contextmanager
def reading(conninfo: str, collection: str = "world") -> Iterator[None]:
    """A reader in the middle of a long transaction over the published areas of a collection."""
    query = "select count(*) from published_areas where collection_key = %s"
    with opened(conninfo, "reader") as database, database.connection() as connection:
        connection.execute(query, [collection])
        yield


def current(database: Database) -> ReleaseId:
    pointer = Publications(database).current("world")
    assert pointer is not None
    return pointer.release_id


def keys_at(database: Database, longitude: float, latitude: float, *collections: str) -> list[str]:
    matches = Places(database).for_point(longitude, latitude, Scope(collections or None))
    return [f"{match.collection}/{match.release}/{match.area_key}" for match in matches]


def test_completion_ends_the_run_and_leaves_the_pointer(database: Database, sql: Sql) -> None:
    fence = completed(database)
    run = run_of(database, fence.run_id)
    assert (run.state, run.published, run.executor_id) == (RunState.COMPLETED, False, fence.executor_id)
    assert run.completed_at is not None
    assert Publications(database).current("world") is None
    assert keys_at(database, 10.5, 50.5) == []
    left = sql.execute("select relname from pg_class where relname ~ '^staging_'").fetchall()
    assert left == []
    assert sql.execute("select count(*) as areas from release_area").fetchone() == {"areas": 2}


def test_completion_merges_metrics(database: Database) -> None:
    fence = driven(database, RunState.VERIFYING)
    Areas(database).verify(fence)
    Executions(database).complete(fence, {"areas": 2})
    assert run_of(database, fence.run_id).metrics == {"areas": 2}


def test_publication_moves_the_pointer_and_logs_each_move(database: Database, sql: Sql) -> None:
    first, second = (release_of(database, published(database, manifest)) for manifest in (a_manifest(), R2))
    assert current(database) == second
    assert sql.execute("select release_id, previous_release_id from publication").fetchall() == [
        {"release_id": second, "previous_release_id": first}
    ]
    assert sql.execute(EVENTS).fetchall() == [
        {"release_id": first, "previous_release_id": None, "kind": "published"},
        {"release_id": second, "previous_release_id": first, "kind": "published"},
    ]


def test_only_the_visible_release_says_published(database: Database) -> None:
    first, second = published(database), published(database, R2)
    assert [run_of(database, fence.run_id).published for fence in (first, second)] == [False, True]


@pytest.mark.parametrize("end", ["complete", "publish"])
def test_an_end_needs_its_phase_its_files_and_its_verification(database: Database, sql: Sql, end: str) -> None:
    phase = RunState.VERIFYING if end == "complete" else RunState.PUBLISHING
    fence = driven(database, phase)
    executions = Executions(database)

    def finish(held: Fence = fence) -> None:
        if end == "complete":
            executions.complete(held, {})
        else:
            executions.publish(held)

    def refused() -> str:
        with pytest.raises((Conflict, DataRefused)) as error:
            finish()
        return error.value.reason

    sql.execute("update import_run set verification = null")
    assert refused() == "NotVerified"
    sql.execute("update import_run set verification = '{\"ok\": true}'")
    sql.execute("update import_run_artifact set observed_at = null, observed_sha256 = null, observed_bytes = null")
    assert refused() == "ArtifactUnobserved"
    sql.execute("update import_run_artifact set observed_at = now(), observed_sha256 = sha256, observed_bytes = bytes")
    sql.execute("update import_run set state = 'indexing'")
    assert refused() == "WrongPhase"
    sql.execute("update import_run set state = %s", [phase])
    with pytest.raises(LeaseLost):
        finish(Fence(fence.run_id, uuid4()))  # type: ignore[arg-type]  # any uuid will do
    assert run_of(database, fence.run_id).state is phase, "a refusal leaves the run as it was"
    finish()
    with pytest.raises(LeaseLost):
        finish()


def test_a_failed_import_leaves_the_previous_release_in_place(database: Database) -> None:
    first = published(database)
    second = driven(database, RunState.PUBLISHING, R2)
    Runs(database).fail(second, RunError("publishing", "Cancelled", "asked to stop"))
    assert current(database) == release_of(database, first)
    assert keys_at(database, 10.5, 50.5) == ["world/r1/iso:country:DE"]


def test_a_first_and_a_second_release_complete_while_somebody_reads_the_collection(
    database: Database, conninfo: str
) -> None:
    published(database)
    second, other = driven(database, RunState.PUBLISHING, R2), driven(
        database, RunState.PUBLISHING, a_manifest(collection="moon")
    )  # fmt: skip
    with reading(conninfo), database.connection() as end:
        end.execute("set local lock_timeout = '1ms'")
        for fence in (second, other):
            end.execute("select publish_import(%s, %s)", [fence.run_id, fence.executor_id])
    assert keys_at(database, 10.5, 50.5) == ["moon/r1/iso:country:DE", "world/r2/iso:country:DE"]


def test_readers_do_not_wait_for_an_end_in_flight(database: Database, conninfo: str) -> None:
    published(database)
    fence = driven(database, RunState.PUBLISHING, R2)
    with opened(conninfo, "ending") as ending, ending.connection() as end:
        end.execute("select publish_import(%s, %s)", [fence.run_id, fence.executor_id])
        with database.connection() as reader:
            reader.execute("set local lock_timeout = '1ms'")
            row = reader.execute("select count(*) as areas from published_areas").fetchone()
            assert row == {"areas": 2}
        assert keys_at(database, 10.5, 50.5) == ["world/r1/iso:country:DE"]
    assert keys_at(database, 10.5, 50.5) == ["world/r2/iso:country:DE"]


def test_two_first_releases_of_a_collection_complete_one_after_the_other(
    database: Database, conninfo: str, sql: Sql
) -> None:
    first, second = driven(database, RunState.PUBLISHING), driven(database, RunState.VERIFYING, R2)
    Areas(database).verify(second)
    with opened(conninfo, "second") as other, ThreadPoolExecutor() as threads:
        with database.connection() as end:
            end.execute("select publish_import(%s, %s)", [first.run_id, first.executor_id])
            completing = threads.submit(Executions(other).complete, second, {})
            until_waiting_for_lock(sql, "second")
        completing.result()
    assert run_of(database, second.run_id).state is RunState.COMPLETED


def test_an_import_of_one_release_does_not_wait_for_the_publication_of_another(database: Database) -> None:
    building, publishing = driven(database, RunState.STAGING, R2), driven(database, RunState.PUBLISHING)
    with database.connection() as end:
        end.execute("select publish_import(%s, %s)", [publishing.run_id, publishing.executor_id])
        with database.connection() as connection:
            connection.execute("set local lock_timeout = '1ms'")
            for step in (
                "create_staging(%s, %s)",
                "advance_import(%s, %s, 'normalizing', '{}')",
                "merge_staging(%s, %s, 0)",
            ):
                connection.execute(f"select {step}".encode(), [building.run_id, building.executor_id])


def test_attaching_scans_nothing(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.VERIFYING)
    Areas(database).verify(fence)
    with database.connection() as connection:
        connection.execute("set local client_min_messages = debug1")
        heard: list[str] = []
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
        connection.execute("select complete_import(%s, %s, '{}')", [fence.run_id, fence.executor_id])
    leaves = [row["name"] for row in sql.execute("select release_table(p, id) as name from release, "
              "unnest(array['release_area', 'boundary']) p")]  # fmt: skip
    for leaf in leaves:
        assert [line for line in heard if leaf in line and "implied by existing constraints" in line]
