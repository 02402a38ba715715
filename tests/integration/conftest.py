from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from geogenius.db import Database
from geogenius.testing import CatalogBench
from tests.support.databases import (
    OWNER,
    READER,
    WRITER,
    PostgresCluster,
    migrated_template,
    opened,
    running_cluster,
    session,
)
from tests.support.file_server import FileServer, serving_files
from tests.support.host_processes import SlowRuns


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
def dbname(postgres: PostgresCluster, template: str) -> Iterator[str]:
    """A migrated database of the test's own."""
    name = postgres.create(template)
    yield name
    postgres.drop(name)


@pytest.fixture
def conninfo(postgres: PostgresCluster, dbname: str) -> str:
    """The database as a writer sees it: everything the product does, it does with these rights."""
    return postgres.conninfo(dbname, WRITER)


@pytest.fixture
def database(conninfo: str) -> Iterator[Database]:
    """The database of the test, as a writer."""
    with opened(conninfo) as database:
        yield database


@pytest.fixture
def reader(postgres: PostgresCluster, dbname: str) -> Iterator[Database]:
    """The database of the test, as a reader."""
    with opened(postgres.conninfo(dbname, READER)) as database:
        yield database


@pytest.fixture
def owner(postgres: PostgresCluster, dbname: str) -> Iterator[Database]:
    """The database of the test, as the owner of its schema."""
    with opened(postgres.conninfo(dbname, OWNER)) as database:
        yield database


@pytest.fixture
def empty_database(postgres: PostgresCluster) -> Iterator[Database]:
    """A database without our schema and without PostGIS."""
    name = postgres.create()
    with opened(postgres.conninfo(name)) as database:
        yield database
    postgres.drop(name)


@pytest.fixture
def sql(postgres: PostgresCluster, dbname: str) -> Iterator[psycopg.Connection[psycopg.rows.DictRow]]:
    """The superuser, in autocommit mode: for looking inside, and for damage that no role of ours can do."""
    with opened(postgres.conninfo(dbname)) as database, session(database) as connection:
        yield connection


@pytest.fixture
def bench(postgres: PostgresCluster, dbname: str, tmp_path: Path) -> Iterator[CatalogBench]:
    """Quick runs, and what becomes of any run."""
    conninfo = postgres.conninfo(dbname, WRITER)
    with CatalogBench.open(conninfo, conninfo, tmp_path) as bench:
        yield bench


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serving_files("127.0.0.1") as server:
        yield server


@pytest.fixture
def slow(bench: CatalogBench, files: FileServer) -> SlowRuns:
    return SlowRuns(bench.runs, files)
