"""Brings pgflow and our flow into a database: what is there already is taken as it is, what is missing is made.

One transaction. Everything that it makes is written down, so that `uninstall` takes away that and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from psycopg import Connection, sql
from psycopg.rows import DictRow

from geogenius.db import Call, Database
from geogenius.db.sql import literal, load_queries
from geogenius.domain.errors import Misconfigured
from geogenius.pgflow.capabilities import Wanted, facts, problems
from geogenius.pgflow.names import STEP, flow_slug
from geogenius.pgflow.sources import Script, Source

_QUERIES = load_queries(Path(__file__).parent / "queries" / "install.sql")
_REALTIME = Source("geogenius", "1", (Script("realtime.send", _QUERIES["create_realtime"]),))

_GRANTS = {
    "pgmq": ("grant_pgmq",),
    "realtime": ("grant_realtime",),
    "pgflow": ("grant_pgflow", "grant_definitions", "grant_runs"),
    "flow": ("grant_queue",),
}
"""What a writer needs of each component. Given only on what this program made: others rule over theirs."""


class Did(StrEnum):
    """What was done about a component: the first three by an installation, the others by its removal."""

    MADE = "made"
    FOUND = "found"
    CHANGED = "changed"
    REMOVED = "removed"
    KEPT = "kept"
    FOREIGN = "not ours"
    ABSENT = "not there"


@dataclass(frozen=True, slots=True)
class Step:
    """One component and what was done about it, with the version of what was made, and why it was kept."""

    component: str
    did: Did
    version: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A component that this program made for a catalog, as it was written down."""

    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class Sources:
    """Where scripts come from, asked only for what is missing."""

    pgmq: Callable[[], Source]
    core: Callable[[], Source]


def install(database: Database, sources: Sources, deadline: timedelta) -> list[Step]:
    """Install what is missing, in one transaction; a second call finds it all, and stores a deadline that changed.

    For the owner of the catalog, who may create schemas in the database. Raises Misconfigured for a pgmq or pgflow that
    lacks something, for scripts that are not to be had, and for missing rights: then nothing was changed.
    """
    slug = flow_slug(database.schema)
    with database.connection(Call.BULK) as connection:
        lock_installation(connection)
        connection.execute(_QUERIES["forget_search_path"])
        installation = _Installation(connection, database.schema, look_around(connection, slug))
        steps = [
            installation.pgmq(sources.pgmq),
            installation.component("realtime", lambda: _REALTIME),
            installation.component("pgflow", sources.core),
        ]
        refuse_incomplete(connection, slug)
        steps.append(installation.flow(slug, deadline))
        _refuse_unfit(connection, slug, deadline)
        grant_writers(connection, database.schema, slug)
    return steps


def lock_installation(connection: Connection[DictRow]) -> None:
    """Wait until nobody else installs or removes in this database, and keep others from it until the commit."""
    connection.execute(_QUERIES["lock_installation"])


def look_around(connection: Connection[DictRow], slug: str) -> DictRow:
    """What is there, by name, without a look into tables: they need not be there."""
    (row,) = connection.execute(_QUERIES["look_around"], {"slug": slug}).fetchall()
    return row


def made(connection: Connection[DictRow], schema: str) -> dict[str, Made]:
    """What this program made for the catalog in `schema`, by component; the rest was made by others."""
    statement = sql.SQL(_QUERIES["list_components"]).format(schema=sql.Identifier(schema))
    return {row["component"]: Made(row["version"], row["origin"]) for row in connection.execute(statement)}


def rights_lacking(connection: Connection[DictRow], schema: str, slug: str) -> dict[str, tuple[str, ...]]:
    """The writers of the catalog that lack rights on what is there of the queue, with those rights."""
    statement = sql.SQL(_QUERIES["list_writers"]).format(schema=sql.Identifier(schema))
    rows = connection.execute(statement, {"slug": slug})
    return {row["role"]: tuple(row["lacks"]) for row in rows if row["lacks"]}


def grant_writers(connection: Connection[DictRow], schema: str, slug: str) -> None:
    """Give every writer of the catalog its rights on what this program made; repeating it adds what is new."""
    named = {"queue": sql.Identifier(f"q_{slug}"), "archive": sql.Identifier(f"a_{slug}")}
    ours = made(connection, schema)
    for role in rights_lacking(connection, schema, slug):
        for grant in (grant for component in ours for grant in _GRANTS[component]):
            connection.execute(sql.SQL(_QUERIES[grant]).format(role=sql.Identifier(role), **named))


def refuse_incomplete(connection: Connection[DictRow], slug: str) -> None:
    """Raise Misconfigured where something lacks: what others installed is never altered, they must mend it."""
    seen = facts(connection, slug)
    if seen.missing:
        (problem,) = problems(seen, Wanted(None, None, worker_required=False))
        raise Misconfigured(problem.message, reason=problem.reason)


class _Installation:
    """The steps, in the transaction of a connection that found these things there."""

    def __init__(self, connection: Connection[DictRow], schema: str, there: DictRow) -> None:
        self._connection = connection
        self._schema = schema
        self._there = there

    def pgmq(self, source: Callable[[], Source]) -> Step:
        """The extension where the server has it, else the plain SQL."""
        if not self._there["pgmq_extension"]:
            return self.component("pgmq", source)
        script = Script("extension", _QUERIES["create_pgmq"])
        return self.component("pgmq", lambda: Source("the server", "extension", (script,)))

    def component(self, name: str, source: Callable[[], Source]) -> Step:
        """Execute the scripts of a component that is not there, and write down that it is ours."""
        if self._there[name]:
            return Step(name, Did.FOUND)
        if not self._there["may_create"]:
            me, here = self._there["me"], self._there["database"]
            text = f"{name} is missing and {me} may not make it: GRANT CREATE ON DATABASE {here} TO {me}"
            raise Misconfigured(text, reason="PermissionMissing")
        found = source()
        for script in found.scripts:
            self._connection.execute(literal(script.text))
            self._record(name, script, found)
        return Step(name, Did.MADE, found.version)

    def flow(self, slug: str, deadline: timedelta) -> Step:
        """Our flow with its step and deadline; those of an existing one are brought to the deadline."""
        seconds = int(deadline.total_seconds())
        arguments = {"slug": slug, "step": STEP, "timeout": seconds}
        new = facts(self._connection, slug).flow is None
        for name in ("create_flow", "add_step"):
            self._connection.execute(_QUERIES[name], arguments)
        changed = [
            row
            for name in ("set_flow_timeout", "set_step_timeout")
            for row in self._connection.execute(_QUERIES[name], arguments).fetchall()
        ]
        if new:
            script = Script(slug, _QUERIES["create_flow"])
            self._record("flow", script, Source("geogenius", "1", (script,)))
        did = Did.MADE if new else Did.CHANGED if changed else Did.FOUND
        return Step("flow", did, f"{slug}, {seconds} s")

    def _record(self, component: str, script: Script, source: Source) -> None:
        self._connection.execute(
            sql.SQL(_QUERIES["record_script"]).format(schema=sql.Identifier(self._schema)),
            {
                "component": component,
                "script": script.name,
                "origin": source.origin,
                "version": source.version,
                "sha256": script.sha256,
            },
        )


def _refuse_unfit(connection: Connection[DictRow], slug: str, deadline: timedelta) -> None:
    found = problems(facts(connection, slug), Wanted(deadline, None, worker_required=False))
    if found:
        raise Misconfigured(found[0].message, reason=found[0].reason)
