"""The queue as those see it who put runs into it, and look what became of them."""

from dataclasses import dataclass
from pathlib import Path

from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from geogenius.db.sql import load_queries
from geogenius.domain.observation import Absent, Ended, Observation, Running, Waiting
from geogenius.domain.run import RunId
from geogenius.pgflow.names import STEP
from geogenius.pgflow.order import Order

_QUERIES = load_queries(Path(__file__).parent / "queries" / "enqueue.sql")


@dataclass(frozen=True, slots=True)
class Queued:
    """The run waits in the queue or is being worked on: by this call when the transaction commits, or by one before."""


@dataclass(frozen=True, slots=True)
class EndedBefore:
    """The run was queued before, and its task has ended with this status."""

    status: str


def enqueue(connection: Connection[DictRow], slug: str, order: Order) -> Queued | EndedBefore:
    """Queue a run in the transaction of the caller, who commits: what is rolled back was never queued.

    A savepoint keeps that transaction usable whatever happens here. A run is queued once for ever; a second call
    tells what became of it. Raises errors of psycopg.
    """
    arguments = {"slug": slug, "step": STEP, "run": order.run_id, "input": Jsonb(order.to_json())}
    try:
        with connection.transaction():
            connection.execute(_QUERIES["start_flow"], arguments)
            connection.execute(_QUERIES["announce"], arguments)
    except UniqueViolation as taken:
        if taken.diag.constraint_name != "runs_pkey":
            raise
        return _state_of(_look(connection, slug, order.run_id)) or EndedBefore("of another flow")
    return Queued()


def queued_before(connection: Connection[DictRow], slug: str, run_id: RunId) -> Queued | EndedBefore | None:
    """What became of a run that was queued before; None where it was not, as far as it is committed."""
    return _state_of(_look(connection, slug, run_id))


def observe(connection: Connection[DictRow], slug: str, run_id: RunId) -> Observation:
    """What the queue has of a run right now; its uid is that of the flow run. Raises errors of psycopg."""
    row = _look(connection, slug, run_id)
    if row is None:
        return Absent()
    uid = str(run_id)
    if row["status"] == "started" and row["task_status"] == "queued":
        return Waiting(uid, "Queued", "the run waits in the queue for a worker")
    if row["status"] == "started" and row["task_status"] == "started":
        return Running(uid)
    return Ended(uid, row["status"] == "completed", "TaskFailed", row["error_message"] or "")


def _look(connection: Connection[DictRow], slug: str, run_id: RunId) -> DictRow | None:
    (there,) = connection.execute(_QUERIES["is_installed"]).fetchall()
    if not there["installed"]:
        return None
    return connection.execute(_QUERIES["look_at_run"], {"slug": slug, "step": STEP, "run": run_id}).fetchone()


def _state_of(row: DictRow | None) -> Queued | EndedBefore | None:
    if row is None:
        return None
    return Queued() if row["status"] == "started" else EndedBefore(str(row["status"]))
