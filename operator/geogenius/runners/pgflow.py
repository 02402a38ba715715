"""Runs put into the queue of pgflow, in the catalog's own database; workers take them from there."""

from datetime import timedelta

from geogenius.catalog.runs import Runs
from geogenius.db import Database
from geogenius.domain.enqueued import Accepted, Enqueued, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import DatabaseUnavailable, GeogeniusError
from geogenius.domain.observation import Observation
from geogenius.domain.run import Run, RunId
from geogenius.pgflow.capabilities import Facts, Problem, Wanted, facts, problems
from geogenius.pgflow.enqueue import EndedBefore, Queued, enqueue, observe, queued_before
from geogenius.pgflow.names import flow_slug
from geogenius.pgflow.order import Order
from geogenius.runners.contract import Arguments, publish, stale_after_seconds

NAME = "pgflow"

SOON_SECONDS = 5.0
"""When it is worth asking again where nobody listens, or the database is not there."""


class PgflowRunner:
    """Queues runs; whoever waits for one looks into the catalog.

    `deadline`: how long an execution may take. It must exceed the stale window of the run and be what the queue has
    stored; without one everything is refused. `worker_required`: whether a living worker must listen.
    """

    def __init__(self, database: Database, deadline: timedelta | None, *, worker_required: bool = True) -> None:
        self._database = database
        self._runs = Runs(database)
        self._slug = flow_slug(database.schema)
        self._deadline = deadline
        self._worker_required = worker_required

    def name(self) -> str:
        """The word stored with a run."""
        return NAME

    def available(self) -> bool:
        """Whether a run with a fitting window would be queued now."""
        return self.why_not() is None

    def why_not(self) -> str | None:
        """What keeps runs from being queued, with the remedy; None when nothing does. Raises nothing of ours."""
        try:
            with self._database.connection() as connection:
                found = problems(facts(connection, self._slug), Wanted(self._deadline, None, self._worker_required))
        except GeogeniusError as error:
            return f"{error.reason}: {error}"
        return found[0].message if found else None

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        """Queue the run, once for ever, committed; the second time finds it there.

        Whatever the server refuses before the commit is rolled back, and so definite; only a reply that is lost after
        the run was sent is unknown. What keeps runs from being queued does not touch one that was queued before.
        """
        sent = False
        try:
            with self._database.connection() as connection:
                queued = queued_before(connection, self._slug, run_id)
                if queued is None:
                    order = self._order(facts(connection, self._slug), run_id, args)
                    if isinstance(order, Problem):
                        return NotEnqueued(order.reason, order.message, SOON_SECONDS if order.temporary else None)
                    sent = True
                    queued = enqueue(connection, self._slug, order)
        except DatabaseUnavailable as lost:
            if sent:
                return OutcomeUnknown(lost.reason, str(lost))
            return NotEnqueued(lost.reason, str(lost), SOON_SECONDS)
        except GeogeniusError as refused:
            return NotEnqueued(refused.reason, str(refused))
        return Accepted() if isinstance(queued, Queued) else self._ended_before(run_id, queued)

    def observe(self, run: Run) -> Observation:
        """What the queue has of the run. Raises DatabaseUnavailable."""
        with self._database.connection() as connection:
            return observe(connection, self._slug, run.run_id)

    def _order(self, seen: Facts, run_id: RunId, args: Arguments) -> Order | Problem:
        """What to queue, or the first thing that keeps it from being queued."""
        window = stale_after_seconds(args)
        stale_after = None if window is None else timedelta(seconds=window)
        found = problems(seen, Wanted(self._deadline, stale_after, self._worker_required, run_meant=True))
        if found or self._deadline is None or stale_after is None:
            return found[0]
        return Order(run_id, self._database.schema, publish(args), stale_after, self._deadline)

    def _ended_before(self, run_id: RunId, before: EndedBefore) -> Enqueued:
        """Accepted where the end of the run is recorded, as the queue's end of it promised."""
        try:
            run = self._runs.get(run_id)
        except GeogeniusError as lost:
            return OutcomeUnknown(lost.reason, str(lost))
        if run is not None and run.state.terminal:
            return Accepted()
        message = f"run {run_id} was queued before and its task has ended: {before.status}; retry it as another attempt"
        return NotEnqueued("QueuedBefore", message)
