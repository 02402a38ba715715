"""Completion attaches a release where readers find it; publication moves the pointer; readers never wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Areas, Published, Runs
from geogenius.db import Database
from geogenius.domain.errors import Conflict, DataRefused, InvalidRequest, LeaseLost
from geogenius.domain.run import Fence, ReleaseId, Run, RunError, RunId, RunState
from tests.support.catalog import a_manifest, an_area, completed, driven, published, square
from tests.support.databases import opened, until_waiting_for_lock

Sql = psycopg.Connection[psycopg.rows.DictRow]
R2 = a_manifest(release="r2")
EVENTS = "select release_id, previous_release_id, kind from publication_event order by sequence"
LEAVES = """
select relation::regclass::text as name from pg_locks
where pid = pg_backend_pid() and relation::regclass::text ~ '^(boundary|release_area)_[0-9a-f]{32}$' order by 1
"""


def release_of(database: Database, fence: Fence) -> ReleaseId:
    return run_of(database, fence.run_id).release_id


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


def keys_at(database: Database, longitude: float, latitude: float, *collections: str) -> list[str]:
    matches = Published(database).areas_for_point(longitude, latitude, collections or None)
    return [f"{match.collection}/{match.release}/{match.area_key}" for match in matches]


def test_completion_ends_the_run_and_leaves_the_pointer(database: Database, sql: Sql) -> None:
    fence = completed(database)
    run = run_of(database, fence.run_id)
    assert (run.state, run.published, run.executor_id) == (RunState.COMPLETED, False, fence.executor_id)
    assert run.completed_at is not None
    assert Published(database).release("world") is None
    assert keys_at(database, 10.5, 50.5) == []
    left = sql.execute("select relname from pg_class where relname ~ '^staging_'").fetchall()
    assert left == []
    assert sql.execute("select count(*) as areas from release_area").fetchone() == {"areas": 2}


def test_completion_merges_metrics(database: Database) -> None:
    fence = driven(database, RunState.VERIFYING)
    Areas(database).verify(fence)
    Runs(database).complete(fence, {"areas": 2})
    assert run_of(database, fence.run_id).metrics == {"areas": 2}


def test_publication_moves_the_pointer_and_logs_each_move(database: Database, sql: Sql) -> None:
    first, second = (release_of(database, published(database, manifest)) for manifest in (a_manifest(), R2))
    assert Published(database).release("world") == second
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
    runs = Runs(database)

    def finish(held: Fence = fence) -> None:
        if end == "complete":
            runs.complete(held, {})
        else:
            runs.publish(held)

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
    assert Published(database).release("world") == release_of(database, first)
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
            completing = threads.submit(Runs(other).complete, second, {})
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


def test_a_point_is_answered_broad_types_first_for_the_collections_asked(database: Database) -> None:
    kinds = [
        {"key": "country", "rank": 10, "requires_geometry": True},
        {"key": "state", "rank": 20, "requires_geometry": True},
    ]
    areas = [an_area(1, "BE", square(13, 52), area_type="state"), an_area(2, "DE", square(10, 50, 5))]
    published(database, a_manifest(area_types=kinds), areas=areas)
    published(database, a_manifest(collection="moon"))
    assert keys_at(database, 13.4, 52.5) == ["world/r1/iso:country:DE", "world/r1/iso:state:BE"]
    assert keys_at(database, 10.5, 50.5) == ["moon/r1/iso:country:DE", "world/r1/iso:country:DE"]
    assert keys_at(database, 10.5, 50.5, "world", "nowhere") == ["world/r1/iso:country:DE"]
    assert Published(database).areas_for_point(10.5, 50.5, []) == []
    match = Published(database).areas_for_point(13.4, 52.5, ["world"])[1]
    assert (match.type_rank, match.code, match.name, match.attributes) == (20, "BE", "Country BE", {"code": "BE"})


def test_an_edge_belongs_to_its_area(database: Database) -> None:
    published(database)
    assert keys_at(database, 10, 50) == ["world/r1/iso:country:DE"]
    assert keys_at(database, 9.999999, 50) == []


@pytest.mark.parametrize("longitude", [180, -180])
def test_the_antimeridian_is_one_line(database: Database, longitude: float) -> None:
    published(database, areas=[an_area(1, "FJ", square(179, 0)), an_area(2, "US", square(-180, 0))])
    assert keys_at(database, longitude, 0.5) == ["world/r1/iso:country:FJ", "world/r1/iso:country:US"]
    assert keys_at(database, 179.5, 0.5) == ["world/r1/iso:country:FJ"]


@pytest.mark.parametrize("point", [(181, 0), (0, -91), (float("nan"), 0)])
def test_a_point_that_is_not_on_earth_is_refused(database: Database, point: tuple[float, float]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Published(database).areas_for_point(*point)
    assert refused.value.reason == "BadCoordinate"


def test_a_point_question_opens_the_leaves_of_the_published_release_only(database: Database, sql: Sql) -> None:
    for manifest in (a_manifest(), R2, a_manifest(collection="moon")):
        published(database, manifest)
    current = Published(database).release("world")
    assert current is not None
    with sql.transaction():
        sql.execute("select * from areas_for_point(10.5, 50.5, '{world}')").fetchall()
        opened_leaves = [row["name"] for row in sql.execute(LEAVES)]
    assert opened_leaves == [f"boundary_{current.hex}", f"release_area_{current.hex}"]


def test_a_literal_collection_prunes_the_published_views(database: Database, sql: Sql) -> None:
    for collection in ("world", "moon", "mars"):
        published(database, a_manifest(collection=collection))
    names = (
        "select release_table('release_area', r.id) as name from release r join collection c on c.id = r.collection_id"
    )
    others = [row["name"] for row in sql.execute(f"{names} where c.key <> 'moon'".encode())]
    for view in ("published_areas", "published_boundaries"):
        question = f"select * from {view} where collection_key = 'moon'".encode()  # noqa: S608  own name
        plan = "\n".join(row["QUERY PLAN"] for row in sql.execute(b"explain (costs off) " + question))
        assert len(others) == 2
        assert not [name for name in others if name in plan]
        assert len(sql.execute(question).fetchall()) == 2
