"""The whole queue at a glance: who made which part, what waits in it, and what keeps runs from being queued."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from psycopg import Connection, sql
from psycopg.rows import DictRow

from geogenius.db import Database
from geogenius.db.sql import load_queries
from geogenius.pgflow.capabilities import Facts, Flow, Problem, Wanted, facts, problems
from geogenius.pgflow.install import Made, look_around, made, rights_lacking
from geogenius.pgflow.names import STEP, flow_slug

_QUERIES = load_queries(Path(__file__).parent / "queries" / "status.sql")


@dataclass(frozen=True, slots=True)
class Component:
    """One part. `ours` is what this catalog installed; of what others did, version and origin are mostly not known."""

    name: str
    present: bool
    ours: bool
    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One look. `runs` counts flow runs by state; messages are `waiting` or `worked_on`, by a worker that lives.

    `lacking` names the writers of the catalog that lack rights, with those rights.
    """

    slug: str
    components: tuple[Component, ...]
    flow: Flow | None
    runs: Mapping[str, int]
    waiting: int
    worked_on: int
    healthy_workers: int
    problems: tuple[Problem, ...]
    lacking: Mapping[str, tuple[str, ...]]


def status(database: Database, deadline: timedelta | None, *, worker_required: bool) -> QueueStatus:
    """Look at everything, in one transaction; what is not installed is told, not raised.

    Raises Misconfigured where the role may not look into the schemas of others.
    """
    slug = flow_slug(database.schema)
    with database.connection() as connection:
        seen, there = facts(connection, slug), look_around(connection, slug)
        runs, messages = _contents(connection, seen, there)
        return QueueStatus(
            slug=slug,
            components=_components(there, made(connection, database.schema), seen),
            flow=seen.flow,
            runs=runs,
            waiting=messages["waiting"],
            worked_on=messages["worked_on"],
            healthy_workers=seen.healthy_workers,
            problems=problems(seen, Wanted(deadline, None, worker_required)),
            lacking=rights_lacking(connection, database.schema, slug),
        )


def _components(there: DictRow, ours: Mapping[str, Made], seen: Facts) -> tuple[Component, ...]:
    present = {**there, "flow": seen.flow is not None}
    extension = there["pgmq_extension_version"]
    others = {"pgmq": (extension, "the server")} if extension is not None else {}
    found = []
    for name in ("pgmq", "realtime", "pgflow", "flow"):
        mine = ours.get(name)
        version, origin = others.get(name, ("", "")) if mine is None else (mine.version, mine.origin)
        found.append(Component(name, present[name], mine is not None, version, origin))
    return tuple(found)


def _contents(
    connection: Connection[DictRow], seen: Facts, there: DictRow
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Flow runs by state, and messages; nothing where something is missing: that is the first thing to mend."""
    arguments = {"slug": seen.slug, "step": STEP}
    runs, messages = {}, {"waiting": 0, "worked_on": 0}
    if not seen.missing:
        runs = {row["status"]: row["runs"] for row in connection.execute(_QUERIES["count_runs"], arguments)}
        if there["queue"]:
            statement = sql.SQL(_QUERIES["count_messages"]).format(queue=sql.Identifier(f"q_{seen.slug}"))
            (messages,) = connection.execute(statement, arguments).fetchall()
    return runs, messages
