import re
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

from geogenius.db import Call, Database
from geogenius.domain.errors import DatabaseUnavailable, DataRefused
from tests.support.databases import PostgresCluster, opened

Sql = psycopg.Connection[psycopg.rows.DictRow]
SETTINGS = """
select current_setting('TimeZone') as timezone, current_setting('search_path') as search_path,
    current_setting('application_name') as application_name, current_setting('statement_timeout') as statement_timeout
"""


def test_every_transaction_says_who_it_is_and_speaks_utc(database: Database) -> None:
    expected = {
        "timezone": "UTC",
        "search_path": "geogenius, public, pg_temp",
        "application_name": "tests",
        "statement_timeout": "5min",
    }
    with database.connection(Call.PAGE) as connection:
        assert connection.execute(SETTINGS).fetchone() == expected
    with database.dedicated() as connection:
        with database.transaction(connection, Call.PAGE):
            assert connection.execute(SETTINGS).fetchone() == expected
        after = connection.execute(SETTINGS).fetchall()[0]
    assert (after["timezone"], after["statement_timeout"]) == ("Europe/Berlin", "0"), "nothing is left of it"


def transact(database: Database, *statements: str) -> list[dict[str, object]]:
    """Executes statements in one transaction; the rows of the last one."""
    with database.connection() as connection:
        last = [connection.execute(statement.encode()) for statement in statements][-1]
        return last.fetchall() if last.description else []


def test_a_block_commits_at_its_end_and_an_error_rolls_it_back(owner: Database) -> None:
    transact(owner, "create table kept (id integer)", "insert into kept values (1)")
    with pytest.raises(DataRefused):
        transact(owner, "insert into kept values (2)", "select 'x'::integer")
    assert transact(owner, "select id from kept") == [{"id": 1}]


def test_an_error_that_is_not_the_drivers_passes_and_rolls_back(owner: Database) -> None:
    transact(owner, "create table kept (id integer)")
    with pytest.raises(AttributeError):
        transact(owner, "insert into kept values (1)", 7)  # type: ignore[arg-type]  # on purpose
    assert transact(owner, "select id from kept") == []


def test_a_statement_that_takes_too_long_is_ended_by_the_server(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="statement timeout"):
        transact(database, "set local statement_timeout = 10", "select pg_sleep(60)")


def test_a_bulk_statement_is_interrupted_from_another_thread_and_no_other(database: Database, sql: Sql) -> None:
    sleeping = "select from pg_stat_activity where wait_event = 'PgSleep'"

    def sleep(call: Call, seconds: float) -> None:
        with database.connection(call) as connection:
            connection.execute("select pg_sleep(%s)", [seconds])

    with ThreadPoolExecutor() as threads:
        bulk, short = threads.submit(sleep, Call.BULK, 60), threads.submit(sleep, Call.SHORT, 1)
        while len(sql.execute(sleeping).fetchall()) < 2:
            Event().wait(0.01)
        database.interrupt()
        with pytest.raises(DatabaseUnavailable, match="user request"):
            bulk.result()
        short.result()
    database.interrupt()
    database.ping()


def test_a_connection_that_the_server_ended_is_replaced(database: Database) -> None:
    with database.connection() as connection:
        pid = connection.info.backend_pid
    with database.dedicated() as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [pid])
    database.ping()


def test_a_connection_that_breaks_in_use_is_reported_as_unavailable(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable), database.connection() as connection:
        connection.execute("select pg_terminate_backend(pg_backend_pid())")
    database.ping()


def test_a_server_that_is_not_there_is_unavailable_in_the_servers_words(postgres: PostgresCluster) -> None:
    nobody = re.sub(r"port=\d+", "port=1", postgres.conninfo("postgres"))
    with opened(nobody) as database, pytest.raises(DatabaseUnavailable, match="refused"):
        database.ping()


def test_a_database_that_does_not_exist_is_named(postgres: PostgresCluster) -> None:
    with opened(postgres.conninfo("nowhere")) as database, pytest.raises(DatabaseUnavailable, match="nowhere"):
        database.ping()


def test_a_closed_database_may_be_closed_again(database: Database) -> None:
    database.close()
    database.close()
