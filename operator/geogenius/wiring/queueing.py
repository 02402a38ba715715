"""The queue as those see it who install it, look at it, and tidy it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from geogenius.db.pool import Database
from geogenius.wiring.catalog import opened, refuse_outdated, started
from geogenius.wiring.importing import deadline_of


@dataclass(frozen=True, slots=True)
class QueueContext:
    """The catalog whose queue it is, and what the settings say of it."""

    database: Database
    deadline: timedelta | None
    worker_required: bool


@contextmanager
def queue_context() -> Iterator[QueueContext]:
    """Open the catalog. Raises Misconfigured where no database is set, or its schema is not up to date."""
    settings = started()
    with opened(settings, "geogenius-pgflow") as catalog:
        refuse_outdated(catalog.database)
        yield QueueContext(catalog.database, deadline_of(settings), settings.pgflow.worker_required)
