"""Threads of one part of the program: started, watched and joined together."""

import threading
from collections.abc import Callable, Mapping
from time import monotonic


class Threads:
    """A fixed set of named threads. They end by themselves, when their part is asked to."""

    def __init__(self, work: Mapping[str, Callable[[], None]]) -> None:
        self._threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in work.items()]

    def start(self) -> None:
        """Begin all of them; once only."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait for their ends, this long in all."""
        end = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))

    @property
    def alive(self) -> bool:
        """Whether every one of them runs."""
        return all(thread.is_alive() for thread in self._threads)
