from collections.abc import Iterator

import psycopg
import pytest

from geogenius.db import Database
from tests.support.databases import PostgresCluster, migrated_template, opened, running_cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """One private server for the session."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def template(postgres: PostgresCluster) -> str:
    """The name of a migrated database."""
    return migrated_template(postgres)


@pytest.fixture
def conninfo(postgres: PostgresCluster, template: str) -> Iterator[str]:
    """A migrated database of the test's own."""
    name = postgres.create(template)
    yield postgres.conninfo(name)
    postgres.drop(name)


@pytest.fixture
def database(conninfo: str) -> Iterator[Database]:
    with opened(conninfo) as database:
        yield database


@pytest.fixture
def empty_database(postgres: PostgresCluster) -> Iterator[Database]:
    """A database without our schema and without PostGIS."""
    name = postgres.create()
    with opened(postgres.conninfo(name)) as database:
        yield database
    postgres.drop(name)


@pytest.fixture
def sql(database: Database) -> Iterator[psycopg.Connection[psycopg.rows.DictRow]]:
    """An autocommit connection for looking inside."""
    with database.dedicated() as connection:
        yield connection
