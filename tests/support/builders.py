"""Things with sensible defaults; a test names only what matters to it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.run import Deadlines, ReleaseId, RequestRef, Run, RunId, RunState, Workload, workload_name

NOON = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)
RUN_ID = RunId(UUID("11111111-2222-3333-4444-555555555555"))
RELEASE_ID = ReleaseId(UUID("66666666-7777-8888-9999-aaaaaaaaaaaa"))
CLUSTER_ID = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
REQUEST_UID = UUID("12345678-1234-1234-1234-123456789012")


def a_run(**changes: Any) -> Run:  # noqa: ANN401  any field of a run
    """A run that was registered at noon for a request and has not been sent yet."""
    facts: dict[str, Any] = {
        "run_id": RUN_ID,
        "release_id": RELEASE_ID,
        "collection": "world",
        "release": "2030.1",
        "attempt": 1,
        "state": RunState.PENDING,
        "owner": "maps/world",
        "runner": "kubernetes_job",
        "publish": True,
        "published": False,
        "stale_after": timedelta(minutes=15),
        "deadlines": Deadlines(),
        "enqueue_state": EnqueueState.INTENDED,
        "enqueue_changed_at": NOON,
        "enqueue_reason": None,
        "created_at": NOON,
        "read_at": NOON,
        "workload": Workload(CLUSTER_ID, "maps", workload_name(RUN_ID)),
        "request": RequestRef("maps", "world", REQUEST_UID),
    }
    return Run(**(facts | changes))
