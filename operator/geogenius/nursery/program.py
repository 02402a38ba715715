"""Forks executors for a host program.

One thread and no connection to the database, so that a fork copies nothing that is in use. It has loaded the importer
once, keeps executors to their deadlines, has guardians record those that died, and leaves nothing behind when its host
is gone.
"""

import logging
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import NoReturn
from uuid import uuid4

from geogenius.domain.run import ExecutorId, Fence, RunId
from geogenius.importer.executor import execute
from geogenius.importer.exit_code import INTERNAL
from geogenius.importer.guardian import death, guard, needs_guardian
from geogenius.importer.recipe import Recipe
from geogenius.processes.messages import (
    DEADLINE,
    LOST,
    STOPPED,
    Began,
    End,
    Ended,
    Execute,
    Lines,
    News,
    NotBegun,
    Ready,
    Stop,
    line,
    message_of,
)

LONGEST_PATIENCE_SECONDS = 3600.0
"""A selector takes no wait of many days."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Executor:
    """One child; times on the monotonic clock. `lifeline` is our end of its pipe."""

    fence: Fence
    pid: int
    lifeline: int
    deadline: float | None
    why: str | None = None
    kill_at: float | None = None

    @property
    def due(self) -> float | None:
        """When something has to be done about it."""
        return self.deadline if self.kill_at is None else self.kill_at


class Nursery:
    """The loop: wishes come over the socket, deaths by SIGCHLD, deadlines by the clock."""

    def __init__(self, connection: socket.socket, recipe: Recipe, grace: float) -> None:
        self._connection = connection
        self._recipe = recipe
        self._grace = grace
        self._lines = Lines(connection)
        self._executors: dict[int, Executor] = {}
        self._guardians: dict[int, Ended] = {}
        self._leaving = False
        self._terminated = False
        self._selector = selectors.DefaultSelector()
        self._woken, wakeup = os.pipe()
        for end in (self._woken, wakeup):
            os.set_blocking(end, False)
        self._wakeup = wakeup

    def run(self) -> None:
        """Serve until asked to stop or the host is gone, and all children have ended."""
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: self._terminate())
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what the starting thread of the host blocks, we need
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(self._connection, selectors.EVENT_READ)
        self._say(Ready())
        while not self._leaving or self._executors or self._guardians:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._connection:
                    self._listen()
                else:
                    with suppress(BlockingIOError):
                        os.read(self._woken, 4096)
            if self._terminated and not self._leaving:
                self._leave(STOPPED)
            self._reap()
            self._keep_time()

    def _terminate(self) -> None:
        """In a signal handler: the loop does the rest, which must not come between a fork and its bookkeeping."""
        self._terminated = True

    def _patience(self) -> float | None:
        dues = [due for executor in self._executors.values() if (due := executor.due) is not None]
        return min(max(0.0, min(dues) - monotonic()), LONGEST_PATIENCE_SECONDS) if dues else None

    def _listen(self) -> None:
        lines = self._lines.receive()
        if lines is None:
            self._selector.unregister(self._connection)
            self._leave(LOST)
            return
        for received in lines:
            wish = message_of(received)
            match wish:
                case Execute(run_id=run_id, deadline=deadline):
                    self._execute(run_id, deadline)
                case End(run_id=run_id):
                    self._end(STOPPED, run_id)
                case Stop():
                    self._leave(STOPPED)
                case _:
                    _log.error("a host does not say %s", type(wish).__name__)

    def _execute(self, run_id: RunId, deadline: float | None) -> None:
        if self._leaving:
            self._say(NotBegun(run_id, "the supervisor is stopping"))
            return
        fence = Fence(run_id, ExecutorId(uuid4()))
        try:
            theirs, ours = os.pipe()
        except OSError as error:
            self._say(NotBegun(run_id, str(error)))
            return
        try:
            pid = self._fork(lambda: execute(self._recipe, run_id, fence.executor_id, theirs, self._grace), ours)
        except OSError as error:
            os.close(ours)
            self._say(NotBegun(run_id, str(error)))
            return
        finally:
            os.close(theirs)
        end = None if deadline is None else monotonic() + deadline
        self._executors[pid] = Executor(fence, pid, ours, end)
        self._say(Began(run_id, pid))

    def _fork(self, work: Callable[[], int | None], *unwanted: int) -> int:
        """A child with a process group of its own that does the work and ends with what it returns."""
        pid = os.fork()
        if pid == 0:
            self._become_child(work, unwanted)
        with suppress(OSError):  # the child does the same: whoever comes first
            os.setpgid(pid, pid)
        return pid

    def _become_child(self, work: Callable[[], int | None], unwanted: tuple[int, ...]) -> NoReturn:
        """In the child: nothing of the nursery's is kept, or its end would go unnoticed."""
        code = INTERNAL + 1
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self._selector.close()
            self._connection.close()
            for lifeline in (*unwanted, *(executor.lifeline for executor in self._executors.values())):
                os.close(lifeline)
            code = work() or 0
        except BaseException:  # noqa: BLE001  the last frame of this process
            _log.exception("internal error")
        finally:
            try:
                logging.shutdown()
                if sys.stderr is not None:
                    sys.stderr.flush()
            finally:
                os._exit(code)

    def _reap(self) -> None:
        """Take note of every child that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._guardians:
                self._say(self._guardians.pop(pid))
            elif pid in self._executors:
                self._bury(self._executors.pop(pid), os.waitstatus_to_exitcode(status))

    def _bury(self, executor: Executor, code: int) -> None:
        os.close(executor.lifeline)
        with suppress(ProcessLookupError, PermissionError):  # what the executor may have started itself
            os.killpg(executor.pid, signal.SIGKILL)
        ended = Ended(executor.fence.run_id, code if code >= 0 else None, -code if code < 0 else None, executor.why)
        if not needs_guardian(ended):
            self._say(ended)
            return
        try:
            self._guardians[self._fork(lambda: guard(self._recipe, executor.fence, death(ended)))] = ended
        except OSError:
            _log.exception("no guardian for the run", extra={"run_id": executor.fence.run_id})
            self._say(ended)

    def _keep_time(self) -> None:
        now = monotonic()
        for executor in self._executors.values():
            if executor.kill_at is not None and now >= executor.kill_at:
                executor.kill_at = now + self._grace  # once more, should that be needed
                with suppress(ProcessLookupError):
                    os.killpg(executor.pid, signal.SIGKILL)
            elif executor.kill_at is None and executor.deadline is not None and now >= executor.deadline:
                self._ask_to_end(executor, DEADLINE)

    def _end(self, why: str, run_id: RunId | None = None) -> None:
        """Ask the executor of this run to end, or all of them."""
        for executor in self._executors.values():
            if run_id in (None, executor.fence.run_id) and executor.kill_at is None:
                self._ask_to_end(executor, why)

    def _ask_to_end(self, executor: Executor, why: str) -> None:
        executor.why, executor.kill_at = why, monotonic() + self._grace
        with suppress(OSError):
            os.write(executor.lifeline, why.encode() + b"\n")

    def _leave(self, why: str) -> None:
        self._leaving = True
        self._end(why)

    def _say(self, news: News) -> None:
        with suppress(OSError):  # the host is gone; the loop learns that by reading
            self._connection.sendall(line(news))
