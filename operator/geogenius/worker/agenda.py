"""What is left to do with the messages that a worker holds, and when."""

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from time import monotonic

from geogenius.domain.deadline import Deadline, MonotonicClock
from geogenius.domain.run import RunId

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 10.0
"""How late that is tried again which did not work many times."""


def pause_after(failures: int) -> float:
    """Seconds until the next try, twice as many after each failure up to a bound."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE_SECONDS)


@dataclass(slots=True)
class Setbacks:
    """How often in a row something did not work, and why."""

    failures: int = 0
    why: str = ""

    def add(self, why: str) -> float:
        """It did not work once more: seconds until the next try."""
        self.failures += 1
        self.why = why
        return pause_after(self.failures)

    def end(self) -> None:
        """It works."""
        self.failures = 0


class Act(Enum):
    """What can be left to do with a message: to begin it, or to say how its run ended whose executor is gone."""

    BEGIN = auto()
    CONCLUDE = auto()


@dataclass(slots=True, eq=False)
class Todo:
    """One thing to do with one message."""

    run_id: RunId
    act: Act
    due: Deadline
    setbacks: Setbacks = field(default_factory=Setbacks)


class Agenda:
    """At most one thing for each run; what does not work is tried again later and later. For one thread."""

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._todos: dict[RunId, Todo] = {}

    def put(self, run_id: RunId, act: Act) -> None:
        """To be done now, instead of what was to be done with the run."""
        self._todos[run_id] = Todo(run_id, act, Deadline.after(0, self._clock))

    def due(self) -> list[Todo]:
        """What can be done now, the most overdue first."""
        return sorted((todo for todo in self._todos.values() if todo.due.passed), key=lambda todo: todo.due.at)

    def remaining(self) -> float:
        """Seconds until something is due; infinite where there is nothing."""
        return min((todo.due.remaining() for todo in self._todos.values()), default=math.inf)

    def postpone(self, todo: Todo, why: str) -> float:
        """It did not work; seconds until it is due again."""
        pause = todo.setbacks.add(why)
        todo.due = Deadline.after(pause, self._clock)
        return pause

    def remove(self, todo: Todo) -> None:
        """It is done, unless something else is to be done with the run by now."""
        if self._todos.get(todo.run_id) is todo:
            del self._todos[todo.run_id]
