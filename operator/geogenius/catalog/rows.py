"""Rows of the catalog as domain values, and domain values as the catalog's arguments."""

from datetime import timedelta
from typing import Any, assert_never
from uuid import UUID

from geogenius.catalog.answers import Pointer, PointerMove, PublicationEvent, ReleaseStatus, VerifyReport
from geogenius.domain.enqueued import Accepted, Enqueued, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import JsonValue
from geogenius.domain.prepared import (
    Existing,
    Prepared,
    PreparedRetry,
    Redelivered,
    Refusal,
    Refused,
    Registered,
    Retried,
)
from geogenius.domain.run import (
    Deadlines,
    Fence,
    RequestRef,
    Run,
    RunError,
    RunId,
    RunState,
    VerificationGates,
    Workload,
)

Row = dict[str, Any]


def claim_of(intent: ImportIntent) -> dict[str, JsonValue]:
    """The claim of `prepare_import`: columns of import_run; what is left out or null takes the catalog's default."""
    workload, request = intent.workload, intent.request
    cluster_id = workload.cluster_id if workload else intent.cluster_id
    return {
        "run_id": str(intent.run_id),
        "owner": intent.owner,
        "runner_backend": intent.runner,
        "publish": intent.publish,
        "stale_after_seconds": _seconds(intent.stale_after),
        "launch_deadline_seconds": _seconds(intent.deadlines.launch),
        "active_deadline_seconds": _seconds(intent.deadlines.active),
        "reject_limit": intent.reject_limit,
        "gates": _gates_json(intent.gates),
        "cluster_id": str(cluster_id) if cluster_id else None,
        "workload_namespace": workload.namespace if workload else None,
        "workload_name": workload.name if workload else None,
        "workload_uid": str(workload.uid) if workload and workload.uid else None,
        "request_namespace": request.namespace if request else None,
        "request_name": request.name if request else None,
        "request_uid": str(request.uid) if request else None,
    }


def prepared_of(row: Row) -> Prepared:
    """The answer of `prepare_import`."""
    match row["decision"], row["reason"]:
        case "enqueue", "registered":
            return Registered(row["run_id"], row["release_id"], row["attempt"])
        case "enqueue", _:
            return Redelivered(row["run_id"], row["release_id"], row["attempt"])
        case "existing", _:
            return Existing(row["run_id"], row["release_id"], row["attempt"])
        case _:
            return _refused(row)


def retried_of(row: Row, wished: RunId) -> PreparedRetry:
    """The answer of `retry_failed` to a call that wished its new attempt to have this run id."""
    match row["decision"], row["run_id"]:
        case "enqueue", run_id if run_id == wished:
            return Retried(run_id, row["release_id"], row["attempt"])
        case "enqueue", run_id:
            return Redelivered(run_id, row["release_id"], row["attempt"])
        case "existing", run_id:
            return Existing(run_id, row["release_id"], row["attempt"])
        case _:
            return _refused(row)


def pair_of(fence: Fence) -> dict[str, UUID]:
    """A fence as the arguments that every fenced function takes."""
    return {"run": fence.run_id, "executor": fence.executor_id}


def enqueue_of(answer: Enqueued) -> Row:
    """The answer of a runner as arguments of `record_enqueue`."""
    match answer:
        case Accepted(workload_uid):
            return {"state": EnqueueState.ACCEPTED, "reason": None, "workload_uid": workload_uid}
        case NotEnqueued(reason, message):
            return {"state": EnqueueState.NOT_ENQUEUED, "reason": f"{reason}: {message}", "workload_uid": None}
        case OutcomeUnknown(reason, message):
            return {"state": EnqueueState.UNKNOWN, "reason": f"{reason}: {message}", "workload_uid": None}
        case _:
            assert_never(answer)


def error_json(error: RunError) -> dict[str, JsonValue]:
    """The error of a run as it is stored."""
    return {"phase": error.phase, "reason": error.reason, "message": error.message, "evidence": {**error.evidence}}


def run_of(row: Row) -> Run:
    """A row of `import_run_status`."""
    return Run(
        run_id=row["run_id"],
        release_id=row["release_id"],
        collection=row["collection_key"],
        release=row["release_key"],
        attempt=row["attempt"],
        state=RunState(row["state"]),
        owner=row["owner"],
        runner=row["runner_backend"],
        publish=row["publish"],
        published=row["published"],
        stale_after=timedelta(seconds=row["stale_after_seconds"]),
        deadlines=Deadlines(
            launch=timedelta(seconds=row["launch_deadline_seconds"]),
            active=timedelta(seconds=row["active_deadline_seconds"]),
        ),
        enqueue_state=EnqueueState(row["enqueue_state"]),
        enqueue_changed_at=row["enqueue_changed_at"],
        enqueue_reason=row["enqueue_reason"],
        created_at=row["created_at"],
        read_at=row["read_at"],
        workload=_workload(row),
        request=_request(row),
        executor_id=row["executor_id"],
        execution_started_at=row["execution_started_at"],
        last_heartbeat_at=row["last_heartbeat_at"],
        last_progress_at=row["last_progress_at"],
        cancel_requested_at=row["cancel_requested_at"],
        completed_at=row["completed_at"],
        reject_limit=row["reject_limit"],
        gates=_gates(row["gates"]),
        rejected=row["rejected"],
        progress=row["progress"],
        metrics=row["metrics"],
        error=_error(row["error"]),
    )


def pointer_of(row: Row) -> Pointer:
    """A row of `publication_answer`."""
    return Pointer(
        collection=row["collection_key"],
        release_id=row["release_id"],
        release=row["release_key"],
        previous_release_id=row["previous_release_id"],
        published_at=row["published_at"],
    )


def move_of(row: Row) -> PointerMove:
    """The answer of `publish_release` and `rollback_publication`."""
    return PointerMove(pointer_of(row), row["moved"])


def release_of(row: Row) -> ReleaseStatus:
    """A row of `release_status`."""
    state = None if row["state"] is None else RunState(row["state"])
    keys = {"collection": row["collection_key"], "release": row["release_key"], "state": state}
    return ReleaseStatus(**{name: row[name] for name in row if not name.endswith("_key")} | keys)


def event_of(row: Row) -> PublicationEvent:
    """A row of `publication_history`."""
    known = {name: value for name, value in row.items() if name != "release_key"}
    return PublicationEvent(release=row["release_key"], **known)


def report_of(report: Row) -> VerifyReport:
    """What a verification found."""
    return VerifyReport(
        ok=report["ok"],
        failures=tuple(report["failures"]),
        area_count=report["area_count"],
        boundary_count=report["boundary_count"],
        areas_by_type=report["areas_by_type"],
    )


def _refused(row: Row) -> Refused:
    return Refused(Refusal(row["reason"]), row["release_id"], row["run_id"])


def _gates_json(gates: VerificationGates) -> dict[str, JsonValue]:
    """What is set of them; the catalog takes what is missing as no gate."""
    known: dict[str, JsonValue] = {
        "minimum_areas": {**gates.minimum_areas},
        "required_types": list(gates.required_types),
        "max_shrink_percent": gates.max_shrink_percent,
    }
    return {name: value for name, value in known.items() if value not in ({}, [], None)}


def _gates(stored: Row) -> VerificationGates:
    return VerificationGates(
        stored.get("minimum_areas", {}), tuple(stored.get("required_types", ())), stored.get("max_shrink_percent")
    )


def _workload(row: Row) -> Workload | None:
    if row["workload_name"] is None:
        return None
    return Workload(row["cluster_id"], row["workload_namespace"], row["workload_name"], row["workload_uid"])


def _request(row: Row) -> RequestRef | None:
    if row["request_uid"] is None:
        return None
    return RequestRef(row["request_namespace"], row["request_name"], row["request_uid"])


def _error(stored: Row | None) -> RunError | None:
    if stored is None:
        return None
    return RunError(stored["phase"], stored["reason"], stored["message"], stored.get("evidence", {}))


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
