"""One Kubernetes Job a run. Its name is fixed by the run, so that creating it twice is impossible."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from geogenius.domain.enqueued import Accepted, Enqueued, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import InvalidRequest, KubernetesUnavailable, Unavailable
from geogenius.domain.observation import Absent, Observation
from geogenius.domain.run import Run, RunId
from geogenius.kube.job_manifest import ExecuteFlags, JobTemplate, PodOptions, build_job
from geogenius.kube.jobs import Created, CreateOutcome, Found, Jobs, Missing, NoAnswer, being_deleted, carries, hash_of
from geogenius.kube.outcome import (
    AlreadyExists,
    Conflicted,
    NotFound,
    NotSent,
    QuotaExceeded,
    Rejected,
    RejectionKind,
    Throttled,
    Unauthenticated,
    Unknown,
)
from geogenius.kube.resources import JsonObject, text_at
from geogenius.runners.contract import Arguments, publish, stale_after_seconds

NAME = "kubernetes_job"

FORBIDDEN_PAUSES_SECONDS = (0.5, 1.5)
"""Waits between the three tries after a 403: rights that were just granted take a moment to reach every server."""

SOON_SECONDS = 2.0
LATER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Launchable:
    """A run as the catalog has it now, and what its request wants of the pod."""

    run: Run
    pod: PodOptions


RunLookup = Callable[[RunId], Launchable | None]
"""Reads a run; None where the catalog has none. May raise Unavailable or InvalidRequest."""


class KubernetesJobRunner:
    """Starts runs as Jobs in the namespace of their request. Keeps nothing."""

    def __init__(
        self, jobs: Jobs, template: JobTemplate, lookup: RunLookup, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._jobs = jobs
        self._template = template
        self._lookup = lookup
        self._pause = pause

    def name(self) -> str:
        """The word stored with a run."""
        return NAME

    def available(self) -> bool:
        """Whether the API server answers."""
        return self._jobs.reachable()

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        """Create the Job of the run, once; the second time finds it and accepts it.

        A run whose last try is unknown is looked up first. Where nothing is found, it is sent again: under the fixed
        name that gives one Job, whatever became of the first try.
        """
        try:
            found = self._lookup(run_id)
            if found is None:
                return NotEnqueued("RunMissing", f"run {run_id} is not in the catalog")
            if found.run.state.terminal:
                return Accepted(_stored_uid(found.run))
            job = self._manifest(found, args)
        except Unavailable as trouble:
            return NotEnqueued(trouble.reason, str(trouble), SOON_SECONDS)
        except InvalidRequest as refusal:
            return NotEnqueued(refusal.reason, str(refusal))
        if found.run.enqueue_state is EnqueueState.UNKNOWN:
            seen = self._look(found.run, job)
            if seen is not None:
                return seen
        return self._create(found.run, job)

    def observe(self, run: Run) -> Observation:
        """What the Job of the run looks like; raises KubernetesUnavailable where it cannot be read."""
        if run.workload is None:
            return Absent()
        return self._jobs.observe(run.workload.namespace, run.workload.name, run.run_id)

    def cancel(self, run: Run) -> None:
        """Delete the Job: its pod is asked to end, and records that it was. Raises KubernetesUnavailable."""
        if run.workload is None:
            return
        uid = _stored_uid(run) or self._uid_of(run)
        if uid is not None:
            self._jobs.delete(run.workload.namespace, run.workload.name, uid)

    def forget(self, run: Run) -> None:
        """Delete the Job of a run that has ended, before its time to live does. Raises KubernetesUnavailable."""
        if run.state.terminal:
            self.cancel(run)

    def _manifest(self, found: Launchable, args: Arguments) -> JsonObject:
        window = stale_after_seconds(args) or int(found.run.stale_after.total_seconds())
        return build_job(found.run, ExecuteFlags(publish(args), window), self._template, found.pod)

    def _create(self, run: Run, job: JsonObject) -> Enqueued:
        outcome = self._jobs.create(job)
        for pause in FORBIDDEN_PAUSES_SECONDS:
            if not (isinstance(outcome, Rejected) and outcome.kind is RejectionKind.FORBIDDEN):
                break
            self._pause(pause)
            outcome = self._jobs.create(job)
        if isinstance(outcome, AlreadyExists):
            gone = NotEnqueued("JobBeingDeleted", f"{outcome.message}, and was gone a moment later", SOON_SECONDS)
            return self._look(run, job) or gone
        return answer_of(outcome)

    def _look(self, run: Run, job: JsonObject) -> Enqueued | None:
        """Whose the object of this name is; None where there is none."""
        namespace, name = text_at(job, "metadata", "namespace"), text_at(job, "metadata", "name")
        found = self._jobs.find(namespace, name)
        match found:
            case Missing():
                return None
            case NoAnswer(message=message):
                return OutcomeUnknown("NotResolved", message)
            case Found(job=stored):
                return judge(stored, job, run.run_id)

    def _uid_of(self, run: Run) -> str | None:
        if run.workload is None:
            return None
        found = self._jobs.find(run.workload.namespace, run.workload.name)
        match found:
            case Found(job=job) if carries(job, run.run_id):
                return text_at(job, "metadata", "uid")
            case NoAnswer(message=message):
                raise KubernetesUnavailable(message)
            case _:
                return None


def judge(stored: JsonObject, job: JsonObject, run_id: RunId) -> Accepted | NotEnqueued:
    """Whether the object that has the name of our Job is our Job. Another's is never adopted."""
    name = f"{text_at(job, 'metadata', 'namespace')}/{text_at(job, 'metadata', 'name')}"
    if being_deleted(stored):
        return NotEnqueued("JobBeingDeleted", f"Job {name} is being deleted", SOON_SECONDS)
    if carries(stored, run_id) and hash_of(stored) == hash_of(job):
        return Accepted(text_at(stored, "metadata", "uid"))
    what = "was made for this run from another specification" if carries(stored, run_id) else "is not of this run"
    return NotEnqueued("NameConflict", f"Job {name} exists and {what}")


def answer_of(outcome: CreateOutcome) -> Enqueued:
    """What an outcome of creating the Job means for the run: the right half of the classification table."""
    match outcome:
        case Created(uid=uid):
            return Accepted(uid)
        case Unknown(reason=reason, message=message):
            return OutcomeUnknown(reason, message)
        case NotSent(reason=reason, message=message, temporary=temporary):
            return NotEnqueued(reason, message, SOON_SECONDS if temporary else None)
        case Rejected():
            return NotEnqueued(_reason(outcome), outcome.message)
        case NotFound(message=message):
            return NotEnqueued("NamespaceNotFound", message)
        case _:
            return _temporary(outcome)


def _temporary(outcome: Throttled | QuotaExceeded | Unauthenticated | Conflicted | AlreadyExists) -> NotEnqueued:
    match outcome:
        case Throttled(message=message, retry_after=seconds):
            return NotEnqueued("Throttled", message, seconds)
        case QuotaExceeded(message=message):
            return NotEnqueued("WaitingForQuota", message, LATER_SECONDS)
        case Unauthenticated(message=message):
            return NotEnqueued("Unauthenticated", message, LATER_SECONDS)
        case Conflicted(message=message):
            return NotEnqueued("Conflict", message, SOON_SECONDS)
        case AlreadyExists(message=message):
            return NotEnqueued("AlreadyExists", message, SOON_SECONDS)


def _reason(rejected: Rejected) -> str:
    terminating = rejected.kind is RejectionKind.NAMESPACE_TERMINATING
    return "NamespaceTerminating" if terminating else rejected.reason


def _stored_uid(run: Run) -> str | None:
    return str(run.workload.uid) if run.workload is not None and run.workload.uid is not None else None
