"""Bring one ImportRequest, its run and its Job together: read all three, decide, act, mirror.

Level-triggered: it does not matter which event asked, how often, or what happened in between. Everything done here may
be done again: preparing finds the run it made, a Job's name is fixed by its run, a status is applied as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never
from uuid import UUID, uuid4

from geogenius.api.status import status_changed, status_of
from geogenius.api.translate import ImportRequest, RequestHead, head_of, intent, translate
from geogenius.api.view import RequestView
from geogenius.catalog.runs import Runs
from geogenius.domain.decision import Enqueue, FailRun, Record, Settled, Wait, Watch, decide, request_deleted
from geogenius.domain.enqueued import EnqueueState, NotEnqueued
from geogenius.domain.errors import Conflict, InvalidRequest
from geogenius.domain.manifest import Manifest
from geogenius.domain.observation import Absent, Observation, Waiting
from geogenius.domain.prepared import Existing, Prepared, Redelivered, Refusal, Refused, Registered
from geogenius.domain.run import Run, RunError, RunId
from geogenius.kube.jobs import Jobs
from geogenius.kube.requests import Requests
from geogenius.kube.resources import JsonObject
from geogenius.launcher.launch import Launch, Launcher, LeftPending, Rejected, Started, fail_from_outside, settled
from geogenius.manifest.document import normal_form
from geogenius.manifest.gates import check_gates
from geogenius.runners.contract import Observes

WAITING_SECONDS = 5.0
"""How often a Job that waits for its pod is looked at: what keeps a pod waiting shows in no event of the Job."""

QUEUED_SECONDS = 60.0
"""How often a run that waits in a queue is looked at: that it begins is told by the catalog."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is brought together: the requests, the catalog, the Jobs, and the queue for runs that have no Job.

    `runner` is stored with new runs; `launcher_of` starts runs for one request, through the runner of this name.
    """

    requests: Requests
    runs: Runs
    jobs: Jobs
    queue: Observes
    runner: str
    launcher_of: Callable[[ImportRequest, str], Launcher]
    check_manifest: Callable[[Manifest], None]
    cluster_id: UUID
    clock: Callable[[], datetime]


class Reconciler:
    """Shared by threads, one key at a time each.

    Keeps one thing between calls, and only for economy: until when a runner that gave no acceptance is left in peace.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._not_before: dict[RunId, datetime] = {}

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Take the next step for this request; the seconds after which to look again, or None to wait for an event.

        Raises Unavailable when the API server or the database gives no usable answer, and Conflict when the run
        moved on under our hands: then nothing was concluded, and the next look knows more.
        """
        document = self._sides.requests.get(namespace, name)
        head = None if document is None else head_of(document)
        if document is None or head is None or head.deleting:
            self._abandon(namespace, name, keep=None)
            return None
        self._abandon(namespace, name, keep=head.ref.uid)
        run = self._sides.runs.find_by_request(head.ref.uid)
        if run is not None:
            return self._advance(head, document, run)
        if head.status.get("finished") is True:
            return None  # what was once answered for good stays answered
        try:
            request = translate(document)
            prepared = self._prepare(request)
        except InvalidRequest as refusal:
            self._mirror(head, RequestView(head.generation, refusal=refusal))
            return None
        return self._begin(request, document, prepared)

    def _abandon(self, namespace: str, name: str, keep: UUID | None) -> None:
        """Fail live runs whose request is gone, or was replaced by another of its name; then let go of their Jobs.

        First the run, then the Job: from the failure on, the fence refuses whatever the pod still tries to write. A
        Job that nobody has seen yet, or that this process does not live to delete, falls to the garbage collector
        with its owner.
        """
        for run in self._sides.runs.live_of_request(self._sides.cluster_id, namespace, name):
            if run.request is not None and run.request.uid != keep:
                self._fail(run, request_deleted(run))
                if run.workload is not None and run.workload.uid is not None:
                    self._sides.jobs.delete(namespace, run.workload.name, str(run.workload.uid))

    def _prepare(self, request: ImportRequest) -> Prepared:
        """Register a run, committed, or learn why there is none; a refusal has written nothing."""
        self._sides.check_manifest(request.manifest)
        check_gates(request.gates, request.manifest)
        run_id = RunId(uuid4())
        wish = intent(request, run_id, self._sides.cluster_id, self._sides.runner)
        return self._sides.runs.prepare(normal_form(request.manifest), wish)

    def _begin(self, request: ImportRequest, document: JsonObject, prepared: Prepared) -> float | None:
        """Start the run that was registered, or show why there is none."""
        if isinstance(prepared, Registered):
            registered = self._read(prepared.run_id)
            launch = self._sides.launcher_of(request, registered.runner).start(registered, fresh=True)
            return self._launched(request.head, registered.run_id, launch)
        run = self._sides.runs.find_by_request(request.head.ref.uid)
        if run is not None:  # another operator registered it a moment ago
            return self._advance(request.head, document, run)
        self._mirror(request.head, self._answered(request, prepared))
        return None

    def _answered(self, request: ImportRequest, prepared: Redelivered | Existing | Refused) -> RequestView:
        """What is shown of a request that gets no run of its own."""
        match prepared:
            case Redelivered(run_id=run_id, release_id=release_id):
                # The owner's name is the same, but it is the run of another request, or of a command.
                refusal = Refused(Refusal.LIVE_IMPORT, release_id, run_id)
                return RequestView(request.head.generation, refusal=refusal)
            case Existing(run_id=run_id):
                return _existing(request, self._read(run_id))
            case Refused():
                return RequestView(request.head.generation, refusal=prepared)
            case _:
                assert_never(prepared)

    def _advance(self, head: RequestHead, document: JsonObject, run: Run) -> float | None:
        """Look at the Job, or the message in the queue, then at the run again, and do what the two together say.

        What the request says is asked only where a Job is to be made of it: evidence counts whatever it says.
        """
        run, observation = self._looked_at(run)
        decision = decide(run, observation, self._not_before.get(run.run_id))
        match decision:
            case Settled():
                self._mirror(head, RequestView(head.generation, run=run))
                self._not_before.pop(run.run_id, None)
                return None
            case Watch():
                self._mirror(head, RequestView(head.generation, run=run, observation=observation))
                return _patience(run) if isinstance(observation, Waiting) else None
            case Wait(seconds=seconds):
                self._mirror(head, RequestView(head.generation, run=run))
                return seconds
            case Enqueue():
                return self._launched(head, run.run_id, self._enqueue(document, run))
            case Record(answer=answer):
                return self._launched(head, run.run_id, settled(self._sides.runs, run, answer, fresh=False))
            case FailRun(error=error):
                self._fail(run, error)
                self._mirror(head, RequestView(head.generation, run=self._read(run.run_id)))
                return None
            case _:
                assert_never(decision)

    def _enqueue(self, document: JsonObject, run: Run) -> Launch:
        """Start a run that is registered; a request that no Job can be made of any more is a refusal like others."""
        try:
            request = translate(document)
        except InvalidRequest as refusal:
            return settled(self._sides.runs, run, NotEnqueued(refusal.reason, str(refusal)), fresh=False)
        return self._sides.launcher_of(request, run.runner).start(run, fresh=False)

    def _launched(self, head: RequestHead, run_id: RunId, launch: Launch) -> float | None:
        """Mirror how a start went, and say when to look again."""
        run = self._read(run_id)
        self._not_before.pop(run_id, None)
        if isinstance(launch, LeftPending):
            self._not_before[run_id] = run.read_at + timedelta(seconds=launch.retry_after)
        self._mirror(head, RequestView(head.generation, run=run))
        match launch:
            case Started():
                return _patience(run)
            case LeftPending(retry_after=seconds):
                return seconds
            case Rejected():
                _insist(run_id, launch)
                return None
            case _:
                assert_never(launch)

    def _fail(self, run: Run, error: RunError) -> None:
        """Fail the run, or raise Conflict where that is not recorded: nothing may be built on it."""
        self._not_before.pop(run.run_id, None)
        _insist(run.run_id, fail_from_outside(self._sides.runs, run, error))

    def _looked_at(self, run: Run) -> tuple[Run, Observation]:
        """The run and its Job, the run read after the Job was: only then is a missing outcome evidence.

        That an accepted Job is gone is believed when a second look says so too, made after the acceptance was read:
        the first one may have been early, and another operator quick.
        """
        observation = self._observe(run)
        run = self._read(run.run_id)
        if isinstance(observation, Absent) and run.enqueue_state is EnqueueState.ACCEPTED:
            observation = self._observe(run)
            run = self._read(run.run_id)
        return run, observation

    def _observe(self, run: Run) -> Observation:
        if run.state.terminal:
            return Absent()
        if run.workload is None:
            return self._sides.queue.observe(run)
        return self._sides.jobs.observe(run.workload.namespace, run.workload.name, run.run_id)

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


def _patience(run: Run) -> float:
    """Seconds after which a workload that waits is looked at again."""
    return QUEUED_SECONDS if run.workload is None else WAITING_SECONDS


def _insist(run_id: RunId, rejected: Rejected) -> None:
    if not rejected.recorded:
        raise Conflict(f"the failure of run {run_id} is not recorded: {rejected.why_not}")


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
