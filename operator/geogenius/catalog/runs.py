"""Runs as those see them who ask for them and look after them: prepare, retry, cancel, fail, read. One call each."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from psycopg.types.json import Jsonb

from geogenius.catalog.answers import RunArtifact
from geogenius.catalog.rows import claim_of, enqueue_of, error_json, pair_of, prepared_of, retried_of, run_of
from geogenius.catalog.statements import Statements
from geogenius.db import Call, Database
from geogenius.db.sql import load_queries
from geogenius.domain.enqueued import Enqueued
from geogenius.domain.errors import LeaseLost
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import JsonValue
from geogenius.domain.prepared import Prepared, PreparedRetry
from geogenius.domain.run import CancelAnswer, Fence, Run, RunError, RunId

_QUERIES = load_queries(Path(__file__).parent / "queries" / "runs.sql")


class Runs:
    """Runs in the catalog. The rules are in the database (`db/functions`).

    Every method raises DatabaseUnavailable when the database does not answer: a write may then have happened.
    """

    def __init__(self, database: Database) -> None:
        self._statements = Statements(database, _QUERIES)

    def prepare(self, manifest: Mapping[str, JsonValue], intent: ImportIntent) -> Prepared:
        """Registers an import of a manifest in normal form, committed, or says why not.

        A refusal writes nothing. A second call with the same run id finds the run that the first one made.
        """
        claim = Jsonb(claim_of(intent))
        return prepared_of(self._statements.one("prepare_import", Call.WAITING, manifest=Jsonb(manifest), claim=claim))

    def retry(self, failed_run: RunId, manifest: Mapping[str, JsonValue], intent: ImportIntent) -> PreparedRetry:
        """Registers the next attempt after a failed run, committed, or says why not; the manifest may be another.

        A refusal writes nothing. A repeated call finds the attempt that the first one made.
        """
        arguments = {"run": failed_run, "manifest": Jsonb(manifest), "claim": Jsonb(claim_of(intent))}
        return retried_of(self._statements.one("retry_failed", Call.WAITING, **arguments), intent.run_id)

    def record_enqueue(self, run_id: RunId, answer: Enqueued) -> None:
        """Keeps what a runner answered; an acceptance is never overwritten, and after the end nothing changes."""
        self._statements.one("record_enqueue", Call.WAITING, run=run_id, **enqueue_of(answer))

    def request_cancel(self, run_id: RunId) -> CancelAnswer:
        """Asks the executor of a run to stop; the end of the run tells whether it did. LeaseLost: no such run.

        Repeating it changes nothing.
        """
        return CancelAnswer(self._statements.one("request_cancel", Call.WAITING, run=run_id)["answer"])

    def fail(self, fence: Fence, error: RunError, call: Call = Call.WAITING) -> None:
        """Records a failure and drops the tables of the run; a second one changes nothing. A completed run: Conflict.

        LeaseLost when another executor holds the run; of a run that nobody claimed, anyone may record the failure.
        """
        self._statements.one("fail_import", call, **pair_of(fence), error=Jsonb(error_json(error)))

    def get(self, run_id: RunId) -> Run | None:
        """The run, if there is one."""
        rows = self._statements.rows("get_run", run=run_id)
        return run_of(rows[0]) if rows else None

    def find_by_request(self, uid: UUID) -> Run | None:
        """The latest run that an ImportRequest asked for."""
        rows = self._statements.rows("find_run_by_request", request=uid)
        return run_of(rows[0]) if rows else None

    def of_collection(self, collection: str, limit: int) -> list[Run]:
        """The latest runs of a collection, newest first; none for an unknown one."""
        return [run_of(row) for row in self._statements.rows("list_runs", collection=collection, limit=limit)]

    def live_of_cluster(self, cluster_id: UUID) -> list[Run]:
        """The runs carried by Jobs of a cluster that have not ended, oldest first."""
        return [run_of(row) for row in self._statements.rows("live_runs_of_cluster", cluster=cluster_id)]

    def live_of_request(self, cluster_id: UUID, namespace: str, name: str) -> list[Run]:
        """The runs of a cluster that requests of this name asked for, whatever their uid, and that have not ended."""
        arguments = {"cluster": cluster_id, "namespace": namespace, "name": name}
        return [run_of(row) for row in self._statements.rows("live_runs_of_request", **arguments)]

    def manifest(self, run_id: RunId) -> dict[str, JsonValue]:
        """The manifest that the run executes, in normal form; LeaseLost (UnknownRun) if there is no such run."""
        rows = self._statements.rows("get_manifest", run=run_id)
        if not rows:
            raise LeaseLost(f"no run {run_id}", reason="UnknownRun")
        manifest: dict[str, JsonValue] = rows[0]["manifest"]
        return manifest

    def artifacts(self, run_id: RunId) -> list[RunArtifact]:
        """The files of the run in the order of its manifest."""
        return [RunArtifact(**row) for row in self._statements.rows("run_artifacts", run=run_id)]
