"""Removes tables that nobody needs any more: staging tables of ended runs, left-over candidates, retired releases."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from threading import Timer

import psycopg
from psycopg import sql

from geogenius.db import Call, Database
from geogenius.db.errors import translated
from geogenius.db.sql import load_queries

_QUERIES = load_queries(Path(__file__).parent / "queries" / "sweep.sql")


class SweepKind(StrEnum):
    """Why a table is not needed; see the view `sweepable_table`."""

    STAGING = "staging"
    CANDIDATE = "candidate"
    RETIRED = "retired"
    DETACHING = "detaching"


@dataclass(frozen=True, slots=True)
class Sweepable:
    """A table that nobody needs; `parent` is the partition it still hangs on."""

    relation: str
    kind: SweepKind
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """The table is gone."""

    table: Sweepable


@dataclass(frozen=True, slots=True)
class Kept:
    """The table was needed again, or gone, before it could be dropped."""

    table: Sweepable


@dataclass(frozen=True, slots=True)
class Waiting:
    """A reader's transaction, or another sweep, was in the way; the next sweep goes on from there."""

    table: Sweepable


SweepOutcome = Swept | Kept | Waiting


class Sweep:
    """For the owner of the schema; one table at a time, so that it may be stopped anywhere and repeated."""

    def __init__(self, database: Database, deadline: timedelta = timedelta(minutes=1)) -> None:
        """`deadline`: how long one table may wait for transactions that have read its collection."""
        self._database = database
        self._deadline = deadline

    def list(self) -> list[Sweepable]:
        """The tables that nobody needs, those that hang nowhere first."""
        with self._database.connection() as connection:
            rows = connection.execute(_QUERIES["list_sweepable"]).fetchall()
        return [Sweepable(row["relation"], SweepKind(row["kind"]), row["parent"]) for row in rows]

    def sweep(self, table: Sweepable) -> SweepOutcome:
        """Detaches the table, if it hangs anywhere, and drops it; readers of other releases never wait.

        A second call finds nothing left. Raises Misconfigured (PermissionMissing) for any role but the owner.
        """
        if table.parent is not None and not self._detach(table, table.parent):
            return Waiting(table)
        with self._database.connection(Call.WAITING) as connection:
            row = connection.execute(_QUERIES["drop_swept"], {"relation": table.relation}).fetchall()[0]
        return Swept(table) if row["dropped"] else Kept(table)

    def _detach(self, table: Sweepable, parent: str) -> bool:
        """Whether the table hangs nowhere any more; cancelled at the deadline, to be finalized by the next sweep."""
        name = "finalize_partition" if table.kind is SweepKind.DETACHING else "detach_partition"
        schema = self._database.schema
        statement = sql.SQL(_QUERIES[name]).format(
            parent=sql.Identifier(schema, parent), relation=sql.Identifier(schema, table.relation)
        )
        with translated(), self._database.dedicated() as connection:
            timer = Timer(self._deadline.total_seconds(), connection.cancel_safe)
            timer.start()
            try:
                connection.execute(statement)
            except psycopg.errors.UndefinedTable:
                return True  # another sweep was faster; the next step finds nothing to drop
            except (psycopg.errors.QueryCanceled, psycopg.errors.ObjectNotInPrerequisiteState):
                return False  # the deadline, or another sweep is at this table
            finally:
                timer.cancel()
        return True
