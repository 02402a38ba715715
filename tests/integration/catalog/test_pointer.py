"""The pointer of a collection: publish, roll back, retire, and the log of its moves."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest

from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.domain.errors import Conflict, InvalidRequest
from geogenius.domain.run import ReleaseId, RunError, RunState
from tests.support.catalog import a_manifest, claimed, completed, driven, published, release_of
from tests.support.databases import opened, until_waiting_for_lock
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
EVENTS = "select collection_key, kind, release_key, previous_release_id from publication_history order by sequence"
RELEASES = "select release_key from release_status where collection_key = 'world' and {} order by 1"


@pytest.fixture
def database(owner: Database) -> Database:
    """As the owner, to whose clock the catalog listens."""
    return owner


class Answer(NamedTuple):
    collection_key: str
    release_id: UUID
    release_key: str
    previous_release_id: UUID | None
    published_at: datetime
    moved: bool


def call(database: Database, question: str, *arguments: object, now: str = "") -> list[dict[str, Any]]:
    """One function as the writer, at a moment of the catalog's clock."""
    with database.connection() as connection:
        connection.execute("select set_config('geogenius.now', %s, true)", [now])
        return connection.execute(question.encode(), arguments).fetchall()


def publish(database: Database, release: ReleaseId, now: str = "") -> Answer:
    return Answer(**call(database, "select * from publish_release(%s)", release, now=now)[0])


def roll_back(database: Database, leaving: ReleaseId | None = None, collection: str = "world", now: str = "") -> Answer:
    return Answer(**call(database, "select * from rollback_publication(%s, %s)", collection, leaving, now=now)[0])


def retire(database: Database, keep: int, collection: str = "world") -> set[UUID]:
    return {row["id"] for row in call(database, "select id from retire_releases(%s, %s) id", collection, keep)}


def visible(database: Database, collection: str = "world") -> UUID | None:
    release: UUID | None = call(database, "select published_release(%s) as id", collection)[0]["id"]
    return release


def seen_at(database: Database, moment: str) -> UUID | None:
    release: UUID | None = call(database, "select release_at('world', %s::timestamptz) as id", moment)[0]["id"]
    return release


def complete(database: Database, *keys: str) -> list[ReleaseId]:
    """Complete releases of these keys, in this order, none published."""
    return [release_of(database, completed(database, a_manifest(release=key))) for key in keys]


def kept(sql: Sql) -> list[str]:
    return [row["release_key"] for row in sql.execute(RELEASES.format("retired_at is null").encode())]


def refused(word: str, database: Database, question: str, *arguments: object) -> None:
    with pytest.raises((Conflict, InvalidRequest)) as error:
        call(database, question, *arguments)
    assert error.value.reason == word


def test_a_complete_release_is_published_and_says_what_readers_saw_before(database: Database, sql: Sql) -> None:
    first, second = complete(database, "r1", "r2")
    one, two = publish(database, first), publish(database, second)
    assert (one.release_key, one.previous_release_id, one.moved) == ("r1", None, True)
    assert (two.release_key, two.previous_release_id, two.moved) == ("r2", first, True)
    assert visible(database) == second
    assert [row["kind"] for row in sql.execute(EVENTS)] == ["published", "published"]


def test_publishing_what_readers_see_already_changes_nothing(database: Database, sql: Sql) -> None:
    first, second = complete(database, "r1", "r2")
    publish(database, first)
    done = publish(database, second)
    before = digest(sql)
    assert publish(database, second) == done._replace(moved=False)
    assert digest(sql) == before
    assert roll_back(database).release_id == first, "roll back still goes where it went"


def test_a_release_that_is_not_complete_is_not_published(database: Database, sql: Sql) -> None:
    live = release_of(database, driven(database, RunState.VERIFYING, a_manifest(release="live")))
    lost = claimed(database, a_manifest(release="failed"))
    Runs(database).fail(lost, RunError("pending", "Gone", "gone"))
    (old, _) = complete(database, "r1", "r2")
    publish(database, release_of(database, published(database, a_manifest(release="r3"))))
    retire(database, 1)
    before = digest(sql)
    question = "select publish_release(%s)"
    refused("ReleaseLive", database, question, live)
    refused("ReleaseIncomplete", database, question, release_of(database, lost))
    refused("ReleaseRetired", database, question, old)
    refused("UnknownRelease", database, question, uuid4())
    refused("UnknownRelease", database, question, lost.run_id)
    refused("UnknownRelease", database, question, None)
    assert digest(sql) == before


def test_roll_back_goes_to_the_previous_release_not_to_the_oldest_and_forward_again(
    database: Database, sql: Sql
) -> None:
    first, second, third = complete(database, "r1", "r2", "r3")
    for release in (first, second, third):
        publish(database, release)
    back = roll_back(database, third)
    assert (back.release_id, back.previous_release_id, back.moved) == (second, third, True)
    assert roll_back(database).release_id == third
    assert [(row["kind"], row["release_key"]) for row in sql.execute(EVENTS)][3:] == [
        ("rolled_back", "r2"),
        ("rolled_back", "r3"),
    ]


def test_a_repeated_roll_back_does_not_go_forward_by_accident(database: Database) -> None:
    first, second = complete(database, "r1", "r2")
    publish(database, first)
    publish(database, second)
    roll_back(database, leaving=second)
    refused("PointerMoved", database, "select rollback_publication('world', %s)", second)
    assert visible(database) == first


def test_where_there_is_nothing_to_go_back_to_the_pointer_stays(database: Database, sql: Sql) -> None:
    question = "select rollback_publication(%s, null)"
    (first,) = complete(database, "r1")
    refused("NoPreviousRelease", database, question, "world")
    publish(database, first)
    before = digest(sql)
    refused("NoPreviousRelease", database, question, "world")
    refused("UnknownCollection", database, question, "moon")
    refused("UnknownCollection", database, question, None)
    assert digest(sql) == before


def test_release_at_follows_every_move(database: Database) -> None:
    first, second = complete(database, "r1", "r2")
    publish(database, first, now="2030-01-01 10:00Z")
    publish(database, second, now="2030-01-01 11:00Z")
    roll_back(database, now="2030-01-01 12:00Z")
    moments = ("09:59", "10:00", "10:59", "11:00", "11:59", "12:00", "13:00")
    assert [seen_at(database, f"2030-01-01 {moment}Z") for moment in moments] == [
        None, first, first, second, second, first, first,
    ]  # fmt: skip
    assert call(database, "select release_at('moon', now()) as id") == [{"id": None}]


def test_a_clock_that_was_set_back_does_not_reorder_the_history(database: Database) -> None:
    first, second = complete(database, "r1", "r2")
    publish(database, first, now="2030-01-01 10:00Z")
    late = publish(database, second, now="2030-01-01 09:00Z")
    assert seen_at(database, "2030-01-01 09:30Z") is None
    assert seen_at(database, "2030-01-01 10:00Z") == second
    assert late.published_at == datetime.fromisoformat("2030-01-01T10:00:00+00:00")


def test_a_move_is_dated_when_it_happens_not_when_its_transaction_began(database: Database, conninfo: str) -> None:
    first, second = complete(database, "r1", "r2")
    with opened(conninfo, "early") as early, early.connection() as waiting:
        waiting.execute("select 1")  # begins, and moves last
        done = publish(database, second)
        row = waiting.execute("select published_at from publish_release(%s)", [first]).fetchall()[0]
    assert row["published_at"] > done.published_at


def test_events_are_numbered_in_the_order_of_commits_over_all_collections(
    database: Database, conninfo: str, sql: Sql
) -> None:
    (world,) = complete(database, "r1")
    moon = release_of(database, completed(database, a_manifest(collection="moon")))
    with opened(conninfo, "moving") as other, ThreadPoolExecutor() as threads:
        with database.connection() as first:
            first.execute("select publish_release(%s)", [world])
            second = threads.submit(publish, other, moon)
            until_waiting_for_lock(sql, "moving")
            assert sql.execute(EVENTS).fetchall() == [], "nobody sees the later number before the earlier one"
        second.result()
    assert [row["collection_key"] for row in sql.execute(EVENTS)] == ["world", "moon"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (1, ["r3"]),
        (2, ["r3", "r5"]),
        (3, ["r3", "r4", "r5"]),
        (4, ["r2", "r3", "r4", "r5"]),
        (9, ["r1", "r2", "r3", "r4", "r5"]),
    ],
)
def test_retirement_keeps_the_published_release_and_the_newest_others(
    database: Database, sql: Sql, keep: int, expected: Sequence[str]
) -> None:
    releases = complete(database, "r1", "r2", "r3", "r4", "r5")
    publish(database, releases[1])
    publish(database, releases[2])
    live = driven(database, RunState.STAGING, a_manifest(release="live"))
    lost = claimed(database, a_manifest(release="lost"))
    Runs(database).fail(lost, RunError("pending", "Gone", "gone"))
    assert len(retire(database, keep)) == 5 - len(expected)
    assert kept(sql) == sorted([*expected, "live", "lost"]), "candidates are never touched"
    assert retire(database, keep) == set(), "repeating it retires nothing more"
    row = sql.execute("select previous_release_id from publication").fetchall()[0]
    assert (row["previous_release_id"] == releases[1]) == ("r2" in expected), "no way back to a retired release"
    assert visible(database) == releases[2]
    Executions(database).advance(live, RunState.NORMALIZING, {})


def test_retirement_is_of_one_collection_and_keeps_at_least_one(database: Database, sql: Sql) -> None:
    complete(database, "r1", "r2")
    published(database, a_manifest(collection="moon"))
    before = digest(sql)
    refused("BadKeep", database, "select retire_releases('world', 0)")
    refused("BadKeep", database, "select retire_releases('world', null)")
    refused("UnknownCollection", database, "select retire_releases('mars', 1)")
    assert digest(sql) == before
    assert retire(database, 1, "moon") == set()
    assert kept(sql) == ["r1", "r2"]


def test_a_published_or_previous_release_is_protected_and_a_retired_one_too(database: Database) -> None:
    first, second = complete(database, "r1", "r2")
    publish(database, second)
    assert retire(database, 1) == {first}
    assert visible(database) == second


def test_a_writer_cannot_move_the_clock(database: Database, conninfo: str) -> None:
    (first,) = complete(database, "r1")
    with opened(conninfo, "writer") as writer:
        done = publish(writer, first, now="2999-01-01 10:00Z")
    assert done.published_at.year < 2999


def test_a_move_waits_for_another_of_its_collection_alone(database: Database, conninfo: str, sql: Sql) -> None:
    first, second = complete(database, "r1", "r2")
    with opened(conninfo, "moving") as other, ThreadPoolExecutor() as threads:
        with database.connection() as one:
            one.execute("select publish_release(%s)", [first])
            two = threads.submit(publish, other, second)
            until_waiting_for_lock(sql, "moving")
        assert two.result().previous_release_id == first


MOON = "(select release_id from release_status where collection_key = 'moon')"
R1 = "where release_key = 'r1' and collection_id = (select id from collection where key = 'world')"
LIVE = "select collection_id, id, null, now() from release where release_key = 'live'"
GUARDS = {
    "show an incomplete release": (f"insert into publication {LIVE}", "release_incomplete"),
    "show another collection": (f"update publication set release_id = {MOON}", "23503"),
    "go back to another collection": (f"update publication set previous_release_id = {MOON}", "23503"),
    "retire what readers see": (f"update release set retired_at = now() {R1}", "release_published"),
    "change a complete release": (f"update release set manifest = '{{}}' {R1}", "release_frozen"),
    "open a complete release": (f"update release set completed_at = null {R1}", "release_frozen"),
    "change an ended run": ("update import_run set owner = 'x' where completed_at is not null", "run_ended"),
    "revive an ended run": ("update import_run set completed_at = null where completed_at is not null", "run_ended"),
}


@pytest.mark.parametrize(("statement", "word"), GUARDS.values(), ids=GUARDS.keys())
def test_not_even_a_hand_can_do_it(database: Database, sql: Sql, statement: str, word: str) -> None:
    (first,) = complete(database, "r1")
    publish(database, first)
    completed(database, a_manifest(collection="moon"))
    driven(database, RunState.STAGING, a_manifest(collection="mars", release="live"))
    with pytest.raises(psycopg.Error) as error:
        sql.execute(statement.encode())
    assert word in (error.value.diag.message_detail, error.value.sqlstate)


def test_an_area_that_is_no_more_has_a_successor_until_it_is_restored(database: Database, sql: Sql) -> None:
    published(database)
    call(database, "select retire_area('world', 'iso:country:DE', 'iso:country:EU')", now="2030-01-01 10:00Z")
    call(database, "select retire_area('world', 'iso:country:DE', 'iso:country:FR')", now="2030-01-02 10:00Z")
    rows = sql.execute("select area_key, retired_at::date::text as day, successor_key from area_retirement").fetchall()
    assert rows == [{"area_key": "iso:country:DE", "day": "2030-01-01", "successor_key": "iso:country:FR"}]
    refused("BadSuccessor", database, "select retire_area('world', 'a:b:c', 'a:b:c')")
    refused("UnknownCollection", database, "select retire_area('mars', 'a:b:c', null)")
    refused("UnknownCollection", database, "select restore_area('mars', 'a:b:c')")
    restore = "select restore_area('world', 'iso:country:DE') as done"
    assert [call(database, restore)[0]["done"] for _ in range(2)] == [True, False]
