"""The decision table of `retry_failed`, row by row: a refusal writes nothing, a retry is a new attempt."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.domain.run import ExecutorId, Fence, RunError, RunId, RunState
from tests.support.catalog import (
    a_manifest,
    a_source,
    an_artifact,
    an_intent,
    claimed,
    completed,
    driven,
    published,
    registered,
)
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
ERROR = RunError("downloading", "SourceUnavailable", "no answer")
SAME = a_manifest()
CHANGED = a_manifest(options={"code": "ISO_A2"})
CORRECTED = a_manifest(sources=[a_source(artifacts=[an_artifact(sha256="cd" * 32, bytes=7)])])
RETRY = "select * from retry_failed(%s, %s, %s)"
EVIDENCE = """
select i.manifest, i.error, i.metrics, i.attempt, i.completed_at,
    array(select row(u.sha256, u.bytes, u.observed_at)::text from import_run_artifact u where u.run_id = i.id) as files
from import_run i where id = %s
"""


class Answer(NamedTuple):
    decision: str
    reason: str
    release_id: UUID | None
    run_id: RunId | None
    attempt: int | None


def a_claim(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any key
    return {"run_id": str(uuid4()), "owner": "maps/world", "runner_backend": "inline", **changes}


def retry(database: Database, failed: RunId, manifest: dict[str, Any] = SAME, **claim: Any) -> Answer:  # noqa: ANN401
    with database.connection() as connection:
        row = connection.execute(RETRY, [failed, Jsonb(manifest), Jsonb(a_claim(**claim))]).fetchall()[0]
    return Answer(**row)


def failed(database: Database, manifest: dict[str, Any] = SAME) -> RunId:
    fence = claimed(database, manifest)
    Runs(database).fail(fence, ERROR)
    return fence.run_id


def nobody(_: Database, __: Sql) -> RunId:
    return RunId(uuid4())


def a_failed_run(database: Database, _: Sql) -> RunId:
    return failed(database)


def a_live_run(database: Database, _: Sql) -> RunId:
    return claimed(database).run_id


def a_completed_run(database: Database, _: Sql) -> RunId:
    return completed(database).run_id


def a_published_run(database: Database, _: Sql) -> RunId:
    return published(database).run_id


def a_failed_run_before_a_completed_one(database: Database, _: Sql) -> RunId:
    lost = failed(database)
    completed_retry(database, lost)
    return lost


def a_failed_run_of_a_retired_release(database: Database, sql: Sql) -> RunId:
    lost = failed(database)
    completed_retry(database, lost)
    sql.execute("update release set retired_at = now()")
    return lost


def a_failed_run_before_a_failed_one(database: Database, _: Sql) -> RunId:
    lost = failed(database)
    second = retry(database, lost).run_id
    assert second
    Runs(database).fail(Fence(second, ExecutorId(uuid4())), ERROR)
    return lost


def a_failed_run_before_a_live_one(database: Database, _: Sql) -> RunId:
    lost = failed(database)
    retry(database, lost, owner="other/world")
    return lost


def a_failed_run_two_before_a_live_one(database: Database, sql: Sql) -> RunId:
    lost = a_failed_run_before_a_failed_one(database, sql)
    row = sql.execute("select id from import_run where attempt = 2").fetchall()[0]
    retry(database, row["id"])
    return lost


def a_failed_run_whose_file_is_in_a_completed_release(database: Database, _: Sql) -> RunId:
    lost = failed(database)
    completed(database, a_manifest(release="r2"))
    return lost


def completed_retry(database: Database, lost: RunId) -> Fence:
    run_id = retry(database, lost).run_id
    assert run_id
    return completed(database, run_id=run_id)


@dataclass(frozen=True)
class Row:
    """A situation, which gives the run to be retried, and the refusal expected."""

    situation: Callable[[Database, Sql], RunId]
    reason: str
    manifest: dict[str, Any] = field(default_factory=lambda: SAME)


REFUSALS = {
    "unknown run": Row(nobody, "not_found"),
    "other collection": Row(a_failed_run, "candidate_mismatch", a_manifest(collection="moon")),
    "other release": Row(a_failed_run, "candidate_mismatch", a_manifest(release="r2")),
    "other release of a completed run": Row(a_completed_run, "candidate_mismatch", a_manifest(release="r2")),
    "completed": Row(a_completed_run, "protected"),
    "published": Row(a_published_run, "protected"),
    "a later attempt completed": Row(a_failed_run_before_a_completed_one, "protected", CHANGED),
    "retired": Row(a_failed_run_of_a_retired_release, "protected", CHANGED),
    "a later attempt failed": Row(a_failed_run_before_a_failed_one, "not_latest_attempt", CHANGED),
    "a later attempt is live, of another owner": Row(a_failed_run_before_a_live_one, "not_latest_attempt"),
    "a later attempt is live, changed": Row(a_failed_run_before_a_live_one, "not_latest_attempt", CHANGED),
    "the attempt after the next is live": Row(a_failed_run_two_before_a_live_one, "not_latest_attempt"),
    "live": Row(a_live_run, "not_failed"),
    "file of a completed release": Row(
        a_failed_run_whose_file_is_in_a_completed_release, "source_definition_changed", CORRECTED
    ),
}


@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refused_retry_names_its_reason_and_writes_nothing(database: Database, sql: Sql, row: Row) -> None:
    run_id = row.situation(database, sql)
    before = digest(sql)
    answer = retry(database, run_id, row.manifest)
    assert (answer.decision, answer.reason) == ("error", row.reason)
    assert digest(sql) == before


@pytest.mark.parametrize("manifest", [SAME, CHANGED, CORRECTED], ids=["same", "changed", "corrected file"])
def test_a_retry_is_the_next_attempt_and_keeps_the_evidence_of_the_failed_one(
    database: Database, sql: Sql, manifest: dict[str, Any]
) -> None:
    fence = driven(database, RunState.NORMALIZING)
    Runs(database).fail(fence, ERROR)
    evidence = sql.execute(EVIDENCE, [fence.run_id]).fetchall()
    answer = retry(database, fence.run_id, manifest)
    assert (answer.decision, answer.reason, answer.attempt) == ("enqueue", "retried", 2)
    assert answer.run_id
    assert answer.run_id != fence.run_id
    run = Runs(database).get(answer.run_id)
    assert run is not None
    assert (run.state, run.executor_id, run.error, run.progress) == (RunState.PENDING, None, None, {})
    assert Runs(database).manifest(answer.run_id) == manifest
    expected = manifest["sources"][0]["artifacts"][0]
    assert [(file.sha256, file.bytes, file.observed) for file in Runs(database).artifacts(answer.run_id)] == [
        (expected["sha256"], expected["bytes"], False)
    ], "no observation is inherited"
    assert sql.execute(EVIDENCE, [fence.run_id]).fetchall() == evidence
    completed(database, run_id=answer.run_id)


def test_a_retry_takes_the_policy_of_its_manifest(database: Database, sql: Sql) -> None:
    changed = a_manifest(
        authorities=[{"key": "iso", "name": "ISO 3166"}, {"key": "un", "name": "UN"}],
        area_types=[{"key": "state", "rank": 20, "requires_geometry": False}],
    )
    retry(database, failed(database), changed)
    kinds = sql.execute(
        "select t.key, r.rank from release_area_type r join area_type t on t.id = r.area_type_id"
    ).fetchall()
    names = sql.execute(
        "select a.key, r.name from release_authority r join authority a on a.id = r.authority_id order by 1"
    ).fetchall()
    assert kinds == [{"key": "state", "rank": 20}]
    assert names == [{"key": "iso", "name": "ISO 3166"}, {"key": "un", "name": "UN"}]


def test_a_retry_leaves_everything_else_alone(database: Database, sql: Sql) -> None:
    others = (
        published(database, a_manifest(release="r0")),
        published(database, a_manifest(collection="moon")),
        driven(database, RunState.STAGING, a_manifest(release="r9")),
    )
    lost = failed(database)
    before = digest(sql)
    retry(database, lost)
    after = digest(sql)
    changed = {name for name in after if before.get(name) != after[name]}
    assert changed == {"import_run", "import_run_lease", "import_run_artifact", "release_authority",
                       "release_area_type"} - unchanged(before, after)  # fmt: skip
    for fence in others:
        run = Runs(database).get(fence.run_id)
        assert run is not None
        assert run.attempt == 1


def unchanged(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """A retry with the same manifest writes the policy anew, which leaves the same rows."""
    return {name for name in ("release_authority", "release_area_type") if before[name] == after[name]}


def test_a_repeated_retry_finds_the_attempt_that_the_first_one_made(database: Database, sql: Sql) -> None:
    lost, run_id = failed(database), str(uuid4())
    first = retry(database, lost, run_id=run_id)
    before = digest(sql)
    assert retry(database, lost, run_id=run_id) == first
    assert retry(database, lost) == first, "the same owner and manifest are recognized without the id"
    assert digest(sql) == before


def test_a_repeated_retry_says_how_the_attempt_that_it_made_ended(database: Database) -> None:
    lost, run_id = failed(database), str(uuid4())
    first = retry(database, lost, run_id=run_id)
    assert first.run_id
    published(database, run_id=first.run_id)
    assert retry(database, lost, run_id=run_id)[:2] == ("existing", "completed")
    other, other_id = failed(database, a_manifest(release="r2")), str(uuid4())
    again = retry(database, other, a_manifest(release="r2"), run_id=other_id)
    assert again.run_id
    Runs(database).fail(Fence(again.run_id, ExecutorId(uuid4())), ERROR)
    assert retry(database, other, a_manifest(release="r2"), run_id=other_id)[:2] == ("error", "failed")


def test_a_fault_in_the_middle_of_a_retry_restores_everything(database: Database, sql: Sql) -> None:
    lost = failed(database)
    before = digest(sql)
    with pytest.raises(Exception, match="import_run_retry_limit_check"):
        retry(database, lost, CHANGED, retry_limit=-1)
    with pytest.raises(Exception, match="a run"):
        retry(database, lost, CHANGED, run_id=str(lost))
    assert digest(sql) == before
    assert retry(database, lost, CHANGED).reason == "retried"


def test_the_executor_of_an_earlier_attempt_is_superseded(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.STAGING)
    Runs(database).fail(fence, ERROR)
    retry(database, fence.run_id)
    assert Executions(database).claim(fence) == "superseded"
    with pytest.raises(psycopg.Error) as refused:
        sql.execute("select create_staging(%s, %s)", [fence.run_id, fence.executor_id])
    assert refused.value.diag.message_detail == "superseded"


def test_a_late_failure_of_an_earlier_attempt_changes_nothing(database: Database, sql: Sql) -> None:
    fence = driven(database, RunState.NORMALIZING)
    Runs(database).fail(fence, ERROR)
    second = retry(database, fence.run_id).run_id
    assert second
    building = driven(database, RunState.RELATING, run_id=second)
    before = digest(sql)
    Runs(database).fail(fence, RunError("late", "Late", "too late"))
    assert digest(sql) == before, "the tables of the later attempt are not dropped"
    run = Runs(database).get(building.run_id)
    assert run is not None
    assert run.state is RunState.RELATING


def test_a_run_id_of_another_run_is_not_taken(database: Database) -> None:
    other = registered(database, a_manifest(release="r2"), an_intent())
    with pytest.raises(Exception, match="there is a run"):
        retry(database, failed(database), run_id=str(other))
