from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from geogenius.db import Database
from geogenius.db.migrate import migrate
from geogenius.db.sql import literal
from geogenius.domain.errors import Conflict
from geogenius.pgflow.enqueue import enqueue
from geogenius.pgflow.install import Did, install
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.uninstall import uninstall
from tests.integration.pgflow.conftest import Sql, an_order, ledger, objects, queued, schemas
from tests.support.databases import OWNER, PostgresCluster, opened, until_waiting_for_lock
from tests.support.queues import DEADLINE, may_create_schemas, sources

SLUG = "geogenius_import"
ALL = ("flow", "pgflow", "realtime", "pgmq")


def did(database: Database, *, force: bool = False) -> dict[str, Did]:
    return {step.component: step.did for step in uninstall(database, force=force)}


@pytest.fixture
def other(postgres: PostgresCluster, dbname: str) -> Iterator[Database]:
    """A second catalog in the same database, with a queue of its own."""
    may_create_schemas(postgres, dbname)
    postgres.execute(dbname, f"create schema other authorization {OWNER}")
    with_schema = Database(postgres.conninfo(dbname, OWNER), application_name="tests", schema="other")
    migrate(with_schema)
    install(with_schema, sources(), DEADLINE)
    yield with_schema
    with_schema.close()


def test_everything_that_was_made_goes_and_can_be_made_again(
    postgres: PostgresCluster, dbname: str, owner: Database, sql: Sql, ended: Callable[[], UUID]
) -> None:
    ended()
    assert did(owner) == dict.fromkeys(ALL, Did.REMOVED)
    assert (schemas(sql), ledger(sql)) == (set(), set())
    assert did(owner) == dict.fromkeys(ALL, Did.ABSENT)
    may_create_schemas(postgres, dbname)
    assert {step.did for step in install(owner, sources(), DEADLINE)} == {Did.MADE}


def test_runs_that_have_not_ended_keep_the_queue_unless_forced(
    owner: Database, database: Database, sql: Sql, worker: Leases
) -> None:
    queued(database)
    queued(database)
    (delivery,) = worker.claim(1)
    before = objects(sql)
    with pytest.raises(Conflict, match="2 flow runs of geogenius_import") as error:
        uninstall(owner)
    assert error.value.reason == "QueueBusy"
    assert objects(sql) == before
    assert worker.renew(delivery)
    assert did(owner, force=True) == dict.fromkeys(ALL, Did.REMOVED)


def test_a_run_that_is_just_being_queued_counts(
    postgres: PostgresCluster, dbname: str, database: Database, sql: Sql
) -> None:
    with (
        opened(postgres.conninfo(dbname, OWNER), "remover") as remover,
        ThreadPoolExecutor(1) as pool,
    ):
        with database.connection() as connection:
            enqueue(connection, SLUG, an_order())
            removal = pool.submit(uninstall, remover)
            until_waiting_for_lock(sql, "remover")
        with pytest.raises(Conflict):
            removal.result(timeout=30)


def test_flows_of_others_keep_the_core_and_what_it_needs(owner: Database, sql: Sql) -> None:
    sql.execute("select pgflow.create_flow('theirs')")
    steps = {step.component: step for step in uninstall(owner)}
    assert [steps[name].did for name in ALL] == [Did.REMOVED, Did.KEPT, Did.KEPT, Did.KEPT]
    assert "theirs" in steps["pgflow"].reason
    assert ledger(sql) == {"pgflow", "realtime", "pgmq"}
    assert did(owner)["flow"] is Did.ABSENT
    sql.execute("delete from pgflow.flows")
    sql.execute("select pgmq.drop_queue('theirs')")
    assert did(owner) == {**dict.fromkeys(ALL, Did.REMOVED), "flow": Did.ABSENT}
    assert schemas(sql) == set()


def test_queues_of_others_keep_pgmq(owner: Database, sql: Sql) -> None:
    sql.execute("select pgmq.create('theirs')")
    steps = {step.component: step for step in uninstall(owner)}
    assert steps["pgmq"].did is Did.KEPT
    assert "theirs" in steps["pgmq"].reason
    assert schemas(sql) == {"pgmq"}


def test_a_schema_in_which_others_have_something_stays(owner: Database, sql: Sql) -> None:
    sql.execute("create table realtime.theirs ()")
    assert did(owner)["realtime"] is Did.REMOVED
    assert schemas(sql) == {"realtime"}


def test_what_is_not_written_down_is_not_ours(owner: Database, sql: Sql) -> None:
    sql.execute("delete from queue_component")
    before = objects(sql)
    assert did(owner, force=True) == dict.fromkeys(ALL, Did.FOREIGN)
    assert objects(sql) == before


def test_what_is_not_ours_needs_no_rights(owner: Database, sql: Sql) -> None:
    sql.execute("delete from queue_component")
    for schema in ("pgflow", "pgmq", "realtime"):
        sql.execute(literal(f"alter schema {schema} owner to postgres"))
        sql.execute(literal(f"revoke all on schema {schema} from {OWNER}"))
    assert did(owner) == dict.fromkeys(ALL, Did.FOREIGN)


def test_what_somebody_else_removed_is_forgotten(owner: Database, sql: Sql) -> None:
    sql.execute("drop schema pgflow cascade")
    sql.execute("drop schema pgmq cascade")
    absent = dict.fromkeys(("flow", "pgflow", "pgmq"), Did.ABSENT)
    assert did(owner) == {**absent, "realtime": Did.REMOVED}
    assert ledger(sql) == set()


def test_of_two_catalogs_in_a_database_each_removes_its_own(owner: Database, other: Database, sql: Sql) -> None:
    assert did(owner) == {**dict.fromkeys(ALL, Did.KEPT), "flow": Did.REMOVED}
    run = queued(other)
    (row,) = sql.execute("select run_id, flow_slug from pgflow.runs").fetchall()
    assert (row["run_id"], row["flow_slug"]) == (run, "other_import")
    assert did(other, force=True) == {**dict.fromkeys(ALL, Did.FOREIGN), "flow": Did.REMOVED}
    assert did(owner) == {**dict.fromkeys(ALL, Did.REMOVED), "flow": Did.ABSENT}
    assert schemas(sql) == set()
