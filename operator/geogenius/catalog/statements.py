"""Calls the named queries of one file, each in a transaction of its own."""

from collections.abc import Mapping
from typing import Any, LiteralString

from psycopg.rows import DictRow

from geogenius.db import Call, Database


class Statements:
    """The queries of a file on a database. Everything raises what `Database.connection` raises."""

    def __init__(self, database: Database, queries: Mapping[str, LiteralString]) -> None:
        self._database = database
        self._queries = queries

    def one(self, name: str, call: Call = Call.SHORT, /, **arguments: Any) -> DictRow:  # noqa: ANN401 - for the driver
        """The only row."""
        return self.rows(name, call, **arguments)[0]

    def rows(self, name: str, call: Call = Call.SHORT, /, **arguments: Any) -> list[DictRow]:  # noqa: ANN401 - as above
        """All rows."""
        with self._database.connection(call) as connection:
            return connection.execute(self._queries[name], arguments).fetchall()
