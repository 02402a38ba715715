"""The state machine is said three times: in SQL, in Python and in the document. They agree."""

import re
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from geogenius.catalog import Executions
from geogenius.db import Database
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.errors import Conflict
from geogenius.domain.run import NEXT_PHASE, ExecutorId, Fence, RunState
from tests.support.catalog import claimed

Sql = psycopg.Connection[psycopg.rows.DictRow]
DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "state-machine.md").read_text()
DRAWN = re.findall(r"^    (\w+) --> (\w+)(?: : (\w+))?$", DOCUMENT, re.MULTILINE)


def test_sql_has_the_states_of_the_domain_in_their_order(sql: Sql) -> None:
    row = sql.execute("select enum_range(null::run_state)::text[] as states, "
                      "enum_range(null::enqueue_state)::text[] as answers").fetchall()[0]  # fmt: skip
    assert row == {"states": list(RunState), "answers": list(EnqueueState)}


def test_sql_has_the_edges_of_the_domain(sql: Sql) -> None:
    edges = {row["state"]: row["next_state"] for row in sql.execute("select * from run_state_edge")}
    assert edges == NEXT_PHASE


def test_the_document_draws_the_edges_of_the_domain() -> None:
    assert {start: end for start, end, name in DRAWN if not name} == NEXT_PHASE
    live = {state for state in RunState if not state.terminal}
    assert {start for start, end, name in DRAWN if name == "fail_import" and end == "failed"} == live
    ends = {(start, name) for start, end, name in DRAWN if end == "completed"}
    assert ends == {("verifying", "complete_import"), ("publishing", "publish_import")}


@pytest.mark.parametrize("state", [state for state in RunState if not state.terminal])
def test_advance_takes_the_single_next_edge_and_no_other(database: Database, sql: Sql, state: RunState) -> None:
    fence = claimed(database)
    for target in RunState:
        sql.execute("update import_run set state = %s", [state])
        if NEXT_PHASE.get(state) is target:
            Executions(database).advance(fence, target, {"rows": 1})
            assert sql.execute("select state, metrics from import_run").fetchone() == {
                "state": target, "metrics": {"rows": 1},
            }  # fmt: skip
        else:
            with pytest.raises(Conflict) as refused:
                Executions(database).advance(fence, target, {"rows": 2})
            assert refused.value.reason == "WrongPhase"
            assert sql.execute("select state from import_run").fetchone() == {"state": state}


def test_advance_is_for_the_executor_alone(database: Database) -> None:
    fence = claimed(database)
    with pytest.raises(Conflict) as refused:
        Executions(database).advance(Fence(fence.run_id, ExecutorId(uuid4())), RunState.DOWNLOADING, {})
    assert refused.value.reason == "LeaseLost"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("state = 'completed'", "ended_iff_timed"),
        ("completed_at = now()", "ended_iff_timed"),
        ("state = 'failed', completed_at = now()", "failed_iff_error"),
        ('error = \'{"phase": "p", "reason": "r", "message": "m"}\'', "failed_iff_error"),
        ("error = '{}', state = 'failed', completed_at = now()", "import_run_error_check"),
        ("executor_id = gen_random_uuid()", "executor_has_start"),
        ("execution_started_at = now()", "executor_has_start"),
        ("request_name = 'x'", "request_whole"),
        ("cluster_id = gen_random_uuid(), workload_name = 'x'", "workload_whole"),
        ("workload_uid = gen_random_uuid()", "workload_uid_has_workload"),
        ("stale_after_seconds = 0", "import_run_stale_after_seconds_check"),
        ("retry_max_backoff_seconds = 1", "import_run_check"),
        ("owner = ''", "import_run_owner_check"),
    ],
)
def test_half_states_are_impossible(database: Database, sql: Sql, change: str, rule: str) -> None:
    claimed(database)
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        sql.execute(f"update import_run set {change}".encode())
    assert refused.value.diag.constraint_name == rule


def test_the_start_is_never_without_its_time(database: Database, sql: Sql) -> None:
    claimed(database)
    with pytest.raises(psycopg.errors.NotNullViolation):
        sql.execute("update import_run set enqueue_changed_at = null")


def test_a_release_has_one_live_run(database: Database, sql: Sql) -> None:
    fence = claimed(database)
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        sql.execute(SECOND_ATTEMPT, [fence.run_id])
    assert refused.value.diag.constraint_name == "import_run_one_live"


SECOND_ATTEMPT = """
with copied as (select * from import_run where id = %s)
insert into import_run
select (jsonb_populate_record(
    null::import_run, to_jsonb(c) || jsonb_build_object('id', gen_random_uuid(), 'attempt', 2)
)).*
from copied c
"""
