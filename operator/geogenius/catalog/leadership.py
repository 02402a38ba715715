"""One leader among the operators of a catalog: a lock in a transaction that stays open, and ends with its connection.

The transaction sees nothing and holds no snapshot between two statements, so that it keeps nothing from being vacuumed;
a pooler leaves it in one piece.
"""

from contextlib import ExitStack
from pathlib import Path

from psycopg import Connection
from psycopg.rows import DictRow

from geogenius.db import Call, Database
from geogenius.db.errors import translated
from geogenius.db.sql import load_queries
from geogenius.domain.errors import DatabaseUnavailable

_QUERIES = load_queries(Path(__file__).parent / "queries" / "leadership.sql")


class Leadership:
    """Held on a connection of its own. Used by one thread at a time, but for `release`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack: ExitStack | None = None
        self._connection: Connection[DictRow] | None = None

    def try_acquire(self) -> bool:
        """Become the leader if nobody is, without waiting. Raises DatabaseUnavailable."""
        with ExitStack() as stack:
            connection = stack.enter_context(self._database.dedicated())
            connection.autocommit = False
            self._database.configure(connection, Call.SHORT, idle=True)
            row = connection.execute(_QUERIES["try_lead"]).fetchone()
            if row is None or not row["leads"]:
                return False
            self._connection = connection
            self._stack = stack.pop_all()
            return True

    def held(self) -> bool:
        """Whether the transaction that holds the lock still answers."""
        if self._connection is None:
            return False
        try:
            with translated():
                self._connection.execute(_QUERIES["still_leads"])
        except DatabaseUnavailable:
            return False
        return True

    def release(self) -> None:
        """Close the connection, and with it the leadership. A second call does nothing."""
        stack, self._stack, self._connection = self._stack, None, None
        if stack is not None:
            stack.close()
