"""What an executor tells the catalog about the run it executes. One call each."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from geogenius.catalog.rows import pair_of
from geogenius.catalog.statements import Statements
from geogenius.db import Call, Database
from geogenius.db.errors import translated
from geogenius.db.sql import load_queries
from geogenius.domain.executed import Claim
from geogenius.domain.run import Fence, RunState

_QUERIES = load_queries(Path(__file__).parent / "queries" / "executions.sql")


class Executions:
    """The executor's side of runs. The rules are in the database (`db/functions`).

    Every method raises DatabaseUnavailable when the database does not answer: a write may then have happened; and
    LeaseLost when another executor, an end or a later attempt holds the run. Its failure is recorded by `Runs.fail`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statements = Statements(database, _QUERIES)

    def claim(self, fence: Fence) -> Claim:
        """Makes this executor the one executor of the run; repeating it before the first phase is harmless."""
        return Claim(self._statements.one("claim_import_execution", Call.WAITING, **pair_of(fence))["claim"])

    def advance(self, fence: Fence, next_phase: RunState, metrics: Mapping[str, int]) -> None:
        """Moves the run to its next phase, merges metrics; Conflict (WrongPhase) for any other edge, a repeat too."""
        arguments = {**pair_of(fence), "phase": next_phase, "metrics": Jsonb(metrics)}
        self._statements.one("advance_import", Call.WAITING, **arguments)

    def heartbeat(
        self, fence: Fence, progress: Mapping[str, int], connection: Connection[DictRow] | None = None
    ) -> None:
        """Says that the executor lives and merges progress; waits for no write of the import.

        LeaseLost also after the end of the run, which a heart that still beats must expect.
        """
        arguments = {**pair_of(fence), "progress": Jsonb(progress)}
        if connection is None:
            self._statements.one("heartbeat_import", **arguments)
        else:
            with translated(), self._database.transaction(connection):
                connection.execute(_QUERIES["heartbeat_import"], arguments)

    def record_artifact(self, fence: Fence, artifact_id: UUID, sha256: str, size: int) -> None:
        """Keeps what was seen of a file (size in bytes); DataRefused (ArtifactMismatch) if it is another."""
        arguments = {**pair_of(fence), "artifact": artifact_id, "sha256": sha256, "bytes": size}
        self._statements.one("record_artifact_observation", **arguments)

    def complete(self, fence: Fence, metrics: Mapping[str, int]) -> None:
        """Ends the run from `verifying` with its release complete; DataRefused if it was not verified.

        A second call raises LeaseLost: read the run to see the first one's success.
        """
        self._statements.one("complete_import", Call.WAITING, **pair_of(fence), metrics=Jsonb(metrics))

    def publish(self, fence: Fence) -> None:
        """Ends the run from `publishing`, release complete and published, or does neither; else as `complete`."""
        self._statements.one("publish_import", Call.WAITING, **pair_of(fence))
