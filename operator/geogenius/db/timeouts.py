"""How long each kind of call may take: the one table of durations of the database."""

from datetime import timedelta
from enum import StrEnum

CONNECT = timedelta(seconds=5)
"""Until a connection is there, or DatabaseUnavailable is raised."""

DEAD_PEER = timedelta(minutes=1)
"""Until a server that vanished without a word is noticed in the middle of a call."""

IDLE_IN_TRANSACTION = timedelta(minutes=1)
"""A transaction that does nothing for this long is ended by the server, so that a frozen importer cannot keep a failure
from being recorded: what is computed is computed between transactions."""


class Call(StrEnum):
    """Kinds of statements by how long they may take."""

    SHORT = "short"
    """Reads and single-row writes that wait for nobody."""
    IMPATIENT = "impatient"
    """Single-row writes of somebody who has others to serve: where a lock is held for longer, it is tried later."""
    WAITING = "waiting"
    """Single-row writes that may wait for locks: registration, claims and ends."""
    PAGE = "page"
    """One page of an import."""
    BULK = "bulk"
    """Set-wise work on a whole release; the run's own deadline ends it earlier."""


STATEMENT: dict[Call, timedelta] = {
    Call.SHORT: timedelta(seconds=15),
    Call.IMPATIENT: timedelta(seconds=5),
    Call.WAITING: timedelta(minutes=1),
    Call.PAGE: timedelta(minutes=5),
    Call.BULK: timedelta(hours=6),
}


def milliseconds(duration: timedelta) -> str:
    """A duration as PostgreSQL settings take it."""
    return str(int(duration.total_seconds() * 1000))
