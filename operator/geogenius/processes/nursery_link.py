"""One nursery, seen from its host: the process, the socket, and what is known of its executors."""

import json
import logging
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Condition, Event, Lock, Thread, current_thread
from typing import Self

from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import RunId
from geogenius.processes.messages import (
    Began,
    End,
    Ended,
    Execute,
    Lines,
    NotBegun,
    Ready,
    Stop,
    Wish,
    line,
    message_of,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Submission:
    """One run that was asked for: whether that was sent, and then the answer, once `answered` is set."""

    ended: Callable[[Ended], None] | None
    sent: bool = True
    answered: Event = field(default_factory=Event)
    pid: int | None = None
    refusal: str | None = None


class NurseryLink:
    """Used by the threads of the host.

    One thread of its own reads what the nursery says; another tells the host of ends, so that a host which waits there
    for the nursery does not wait for itself.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._lock = Lock()
        self._idle = Condition(self._lock)
        self._runs: dict[RunId, Submission] = {}
        self._ready = False
        self._gone = Event()
        self._ends: SimpleQueue[tuple[Submission, Ended] | None] = SimpleQueue()
        self._reader = Thread(target=self._read, name=f"nursery-{process.pid}", daemon=True)
        self._teller = Thread(target=self._tell, name=f"ends-{process.pid}", daemon=True)
        self._reader.start()
        self._teller.start()

    @classmethod
    def start(cls, command: Sequence[str], recipe: Mapping[str, JsonValue]) -> Self:
        """Start a nursery in a session of its own, so that a Ctrl-C belongs to the host. Raises OSError."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(True)  # noqa: FBT003  whatever timeout the host gives all its sockets
        try:
            with theirs:
                process = subprocess.Popen(  # noqa: S603  the command of our own program
                    [*command, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        link = cls(process, ours)
        with suppress(OSError):  # gone already: the reader finds that out
            ours.sendall(json.dumps(recipe).encode() + b"\n")
        return link

    @property
    def alive(self) -> bool:
        """Whether the nursery is there, as far as its socket tells."""
        return not self._gone.is_set()

    @property
    def running(self) -> int:
        """How many executors there are, or are being made."""
        with self._lock:
            return len(self._runs)

    def has(self, run_id: RunId) -> bool:
        """Whether the run has an executor, or gets one."""
        with self._lock:
            return run_id in self._runs

    def submit(self, run_id: RunId, deadline: float | None, ended: Callable[[Ended], None] | None) -> Submission:
        """Ask for an executor; the submission of a run that has one already is given again."""
        with self._lock:
            if run_id in self._runs:
                return self._runs[run_id]
            submission = self._runs[run_id] = Submission(ended)
        if not self._send(Execute(run_id, deadline)):
            submission.sent = False
            self._forget(run_id)
        return submission

    def end(self, run_id: RunId) -> None:
        """Ask an executor to end."""
        if self.has(run_id):
            self._send(End(run_id))

    def wait_until_idle(self) -> None:
        """Wait until no executor is left, however long their runs take."""
        with self._idle:
            self._idle.wait_for(lambda: not self._runs)

    def stop(self, seconds: float) -> None:
        """Have the nursery end all executors and leave; after so many seconds it is killed, and they end themselves.

        The host has been told of all ends then, unless it stops the nursery while it is told of one.
        """
        self._send(Stop())
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.error("nursery %d did not end within %.0f s and is killed", self._process.pid, seconds)
            self._process.kill()
            self._process.wait()
        self._reader.join(seconds)
        if current_thread() is not self._teller:
            self._teller.join(seconds)
        self._connection.close()

    def let_go(self) -> None:
        """Close the socket to a nursery that is gone or, in a fork, is another's and must notice the end of its host.

        Not while another thread may send.
        """
        self._connection.close()

    def _send(self, wish: Wish) -> bool:
        """Whether it was sent as a whole: a line that is cut off is none."""
        try:
            self._connection.sendall(line(wish))
        except OSError:
            return False
        return True

    def _read(self) -> None:
        for received in Lines(self._connection):
            news = message_of(received)
            match news:
                case Ready():
                    self._ready = True
                case Began(run_id=run_id, pid=pid):
                    self._answer(run_id, pid=pid)
                case NotBegun(run_id=run_id, message=message):
                    self._answer(run_id, refusal=message)
                    self._forget(run_id)
                case Ended(run_id=run_id):
                    self._over(self._forget(run_id), news)
                case _:
                    _log.error("a nursery does not say %s", type(news).__name__)
        self._gone.set()
        code = self._process.wait()
        with self._lock:
            left = list(self._runs.items())
            self._runs.clear()
            self._idle.notify_all()
        for run_id, submission in left:
            if not self._ready:
                submission.refusal = f"the nursery could not be loaded and ended with {code}; its errors say why"
            submission.answered.set()
            self._over(submission, Ended(run_id, None, None, None))
        self._ends.put(None)

    def _answer(self, run_id: RunId, pid: int | None = None, refusal: str | None = None) -> None:
        with self._lock:
            submission = self._runs.get(run_id)
        if submission is not None:
            submission.pid, submission.refusal = pid, refusal
            submission.answered.set()

    def _forget(self, run_id: RunId) -> Submission | None:
        with self._lock:
            self._idle.notify_all()
            return self._runs.pop(run_id, None)

    def _over(self, submission: Submission | None, news: Ended) -> None:
        if submission is not None:
            self._ends.put((submission, news))

    def _tell(self) -> None:
        while (end := self._ends.get()) is not None:
            submission, news = end
            if submission.ended is None:
                continue
            try:
                submission.ended(news)
            except Exception:  # noqa: BLE001  the host's own code, on our thread
                _log.exception("a host could not be told of an end", extra={"run_id": news.run_id})
