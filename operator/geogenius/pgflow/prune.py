"""Removes what the queue keeps of flow runs that ended: neither pgflow nor pgmq ever does it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from psycopg import Connection, sql
from psycopg.rows import DictRow

from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.pgflow.install import look_around, refuse_incomplete
from geogenius.pgflow.names import flow_slug

_QUERIES = load_queries(Path(__file__).parent / "queries" / "prune.sql")

BATCH = 1000
"""Rows of one transaction, so that each is short."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many flow runs and how many archived messages were removed."""

    runs: int
    messages: int


def prune(database: Database, older_than: timedelta, progress: Callable[[int], None]) -> Pruned:
    """Remove flow runs of ours that ended, and messages archived, longer ago than this by the clock of the server.

    In short transactions that wait for nobody and make no worker wait; `progress` hears how many each removed. What has
    not ended is never touched. A second call finds nothing; one cut short is finished by the next. Raises Misconfigured
    where pgflow is not installed.
    """
    slug = flow_slug(database.schema)
    with database.connection() as connection:
        refuse_incomplete(connection, slug)
        queue = look_around(connection, slug)["queue"]
        arguments = {"slug": slug, "batch": BATCH, "seconds": older_than.total_seconds()}
        (row,) = connection.execute(_QUERIES["compute_cutoff"], arguments).fetchall()
    arguments["cutoff"] = row["cutoff"]
    archive = sql.SQL(_QUERIES["delete_archived"]).format(archive=sql.Identifier(f"a_{slug}"))
    runs = _in_batches(database, lambda connection: _remove_runs(connection, arguments), progress)
    messages = 0
    if queue:
        messages = _in_batches(database, lambda connection: connection.execute(archive, arguments).rowcount, progress)
    return Pruned(runs, messages)


def _in_batches(
    database: Database, remove: Callable[[Connection[DictRow]], int], progress: Callable[[int], None]
) -> int:
    total = 0
    while True:
        with database.connection(Call.PAGE) as connection:
            removed = remove(connection)
        total += removed
        if removed:
            progress(removed)
        if removed < BATCH:
            return total


def _remove_runs(connection: Connection[DictRow], arguments: dict[str, object]) -> int:
    ended = [row["run_id"] for row in connection.execute(_QUERIES["lock_ended_runs"], arguments)]
    for name in ("delete_tasks_of", "delete_states_of", "delete_runs_of"):
        connection.execute(_QUERIES[name], {"runs": ended})
    return len(ended)
