"""One total deadline handed through many calls."""

from collections.abc import Callable
from dataclasses import dataclass

MonotonicClock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a monotonic clock (seconds) after which nothing more is tried."""

    at: float
    clock: MonotonicClock

    @classmethod
    def after(cls, seconds: float, clock: MonotonicClock) -> "Deadline":
        """A deadline this many seconds from now."""
        return cls(clock() + seconds, clock)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """Whether nothing is left."""
        return self.remaining() <= 0.0
