"""Executes runs in supervised child processes, for a host program of any kind.

The children are forked by a *nursery*: a process of its own with a single thread, which has loaded the importer once.
So a child is there in milliseconds, no threaded program is forked, and the main module of the host is not run again.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import RLock
from types import TracebackType
from typing import Self
from weakref import WeakSet

from geogenius.domain.errors import Misconfigured
from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import RunId
from geogenius.processes.messages import Ended
from geogenius.processes.nursery_link import NurseryLink, Submission

__all__ = ["Ended", "Lost", "Refused", "Submitted", "TaskSupervisor"]

NURSERY = (sys.executable, "-P", "-m", "geogenius.nursery")
"""Starts a nursery; whatever lies in the working directory is not imported."""

ANSWER_SECONDS = 60.0
"""How long a nursery may take to say that an executor is there; its first start loads the importer."""

FULL_RETRY_SECONDS = 1.0

LAST_WORDS_SECONDS = 90.0
"""How long after the grace guardians may try to record what became of killed executors."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Submitted:
    """An executor of the run is there."""

    pid: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Definitely not: no executor was made. `retry_after` (seconds) where it may go better later."""

    reason: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """It was asked for, and the nursery was gone before it answered, or is there and answers nothing: `hangs`."""

    message: str
    hangs: bool = False


class TaskSupervisor:
    """At most `max_children` runs at once. Thread-safe; stops at the end of a `with` block.

    `command` starts a nursery, which is given `recipe` over its socket: what an executor needs, secrets included. An
    executor that is asked to end may take `grace` before it is killed. Raises Misconfigured for wrong options.
    """

    def __init__(
        self,
        command: Sequence[str],
        recipe: Mapping[str, JsonValue],
        *,
        max_children: int = 2,
        grace: timedelta = timedelta(seconds=20),
    ) -> None:
        _refuse_wrong(max_children, grace)
        self.max_children = max_children
        self._command = tuple(command)
        self._recipe = dict(recipe)
        self._grace = grace
        self._lock = RLock()
        self._link: NurseryLink | None = None
        self._stopped = False
        _supervisors.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def schema(self) -> object:
        """The schema of the catalog whose runs it executes, as its recipe says."""
        return self._recipe.get("schema")

    @property
    def alive(self) -> bool:
        """Whether it takes runs, if it has room: until it is stopped."""
        return not self._stopped

    @property
    def running(self) -> int:
        """How many executors there are."""
        with self._lock:
            return 0 if self._link is None else self._link.running

    def start(self) -> None:
        """Have the nursery loaded before the first run needs it; repeating it is harmless. Raises OSError."""
        with self._lock:
            if not self._stopped:
                self._living()

    def submit(
        self, run_id: RunId, *, deadline: timedelta | None = None, ended: Callable[[Ended], None] | None = None
    ) -> Submitted | Refused | Lost:
        """Have an executor made for a run. A run that has one keeps it: nothing is made a second time.

        `ended` is called once, from another thread, when the executor is gone and its guardian has done its work; that
        of a second call for a run that has an executor is not kept.
        """
        with self._lock:
            if self._stopped:
                return Refused("SupervisorStopped", "the task supervisor is stopped: start another one")
            try:
                link = self._living()
            except OSError as error:
                return Refused("SupervisorNotStarted", f"no nursery could be started: {error}", FULL_RETRY_SECONDS)
            if link.running >= self.max_children and not link.has(run_id):
                full = f"all {self.max_children} child processes are busy"
                return Refused("SupervisorFull", full, FULL_RETRY_SECONDS)
            seconds = None if deadline is None else deadline.total_seconds()
            submission = link.submit(run_id, seconds, ended)
        return _answer(submission, run_id)

    def end(self, run_id: RunId) -> None:
        """Ask the executor of a run to end, and kill it when the grace is over; nothing where there is none."""
        with self._lock:
            if self._link is not None:
                self._link.end(run_id)

    def finish(self) -> None:
        """Take nothing more, and stop when the last executor has ended by itself, however long its run takes."""
        with self._lock:
            self._stopped = True
            link = self._link
        try:
            if link is not None:
                link.wait_until_idle()
        finally:
            self.stop()

    def stop(self) -> None:
        """Take nothing more; ask all executors to end, kill those that do not, and wait for it. Then repeatable.

        What becomes of their runs is recorded by them or by their guardians.
        """
        with self._lock:
            self._stopped = True
            link, self._link = self._link, None
        if link is not None:
            link.stop(self._grace.total_seconds() + LAST_WORDS_SECONDS)

    def _living(self) -> NurseryLink:
        """The nursery, made anew where there is none."""
        if self._link is None or not self._link.alive:
            if self._link is not None:
                _log.error("the nursery ended by itself and is replaced")
                self._link.let_go()
            recipe: dict[str, JsonValue] = {"recipe": self._recipe, "grace": self._grace.total_seconds()}
            self._link = NurseryLink.start(self._command, recipe)
        return self._link


def _refuse_wrong(max_children: object, grace: object) -> None:
    """Programs without types hand in anything; it must not show when a run is registered already."""
    if not isinstance(max_children, int) or max_children < 1:
        raise Misconfigured(f"max_children is {max_children!r}: a supervisor needs room for one run at least")
    if not isinstance(grace, timedelta) or grace < timedelta(0):
        raise Misconfigured(f"grace is {grace!r}: how long an executor may take to end is a timedelta of 0 or more")


_supervisors: "WeakSet[TaskSupervisor]" = WeakSet()


def _forget_nurseries() -> None:
    """In a process that the host has forked: nurseries belong to the host, and locks to threads that are not here."""
    for copy in _supervisors:
        copy._lock = RLock()  # noqa: SLF001  a part of the class that must not be a method of the object
        link, copy._link = copy._link, None  # noqa: SLF001
        if link is not None:
            link.let_go()


os.register_at_fork(after_in_child=_forget_nurseries)


def _answer(submission: Submission, run_id: RunId) -> Submitted | Refused | Lost:
    if not submission.sent:
        return Refused("SupervisorLost", "the nursery is gone: the next call starts another", FULL_RETRY_SECONDS)
    if not submission.answered.wait(ANSWER_SECONDS):
        message = f"the nursery did not say within {ANSWER_SECONDS:.0f} s whether run {run_id} has an executor"
        return Lost(message, hangs=True)
    if submission.pid is not None:
        return Submitted(submission.pid)
    if submission.refusal is not None:
        return Refused("NotForked", submission.refusal, FULL_RETRY_SECONDS)
    return Lost(f"the nursery was gone before it said whether run {run_id} has an executor")
