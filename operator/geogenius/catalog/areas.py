"""The rows of an import: staged page by page, merged set-wise, indexed, verified."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from geogenius.catalog.answers import MergeCounts, RelateCounts, StoredReject, VerifyReport
from geogenius.catalog.rows import pair_of, report_of
from geogenius.catalog.statements import Statements
from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.domain.area import Reject, StagedArea
from geogenius.domain.run import Fence, RunId

_QUERIES = load_queries(Path(__file__).parent / "queries" / "areas.sql")
_COLUMN_TYPES = ("text", "int8", "text", "text", "text", "text", "jsonb", "bytea", "bytea", "jsonb", "jsonb", "jsonb")
"""Of copy_staging. `bytea` sends WKB as it is, which is what the binary form of a geometry is."""


class Areas:
    """Areas of a release while a run builds it. Methods that take a Fence raise LeaseLost when it does not hold."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statements = Statements(database, _QUERIES)

    def create_staging(self, fence: Fence) -> None:
        """Makes the empty staging table of the run, in place of an older one."""
        self._fenced("create_staging", Call.WAITING, fence)

    def stage(self, fence: Fence, artifact: str, areas: Sequence[StagedArea], rejects: Sequence[Reject]) -> None:
        """Writes one page of an artifact, all or nothing. Not repeatable: a repeated area counts as a duplicate."""
        with self._database.connection(Call.PAGE) as connection:
            row = connection.execute(_QUERIES["assert_staging"], pair_of(fence)).fetchall()[0]
            if areas:
                _copy(connection, row["staging"], artifact, areas)
            if rejects:
                connection.execute(_QUERIES["record_rejects"], _reject_arrays(fence, artifact, rejects))

    def merge(self, fence: Fence, staged: int) -> MergeCounts:
        """Builds the tables of the release from the areas that were staged, so many; repeating it builds them anew.

        Rows whose geometry leaves no polygon, and all but the first row of each area key within a source, become
        rejects; rows of different sources merge into one area (ADR 0018). Raises DatabaseUnavailable (StagingLost) if
        staged areas are gone: a crash of the server empties the staging table.
        """
        return MergeCounts(**self._fenced("merge_staging", Call.BULK, fence, staged=staged))

    def relate(self, fence: Fence, *, measured: bool) -> RelateCounts:
        """Builds the relations that sources assert and, if `measured`, those between boundaries of different ranks.

        Repeating it builds them anew. DataRefused (UnknownParent) for a parent that is no area of the release.
        """
        return RelateCounts(**self._fenced("relate_release", Call.BULK, fence, measured=measured))

    def index(self, fence: Fence) -> None:
        """Indexes the tables of the release; repeating it adds what is missing."""
        self._fenced("index_release", Call.BULK, fence)

    def verify(self, fence: Fence) -> VerifyReport:
        """Checks the release and keeps the report, which completion asks for; repeatable."""
        return report_of(self._fenced("verify_release", Call.BULK, fence)["report"])

    def rejects(self, run_id: RunId, limit: int) -> list[StoredReject]:
        """The first rejects of a run in the order of its files."""
        rows = self._statements.rows("list_rejects", run=run_id, limit=limit)
        return [StoredReject(**row) for row in rows]

    def _fenced(self, name: str, call: Call, fence: Fence, **arguments: int) -> DictRow:
        return self._statements.one(name, call, **pair_of(fence), **arguments)


def _copy(connection: Connection[DictRow], staging: str, artifact: str, areas: Sequence[StagedArea]) -> None:
    statement = sql.SQL(_QUERIES["copy_staging"]).format(staging=sql.Identifier(staging))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(_COLUMN_TYPES)
        for area in areas:
            copy.write_row(_row(artifact, area))


def _row(artifact: str, area: StagedArea) -> tuple[object, ...]:
    """The columns of copy_staging; lists that are empty are null."""
    return (
        artifact,
        area.position,
        area.authority,
        area.area_type,
        area.code,
        area.name,
        Jsonb(area.attributes),
        area.wkb,
        area.point,
        Jsonb([[name.name, name.kind, name.locale] for name in area.names]) if area.names else None,
        Jsonb([[code.code_type, code.code_value] for code in area.codes]) if area.codes else None,
        Jsonb([[parent.area_key, parent.relation_type] for parent in area.parents]) if area.parents else None,
    )


def _reject_arrays(fence: Fence, artifact: str, rejects: Sequence[Reject]) -> dict[str, Any]:
    return {
        **pair_of(fence),
        "artifact": artifact,
        "positions": [reject.position for reject in rejects],
        "reasons": [reject.reason for reject in rejects],
        "byte_offsets": [reject.byte_offset for reject in rejects],
        "details": [reject.detail for reject in rejects],
    }
