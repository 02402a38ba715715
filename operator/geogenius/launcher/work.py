"""One message of the queue from its delivery to its end: look at the run, have it executed, say how it ended."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import assert_never

from geogenius.catalog.runs import Runs
from geogenius.domain.delivery import (
    MOST_DELIVERIES,
    Conclude,
    Considered,
    Discard,
    Execute,
    FailRun,
    PutBack,
    consider,
)
from geogenius.domain.run import Run, RunError, RunState
from geogenius.launcher.launch import fail_from_outside
from geogenius.pgflow.leases import Delivery, Leases
from geogenius.pgflow.order import Malformed, Order, order_of
from geogenius.processes.supervisor import Ended, Lost, Refused, Submitted, TaskSupervisor

EndedCall = Callable[[Ended], None]

NOT_BEGUN_PAUSE = timedelta(seconds=2)
"""How long a message rests that could not be begun."""

OUTCOME = "outcome"

_log = logging.getLogger(__name__)


class Work:
    """What a worker does with its messages. What raises DatabaseUnavailable may be repeated."""

    def __init__(self, runs: Runs, leases: Leases, supervisor: TaskSupervisor, schema: str) -> None:
        self._runs = runs
        self._leases = leases
        self._supervisor = supervisor
        self._schema = schema

    def begin(self, delivery: Delivery, ended: EndedCall) -> Considered:
        """Take the next step with a message just claimed, and tell which it was.

        Execute: an executor was started, and `ended` is called when it is gone. All else is done with.
        """
        order = order_of(delivery.said, self._schema)
        if isinstance(order, Malformed):
            return self._discard(delivery, Discard(order.message))
        if order.run_id != delivery.run_id:
            message = f"flow run {delivery.run_id} orders run {order.run_id}: the two must have one id"
            return self._discard(delivery, Discard(message))
        run = self._runs.get(order.run_id)
        if isinstance(consider(run, delivery.attempt), Execute):
            return self._execute(delivery, order, ended)
        return self._conclude(delivery, run)

    def conclude(self, delivery: Delivery) -> Considered:
        """Say how a message ended whose executor is gone, by what the catalog has of its run; tells what was done."""
        return self._conclude(delivery, self._runs.get(delivery.run_id))

    def break_off(self, delivery: Delivery, error: Exception) -> Considered:
        """What to do with a message that our own code could not deal with: try again for a few deliveries, then end."""
        said = f"{type(error).__name__}: {error}"
        if delivery.attempt > MOST_DELIVERIES:
            return self._discard(delivery, Discard(said))
        _log.error("delivery %d: %s", delivery.attempt, said, exc_info=error, extra={"run_id": delivery.run_id})
        return self._put_back(delivery, NOT_BEGUN_PAUSE, counted=True)

    def _execute(self, delivery: Delivery, order: Order, ended: EndedCall) -> Considered:
        submitted = self._supervisor.submit(order.run_id, deadline=order.deadline, ended=ended)
        match submitted:
            case Submitted(pid=pid):
                _log.info("delivery %d: executor %d", delivery.attempt, pid, extra={"run_id": order.run_id})
                return Execute()
            case Refused(message=message) | Lost(message=message):
                _log.warning("not begun: %s", message, extra={"run_id": order.run_id})
                return self._put_back(delivery, NOT_BEGUN_PAUSE, counted=isinstance(submitted, Lost))
            case _:
                assert_never(submitted)

    def _conclude(self, delivery: Delivery, run: Run | None) -> Considered:
        considered = consider(run, delivery.attempt)
        match considered:
            case Execute():  # it was tried, and its executor was gone before it could claim
                return self._put_back(delivery, NOT_BEGUN_PAUSE, counted=True)
            case Conclude(outcome=outcome):
                self._complete(delivery, outcome)
                return considered
            case PutBack(after=after):
                return self._put_back(delivery, after)
            case FailRun(error=error):
                return self._fail(delivery, run, error)
            case Discard():
                return self._discard(delivery, considered)
            case _:
                assert_never(considered)

    def _fail(self, delivery: Delivery, run: Run | None, error: RunError) -> Considered:
        """Record the loss; a run that moved on meanwhile is looked at again."""
        if run is None or not fail_from_outside(self._runs, run, error).recorded:
            return self._put_back(delivery, NOT_BEGUN_PAUSE)
        self._complete(delivery, RunState.FAILED)
        return FailRun(error)

    def _complete(self, delivery: Delivery, outcome: RunState) -> None:
        """A failure that is recorded is a message well done as well."""
        ours = self._leases.complete(delivery, {OUTCOME: outcome.value})
        _log.info("%s%s", outcome, "" if ours else ", told by another worker", extra={"run_id": delivery.run_id})

    def _put_back(self, delivery: Delivery, after: timedelta, *, counted: bool = False) -> PutBack:
        self._leases.put_back(delivery, after.total_seconds(), counted=counted)
        return PutBack(after)

    def _discard(self, delivery: Delivery, discard: Discard) -> Discard:
        _log.error("message %d is given up: %s", delivery.message, discard.message, extra={"run_id": delivery.run_id})
        self._leases.fail(delivery, discard.message)
        return discard
