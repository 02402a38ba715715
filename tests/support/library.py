"""Runners and databases to which something happens, for tests of the library."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from psycopg import Connection
from psycopg.rows import DictRow
from typing_extensions import override

from geogenius.db import Call, Database
from geogenius.domain.enqueued import Accepted, Enqueued
from geogenius.domain.errors import DatabaseUnavailable
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments


@dataclass(slots=True)
class Scripted:
    """A runner that gives these answers one after the other, the last one for ever; what is an exception is raised.

    `returned` are answers all the same, as runners of the older contract give them. `meanwhile` happens first.
    """

    answers: list[Any]
    meanwhile: Callable[[RunId], object] = lambda _: None
    asked: list[tuple[RunId, Arguments]] = field(default_factory=list)
    returned: bool = False

    def name(self) -> str:
        return "scripted"

    def available(self) -> bool:
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        self.asked.append((run_id, args))
        self.meanwhile(run_id)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception) and not self.returned:
            raise answer
        return cast("Enqueued", answer)


Fault = Literal["none", "lost before", "lost after", "last", "down"]


class FaultyDatabase(Database):
    """Something happens to its next WAITING calls: the reply is lost, before they are sent or after their commit.

    After the `last` one, and once it is `dark`, nothing answers any more.
    """

    faults: tuple[Fault, ...] = ()
    dark = False

    @contextmanager
    @override
    def connection(self, call: Call = Call.SHORT) -> Iterator[Connection[DictRow]]:
        fault = self._next() if call is Call.WAITING else "none"
        if self.dark or fault == "down":
            raise DatabaseUnavailable("no server")
        if fault == "lost before":
            raise DatabaseUnavailable("cut off")
        with super().connection(call) as connection:
            yield connection
        self.dark = fault == "last"
        if fault == "lost after":
            raise DatabaseUnavailable("cut off")

    def _next(self) -> Fault:
        fault, *rest = self.faults or ("none",)
        self.faults = tuple(rest)
        return fault


class Willing:
    """A runner of a host, found by its name."""

    def name(self) -> str:
        return "willing"

    def available(self) -> bool:
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:  # noqa: ARG002  the contract
        return Accepted()
