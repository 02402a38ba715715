"""A de-duplicating queue of keys with delays and backoff: the semantics of client-go's work queue.

A key that is being worked on is never handed out a second time; if it is added meanwhile, it comes again afterwards.
"""

import heapq
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class Key(NamedTuple):
    """The name of an ImportRequest."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after the n-th failure in a row: doubled each time, capped, spread by a random half."""

    first_seconds: float = 0.5
    cap_seconds: float = 60.0
    spread: Callable[[], float] = random.random

    def seconds(self, failures: int) -> float:
        """Seconds to wait after this many failures (at least one)."""
        whole: float = min(self.cap_seconds, self.first_seconds * 2.0 ** min(failures - 1, 32))
        return whole * (0.5 + self.spread() / 2)


@dataclass(slots=True)
class _State:
    ready: dict[Key, None] = field(default_factory=dict)  # ordered set: first come, first served
    working: set[Key] = field(default_factory=set)
    again: set[Key] = field(default_factory=set)
    delayed: list[tuple[float, Key]] = field(default_factory=list)
    due: dict[Key, float] = field(default_factory=dict)
    failures: dict[Key, int] = field(default_factory=dict)
    closed: bool = False


class KeyedQueue:
    """Thread-safe. `clock` is monotonic seconds."""

    def __init__(self, clock: Callable[[], float], backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._state = _State()
        self._changed = threading.Condition()

    def add(self, key: Key) -> None:
        """Ask for this key to be worked on soon. Adding it twice before that is the same as once."""
        with self._changed:
            self._ready(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Ask for this key to be worked on after a delay; of several delays the earliest counts."""
        with self._changed:
            due = self._clock() + seconds
            if due < self._state.due.get(key, float("inf")):
                self._state.due[key] = due
                heapq.heappush(self._state.delayed, (due, key))
                self._changed.notify()

    def get(self) -> Key | None:
        """Wait for a key and take it; None once the queue is closed. Each key taken must be given to `done`."""
        with self._changed:
            while not self._state.closed:
                wait = self._promote()
                if self._state.ready:
                    key = next(iter(self._state.ready))
                    del self._state.ready[key]
                    self._state.working.add(key)
                    return key
                self._changed.wait(wait)
            return None

    def done(self, key: Key, *, failed: bool = False) -> None:
        """Give a key back. A failed one comes again by itself after its backoff; success clears its count."""
        with self._changed:
            self._state.working.discard(key)
            if key in self._state.again:
                self._state.again.discard(key)
                self._ready(key)
            failures = self._state.failures.get(key, 0) + 1 if failed else 0
            self._state.failures.pop(key, None)
            if failures:
                self._state.failures[key] = failures
        if failed:
            self.add_after(key, self._backoff.seconds(failures))

    def depth(self) -> int:
        """How many keys are ready and not yet taken."""
        with self._changed:
            return len(self._state.ready)

    def close(self) -> None:
        """Let every waiting `get` return None. Keys that are left are dropped: a restart lists everything anyway."""
        with self._changed:
            self._state.closed = True
            self._changed.notify_all()

    def _ready(self, key: Key) -> None:
        if key in self._state.working:
            self._state.again.add(key)
        else:
            self._state.ready[key] = None
            self._changed.notify()

    def _promote(self) -> float | None:
        """Move what is due to ready; the seconds until the next one, or None."""
        state, now = self._state, self._clock()
        while state.delayed:
            due, key = state.delayed[0]
            if state.due.get(key) != due:
                heapq.heappop(state.delayed)  # an earlier delay replaced this one
            elif due <= now:
                heapq.heappop(state.delayed)
                del state.due[key]
                self._ready(key)
            else:
                return due - now
        return None
