"""Publish, roll back, retire, verify; and what is known when a reply was lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import psycopg
import pytest

from geogenius.catalog import Publications, Runs
from geogenius.db import Database
from geogenius.domain.enqueued import Accepted
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.run import ReleaseId
from geogenius.library import (
    Context,
    Declined,
    PublicationUnknown,
    Published,
    Retired,
    RolledBack,
    publish,
    releases,
    retire,
    rollback,
    verify,
)
from tests.support.catalog import a_manifest, completed, published, registered
from tests.support.databases import session, until_waiting_for_lock
from tests.support.digest import digest
from tests.support.library import FaultyDatabase, Scripted

Sql = psycopg.Connection[psycopg.rows.DictRow]
NOWHERE = ReleaseId(UUID(int=7))


@pytest.fixture
def context(scripted: Callable[..., tuple[Scripted, Context]]) -> Context:
    return scripted(Accepted())[1]


@pytest.fixture
def losing(faulty: FaultyDatabase) -> Context:
    """A context whose replies may be lost."""
    return Context.on(faulty, Scripted([Accepted()]))


def a_release(database: Database, name: str, *, visible: bool = False) -> ReleaseId:
    """A complete release."""
    build = published if visible else completed
    run = Runs(database).get(build(database, a_manifest(release=name)).run_id)
    assert run is not None
    return run.release_id


def seen(database: Database) -> ReleaseId | None:
    pointer = Publications(database).current("world")
    return None if pointer is None else pointer.release_id


def test_publishing_moves_the_pointer_once(context: Context, database: Database, sql: Sql) -> None:
    first, second = a_release(database, "a", visible=True), a_release(database, "b")
    answer = publish(context, second)
    assert isinstance(answer, Published)
    assert (answer.pointer.release, answer.pointer.previous_release_id, answer.moved) == ("b", first, True)
    before = digest(sql)
    assert publish(context, second) == Published(answer.pointer, moved=False)
    assert digest(sql) == before
    assert [(event.kind, event.release) for event in context.publications.history("world", 5)] == [
        ("published", "b"),
        ("published", "a"),
    ]


def test_what_cannot_be_published_leaves_the_pointer(context: Context, database: Database) -> None:
    first = a_release(database, "a", visible=True)
    live = Runs(database).get(registered(database, a_manifest(release="live")))
    assert live is not None
    answers = [publish(context, live.release_id), publish(context, NOWHERE)]
    assert [type(answer) for answer in answers] == [Declined, Declined]
    assert [answer.reason for answer in answers if isinstance(answer, Declined)] == ["ReleaseLive", "UnknownRelease"]
    assert seen(database) == first


def test_roll_back_goes_to_the_release_before_and_only_once_when_it_says_what_it_leaves(
    context: Context, database: Database
) -> None:
    first, second = a_release(database, "a", visible=True), a_release(database, "b", visible=True)
    answer = rollback(context, "world", leaving=second)
    assert isinstance(answer, RolledBack)
    assert (answer.pointer.release_id, seen(database)) == (first, first)
    again = rollback(context, "world", leaving=second)
    assert isinstance(again, Declined)
    assert (again.reason, seen(database)) == ("PointerMoved", first)
    forward = rollback(context, "world")
    assert isinstance(forward, RolledBack)
    assert seen(database) == second


def test_roll_back_never_leaves_a_release_that_was_published_a_moment_ago(
    losing: Context, database: Database, sql: Sql
) -> None:
    third = [a_release(database, name, visible=name < "c") for name in "abc"][2]
    with ThreadPoolExecutor(1) as threads, session(database) as flying:
        with flying.transaction():
            flying.execute("select publish_release(%s)", [third])
            asking = threads.submit(rollback, losing, "world")
            until_waiting_for_lock(sql, "faulty")
        answer = asking.result(10)
    assert isinstance(answer, Declined)
    assert (answer.reason, seen(database)) == ("PointerMoved", third)


def test_nothing_to_roll_back_to_keeps_the_pointer(context: Context, database: Database) -> None:
    only = a_release(database, "a", visible=True)
    a_release(database, "b")
    answers = [rollback(context, "world"), rollback(context, "nowhere")]
    assert [answer.reason for answer in answers if isinstance(answer, Declined)] == [
        "NoPreviousRelease",
        "UnknownCollection",
    ]
    assert seen(database) == only


@pytest.mark.parametrize("call", ["publish", "rollback", "retire"])
def test_a_lost_reply_of_a_change_that_was_made_is_the_answer_it_would_have_been(
    losing: Context, faulty: FaultyDatabase, database: Database, call: str
) -> None:
    first, second, third = (a_release(database, name, visible=name < "c") for name in "abc")
    faulty.faults = ("lost after",)
    if call == "publish":
        answer: Any = publish(losing, third)
        assert (type(answer), answer.moved, answer.pointer.release_id) == (Published, True, third)
    elif call == "rollback":
        answer = rollback(losing, "world")
        assert (type(answer), answer.pointer.release_id) == (RolledBack, first)
    else:
        assert retire(losing, "world", 2) == Retired((first,))
    assert seen(database) == {"publish": third, "rollback": first, "retire": second}[call]


@pytest.mark.parametrize("call", ["publish", "rollback", "retire"])
def test_a_change_that_was_not_made_raises_the_error_again(
    losing: Context, faulty: FaultyDatabase, database: Database, sql: Sql, call: str
) -> None:
    a_release(database, "a", visible=True)
    a_release(database, "b", visible=True)
    third = a_release(database, "c")
    before = digest(sql)
    faulty.faults = ("lost before",)
    calls: dict[str, Callable[[], object]] = {
        "publish": lambda: publish(losing, third),
        "rollback": lambda: rollback(losing, "world"),
        "retire": lambda: retire(losing, "world", 1),
    }
    with pytest.raises(DatabaseUnavailable, match="cut off"):
        calls[call]()
    assert digest(sql) == before


@pytest.mark.parametrize("call", ["publish", "rollback", "retire"])
def test_a_change_that_may_have_been_made_and_cannot_be_read_is_an_answer_of_its_own(
    losing: Context, faulty: FaultyDatabase, database: Database, call: str
) -> None:
    first, second, third = (a_release(database, name, visible=name < "c") for name in "abc")
    faulty.faults = ("lost after", "down")
    calls: dict[str, Callable[[], object]] = {
        "publish": lambda: publish(losing, third),
        "rollback": lambda: rollback(losing, "world"),
        "retire": lambda: retire(losing, "world", 1),
    }
    answer = calls[call]()
    assert isinstance(answer, PublicationUnknown)
    assert "cut off" in answer.message
    assert "no server" in answer.message
    assert seen(database) == {"publish": third, "rollback": first, "retire": second}[call], "it was committed"


def test_publishing_what_is_published_already_says_so_even_when_the_reply_is_lost(
    losing: Context, faulty: FaultyDatabase, database: Database
) -> None:
    only = a_release(database, "a", visible=True)
    faulty.faults = ("lost before",)
    answer = publish(losing, only)
    assert isinstance(answer, Published)
    assert not answer.moved


def test_a_lost_reply_waits_for_the_transaction_that_is_still_in_flight(
    losing: Context, faulty: FaultyDatabase, database: Database, sql: Sql
) -> None:
    a_release(database, "a", visible=True)
    second = a_release(database, "b")
    faulty.faults = ("lost before",)
    with ThreadPoolExecutor(1) as threads, session(database) as flying:
        with flying.transaction():
            flying.execute("select publish_release(%s)", [second])
            asking = threads.submit(publish, losing, second)
            until_waiting_for_lock(sql, "faulty")
        answer = asking.result(10)
    assert isinstance(answer, Published)
    assert (answer.pointer.release_id, answer.moved) == (second, True)


def test_a_pointer_that_somebody_else_moved_meanwhile_is_not_claimed(
    losing: Context, faulty: FaultyDatabase, database: Database, sql: Sql
) -> None:
    _, second, third = (a_release(database, name, visible=name == "a") for name in "abc")
    faulty.faults = ("lost before",)
    with ThreadPoolExecutor(1) as threads, session(database) as flying:
        with flying.transaction():
            flying.execute("select publish_release(%s)", [third])
            asking = threads.submit(publish, losing, second)
            until_waiting_for_lock(sql, "faulty")
        answer = asking.result(10)
    assert isinstance(answer, PublicationUnknown)
    assert "moved again meanwhile" in answer.message


def test_old_releases_are_retired_and_the_published_one_stays(context: Context, database: Database) -> None:
    first, second, third = (a_release(database, name, visible=name == "a") for name in "abc")
    assert retire(context, "world", 2) == Retired((second,))
    assert retire(context, "world", 2) == Retired(())
    told = {
        release.release: (release.published, release.retired_at is not None) for release in releases(context, "world")
    }
    assert told == {"a": (True, False), "b": (False, True), "c": (False, False)}
    assert (seen(database), [release.release_id for release in releases(context, "world")]) == (
        first,
        [third, second, first],
    )
    declined = [retire(context, "nowhere", 1), retire(context, "world", 0), publish(context, second)]
    assert [answer.reason for answer in declined if isinstance(answer, Declined)] == [
        "UnknownCollection",
        "BadKeep",
        "ReleaseRetired",
    ]


def test_a_complete_release_is_verified_again(context: Context, database: Database, sql: Sql) -> None:
    release_id = a_release(database, "a")
    report: Any = verify(context, release_id)
    assert (report.ok, report.area_count, report.boundary_count, report.areas_by_type) == (True, 2, 2, {"country": 2})
    sql.execute("delete from boundary")
    damaged: Any = verify(context, release_id)
    assert (damaged.ok, damaged.failures) == (False, ("2 areas lack the boundary that their type requires",))
    assert verify(context, NOWHERE) == Declined("UnknownRelease", f"no release {NOWHERE}")


def test_areas_that_are_no_more_are_told_and_taken_back(context: Context, database: Database, sql: Sql) -> None:
    a_release(database, "a", visible=True)
    context.publications.retire_area("world", "iso:country:DD", "iso:country:DE")
    told = sql.execute("select area_key, successor_key from area_retirement").fetchall()
    assert told == [{"area_key": "iso:country:DD", "successor_key": "iso:country:DE"}]
    assert context.publications.restore_area("world", "iso:country:DD")
    assert not context.publications.restore_area("world", "iso:country:DD")


def test_what_readers_saw_at_a_moment_is_found(context: Context, database: Database) -> None:
    first = a_release(database, "a", visible=True)
    moment = context.publications.history("world", 1)[0].occurred_at
    a_release(database, "b", visible=True)
    assert context.publications.release_at("world", moment) == first
    assert context.publications.release_at("nowhere", moment) is None
    assert context.publications.get(NOWHERE) is None
