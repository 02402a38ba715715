"""A private PostgreSQL for tests: one cluster per session, one migrated template, one clone per test."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from geogenius.db import Database
from geogenius.db.migrate import grant, migrate
from geogenius.domain.deadline import Deadline

_PACKAGES = "postgresql postgresql-15-postgis-3 (Debian 12; elsewhere PostgreSQL >= 15 with PostGIS >= 3)"
_SETTINGS = """
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 60
shared_buffers = 128MB
max_wal_size = 2GB
autovacuum = off
timezone = 'Europe/Berlin'  # not UTC, so that a session which forgets to set it is noticed
log_min_duration_statement = -1
"""
"""As fast as a server can be that may forget everything."""

DURABLE = """
max_connections = 100
shared_buffers = 1GB
max_wal_size = 8GB
autovacuum = off
"""
"""For measuring: what is committed is on the disk, as in production."""

OWNER, WRITER, READER = "geogenius_owner", "geogenius_writer", "geogenius_reader"


_WAITING = "select from pg_stat_activity where application_name = %s and wait_event_type = 'Lock'"


@dataclass(frozen=True)
class PostgresCluster:
    """A running server, reachable on TCP at `host`:`port`.

    Superuser `postgres` and the three roles of a catalog, all without a password.
    """

    host: str
    port: int
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def conninfo(self, dbname: str, user: str = "postgres") -> str:
        return f"host={self.host} port={self.port} user={user} dbname={dbname}"

    def create(self, template: str = "template1") -> str:
        """A new database, dropped with the cluster."""
        name = f"test_{next(self.numbers)}"
        statement = sql.SQL("create database {} template {}")
        self._admin(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop(self, name: str) -> None:
        """Ends the connections to a database and drops it."""
        self._admin(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def execute(self, dbname: str, statements: str) -> None:
        """Statements of the superuser, in one transaction."""
        with psycopg.connect(self.conninfo(dbname)) as connection:
            connection.execute(statements.encode())

    def crash(self) -> None:
        """The server dies in the middle of everything, and is started again at once."""
        data = str(self.folder / "data")
        _run(_binaries() / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        _run(_binaries() / "pg_ctl", "-D", data, "-l", str(self.folder / "log"), "-w", "start")

    def _admin(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_cluster(listen_address: str = "127.0.0.1", settings: str = _SETTINGS) -> Iterator[PostgresCluster]:
    """Starts a cluster in a temporary folder on a free port and stops it at the end.

    Pods reach it when `listen_address` is one that they see.
    """
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="geogenius-postgres-"))
    try:
        _own(folder)
        data, port = folder / "data", _free_port(listen_address)
        _run(binaries / "initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.write(settings)
            configuration.write(f"listen_addresses = '{listen_address}'\nport = {port}\n")
            configuration.write(f"unix_socket_directories = '{folder}'\n")
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\n")
        _run(binaries / "pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-w", "start")
        try:
            cluster = PostgresCluster(listen_address, port, folder)
            cluster.execute(
                "postgres", f"create role {OWNER} login; create role {WRITER} login; create role {READER} login"
            )
            yield cluster
        finally:
            _run(binaries / "pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(conninfo: str, application_name: str = "tests") -> Iterator[Database]:
    """A Database that is closed at the end."""
    database = Database(conninfo, application_name=application_name)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def session(database: Database) -> Iterator[psycopg.Connection[DictRow]]:
    """A plain autocommit connection for looking inside, with the same rights and the schema in its search path."""
    options = f"-c search_path={database.schema},public,pg_temp -c timezone=UTC"
    settings: dict[str, Any] = {"options": options, "application_name": "session"}
    with psycopg.connect(database._conninfo, autocommit=True, row_factory=dict_row, **settings) as connection:
        yield connection


def migrated_template(cluster: PostgresCluster) -> str:
    """A database with the schema of this checkout, to be cloned; nobody stays connected to it.

    A plain role owns the schema; the catalog has a writer and a reader.
    """
    name = cluster.create()
    prepare = f"create extension postgis; create extension pg_trgm; create schema geogenius authorization {OWNER}"
    cluster.execute(name, prepare)
    with opened(cluster.conninfo(name, OWNER)) as database:
        migrate(database)
        grant(database, "writer", WRITER)
        grant(database, "reader", READER)
    return name


def until_waiting_for_lock(connection: psycopg.Connection[Any], waiting: str, seconds: float = 10.0) -> None:
    """Returns when a connection of the application `waiting` waits for a lock; fails when none does in time."""
    deadline = Deadline.after(seconds, monotonic)
    while not connection.execute(_WAITING, [waiting]).fetchall():
        if deadline.passed:
            pytest.fail(f"nothing of {waiting} waits for a lock")
        Event().wait(0.01)


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    program = shutil.which("initdb") or (str(found[-1]) if found else None)
    if program is None:
        pytest.fail(f"PostgreSQL is not installed; the tests need the packages {_PACKAGES}", pytrace=False)
    return Path(program).resolve().parent


def _own(folder: Path) -> None:
    """PostgreSQL refuses to run as root, so root gives the folder to the user of the package."""
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")


def _run(program: Path, *arguments: str) -> None:
    user = "postgres" if os.geteuid() == 0 else None
    done = subprocess.run(
        [str(program), *arguments],
        user=user,
        group=user,
        extra_groups=[] if user else None,
        cwd="/",
        check=False,
        stdin=subprocess.DEVNULL,
        # pg_ctl leaves the server behind with its own output, which would keep a pipe open for ever
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
    )
    if done.returncode != 0:
        pytest.fail(f"{program.name} failed with {done.returncode}; the tests need {_PACKAGES}", pytrace=False)


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
