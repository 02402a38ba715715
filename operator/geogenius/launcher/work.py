"""One message of the queue from its delivery to its end: look at the run, have it executed, say how it ended."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from geogenius.catalog.runs import Runs
from geogenius.db import Call
from geogenius.domain.delivery import (
    LONGEST_LOOK,
    MOST_DELIVERIES,
    Conclude,
    Considered,
    Discard,
    Execute,
    FailRun,
    PutBack,
    consider,
    give_up,
)
from geogenius.domain.errors import GeogeniusError, Unavailable
from geogenius.domain.failure import FailureClass
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


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """None could be made, and not because of the run: the message is put back, and the worker should rest.

    `hangs`: what makes executors answers nothing and is there; only the end of this process ends it.
    """

    message: str
    hangs: bool


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Another worker has the message now: nothing was done with it."""


Step = Considered | NoExecutor | NotOurs


class Work:
    """What a worker does with its messages. What raises Unavailable may be repeated."""

    def __init__(self, runs: Runs, leases: Leases, supervisor: TaskSupervisor, schema: str) -> None:
        self._runs = runs
        self._leases = leases
        self._supervisor = supervisor
        self._schema = schema

    def begin(self, delivery: Delivery, ended: EndedCall) -> Step:
        """Take the next step with a message that was claimed, and tell which it was.

        Execute: an executor was started, and `ended` is called when it is gone. All else is done with.
        """
        if not self._leases.renew(delivery):
            return NotOurs()
        order = order_of(delivery.said, self._schema)
        if isinstance(order, Malformed):
            return self._give_up_malformed(delivery, order.message)
        if order.run_id != delivery.run_id:
            message = f"flow run {delivery.run_id} orders run {order.run_id}: the two must have one id"
            return self._give_up_malformed(delivery, message)
        run = self._runs.get(order.run_id)
        considered = consider(run, delivery.attempt)
        if isinstance(considered, Execute):
            return self._execute(delivery, order, ended)
        return self._done(delivery, run, considered)

    def conclude(self, delivery: Delivery) -> Considered:
        """Say how a message ended whose executor is gone, by what the catalog has of its run; tells what was done."""
        run = self._runs.get(delivery.run_id)
        return self._done(delivery, run, consider(run, delivery.attempt))

    def give_back(self, delivery: Delivery) -> PutBack:
        """Leave a message that was not begun to other workers, at once and as if it had not been handed out."""
        return self._put_back(delivery, timedelta(0))

    def break_off(self, delivery: Delivery, error: Exception) -> Considered:
        """What to do with a message that our own code could not deal with: try again for a few deliveries, then end.

        The run that it was for fails with these words; where even that meets a bug, the message alone ends.
        """
        said = f"{type(error).__name__}: {error}"
        _log.error("delivery %d: %s", delivery.attempt, said, exc_info=error, extra={"run_id": delivery.run_id})
        if delivery.attempt <= MOST_DELIVERIES:
            return self._put_back(delivery, NOT_BEGUN_PAUSE, counted=True)
        try:
            run = self._runs.get(delivery.run_id)
            considered = give_up(run, GeogeniusError.reason, said, FailureClass.INTERNAL)
            return self._done(delivery, run, considered)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001  whatever it is, the message ends
            _log.exception("its run cannot be failed", extra={"run_id": delivery.run_id})
            return self._discard(delivery, Discard(said))

    def _execute(self, delivery: Delivery, order: Order, ended: EndedCall) -> Execute | NoExecutor:
        submitted = self._supervisor.submit(order.run_id, deadline=order.deadline, ended=ended)
        match submitted:
            case Submitted(pid=pid):
                _log.info("delivery %d: executor %d", delivery.attempt, pid, extra={"run_id": order.run_id})
                return Execute()
            case Refused(message=message):
                self._put_back(delivery, NOT_BEGUN_PAUSE)
                return NoExecutor(message, hangs=False)
            case Lost(message=message, hangs=hangs):
                self._put_back(delivery, NOT_BEGUN_PAUSE, counted=True)
                return NoExecutor(message, hangs)
            case _:
                assert_never(submitted)

    def _give_up_malformed(self, delivery: Delivery, message: str) -> Considered:
        run = self._runs.get(delivery.run_id)
        considered = give_up(run, "MessageMalformed", message, FailureClass.CONFIGURATION)
        return self._done(delivery, run, considered)

    def _done(self, delivery: Delivery, run: Run | None, considered: Considered) -> Considered:
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
        """Record the loss; a run that moved on meanwhile, or that somebody holds a lock on, is looked at later."""
        if run is None or not fail_from_outside(self._runs, run, error, tries=1, call=Call.IMPATIENT).recorded:
            return self._put_back(delivery, LONGEST_LOOK)
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
