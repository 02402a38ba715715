"""Every deliberate error of the database, provoked: an SQLSTATE and a word, which the one table of errors knows."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog import Areas, Executions, Runs
from geogenius.db import Database
from geogenius.db.errors import MEANINGS, translate
from geogenius.domain.area import ParentLink
from geogenius.domain.run import ExecutorId, Fence, RunError, RunState
from tests.support.catalog import a_manifest, an_area, claimed, completed, driven, published, registered, release_of
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
Call = tuple[str, list[Any]]
CLAIM = {"run_id": str(uuid4()), "owner": "maps/world", "runner_backend": "inline"}
NEW = "select prepare_import(%s, %s)"
FENCE = "select assert_import_write(%s, %s, array['staging']::run_state[])"
FAIL = "select fail_import(%s, %s, %s)"
ERROR = RunError("pending", "Gone", "gone")
WHY = Jsonb({"phase": "pending", "reason": "Gone", "message": "gone"})


def pair(fence: Fence) -> list[Any]:
    return [fence.run_id, fence.executor_id]


def failed(database: Database, manifest: dict[str, Any] | None = None) -> Fence:
    fence = claimed(database, manifest)
    Runs(database).fail(fence, ERROR)
    return fence


def superseded(database: Database, sql: Sql) -> Call:
    fence = failed(database)
    sql.execute("select retry_failed(%s, %s, %s)", [fence.run_id, Jsonb(a_manifest()), Jsonb(CLAIM)])
    return FENCE, pair(fence)


def frozen(database: Database, sql: Sql) -> Call:
    fence = driven(database, RunState.STAGING)
    sql.execute("update release set completed_at = now()")
    return FENCE, pair(fence)


def unverified(database: Database, sql: Sql) -> Call:
    fence = driven(database, RunState.VERIFYING)
    sql.execute("update import_run set verification = null")
    return "select complete_import(%s, %s, '{}')", pair(fence)


def unobserved(database: Database, sql: Sql) -> Call:
    fence = driven(database, RunState.VERIFYING)
    sql.execute("update import_run_artifact set observed_at = null, observed_sha256 = null, observed_bytes = null")
    return "select complete_import(%s, %s, '{}')", pair(fence)


def another_file(database: Database, sql: Sql) -> Call:
    fence = driven(database, RunState.DOWNLOADING)
    row = sql.execute("select id from artifact").fetchall()[0]
    return "select record_artifact_observation(%s, %s, %s, %s, 7)", [*pair(fence), row["id"], "ab" * 32]


def unknown_file(database: Database, _: Sql) -> Call:
    fence = driven(database, RunState.DOWNLOADING)
    return "select record_artifact_observation(%s, %s, %s, %s, 7)", [*pair(fence), uuid4(), "ab" * 32]


def staging_lost(database: Database, _: Sql) -> Call:
    return "select merge_staging(%s, %s, 3)", pair(driven(database, RunState.NORMALIZING))


def not_merged(database: Database, _: Sql) -> Call:
    fence = claimed(database)
    for phase in list(RunState)[1:8]:
        Executions(database).advance(fence, phase, {})
    return "select verify_release(%s, %s)", pair(fence)


def retired(database: Database, sql: Sql) -> Call:
    release = release_of(database, completed(database))
    sql.execute("update release set retired_at = now()")
    return "select publish_release(%s)", [release]


def an_ended_run_changed(database: Database, _: Sql) -> Call:
    failed(database)
    return "update import_run set owner = 'x'", []


def the_published_release_retired(database: Database, _: Sql) -> Call:
    published(database)
    return "update release set retired_at = now()", []


def parent_unknown(database: Database, _: Sql) -> Call:
    area = an_area(1, "DE", None, parents=(ParentLink("iso:country:NOWHERE"),))
    fence = driven(database, RunState.NORMALIZING, areas=[area])
    Areas(database).merge(fence, 1)
    Executions(database).advance(fence, RunState.RELATING, {})
    return "select relate_release(%s, %s, false)", pair(fence)


PROVOKED: dict[str, Callable[[Database, Sql], Call]] = {
    "bad_manifest": lambda *_: (NEW, [Jsonb({}), Jsonb(CLAIM)]),
    "bad_claim": lambda *_: (NEW, [Jsonb(a_manifest()), Jsonb({})]),
    "run_id_taken": lambda database, _: (
        NEW,
        [Jsonb(a_manifest(release="r2")), Jsonb({**CLAIM, "run_id": str(registered(database))})],
    ),
    "null_argument": lambda database, _: (
        "select advance_import(%s, %s, null, '{}')",
        pair(claimed(database)),
    ),
    "unknown_run": lambda *_: (FENCE, [uuid4(), uuid4()]),
    "superseded": superseded,
    "lease_lost": lambda database, _: (FENCE, [claimed(database).run_id, uuid4()]),
    "release_frozen": frozen,
    "wrong_phase": lambda database, _: (FENCE, pair(claimed(database))),
    "run_completed": lambda database, _: (FAIL, [*pair(completed(database)), WHY]),
    "run_ended": an_ended_run_changed,
    "bad_enqueue_state": lambda database, _: (
        "select record_enqueue(%s, 'intended', null, null)",
        [registered(database)],
    ),
    "artifact_mismatch": another_file,
    "unknown_artifact": unknown_file,
    "artifact_unobserved": unobserved,
    "unknown_parent": parent_unknown,
    "staging_lost": staging_lost,
    "not_merged": not_merged,
    "not_verified": unverified,
    "unknown_release": lambda *_: ("select publish_release(%s)", [uuid4()]),
    "release_live": lambda database, _: ("select publish_release(%s)", [release_of(database, claimed(database))]),
    "release_incomplete": lambda database, _: ("select publish_release(%s)", [release_of(database, failed(database))]),
    "release_retired": retired,
    "release_published": the_published_release_retired,
    "unknown_collection": lambda *_: ("select rollback_publication('nowhere', null)", []),
    "no_previous_release": lambda database, _: (
        f"select rollback_publication('world', null) -- {published(database)}",
        [],
    ),
    "pointer_moved": lambda database, _: (
        "select rollback_publication('world', %s)",
        [published(database).run_id],
    ),
    "bad_keep": lambda database, _: ("select retire_releases('world', %s)", [0 * registered(database).int]),
    "bad_successor": lambda database, _: (
        "select retire_area('world', %s, 'a')",
        ["a" if registered(database) else "b"],
    ),
    "bad_access": lambda *_: ("select grant_access('postgres', 'king')", []),
    "unknown_role": lambda *_: ("select grant_access('nobody_here', 'writer')", []),
    "bad_coordinate": lambda *_: ("select * from areas_for_point(181, 0)", []),
    "bad_polygon": lambda *_: ("select * from areas_for_geometry('SRID=4326;POINT(0 0)')", []),
    "bad_radius": lambda *_: ("select * from areas_near(0, 0, 0)", []),
    "bad_score": lambda *_: ("select * from search_areas('a', min_score => 0)", []),
    "bad_limit": lambda *_: ("select * from search_areas('a', result_limit => 0)", []),
    "bad_depth": lambda *_: ("select * from children_of('a', max_depth => 0)", []),
    "bad_lists": lambda *_: ("select * from areas_by_code_many('{a}', '{}')", []),
    "blank_query": lambda *_: ("select * from search_areas(' ')", []),
    "bad_strategy": lambda *_: ("""select * from resolve('{"name": "a"}', strategies => '{guess}')""", []),
    "bad_resolve_input": lambda *_: ("select * from resolve('{}')", []),
}


def test_every_word_that_python_knows_is_provoked_here() -> None:
    assert {word for _, word in MEANINGS if word} == PROVOKED.keys()


@pytest.mark.parametrize("word", PROVOKED)
def test_a_refusal_has_its_state_and_word_and_writes_nothing(database: Database, sql: Sql, word: str) -> None:
    statement, arguments = PROVOKED[word](database, sql)
    before = digest(sql)
    with pytest.raises(psycopg.Error) as refused:
        sql.execute(statement.encode(), arguments)
    state = refused.value.sqlstate or ""
    assert refused.value.diag.message_detail == word
    assert (state, word) in MEANINGS
    kind, reason = MEANINGS[state, word]
    error = translate(refused.value)
    assert type(error) is kind
    assert error.reason == (reason or kind.reason)
    assert digest(sql) == before


LOST = {"lease missing": "delete from import_run_lease", "run without release rows": "delete from release_area_type"}
WRITES: dict[str, str] = {
    "claim": "claim_import_execution(%(run)s, %(executor)s)",
    "heartbeat": "heartbeat_import(%(run)s, %(executor)s, '{}')",
    "advance": "advance_import(%(run)s, %(executor)s, 'normalizing', '{}')",
    "observe": "record_artifact_observation(%(run)s, %(executor)s, gen_random_uuid(), 'a', 1)",
    "create_staging": "create_staging(%(run)s, %(executor)s)",
    "merge": "merge_staging(%(run)s, %(executor)s, 2)",
    "index": "index_release(%(run)s, %(executor)s)",
    "verify": "verify_release(%(run)s, %(executor)s)",
    "complete": "complete_import(%(run)s, %(executor)s, '{}')",
    "publish": "publish_import(%(run)s, %(executor)s)",
    "fail": """fail_import(%(run)s, %(executor)s, '{"phase": "a", "reason": "b", "message": "c"}')""",
    "cancel": "request_cancel(%(run)s)",
    "enqueue": "record_enqueue(%(run)s, 'unknown', 'x', null)",
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("given", ["nothing", "release id", "another executor", "no executor", "missing lease"])
def test_no_write_gets_through_with_what_is_not_its_run(database: Database, sql: Sql, write: str, given: str) -> None:
    fence = driven(database, RunState.STAGING)
    arguments: dict[str, Any] = {"run": fence.run_id, "executor": fence.executor_id}
    match given:
        case "nothing":
            arguments["run"] = None
        case "release id":
            arguments["run"] = release_of(database, fence)
        case "another executor":
            arguments["executor"] = ExecutorId(uuid4())
        case "no executor":
            arguments["executor"] = None
        case _:
            sql.execute("delete from import_run_lease")
    needs_no_executor = write in ("cancel", "enqueue") and given not in ("nothing", "release id")
    before = digest(sql)
    try:
        row = sql.execute(f"select {WRITES[write]} as answer".encode(), arguments).fetchall()[0]
    except psycopg.Error as refused:
        assert (refused.sqlstate, refused.diag.message_detail) in MEANINGS  # noqa: PT017  some calls answer instead
        assert not needs_no_executor
    else:
        assert row["answer"] in ("missing", "occupied", "requested") or needs_no_executor
    assert needs_no_executor or digest(sql) == before
