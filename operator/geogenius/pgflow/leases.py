"""Messages of the queue as a worker has them: claimed, kept by a lease that is renewed, and ended by their owner only.

The visibility of a pgmq message is the lease. A message that becomes visible while its task is started has lost its
worker, and is handed out again as one more attempt. The core fences nothing, so every end asks first whether the task
is still ours. Whoever needs both locks the message before its task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection, Rollback
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import RunId
from geogenius.pgflow.names import STEP

_QUERIES = load_queries(Path(__file__).parent / "queries" / "leases.sql")
_START_TASKS = {3: "start_tasks_3", 4: "start_tasks_4"}
"""By the number of arguments that the core's own function takes."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that a worker has: what it says, and which handing-out this is, counted from 1."""

    run_id: RunId
    message: int
    attempt: int
    said: JsonValue

    @property
    def redelivered(self) -> bool:
        """Whether a worker had it before and was lost."""
        return self.attempt > 1


class Leases:
    """The messages of one worker, which others see under `name`. Thread-safe.

    Every method but `claim` is one transaction, and raises DatabaseUnavailable.
    """

    def __init__(self, database: Database, slug: str, worker: UUID, lease: timedelta, name: str) -> None:
        self._database = database
        self._arguments: dict[str, object] = {
            "slug": slug,
            "step": STEP,
            "worker": worker,
            "lease": int(lease.total_seconds()),
            "name": name,
        }

    def register(self) -> None:
        """Make the worker known, or say that it lives. Others see by this that somebody listens."""
        with self._database.connection() as connection:
            self._run(connection, "register_worker")

    def retire(self) -> None:
        """Forget the worker; repeating it is harmless."""
        with self._database.connection() as connection:
            self._run(connection, "retire_worker")

    def claim(self, count: int) -> list[Delivery]:
        """Up to so many visible messages, oldest first, ours for one lease.

        Messages without a task that waits to be done are archived on the way. Two transactions: the core demands that a
        task starts after it was queued, by the times at which their transactions began. Whoever is lost between the two
        leaves messages that are handed out again after the lease; whoever stands still for longer has lost them.
        """
        with self._database.connection() as connection:
            read = {row["msg_id"]: row["read_ct"] for row in self._rows(connection, "read_messages", count=count)}
        return self._started(read) if read else []

    def renew(self, delivery: Delivery) -> bool:
        """Keep the message for another lease; False when it is no longer ours."""
        return self._owned(delivery, lambda _: None, Call.IMPATIENT)

    def complete(self, delivery: Delivery, output: JsonValue) -> bool:
        """End the task as done and archive the message; False, and nothing done, when it is no longer ours."""
        return self._owned(delivery, lambda connection: self._end(connection, delivery, "complete_task", Jsonb(output)))

    def fail(self, delivery: Delivery, error: str) -> bool:
        """End the task as failed and archive the message; False, and nothing done, when it is no longer ours."""
        return self._owned(delivery, lambda connection: self._end(connection, delivery, "fail_task", error))

    def put_back(self, delivery: Delivery, seconds: float, *, counted: bool = False) -> bool:
        """Have the message handed out again after so many seconds; False when it is no longer ours.

        `counted` makes this one of the deliveries of the run: it was tried. Else it is as if never handed out.
        """

        def put_back(connection: Connection[DictRow]) -> None:
            self._run(connection, "put_back_task", run=delivery.run_id, uncounted=0 if counted else 1)
            self._run(connection, "lease_messages", messages=[delivery.message], lease=max(0, round(seconds)))

        return self._owned(delivery, put_back)

    def _started(self, read: dict[int, int]) -> list[Delivery]:
        """Start the tasks of messages that nobody has read since; leased again in the end: cores lease as they like."""
        with self._database.connection() as connection:
            leased = self._rows(connection, "lease_messages", messages=sorted(read))
            ours = [row["msg_id"] for row in leased if row["read_ct"] == read[row["msg_id"]]]
            rows = self._rows(connection, "look_up_messages", messages=ours)
            open_rows = {row["msg_id"]: row for row in rows if _is_open(row)}
            for row in rows:
                if row["msg_id"] not in open_rows:
                    self._run(connection, "archive_message", message=row["msg_id"])
            if not open_rows:
                return []
            messages = list(open_rows)
            self._run(connection, "register_worker")
            self._run(connection, "requeue_tasks", messages=messages)
            self._run(connection, self._start_tasks(connection), messages=messages)
            self._run(connection, "lease_messages", messages=messages)
            started = self._rows(connection, "list_started", messages=messages)
        return [
            Delivery(RunId(row["run_id"]), row["message_id"], row["attempt"], open_rows[row["message_id"]]["input"])
            for row in started
        ]

    def _end(self, connection: Connection[DictRow], delivery: Delivery, name: str, said: object) -> None:
        self._run(connection, name, run=delivery.run_id, said=said)

    def _owned(self, delivery: Delivery, act: Callable[[Connection[DictRow]], None], call: Call = Call.SHORT) -> bool:
        """Renew the lease and act, in one transaction that leaves no trace where the task is no longer ours."""
        with self._database.connection(call) as connection, connection.transaction() as savepoint:
            self._run(connection, "lease_messages", messages=[delivery.message])
            if not self._rows(connection, "own_task", run=delivery.run_id, attempt=delivery.attempt):
                raise Rollback(savepoint)
            act(connection)
            return True
        return False  # type: ignore[unreachable]  # the savepoint swallows its Rollback

    def _start_tasks(self, connection: Connection[DictRow]) -> str:
        (row,) = self._rows(connection, "count_start_arguments")
        return _START_TASKS[row["arguments"]]

    def _run(self, connection: Connection[DictRow], query: str, /, **more: Any) -> None:  # noqa: ANN401 - for the driver
        connection.execute(self._query(query), self._arguments | more)

    def _rows(self, connection: Connection[DictRow], query: str, /, **more: Any) -> list[DictRow]:  # noqa: ANN401 - as above
        return connection.execute(self._query(query), self._arguments | more).fetchall()

    def _query(self, name: str) -> LiteralString:
        return _QUERIES[name]


def _is_open(row: DictRow) -> bool:
    return row["run_status"] == "started" and row["task_status"] in ("queued", "started")
