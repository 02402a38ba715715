"""Takes away what `install` made in a database, as it was written down; what others made or still need stays."""

from collections.abc import Callable
from pathlib import Path

from psycopg import Connection, sql
from psycopg.rows import DictRow

from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.domain.errors import Conflict
from geogenius.pgflow.install import Did, Step, lock_installation, look_around, made
from geogenius.pgflow.names import flow_slug

_QUERIES = load_queries(Path(__file__).parent / "queries" / "uninstall.sql")

_ROWS = (
    "delete_step_tasks",
    "delete_step_states",
    "delete_runs",
    "delete_deps",
    "delete_steps",
    "delete_flow",
    "delete_workers",
)
"""Rows that name others go before them."""


def uninstall(database: Database, *, force: bool = False) -> list[Step]:
    """Remove our flow with its queue, then whatever of the rest this catalog brought and nobody else needs.

    One transaction; a second call finds nothing. For the owner of the catalog. Raises Conflict (QueueBusy) while flow
    runs have not ended: with `force` they are forgotten, and their workers lose them.
    """
    with database.connection(Call.BULK) as connection:
        lock_installation(connection)
        removal = _Removal(connection, database.schema)
        return [removal.flow(force=force), removal.pgflow(), removal.realtime(), removal.pgmq()]


class _Removal:
    """The steps, in the transaction of a connection. Each looks around anew: those before it removed something.

    Of what is not ours no more than the name is looked up, since we may lack the rights.
    """

    def __init__(self, connection: Connection[DictRow], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._slug = flow_slug(schema)
        self._ours = made(connection, schema)

    def flow(self, *, force: bool) -> Step:
        """Our flow, everything that ran in it, and its queue. A flow under a lock takes no new runs."""
        there = self._there()
        if "flow" not in self._ours:
            return Step("flow", Did.FOREIGN if there["queue"] else Did.ABSENT)
        present = there["flows"] and bool(self._rows("lock_flow"))
        if present:
            self._refuse_busy(force=force)
        return self._step("flow", lambda: self._remove_flow(queue=there["queue"]), present=present)

    def pgflow(self) -> Step:
        """The core, unless it has flows of others."""
        there = self._there()
        flows = self._names("list_flows") if there["flows"] and "pgflow" in self._ours else ""
        kept = f"it has the flows {flows}" if flows else ""
        return self._step("pgflow", lambda: self._run("drop_pgflow"), present=there["pgflow"], kept=kept)

    def realtime(self) -> Step:
        """Our function, and its schema if nothing else is in it."""
        there = self._there()

        def remove() -> None:
            self._run("drop_realtime_send")
            self._run("drop_empty_realtime")

        return self._step("realtime", remove, present=there["realtime"], kept=_needed_by_pgflow(there))

    def pgmq(self) -> Step:
        """Queues and all, unless there are some of others."""
        there = self._there()
        queues = self._names("list_queues") if there["queues"] and "pgmq" in self._ours else ""
        kept = f"it has the queues {queues}" if queues else _needed_by_pgflow(there)
        drop = "drop_pgmq" if there["pgmq_extension_version"] is None else "drop_pgmq_extension"
        return self._step("pgmq", lambda: self._run(drop), present=there["pgmq"], kept=kept)

    def _step(self, component: str, remove: Callable[[], None], *, present: bool, kept: str = "") -> Step:
        ours = self._ours.get(component)
        if ours is None:
            return Step(component, Did.FOREIGN if present else Did.ABSENT)
        if present and kept:
            return Step(component, Did.KEPT, ours.version, kept)
        if present:
            remove()
        forget = sql.SQL(_QUERIES["forget_component"]).format(schema=sql.Identifier(self._schema))
        self._connection.execute(forget, {"component": component})
        return Step(component, Did.REMOVED, ours.version) if present else Step(component, Did.ABSENT)

    def _refuse_busy(self, *, force: bool) -> None:
        (row,) = self._rows("count_started_runs")
        if row["started"] and not force:
            raise Conflict(
                f"{row['started']} flow runs of {self._slug} have not ended:"
                " let the workers finish them, or repeat with --force, which forgets them",
                reason="QueueBusy",
            )

    def _remove_flow(self, *, queue: bool) -> None:
        """The queue is locked before the rows: a worker takes a message before its task, and must not meet us."""
        if queue:
            lock = sql.SQL(_QUERIES["lock_queue"]).format(queue=sql.Identifier(f"q_{self._slug}"))
            self._connection.execute(lock)
        for name in _ROWS:
            self._run(name)
        if queue:
            self._run("drop_queue")

    def _there(self) -> DictRow:
        return look_around(self._connection, self._slug)

    def _names(self, name: str) -> str:
        return ", ".join(row["name"] for row in self._rows(name))

    def _rows(self, name: str) -> list[DictRow]:
        return self._connection.execute(_QUERIES[name], {"slug": self._slug}).fetchall()

    def _run(self, name: str) -> None:
        self._connection.execute(_QUERIES[name], {"slug": self._slug})


def _needed_by_pgflow(there: DictRow) -> str:
    return "pgflow needs it" if there["pgflow"] else ""
