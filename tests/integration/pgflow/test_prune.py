from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from geogenius.db import Database
from geogenius.domain.errors import Misconfigured
from geogenius.pgflow import prune as prune_module
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.prune import Pruned, prune
from tests.integration.pgflow.conftest import Sql, queued
from tests.support.databases import OWNER, PostgresCluster, opened

MONTH = timedelta(days=30)


def aged(sql: Sql, *runs: UUID) -> None:
    """Have these runs ended, and their messages been archived, forty days ago."""
    given = {"runs": list(runs)}
    sql.execute(
        "update pgmq.a_geogenius_import a set archived_at = now() - interval '40 days'"
        " from pgflow.step_tasks t where t.message_id = a.msg_id and t.run_id = any (%(runs)s)",
        given,
    )
    sql.execute(
        "update pgflow.runs set started_at = now() - interval '41 days', completed_at = now() - interval '40 days'"
        " where run_id = any (%(runs)s)",
        given,
    )


def left(sql: Sql) -> set[UUID]:
    return {row["run_id"] for row in sql.execute("select run_id from pgflow.runs")}


def test_old_ended_runs_and_messages_go_and_all_others_stay(
    owner: Database, database: Database, sql: Sql, ended: Callable[[], UUID]
) -> None:
    old, new, running = ended(), ended(), queued(database)
    aged(sql, old)
    sql.execute("update pgflow.runs set started_at = now() - interval '90 days' where run_id = %s", [running])
    assert prune(owner, MONTH, lambda _: None) == Pruned(1, 1)
    assert left(sql) == {new, running}
    assert prune(owner, MONTH, lambda _: None) == Pruned(0, 0)


def test_the_work_is_done_in_batches_that_are_told(
    owner: Database, sql: Sql, ended: Callable[[], UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune_module, "BATCH", 2)
    aged(sql, *(ended() for _ in range(5)))
    told: list[int] = []
    assert prune(owner, MONTH, told.append) == Pruned(5, 5)
    assert told == [2, 2, 1, 2, 2, 1]


def test_what_somebody_has_locked_is_left_to_the_next_time(
    owner: Database, sql: Sql, ended: Callable[[], UUID]
) -> None:
    held, free = ended(), ended()
    aged(sql, held, free)
    with sql.transaction():
        sql.execute("select from pgflow.runs where run_id = %s for update", [held])
        assert prune(owner, MONTH, lambda _: None) == Pruned(1, 2)
    assert left(sql) == {held}
    assert prune(owner, MONTH, lambda _: None) == Pruned(1, 0)


def test_a_writer_may_prune_while_a_worker_works(
    database: Database, sql: Sql, worker: Leases, ended: Callable[[], UUID]
) -> None:
    aged(sql, ended())
    queued(database)
    (delivery,) = worker.claim(1)
    assert prune(database, MONTH, lambda _: None) == Pruned(1, 1)
    assert worker.complete(delivery, {})


def test_runs_of_another_flow_stay(owner: Database, sql: Sql) -> None:
    sql.execute("select pgflow.create_flow('theirs')")
    sql.execute("select pgflow.start_flow('theirs', '{}')")
    assert prune(owner, timedelta(0), lambda _: None) == Pruned(0, 0)
    assert len(left(sql)) == 1


def test_where_nothing_is_installed_that_is_said(postgres: PostgresCluster, template: str) -> None:
    name = postgres.create(template)
    with opened(postgres.conninfo(name, OWNER)) as database, pytest.raises(Misconfigured) as error:
        prune(database, MONTH, lambda _: None)
    assert error.value.reason == "PgflowMissing"
    postgres.drop(name)
