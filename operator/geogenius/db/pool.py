"""Connections: pooled for short transactions, dedicated for heartbeats, locks and migrations."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg import Connection, Error
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from geogenius.db.errors import translated
from geogenius.db.sql import load_queries
from geogenius.db.timeouts import CONNECT, DEAD_PEER, IDLE_IN_TRANSACTION, STATEMENT, Call, milliseconds
from geogenius.domain.errors import DatabaseUnavailable, Misconfigured

_QUERIES = load_queries(Path(__file__).parent / "queries" / "session.sql")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Database:
    """One database with our schema. Nothing is connected before the first use; safe to share between threads.

    Every transaction has the schema first in its search path, UTC, and timeouts on the server side. Nothing is set for
    a session, and nothing is prepared: a pooler such as PgBouncer may give each transaction another one. Errors of
    psycopg inside `connection` and `dedicated` leave as ours (`db/errors.py`).
    """

    def __init__(self, conninfo: str, *, application_name: str, schema: str = "geogenius", max_size: int = 4) -> None:
        if not _IDENTIFIER.fullmatch(schema) or schema == "public" or schema.startswith("pg_"):
            raise Misconfigured(f"{schema!r} cannot be the schema of the catalog: a plain lower-case name of its own")
        _refuse_malformed(conninfo)
        self.schema = schema
        self._bulk: set[Connection[DictRow]] = set()
        self._conninfo = conninfo
        self._settings: dict[str, Any] = {
            "application_name": application_name,
            "connect_timeout": int(CONNECT.total_seconds()),
            "tcp_user_timeout": int(DEAD_PEER.total_seconds() * 1000),
            "keepalives_idle": int(DEAD_PEER.total_seconds() / 2),
            "keepalives_interval": int(DEAD_PEER.total_seconds() / 6),
            "keepalives_count": 3,
            "row_factory": dict_row,
            "prepare_threshold": None,
        }
        self._pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
            conninfo,
            connection_class=Connection[DictRow],
            kwargs=self._settings,
            min_size=0,
            max_size=max_size,
            open=True,
            check=ConnectionPool.check_connection,
            timeout=CONNECT.total_seconds(),
            reconnect_timeout=CONNECT.total_seconds(),
            name=application_name,
        )

    @contextmanager
    def connection(self, call: Call = Call.SHORT) -> Iterator[Connection[DictRow]]:
        """A pooled connection in one transaction: committed at the end of the block, rolled back by an error.

        Each statement may take as long as `call` says. Raises DatabaseUnavailable when none is to be had in time.
        """
        with translated():
            try:
                connection = self._pool.getconn()
            except PoolTimeout as timeout:
                raise self._unavailable() from timeout
            try:
                if call is Call.BULK:
                    self._bulk.add(connection)
                with self.transaction(connection, call):
                    yield connection
            finally:
                self._bulk.discard(connection)
                self._pool.putconn(connection)

    @contextmanager
    def dedicated(self) -> Iterator[Connection[DictRow]]:
        """A connection of its own in autocommit mode, closed at the end of the block; see `transaction`."""
        with translated(), Connection[DictRow].connect(self._conninfo, autocommit=True, **self._settings) as connection:
            yield connection

    @contextmanager
    def transaction(self, connection: Connection[DictRow], call: Call = Call.SHORT) -> Iterator[None]:
        """One transaction on a dedicated connection, set up as those of `connection`; errors are those of psycopg."""
        with connection.transaction():
            self.configure(connection, call)
            yield

    def configure(self, connection: Connection[DictRow], call: Call, *, idle: bool = False) -> None:
        """Set up the transaction that the connection is in; one that is to stay `idle` is not ended for it."""
        connection.execute(
            _QUERIES["configure_transaction"],
            {
                "search_path": f"{self.schema}, public, pg_temp",
                "idle_timeout": "0" if idle else milliseconds(IDLE_IN_TRANSACTION),
                "statement_timeout": milliseconds(STATEMENT[call]),
            },
        )

    def interrupt(self) -> None:
        """Ends the BULK statements of all threads: they raise DatabaseUnavailable. Does nothing if there are none.

        For any thread; the one that waits for a statement cannot look around. Raises DatabaseUnavailable.
        """
        for connection in tuple(self._bulk):
            with translated():
                connection.cancel_safe(timeout=CONNECT.total_seconds())

    def ping(self) -> None:
        """One round trip; DatabaseUnavailable when there is no answer in time."""
        with self.connection() as connection:
            connection.execute(_QUERIES["ping"])

    def close(self) -> None:
        """Closes the pool; repeating it is harmless."""
        self._pool.close()

    def _unavailable(self) -> DatabaseUnavailable:
        """Why the pool gave nothing: a connection of our own shows the server's words, which the pool only logs."""
        with self.dedicated():
            return DatabaseUnavailable(f"all {self._pool.max_size} connections are busy")


def _refuse_malformed(conninfo: str) -> None:
    """Before anybody logs what is wrong with it: libpq's own words may hold a password."""
    try:
        conninfo_to_dict(conninfo)
    except Error:
        raise Misconfigured(
            "the connection string is malformed: write postgresql://user:password@host:port/database,"
            " with special characters percent-encoded, or keyword=value pairs",
            reason="ConnectionStringInvalid",
        ) from None
