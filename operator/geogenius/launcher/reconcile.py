"""Bring one ImportRequest, its run and its Job together: read all three, decide, act, mirror.

Level-triggered: it does not matter which event asked, how often, or what happened in between. Everything done here may
be done again: preparing finds the run it made, a Job's name is fixed by its run, a status is applied as a whole.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never
from uuid import UUID, uuid4

from geogenius.api.status import status_changed, status_of
from geogenius.api.translate import ImportRequest, RequestHead, head_of, intent, translate
from geogenius.api.view import RequestView
from geogenius.catalog.runs import Runs
from geogenius.domain.decision import Enqueue, FailRun, Record, Settled, Watch, decide, request_deleted
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.errors import Conflict, InvalidRequest
from geogenius.domain.manifest import Manifest
from geogenius.domain.observation import Absent, Observation, Waiting
from geogenius.domain.prepared import Existing, Redelivered, Refusal, Refused, Registered
from geogenius.domain.run import Run, RunId, workload_name
from geogenius.kube.jobs import Jobs
from geogenius.kube.requests import Requests
from geogenius.launcher.launch import Launch, Launcher, LeftPending, Rejected, Started, fail_from_outside
from geogenius.manifest.document import normal_form

logger = logging.getLogger(__name__)

WAITING_SECONDS = 5.0
"""How often a Job that waits for its pod is looked at: what keeps a pod waiting shows in no event of the Job."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is brought together: the requests, the catalog, the Jobs; `launcher_of` starts runs for one request."""

    requests: Requests
    runs: Runs
    jobs: Jobs
    launcher_of: Callable[[ImportRequest], Launcher]
    check_manifest: Callable[[Manifest], None]
    cluster_id: UUID
    clock: Callable[[], datetime]


class Reconciler:
    """Shared by threads, one key at a time each; keeps nothing between calls."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Take the next step for this request; the seconds after which to look again, or None to wait for an event.

        Raises Unavailable when the API server or the database gives no usable answer: then nothing was concluded.
        """
        document = self._sides.requests.get(namespace, name)
        head = None if document is None else head_of(document)
        if document is None or head is None or head.deleting:
            self._abandon(namespace, name, keep=None)
            return None
        self._abandon(namespace, name, keep=head.ref.uid)
        run = self._sides.runs.find_by_request(head.ref.uid)
        if run is not None and run.state.terminal:
            self._mirror(head, RequestView(head.generation, run=run))
            return None
        if run is None and head.status.get("finished") is True:
            return None  # what was once answered for good stays answered
        try:
            request = translate(document)
            return self._register(request) if run is None else self._advance(request, run)
        except InvalidRequest as refusal:
            self._mirror(head, RequestView(head.generation, run=run, refusal=refusal))
            return None

    def _abandon(self, namespace: str, name: str, keep: UUID | None) -> None:
        """Fail live runs whose request is gone, or was replaced by another of its name; then let go of their Jobs.

        First the run, then the Job: from the failure on, the fence refuses whatever the pod still tries to write.
        """
        for run in self._sides.runs.live_of_request(self._sides.cluster_id, namespace, name):
            if run.request is not None and run.request.uid != keep:
                fail_from_outside(self._sides.runs, run, request_deleted(run))
                if run.workload is not None and run.workload.uid is not None:
                    self._sides.jobs.delete(namespace, run.workload.name, str(run.workload.uid))

    def _register(self, request: ImportRequest) -> float | None:
        """Make a run of the request and start it, or say why there is none. A refusal writes nothing."""
        self._sides.check_manifest(request.manifest)
        run_id = RunId(uuid4())
        wish = intent(request, run_id, self._sides.cluster_id, workload_name(run_id))
        prepared = self._sides.runs.prepare(normal_form(request.manifest), wish)
        match prepared:
            case Registered(run_id=run_id):
                run = self._read(run_id)
                return self._launched(request.head, run_id, self._sides.launcher_of(request).start(run, fresh=True))
            case Redelivered(run_id=run_id, release_id=release_id):
                # The owner's name is the same, but it is the run of another request, or of a command.
                view = RequestView(request.head.generation, refusal=Refused(Refusal.LIVE_IMPORT, release_id, run_id))
            case Existing(run_id=run_id):
                view = _existing(request, self._read(run_id))
            case Refused():
                view = RequestView(request.head.generation, refusal=prepared)
            case _:
                assert_never(prepared)
        self._mirror(request.head, view)
        return None

    def _advance(self, request: ImportRequest, run: Run) -> float | None:
        """Look at the Job, then at the run again, and do what the two together say."""
        observation = self._observe(run)
        run = self._read(run.run_id)  # after the observation: only then is a missing outcome evidence
        decision = decide(run, observation)
        launcher = self._sides.launcher_of(request)
        match decision:
            case Settled() | Watch():
                self._mirror(request.head, RequestView(request.head.generation, run=run, observation=observation))
                return WAITING_SECONDS if isinstance(observation, Waiting) else None
            case Enqueue():
                return self._launched(request.head, run.run_id, launcher.start(run, fresh=False))
            case Record():
                return self._launched(request.head, run.run_id, launcher.carry_out(decision, run))
            case FailRun(error=error):
                return self._launched(request.head, run.run_id, fail_from_outside(self._sides.runs, run, error))
            case _:
                assert_never(decision)

    def _launched(self, head: RequestHead, run_id: RunId, launch: Launch) -> float | None:
        self._mirror(head, RequestView(head.generation, run=self._read(run_id)))
        match launch:
            case Started():
                return WAITING_SECONDS
            case LeftPending(retry_after=seconds):
                return seconds
            case Rejected(recorded=True):
                return None
            case Rejected(why_not=why_not):
                raise Conflict(f"the failure of run {run_id} could not be recorded: {why_not}")
            case _:
                assert_never(launch)

    def _observe(self, run: Run) -> Observation:
        """Look at the Job. That an accepted one is gone is believed only when a second look says so too."""
        if run.workload is None:
            return Absent()
        at = (run.workload.namespace, run.workload.name, run.run_id)
        observation = self._sides.jobs.observe(*at)
        if isinstance(observation, Absent) and run.enqueue_state is EnqueueState.ACCEPTED:
            return self._sides.jobs.observe(*at)
        return observation

    def _read(self, run_id: RunId) -> Run:
        run = self._sides.runs.get(run_id)
        if run is None:
            raise Conflict(f"run {run_id} is no longer in the catalog")
        return run

    def _mirror(self, head: RequestHead, view: RequestView) -> None:
        """Write the status where it differs from the one the request has."""
        now = self._sides.clock() if view.run is None else view.run.read_at
        status = status_of(view, head.status, now)
        if status_changed(head.status, status):
            self._sides.requests.apply_status(head.ref.namespace, head.ref.name, status, uid=head.ref.uid)


def _existing(request: ImportRequest, run: Run) -> RequestView:
    """A release that is complete already: what was asked for, unless it was to be published and is not."""
    if not request.publish or run.published:
        return RequestView(request.head.generation, run=run)
    refusal = InvalidRequest(
        f"release {run.collection}/{run.release} was completed by run {run.run_id} and is not published;"
        " publish it, or import under a new release key",
        reason="CompletedUnpublished",
    )
    return RequestView(request.head.generation, refusal=refusal)
