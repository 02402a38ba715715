"""The status of a request as a pure function of what is known: a mirror of the catalog, small and bounded."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from geogenius.api.conditions import merged, moment_of
from geogenius.api.names import ConditionStatus, RequestState
from geogenius.api.text import message_of
from geogenius.api.v1alpha1 import EXACT_MAX, ImportRequestStatus, Progress
from geogenius.api.verdicts import stalled, verdicts
from geogenius.api.view import RequestView
from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import Run, RunState

JsonObject = dict[str, JsonValue]

_STATES: dict[RunState, RequestState] = {
    RunState.PENDING: RequestState.LAUNCHING,
    RunState.PUBLISHING: RequestState.PUBLISHING,
    RunState.COMPLETED: RequestState.SUCCEEDED,
    RunState.FAILED: RequestState.FAILED,
}
"""The states of a run that are more than running."""

COMPLETE = 100
PHASE_LENGTH = 64
JOB_NAME_LENGTH = 63


def status_of(view: RequestView, previous: Mapping[str, object], now: datetime) -> JsonObject:
    """The whole status to be written; at most 8 KiB of JSON.

    `previous` is the status the request has; only times are taken from it. `now` is the catalog's
    clock (`Run.read_at`) where there is a run. Equal arguments give equal results.
    """
    now = now.replace(microsecond=0)
    run, state = view.run, state_of(view, now)
    finished = state in (RequestState.SUCCEEDED, RequestState.FAILED)
    status = ImportRequestStatus(
        observed_generation=view.generation,
        state=state,
        phase=_phase(run),
        run_id=None if run is None else str(run.run_id),
        attempt=None if run is None else run.attempt,
        job_name=None if run is None or run.workload is None else run.workload.name[:JOB_NAME_LENGTH],
        release_id=None if run is None else str(run.release_id),
        published=run is not None and run.published,
        progress=None if run is None else progress_of(run),
        start_time=None if run is None else _seconds(run.execution_started_at),
        completion_time=_completion(run, previous, now) if finished else None,
        finished=finished,
        conditions=merged(_conditions(previous), verdicts(view, now), view.generation, now),
    )
    return cast("JsonObject", status.model_dump(mode="json", by_alias=True, exclude_none=True))


def state_of(view: RequestView, now: datetime) -> RequestState:
    """The request in one word."""
    if view.run is None:
        return RequestState.PENDING if view.refusal is None else RequestState.FAILED
    if stalled(view, now).status is ConditionStatus.TRUE:
        return RequestState.STALLED
    return _STATES.get(view.run.state, RequestState.RUNNING)


def status_changed(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Whether the two differ in anything but the order of their conditions."""
    return _ordered(before) != _ordered(after)


def progress_of(run: Run) -> Progress:
    """The progress of a run as its executor last reported it; a failed run keeps the numbers it failed with.

    Keys of the run's progress: rows, rejected, bytes, percent. Its metrics have the totals: rows and bytes.
    """
    return Progress(
        percent=COMPLETE
        if run.state is RunState.COMPLETED
        else min(_bounded(run.progress.get("percent", 0)), COMPLETE),
        rows=_bounded(max(run.progress.get("rows", 0), run.metrics.get("rows", 0))),
        rejected=_bounded(max(run.progress.get("rejected", 0), run.rejected)),
        bytes=_bounded(run.metrics.get("bytes", run.progress.get("bytes", 0))),
    )


def _bounded(number: int) -> int:
    return min(max(number, 0), EXACT_MAX)


def _phase(run: Run | None) -> str | None:
    """Where the run stands; of a failed one, where it failed."""
    if run is None:
        return None
    failed_in = "" if run.error is None else message_of(run.error.phase)[:PHASE_LENGTH]
    return failed_in or run.state.value


def _completion(run: Run | None, previous: Mapping[str, object], now: datetime) -> datetime:
    if run is not None and run.completed_at is not None:
        return run.completed_at.replace(microsecond=0)
    return moment_of(previous.get("completionTime")) or now


def _seconds(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(microsecond=0)


def _conditions(status: Mapping[str, object]) -> list[Mapping[str, object]]:
    conditions = status.get("conditions")
    return [item for item in conditions if isinstance(item, Mapping)] if isinstance(conditions, list) else []


def _ordered(status: Mapping[str, object]) -> dict[str, object]:
    conditions = {str(condition.get("type")): dict(condition) for condition in _conditions(status)}
    return {**status, "conditions": conditions}
