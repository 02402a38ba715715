"""How far a run is: written by the phases, read by the heartbeat thread."""

from threading import Lock

from geogenius.domain.run import RunState

PERCENT = {
    RunState.PENDING: (0, 0),
    RunState.DOWNLOADING: (0, 20),
    RunState.VALIDATING: (20, 21),
    RunState.STAGING: (21, 75),
    RunState.NORMALIZING: (75, 88),
    RunState.RELATING: (88, 89),
    RunState.INDEXING: (89, 94),
    RunState.VERIFYING: (94, 98),
    RunState.PUBLISHING: (98, 100),
}
"""The share of the whole that each phase stands for: from, to. Inside a phase, bytes tell how far it is."""


class Progress:
    """Counters of one execution. `bytes` and `bytes_total` are those of the current phase."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._phase = RunState.PENDING
        self._rows = 0
        self._rejected = 0
        self._bytes = 0
        self._bytes_total = 0

    @property
    def phase(self) -> RunState:
        """The phase that was entered last; pending before the first."""
        return self._phase

    def enter(self, phase: RunState) -> None:
        """Begin a phase."""
        with self._lock:
            self._phase, self._bytes, self._bytes_total = phase, 0, 0

    def expect_bytes(self, total: int) -> None:
        """Say how many bytes the current phase goes through."""
        with self._lock:
            self._bytes_total = total

    def add_bytes(self, count: int) -> None:
        """Count bytes that were downloaded, hashed or read; a repeated download counts back."""
        with self._lock:
            self._bytes += count

    def add_rows(self, rows: int, rejected: int) -> None:
        """Count rows that were read, rejected ones included in `rows`."""
        with self._lock:
            self._rows += rows
            self._rejected += rejected

    def snapshot(self) -> dict[str, int]:
        """The counters by name, as heartbeats send them."""
        with self._lock:
            start, end = PERCENT[self._phase]
            share = min(1.0, self._bytes / self._bytes_total) if self._bytes_total else 0.0
            return {
                "rows": self._rows,
                "rejected": self._rejected,
                "bytes": self._bytes,
                "bytes_total": self._bytes_total,
                "percent": int(start + (end - start) * share),
            }
