from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from geogenius.db import Database
from geogenius.db.migrate import grant
from geogenius.pgflow.capabilities import Flow
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.status import QueueStatus, status
from tests.integration.pgflow.conftest import Sql, queued
from tests.support.databases import OWNER, PostgresCluster, opened
from tests.support.queues import DEADLINE


def reasons(found: QueueStatus) -> list[str]:
    return [problem.reason for problem in found.problems]


def test_a_database_without_a_queue_is_told_as_such(postgres: PostgresCluster, template: str) -> None:
    name = postgres.create(template)
    with opened(postgres.conninfo(name, OWNER)) as database:
        found = status(database, DEADLINE, worker_required=True)
    assert not any(part.present or part.ours for part in found.components)
    assert (found.flow, found.runs, found.waiting, found.worked_on) == (None, {}, 0, 0)
    assert reasons(found) == ["PgflowMissing"]
    postgres.drop(name)


def test_a_fresh_installation_lacks_a_worker_alone(owner: Database) -> None:
    found = status(owner, DEADLINE, worker_required=True)
    assert {part.name for part in found.components if part.present and part.ours} == {
        "pgmq",
        "realtime",
        "pgflow",
        "flow",
    }
    assert {part.name: part.version for part in found.components}["pgflow"] == "0.8.1"
    assert found.flow == Flow(3900, ("execute",), None)
    assert (reasons(found), found.lacking) == (["NoWorker"], {})
    assert reasons(status(owner, None, worker_required=False)) == ["DeadlineMissing"]
    assert "StoredDeadlineDiffers" in reasons(status(owner, timedelta(seconds=1), worker_required=False))


def test_runs_messages_and_workers_are_counted(
    owner: Database, database: Database, worker: Leases, ended: Callable[[], UUID], sql: Sql
) -> None:
    ended()
    for _ in range(4):
        queued(database)
    first, second, third = worker.claim(3)
    worker.put_back(second, 60)
    sql.execute("update pgmq.q_geogenius_import set vt = now() where msg_id = %s", [third.message])
    found = status(owner, DEADLINE, worker_required=True)
    assert (found.runs, found.healthy_workers) == ({"completed": 1, "started": 4}, 1)
    assert (found.worked_on, found.waiting) == (1, 3), "put back, lost and new ones wait"
    assert worker.renew(first)
    assert found.problems == ()


def test_what_others_made_and_writers_lack_is_told(owner: Database, sql: Sql) -> None:
    sql.execute("delete from queue_component where component in ('pgmq', 'pgflow')")
    sql.execute("drop role if exists late_writer")
    sql.execute("create role late_writer")
    grant(owner, "writer", "late_writer")
    found = status(owner, DEADLINE, worker_required=False)
    assert {part.name for part in found.components if not part.ours} == {"pgmq", "pgflow"}
    assert "usage on schema pgflow" in found.lacking["late_writer"]
    assert "insert on pgmq.q_geogenius_import" in found.lacking["late_writer"]
    sql.execute("drop owned by late_writer")


def test_a_writer_sees_the_same_as_the_owner(owner: Database, database: Database) -> None:
    assert status(database, DEADLINE, worker_required=True) == status(owner, DEADLINE, worker_required=True)


def test_a_half_installed_queue_is_told_not_raised(owner: Database, sql: Sql) -> None:
    sql.execute("drop table pgflow.workers cascade")
    found = status(owner, DEADLINE, worker_required=False)
    assert (reasons(found), found.runs) == (["PgflowIncomplete"], {})
