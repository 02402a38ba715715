from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import geogenius.db
from geogenius.catalog import Places
from geogenius.db import Database
from geogenius.db.migrate import SchemaState, SqlFile, migrate, migrations, schema_state
from geogenius.domain.errors import GeogeniusError, Misconfigured
from tests.support.catalog import published
from tests.support.databases import PostgresCluster, session, until_waiting_for_lock

SCHEMA_FILE = Path(geogenius.db.__file__).parent / "schema.sql"
SHAPE = """
select format('%s %s %s', c.relkind, c.relname, a.attname) as line,
    format('%s %s %s', format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)) as what
from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'geogenius'::regnamespace and c.relname !~ '^schema_migration'
union all
select p.oid::regprocedure::text, pg_get_functiondef(p.oid) from pg_proc p
where pronamespace = 'geogenius'::regnamespace
union all
select format('%s on %s', conname, conrelid::regclass), pg_get_constraintdef(oid) from pg_constraint
where connamespace = 'geogenius'::regnamespace and conrelid <> 'schema_migration'::regclass
union all
select viewname, definition from pg_views where schemaname = 'geogenius'
union all
select format('%s on %s', tgname, tgrelid::regclass), pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
union all
select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace = 'geogenius'::regnamespace and c.relname !~ '^schema_migration'
order by 1, 2
"""


def shape(database: Database) -> list[tuple[str, str]]:
    with session(database) as connection:
        return [(row["line"], row["what"]) for row in connection.execute(SHAPE)]


def test_a_database_without_the_schema_is_outdated_and_migrates_once(empty_database: Database) -> None:
    assert schema_state(empty_database) is SchemaState.OUTDATED
    assert migrate(empty_database) == [file.name for file in migrations()]
    assert schema_state(empty_database) is SchemaState.CURRENT
    assert migrate(empty_database) == []


def test_an_edited_old_file_is_refused_by_name(empty_database: Database) -> None:
    migrate(empty_database)
    first, *rest = migrations()
    with pytest.raises(Misconfigured, match=r"0001_create_catalog\.sql was edited"):
        migrate(empty_database, [replace(first, text=first.text + "\n"), *rest])


def test_a_database_newer_than_the_program_is_refused_and_named(empty_database: Database) -> None:
    migrate(empty_database, [*migrations(), SqlFile("9999_add_future.sql", "create table future (id integer);")])
    assert schema_state(empty_database) is SchemaState.NEWER
    with pytest.raises(Misconfigured, match=r"newer than this program.*9999_add_future\.sql"):
        migrate(empty_database)


def test_a_broken_file_leaves_nothing_of_itself_and_is_named_with_its_line(empty_database: Database) -> None:
    broken = SqlFile("9999_add_broken.sql", "create table half (id integer);\nselect\n  no_such_column;\n")
    with pytest.raises(GeogeniusError, match=r"no_such_column.*9999_add_broken\.sql, line 3"):
        migrate(empty_database, [*migrations(), broken])
    with session(empty_database) as connection:
        row = connection.execute("select to_regclass('half') as half").fetchone()
    assert row == {"half": None}
    assert migrate(empty_database) == []


def test_a_second_migration_waits_for_the_first(postgres: PostgresCluster, empty_database: Database) -> None:
    with (
        ThreadPoolExecutor() as threads,
        psycopg.connect(postgres.conninfo(empty_database_name(empty_database)), autocommit=True) as first,
    ):
        first.execute("select pg_advisory_lock(hashtextextended('geogenius migration geogenius', 0))")
        second = threads.submit(migrate, empty_database)
        until_waiting_for_lock(first, "tests")
        assert schema_state(empty_database) is SchemaState.OUTDATED
        first.execute("select pg_advisory_unlock_all()")
        assert second.result() == [file.name for file in migrations()]


def empty_database_name(database: Database) -> str:
    with session(database) as connection:
        return connection.info.dbname


def test_the_picture_builds_the_same_schema_as_the_migrations(empty_database: Database, database: Database) -> None:
    with session(empty_database) as connection:
        connection.execute("create extension postgis schema public")
        connection.execute("create extension pg_trgm schema public")
        connection.execute("create schema geogenius")
        connection.execute("create table schema_migration ()")
        connection.execute(SCHEMA_FILE.read_text().encode())
    assert shape(empty_database) == shape(database)


def test_postgis_out_of_reach_is_named(empty_database: Database) -> None:
    with session(empty_database) as connection:
        connection.execute("create schema elsewhere")
        connection.execute("create extension postgis schema elsewhere")
    with pytest.raises(Misconfigured, match="postgis is in schema elsewhere"):
        migrate(empty_database)


def test_a_role_that_may_not_create_extensions_is_told_what_is_missing(
    postgres: PostgresCluster, empty_database: Database
) -> None:
    name = empty_database_name(empty_database)
    with session(empty_database) as connection:
        connection.execute("drop role if exists plain")
        connection.execute("create role plain login")
        connection.execute(f"grant create on database {name} to plain".encode())
    plain = Database(postgres.conninfo(name).replace("user=postgres", "user=plain"), application_name="tests")
    try:
        with pytest.raises(Misconfigured, match="must run CREATE EXTENSION postgis"):
            migrate(plain)
    finally:
        plain.close()


def test_a_schema_of_its_own_and_postgis_are_all_that_a_role_needs(
    postgres: PostgresCluster, empty_database: Database
) -> None:
    with session(empty_database) as connection:
        connection.execute("drop role if exists tenant")
        connection.execute("create role tenant login")
        connection.execute("create extension postgis")
        connection.execute("create extension pg_trgm")
        connection.execute("create schema geogenius authorization tenant")
    name = empty_database_name(empty_database)
    tenant = Database(postgres.conninfo(name).replace("user=postgres", "user=tenant"), application_name="tests")
    try:
        migrate(tenant)
        assert schema_state(tenant) is SchemaState.CURRENT
        published(tenant)
        assert [match.code for match in Places(tenant).for_point(10.5, 50.5)] == ["DE"]
    finally:
        tenant.close()


@pytest.mark.parametrize("schema", ["order", "select", "x" * 63])
def test_the_schema_may_have_any_plain_name(empty_database: Database, schema: str) -> None:
    with session(empty_database) as connection:
        conninfo = f"{connection.info.dsn} dbname={connection.info.dbname}"
    database = Database(conninfo, application_name="tests", schema=schema)
    try:
        migrate(database)
        assert schema_state(database) is SchemaState.CURRENT
        published(database)
        assert [match.code for match in Places(database).for_point(10.5, 50.5)] == ["DE"]
    finally:
        database.close()


@pytest.mark.parametrize("schema", ["public", "pg_toast", "Geo", "a b", 'x"; drop schema public', ""])
def test_a_schema_name_that_is_not_a_plain_identifier_is_refused(schema: str) -> None:
    with pytest.raises(Misconfigured, match="cannot be the schema"):
        Database("", application_name="tests", schema=schema)
