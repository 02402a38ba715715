"""Rows collected into bounded batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from geogenius.domain.area import Reject, StagedArea
from geogenius.importer.providers.contract import Batch

BATCH_ROWS = 500
BATCH_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one row, how large it was, and how far the file is read after it."""

    outcome: StagedArea | Reject
    size: int
    bytes_read: int


def in_batches(rows: Iterable[Row], batch_rows: int = BATCH_ROWS, batch_bytes: int = BATCH_BYTES) -> Iterator[Batch]:
    """The rows in order. A batch is given away as soon as it reaches one of the bounds; a lone huge row is a batch."""
    collected: list[Row] = []
    size = 0
    for row in rows:
        if collected and size + row.size > batch_bytes:
            yield _batch(collected)
            collected, size = [], 0
        collected.append(row)
        size += row.size
        if len(collected) == batch_rows:
            yield _batch(collected)
            collected, size = [], 0
    if collected:
        yield _batch(collected)


def _batch(rows: list[Row]) -> Batch:
    return Batch(
        areas=tuple(row.outcome for row in rows if isinstance(row.outcome, StagedArea)),
        rejects=tuple(row.outcome for row in rows if isinstance(row.outcome, Reject)),
        bytes_read=rows[-1].bytes_read,
    )
