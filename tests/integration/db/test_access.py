"""What the roles of a catalog can do, and above all what they cannot."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.db.migrate import grant, migrate
from geogenius.domain.errors import InvalidRequest, Misconfigured
from geogenius.domain.run import RunState
from tests.support.catalog import a_manifest, claimed, driven, published
from tests.support.databases import READER, WRITER, PostgresCluster, session

README = Path(__file__).parents[3] / "README.md"
Sql = psycopg.Connection[psycopg.rows.DictRow]
TABLES = """
select c.relname as name from pg_class c
where c.relnamespace = 'geogenius'::regnamespace and c.relkind in ('r', 'p') order by 1
"""
VIEWS = "select viewname as name from pg_views where schemaname = 'geogenius' and viewname ~ '^(published|release)_'"
FUNCTIONS = """
select p.oid::regprocedure::text as call, p.provolatile = 'v' as writes, p.prosecdef as door
from pg_proc p where p.pronamespace = 'geogenius'::regnamespace order by 1
"""
HIDDEN = ("import_run", "import_run_lease", "import_run_artifact", "import_reject", "import_run_status", "catalog_role")
WRITES = (
    "insert into {} default values",
    "update {} set {} = {}",
    "delete from {}",
    "truncate {}",
    "drop table {}",
    "lock table {} in exclusive mode",
)


@pytest.fixture(params=["writer", "reader"])
def limited(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """A plain session of either role."""
    database = request.getfixturevalue("database" if request.param == "writer" else "reader")
    with session(database) as connection:
        yield connection


def refused(connection: Sql, statement: str) -> bool:
    """Whether a statement is refused for want of rights; it never happens in the end."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    except psycopg.Error:
        return False
    return False


def test_no_table_can_be_written_but_through_a_door(database: Database, sql: Sql, limited: Sql) -> None:
    published(database)
    driven(database, RunState.RELATING, a_manifest(release="r2"))
    columns = "select attname as name from pg_attribute where attrelid = %s::regclass order by attnum desc limit 1"
    let_through = []
    for table in [row["name"] for row in sql.execute(TABLES)]:
        column = sql.execute(columns, [table]).fetchall()[0]["name"]
        for write in WRITES:
            words = [table, column, column]
            if not refused(limited, write.format(*words)):
                let_through.append(write.format(*words))
    assert [statement for statement in let_through if "staging_" not in statement] == []
    assert {statement.split()[0] for statement in let_through} <= {"insert"}, "COPY into the staging table of a run"


def test_a_reader_enters_no_door_and_a_writer_no_room(sql: Sql, database: Database, reader: Database) -> None:
    may = "select has_function_privilege(%s, %s, 'execute') as may"
    for row in sql.execute(FUNCTIONS).fetchall():
        writer_may, reader_may = (
            sql.execute(may, [role, row["call"]]).fetchall()[0]["may"] for role in (WRITER, READER)
        )
        assert reader_may == (not row["writes"]), row["call"]
        assert writer_may == (row["door"] or not row["writes"]), row["call"]
    for database_of, call in (
        (database, "end_run(null, 'failed', '{}', '{}')"),
        (reader, "retire_releases('world', 1)"),
    ):
        with session(database_of) as connection:
            assert refused(connection, f"select {call}")


def test_a_reader_reads_what_is_complete_and_nothing_of_runs(database: Database, sql: Sql, reader: Database) -> None:
    published(database)
    with session(reader) as connection:
        for view in [row["name"] for row in sql.execute(VIEWS)]:
            connection.execute(f"select count(*) from {view}".encode())
        for hidden in HIDDEN:
            assert refused(connection, f"select count(*) from {hidden}"), hidden
        assert connection.execute("select code from areas_for_point(10.5, 50.5)").fetchall() == [{"code": "DE"}]
        assert connection.execute("select count(*) as many from published_areas").fetchall() == [{"many": 2}]


def test_a_reader_may_ask_all_that_the_readme_asks(database: Database, reader: Database) -> None:
    published(database)
    questions = re.findall(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
    statements = [line for question in questions for line in question.splitlines()]
    assert len(statements) >= 5
    with session(reader) as connection:
        for statement in [*statements, "select release_at('world', now())", "select published_release('world')"]:
            connection.execute(statement.encode())


def test_a_role_without_rights_can_do_nothing(postgres: PostgresCluster, dbname: str, database: Database) -> None:
    published(database)
    postgres.execute("postgres", "drop role if exists stranger; create role stranger login")
    stranger = Database(postgres.conninfo(dbname, "stranger"), application_name="tests")
    try:
        with session(stranger) as connection:
            for statement in ("select from geogenius.release", "select geogenius.published_release('world')"):
                assert refused(connection, statement)
    finally:
        stranger.close()


TRAPS = (
    "create temporary table repaired (id bigint, geom text, reason text)",
    "create temporary table import_run (id uuid)",
    "create temporary table release (id uuid)",
    "create function pg_temp.catalog_now() returns timestamptz language sql as 'select null::timestamptz'",
    "create function pg_temp.refuse(text, text, text) returns void language sql as ''",
    "create function pg_temp.now() returns timestamptz language plpgsql as 'begin raise exception ''sprung''; end'",
)


@pytest.mark.parametrize("trap", TRAPS)
def test_a_door_never_runs_what_a_writer_left_in_its_session(database: Database, trap: str) -> None:
    """A door works with the rights of the owner, so it must find its own names first."""
    fence = driven(database, RunState.NORMALIZING)
    with session(database) as connection:
        connection.execute(trap.encode())
        connection.execute("set search_path = pg_temp, geogenius, public")
        call = "select areas from geogenius.merge_staging(%s, %s, 2)"
        try:
            row = connection.execute(call, [fence.run_id, fence.executor_id]).fetchall()[0]
        except psycopg.errors.InsufficientPrivilege as error:
            assert "must be owner of table repaired" in str(error)  # noqa: PT017  a refusal is as good
        else:
            assert row == {"areas": 2}


def test_a_door_takes_no_table_of_the_session_for_that_of_a_run(database: Database) -> None:
    """What phases left out is not there, and its name is free: it must not be looked for in the session."""
    fence = claimed(database)
    for phase in list(RunState)[1:8]:
        Executions(database).advance(fence, phase, {})
    run = Runs(database).get(fence.run_id)
    assert run is not None
    evil = "create function pg_temp.evil() returns boolean language plpgsql as 'begin raise exception ''sprung''; end'"
    with session(database) as connection:
        connection.execute(evil)
        for parent in ("release_area", "boundary", "boundary_part", "area_name", "area_code", "relation", "staging"):
            owner_of = run.run_id if parent == "staging" else run.release_id
            view = f"create temporary view {parent}_{owner_of.hex} as select * from pg_class where pg_temp.evil()"
            connection.execute(view.encode())
        for call in ("verify_release(%s, %s)", "complete_import(%s, %s, '{}')"):
            with pytest.raises(psycopg.Error) as refused_:
                connection.execute(f"select {call}".encode(), [fence.run_id, fence.executor_id])
            assert refused_.value.diag.message_detail in ("not_merged", "artifact_unobserved")


def test_a_writer_that_becomes_a_reader_writes_no_more(owner: Database, database: Database) -> None:
    grant(owner, "reader", WRITER)
    try:
        with session(database) as connection:
            assert refused(connection, "select retire_releases('world', 1)")
            assert refused(connection, "select count(*) from import_run")
            connection.execute("select count(*) from published_areas")
    finally:
        grant(owner, "writer", WRITER)


def test_rejects_are_kept_for_a_run_that_is_staging_alone(database: Database) -> None:
    fence = published(database)
    with session(database) as connection, pytest.raises(psycopg.Error) as refused_:
        connection.execute("select record_rejects(%s, 'f', '{1}', '{bad}', '{null}', '{x}')", [fence.run_id])
    assert refused_.value.diag.message_detail == "lease_lost"


def test_every_door_looks_into_temporary_objects_last(sql: Sql) -> None:
    paths = sql.execute(
        "select proname, array_to_string(proconfig, ' ') as settings from pg_proc"
        " where pronamespace = 'geogenius'::regnamespace and prosecdef"
    ).fetchall()
    assert len(paths) > 20
    assert [row["proname"] for row in paths if "search_path=geogenius, public, pg_temp" not in row["settings"]] == []


def test_rights_survive_the_next_migration_which_gives_those_to_what_is_new(
    owner: Database, sql: Sql, database: Database, reader: Database
) -> None:
    with session(owner) as connection:
        connection.execute("create function brand_new() returns integer language sql stable as 'select 7'")
        connection.execute(
            "create function brand_new_door() returns integer language sql security definer as 'select 8'"
        )
        connection.execute("revoke select on release_area from geogenius_reader")
    migrate(owner)
    with session(reader) as connection:
        assert connection.execute("select brand_new() as seven").fetchall() == [{"seven": 7}]
        assert refused(connection, "select brand_new_door()")
        connection.execute("select from release_area")
    with session(database) as connection:
        assert connection.execute("select brand_new_door() as eight").fetchall() == [{"eight": 8}]
    assert sql.execute("select count(*) as roles from catalog_role").fetchall() == [{"roles": 2}]


def test_a_role_that_is_no_more_is_forgotten_and_an_unknown_one_named(
    owner: Database, sql: Sql, postgres: PostgresCluster
) -> None:
    postgres.execute("postgres", "drop role if exists passing; create role passing login")
    grant(owner, "reader", "passing")
    grant(owner, "writer", "passing")
    sql.execute("drop owned by passing")
    sql.execute("drop role passing")
    migrate(owner)
    assert sql.execute("select role from catalog_role order by 1").fetchall() == [{"role": READER}, {"role": WRITER}]
    with pytest.raises(InvalidRequest) as unknown:
        grant(owner, "reader", "passing")
    assert unknown.value.reason == "UnknownRole"


def test_a_writer_gives_no_rights(database: Database) -> None:
    with pytest.raises(Misconfigured) as refused_:
        grant(database, "writer", READER)
    assert refused_.value.reason == "PermissionMissing"
