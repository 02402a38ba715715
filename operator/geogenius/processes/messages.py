"""What a supervisor and its nursery say to each other: one JSON object a line, over a socket that both inherit."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from geogenius.domain.run import RunId

STOPPED, LOST, DEADLINE = "stopped", "lost", "deadline"
"""Why a nursery makes an executor end: it was asked to, the host is gone, or the time is up."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Fork an executor for a run; `deadline` in seconds, None for as long as it takes."""

    run_id: RunId
    deadline: float | None


@dataclass(frozen=True, slots=True)
class End:
    """Ask the executor of a run to end."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask all executors to end, and leave when they have."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The nursery is loaded. Before it says so it has read no wish, and forked nothing."""


@dataclass(frozen=True, slots=True)
class Began:
    """The executor of a run is there."""

    run_id: RunId
    pid: int


@dataclass(frozen=True, slots=True)
class NotBegun:
    """No executor could be made for a run."""

    run_id: RunId
    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The executor of a run is gone, and so is its guardian if it had one.

    Its exit code or the signal that killed it; None both when the nursery is gone, and nothing is known. `why` tells
    when it was made to end.
    """

    run_id: RunId
    exit_code: int | None
    signal: int | None
    why: str | None


Wish = Execute | End | Stop
News = Ready | Began | NotBegun | Ended

_KINDS: dict[str, type[Wish | News]] = {
    kind.__name__: kind for kind in (Execute, End, Stop, Ready, Began, NotBegun, Ended)
}


def line(message: Wish | News) -> bytes:
    """A message as it travels."""
    fields = {name: getattr(message, name) for name in message.__slots__}
    return json.dumps({"kind": type(message).__name__} | fields, default=str).encode() + b"\n"


def message_of(received: bytes) -> Wish | News:
    """A message as it was sent."""
    fields: dict[str, Any] = json.loads(received)
    kind = _KINDS[fields.pop("kind")]
    if "run_id" in fields:
        return kind(**fields | {"run_id": RunId(UUID(fields["run_id"]))})
    return kind(**fields)


class Lines:
    """The lines that arrive on a socket, put together from whatever pieces they come in."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def receive(self) -> list[bytes] | None:
        """The lines that one more piece completes, None at the end; waits where the socket does."""
        try:
            piece = self._connection.recv(65536)
        except OSError:
            return None
        if not piece:
            return None
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return lines

    def __iter__(self) -> Iterator[bytes]:
        """All lines until the end."""
        while (lines := self.receive()) is not None:
            yield from lines
