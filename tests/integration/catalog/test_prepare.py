"""The decision table of `prepare_import`, row by row; a refusal writes nothing at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog import Runs
from geogenius.db import Database
from geogenius.domain.errors import Conflict, GeogeniusError
from geogenius.domain.prepared import Existing, Redelivered, Refusal, Refused, Registered
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId
from tests.support.catalog import (
    a_job_intent,
    a_manifest,
    a_source,
    an_artifact,
    an_intent,
    claimed,
    completed,
    published,
    registered,
)
from tests.support.digest import digest

Sql = psycopg.Connection[dict[str, Any]]


def failed(database: Database, manifest: dict[str, Any] | None = None) -> RunId:
    fence = claimed(database, manifest)
    Runs(database).fail(fence, RunError("downloading", "SourceUnavailable", "no answer"))
    return fence.run_id


@dataclass(frozen=True)
class Row:
    """A situation, which gives the run that stands in the way, and what is asked then."""

    situation: Callable[[Database, Sql], RunId | None]
    expected: Refusal
    manifest: dict[str, Any]
    owner: str = "maps/world"
    stale_after: timedelta = timedelta(minutes=15)


SAME = a_manifest()
CHANGED = a_manifest(options={"code": "ISO_A2"})
OTHER_RELEASE = "r2"


def is_retired(database: Database, sql: Sql) -> None:
    completed(database)
    sql.execute("update release set retired_at = now()")


def is_published(database: Database, _: Sql) -> None:
    published(database)


def is_previous(database: Database, _: Sql) -> None:
    published(database)
    published(database, a_manifest(release=OTHER_RELEASE))


def is_in_the_log_only(database: Database, _: Sql) -> None:
    published(database)
    published(database, a_manifest(release=OTHER_RELEASE))
    published(database, a_manifest(release="r3"))


def has_no_run(_: Database, sql: Sql) -> None:
    sql.execute("insert into collection (key, created_at) values ('world', now())")
    sql.execute("insert into release (collection_id, release_key, manifest, created_at) "
                "select id, 'r1', '{}', now() from collection")  # fmt: skip


def has_no_lease(database: Database, sql: Sql) -> RunId:
    run_id = registered(database)
    sql.execute("delete from import_run_lease")
    return run_id


def is_silent_for_the_stored_window(database: Database, sql: Sql) -> RunId:
    run_id = registered(database, intent=an_intent(stale_after=timedelta(seconds=60)))
    sql.execute("update import_run_lease set heartbeat_at = now() - interval '61 seconds'")
    return run_id


def is_live(database: Database, sql: Sql) -> RunId:
    run_id = registered(database, intent=an_intent(stale_after=timedelta(minutes=60)))
    sql.execute("update import_run_lease set heartbeat_at = now() - interval '59 minutes'")
    return run_id


def is_completed(database: Database, _: Sql) -> RunId:
    return completed(database).run_id


def has_failed(database: Database, _: Sql) -> RunId:
    return failed(database)


def other_release_completed(database: Database, _: Sql) -> None:
    completed(database, a_manifest(release=OTHER_RELEASE))


def other_release_is_live(database: Database, _: Sql) -> None:
    registered(database, a_manifest(release=OTHER_RELEASE))


def other_release_failed(database: Database, _: Sql) -> None:
    failed(database, a_manifest(release=OTHER_RELEASE))


def source(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    return a_manifest(sources=[a_source(**changes)])


def artifact(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    return source(artifacts=[an_artifact(**changes)])


OTHER_SHA = "cd" * 32
REFUSALS = {
    "retired": Row(is_retired, Refusal.PROTECTED, SAME),
    "published": Row(is_published, Refusal.PROTECTED, SAME),
    "published, changed": Row(is_published, Refusal.PROTECTED, CHANGED),
    "previous release": Row(is_previous, Refusal.PROTECTED, SAME),
    "published long ago": Row(is_in_the_log_only, Refusal.PROTECTED, SAME),
    "no run": Row(has_no_run, Refusal.ORPHAN_CANDIDATE, SAME),
    "no lease": Row(has_no_lease, Refusal.STALE_IMPORT, SAME),
    "silent": Row(is_silent_for_the_stored_window, Refusal.STALE_IMPORT, SAME),
    "silent, asker would wait longer": Row(
        is_silent_for_the_stored_window, Refusal.STALE_IMPORT, SAME, stale_after=timedelta(hours=1)
    ),
    "live, other owner": Row(is_live, Refusal.LIVE_IMPORT, SAME, owner="other/world"),
    "live, other owner, impatient asker": Row(
        is_live, Refusal.LIVE_IMPORT, SAME, owner="other/world", stale_after=timedelta(seconds=1)
    ),
    "live, changed": Row(is_live, Refusal.LIVE_IMPORT, CHANGED),
    "completed, changed": Row(is_completed, Refusal.MANIFEST_CHANGED, CHANGED),
    "failed": Row(has_failed, Refusal.FAILED, SAME),
    "failed, changed": Row(has_failed, Refusal.MANIFEST_CHANGED, CHANGED),
    "other provider": Row(other_release_failed, Refusal.SOURCE_DEFINITION_CHANGED, source(provider="csv")),
    "other license": Row(other_release_failed, Refusal.SOURCE_DEFINITION_CHANGED, source(license="CC-BY")),
    "other date": Row(other_release_failed, Refusal.SOURCE_DEFINITION_CHANGED, source(source_date="2023-01-01")),
    "other attribution": Row(other_release_failed, Refusal.SOURCE_DEFINITION_CHANGED, source(attribution="NE")),
    "file of a completed release": Row(
        other_release_completed, Refusal.SOURCE_DEFINITION_CHANGED, artifact(sha256=OTHER_SHA)
    ),
    "file of a live run": Row(other_release_is_live, Refusal.SOURCE_DEFINITION_CHANGED, artifact(bytes=101)),
}


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_names_its_reason_and_run_and_writes_nothing(database: Database, sql: Sql, row: Row) -> None:
    run_id = row.situation(database, sql)
    before = digest(sql)
    answer = Runs(database).prepare(row.manifest, an_intent(owner=row.owner, stale_after=row.stale_after))
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.run_id) == (row.expected, run_id)
    assert (answer.release_id is None) == (row.expected is Refusal.SOURCE_DEFINITION_CHANGED)
    assert digest(sql) == before


def test_a_live_run_is_redelivered_to_its_owner_without_a_write(database: Database, sql: Sql) -> None:
    run_id = is_live(database, sql)
    before = digest(sql)
    answer = Runs(database).prepare(SAME, an_intent())
    assert isinstance(answer, Redelivered)
    assert (answer.run_id, answer.attempt) == (run_id, 1)
    assert digest(sql) == before


def test_a_completed_release_is_existing_whoever_asks(database: Database, sql: Sql) -> None:
    run_id = is_completed(database, sql)
    before = digest(sql)
    answer = Runs(database).prepare(SAME, an_intent(owner="other/world"))
    assert isinstance(answer, Existing)
    assert answer.run_id == run_id
    assert digest(sql) == before


def test_the_same_call_repeated_finds_its_run(database: Database, sql: Sql) -> None:
    intent = an_intent()
    first = Runs(database).prepare(SAME, intent)
    before = digest(sql)
    assert isinstance(first, Registered)
    assert Runs(database).prepare(SAME, intent) == Redelivered(intent.run_id, first.release_id, 1)
    assert digest(sql) == before


def test_the_same_call_repeated_after_publication_finds_its_run(database: Database) -> None:
    intent = an_intent()
    published(database, intent=intent)
    assert isinstance(Runs(database).prepare(SAME, intent), Existing)


def test_a_run_id_of_another_release_is_refused_and_writes_nothing(database: Database, sql: Sql) -> None:
    intent = an_intent(run_id=registered(database))
    before = digest(sql)
    with pytest.raises(Conflict) as refused:
        Runs(database).prepare(a_manifest(release=OTHER_RELEASE), intent)
    assert refused.value.reason == "RunIdTaken"
    assert digest(sql) == before


def test_a_wrong_checksum_is_corrected_while_only_failed_runs_used_the_file(database: Database) -> None:
    old = failed(database, a_manifest(release=OTHER_RELEASE))
    new = registered(database, artifact(sha256=OTHER_SHA, bytes=7))
    assert [(file.sha256, file.bytes) for file in Runs(database).artifacts(new)] == [(OTHER_SHA, 7)]
    assert [file.bytes for file in Runs(database).artifacts(old)] == [100], "evidence of the failed run stays"


def test_registration_keeps_the_whole_intent(database: Database, sql: Sql) -> None:
    intent = a_job_intent()
    answer = Runs(database).prepare(SAME, intent)
    assert isinstance(answer, Registered)
    run = Runs(database).get(intent.run_id)
    assert run is not None
    assert (run.run_id, run.release_id, run.attempt) == (answer.run_id, answer.release_id, answer.attempt)
    assert (run.owner, run.runner, run.publish, run.stale_after) == (
        intent.owner, intent.runner, intent.publish, intent.stale_after,
    )  # fmt: skip
    assert (run.workload, run.request, run.deadlines) == (intent.workload, intent.request, intent.deadlines)
    assert (run.state, run.enqueue_state, run.executor_id) == ("pending", "intended", None)
    assert Runs(database).manifest(intent.run_id) == SAME
    assert sql.execute("select rank, requires_geometry from release_area_type").fetchall() == [
        {"rank": 10, "requires_geometry": True}
    ]


def test_the_files_of_a_run_come_in_the_order_of_its_manifest(database: Database) -> None:
    names = ["b", "a", "c"]
    sources = [a_source(source_key=f"source_{name}", artifacts=[an_artifact(logical_name=name)]) for name in names]
    run_id = registered(database, a_manifest(sources=sources))
    assert [file.logical_name for file in Runs(database).artifacts(run_id)] == names


def test_a_manifest_that_the_tables_refuse_writes_nothing(database: Database, sql: Sql) -> None:
    before = digest(sql)
    with pytest.raises(GeogeniusError):
        Runs(database).prepare(a_manifest(collection="No Key"), an_intent())
    with pytest.raises(GeogeniusError):
        Runs(database).prepare(SAME, an_intent(owner=""))
    assert digest(sql) == before


CLAIM = {"run_id": str(uuid4()), "owner": "maps/world", "runner_backend": "inline"}


@pytest.mark.parametrize(
    ("manifest", "claim", "word"),
    [
        (None, CLAIM, "bad_manifest"),
        ([], CLAIM, "bad_manifest"),
        ({}, CLAIM, "bad_manifest"),
        ({**SAME, "release": 7}, CLAIM, "bad_manifest"),
        ({**SAME, "sources": {}}, CLAIM, "bad_manifest"),
        (SAME, None, "bad_claim"),
        (SAME, [], "bad_claim"),
        (SAME, {**CLAIM, "run_id": None}, "bad_claim"),
        (SAME, {**CLAIM, "run_id": "7"}, "bad_claim"),
        (SAME, {**CLAIM, "owner": ""}, "bad_claim"),
        (SAME, {**CLAIM, "state": "completed"}, "bad_claim"),
        (SAME, {**CLAIM, "executor_id": str(uuid4())}, "bad_claim"),
    ],
)
def test_what_is_no_manifest_or_no_claim_is_refused_by_a_word_and_writes_nothing(
    sql: Sql, manifest: object, claim: object, word: str
) -> None:
    before = digest(sql)
    with pytest.raises(psycopg.Error) as refused:
        sql.execute("select prepare_import(%s, %s)", [Jsonb(manifest), Jsonb(claim)])
    assert (refused.value.sqlstate, refused.value.diag.message_detail) == ("22023", word)
    assert digest(sql) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"stale_after_seconds": 0},
        {"stale_after_seconds": "soon"},
        {"reject_limit": -1},
        {"retry_limit": 1e30},
        {"gates": []},
        {"gates": {"minimum": 1}},
        {"gates": {"max_shrink_percent": 101}},
        {"workload_namespace": "maps", "workload_name": "geogenius-1"},
        {"cluster_id": str(uuid4()), "workload_name": "geogenius-1"},
        {"request_uid": "x"},
    ],
)
def test_a_claim_outside_its_bounds_is_refused_and_writes_nothing(sql: Sql, changes: dict[str, Any]) -> None:
    before = digest(sql)
    with pytest.raises((psycopg.DataError, psycopg.IntegrityError)):
        sql.execute("select prepare_import(%s, %s)", [Jsonb(SAME), Jsonb({**CLAIM, **changes})])
    assert digest(sql) == before


def test_runs_are_found_by_request_and_by_cluster_while_they_live(database: Database) -> None:
    uid = uuid4()
    first, second = a_job_intent(uid), a_job_intent(uid)
    registered(database, SAME, first)
    registered(database, a_manifest(release=OTHER_RELEASE), second)
    assert first.workload is not None
    runs = Runs(database)
    found = runs.find_by_request(uid)
    assert found is not None
    assert found.run_id == second.run_id
    assert [run.run_id for run in runs.live_of_cluster(first.workload.cluster_id)] == [first.run_id, second.run_id]
    runs.fail(Fence(first.run_id, ExecutorId(uuid4())), RunError("pending", "Gone", "gone"))
    assert [run.run_id for run in runs.live_of_cluster(first.workload.cluster_id)] == [second.run_id]
    assert runs.find_by_request(uuid4()) is None


def test_what_is_not_there_is_none_or_named(database: Database) -> None:
    nothing = RunId(uuid4())
    assert Runs(database).get(nothing) is None
    assert Runs(database).artifacts(nothing) == []
    with pytest.raises(Conflict) as refused:
        Runs(database).manifest(nothing)
    assert refused.value.reason == "UnknownRun"


def test_registrations_of_one_new_collection_at_once_neither_deadlock_nor_lose(database: Database) -> None:
    keys = [f"source_{number}" for number in range(20)]

    def register(number: int) -> RunId:
        ordered = keys if number % 2 else keys[::-1]
        sources = [a_source(source_key=key) for key in ordered]
        return registered(database, a_manifest(release=f"r{number}", sources=sources))

    with ThreadPoolExecutor(4) as threads:
        run_ids = list(threads.map(register, range(12)))
    assert [len(Runs(database).artifacts(run_id)) for run_id in run_ids] == [20] * 12


def test_of_the_same_request_sent_at_once_one_registers(database: Database) -> None:
    def prepare(_: int) -> type:
        return type(Runs(database).prepare(SAME, an_intent()))

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(prepare, range(8)))
    assert sorted(answer.__name__ for answer in answers) == ["Redelivered"] * 7 + ["Registered"]
