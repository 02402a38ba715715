"""The life of runs: prepare, claim, advance, heartbeat, complete, publish, fail. One call each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from geogenius.catalog.answers import RunArtifact
from geogenius.catalog.rows import claim_of, enqueue_of, error_json, prepared_of, run_of
from geogenius.db import Call, Database
from geogenius.db.errors import translated
from geogenius.db.sql import load_queries
from geogenius.domain.enqueued import Enqueued
from geogenius.domain.errors import LeaseLost
from geogenius.domain.executed import Claim
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import JsonValue
from geogenius.domain.prepared import Prepared
from geogenius.domain.run import Fence, Run, RunError, RunId, RunState

_QUERIES = load_queries(Path(__file__).parent / "queries" / "runs.sql")


class Runs:
    """Runs in the catalog. The rules are in the database (`db/functions`).

    Every method raises DatabaseUnavailable when the database does not answer: a write may then have happened.
    Methods that take a Fence raise LeaseLost when another executor, an end or a later attempt holds the run.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def prepare(self, manifest: Mapping[str, JsonValue], intent: ImportIntent) -> Prepared:
        """Registers an import of a manifest in normal form, committed, or says why not.

        A refusal writes nothing. A second call with the same run id finds the run that the first one made.
        """
        claim = Jsonb(claim_of(intent))
        return prepared_of(self._one("prepare_import", Call.WAITING, manifest=Jsonb(manifest), claim=claim))

    def claim(self, fence: Fence) -> Claim:
        """Makes this executor the one executor of the run; repeating it before the first phase is harmless."""
        return Claim(self._one("claim_import_execution", Call.WAITING, **_pair(fence))["claim"])

    def advance(self, fence: Fence, next_phase: RunState, metrics: Mapping[str, int]) -> None:
        """Moves the run to its next phase, merges metrics; Conflict (WrongPhase) for any other edge, a repeat too."""
        self._one("advance_import", Call.WAITING, **_pair(fence), phase=next_phase, metrics=Jsonb(metrics))

    def heartbeat(
        self, fence: Fence, progress: Mapping[str, int], connection: Connection[DictRow] | None = None
    ) -> None:
        """Says that the executor lives and merges progress; waits for no write of the import.

        LeaseLost also after the end of the run, which a heart that still beats must expect.
        """
        arguments = {**_pair(fence), "progress": Jsonb(progress)}
        if connection is None:
            self._one("heartbeat_import", Call.SHORT, **arguments)
        else:
            with translated():
                connection.execute(_QUERIES["heartbeat_import"], arguments)

    def complete(self, fence: Fence, metrics: Mapping[str, int]) -> None:
        """Ends the run from `verifying` with its release complete; DataRefused if it was not verified.

        A second call raises LeaseLost: read the run to see the first one's success.
        """
        self._one("complete_import", Call.WAITING, **_pair(fence), metrics=Jsonb(metrics))

    def publish(self, fence: Fence) -> None:
        """Ends the run from `publishing`, release complete and published, or does neither; else as `complete`."""
        self._one("publish_import", Call.WAITING, **_pair(fence))

    def fail(self, fence: Fence, error: RunError) -> None:
        """Records a failure and drops the tables of the run; a second one changes nothing. A completed run: Conflict.

        Of a run that nobody claimed, any executor may record the failure.
        """
        self._one("fail_import", Call.WAITING, **_pair(fence), error=Jsonb(error_json(error)))

    def record_enqueue(self, run_id: RunId, answer: Enqueued) -> None:
        """Keeps what a runner answered; an acceptance is never overwritten, and after the end nothing changes."""
        self._one("record_enqueue", Call.WAITING, run=run_id, **enqueue_of(answer))

    def record_artifact(self, fence: Fence, artifact_id: UUID, sha256: str, size: int) -> None:
        """Keeps what was seen of a file (size in bytes); DataRefused (ArtifactMismatch) if it is another."""
        self._one(
            "record_artifact_observation",
            Call.SHORT,
            **_pair(fence),
            artifact=artifact_id,
            sha256=sha256,
            bytes=size,
        )

    def get(self, run_id: RunId) -> Run | None:
        """The run, if there is one."""
        rows = self._rows("get_run", run=run_id)
        return run_of(rows[0]) if rows else None

    def find_by_request(self, uid: UUID) -> Run | None:
        """The latest run that an ImportRequest asked for."""
        rows = self._rows("find_run_by_request", request=uid)
        return run_of(rows[0]) if rows else None

    def live_of_cluster(self, cluster_id: UUID) -> list[Run]:
        """The runs carried by Jobs of a cluster that have not ended, oldest first."""
        return [run_of(row) for row in self._rows("live_runs_of_cluster", cluster=cluster_id)]

    def live_of_request(self, cluster_id: UUID, namespace: str, name: str) -> list[Run]:
        """The runs of a cluster that requests of this name asked for, whatever their uid, and that have not ended."""
        arguments = {"cluster": cluster_id, "namespace": namespace, "name": name}
        return [run_of(row) for row in self._rows("live_runs_of_request", **arguments)]

    def manifest(self, run_id: RunId) -> dict[str, JsonValue]:
        """The manifest that the run executes, in normal form; LeaseLost (UnknownRun) if there is no such run."""
        rows = self._rows("get_manifest", run=run_id)
        if not rows:
            raise LeaseLost(f"no run {run_id}", reason="UnknownRun")
        manifest: dict[str, JsonValue] = rows[0]["manifest"]
        return manifest

    def artifacts(self, run_id: RunId) -> list[RunArtifact]:
        """The files of the run in the order of its manifest."""
        return [RunArtifact(**row) for row in self._rows("run_artifacts", run=run_id)]

    def _one(self, name: str, call: Call, /, **arguments: Any) -> DictRow:  # noqa: ANN401 - values for the driver
        with self._database.connection(call) as connection:
            return connection.execute(_QUERIES[name], arguments).fetchall()[0]

    def _rows(self, name: str, /, **arguments: Any) -> list[DictRow]:  # noqa: ANN401 - values for the driver
        with self._database.connection() as connection:
            return connection.execute(_QUERIES[name], arguments).fetchall()


def _pair(fence: Fence) -> dict[str, UUID]:
    return {"run": fence.run_id, "executor": fence.executor_id}
