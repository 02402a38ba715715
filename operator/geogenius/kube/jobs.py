"""The Jobs of runs in the API: created once, found, observed, deleted, listed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from geogenius.domain.errors import KubernetesUnavailable
from geogenius.domain.observation import Absent, Foreign, Observation
from geogenius.domain.run import RunId
from geogenius.kube.client import KubeClient, Request
from geogenius.kube.evidence import read_evidence, waits_silently, youngest
from geogenius.kube.listing import list_all
from geogenius.kube.outcome import Answered, Conflicted, NotFound, Refusal, Unknown
from geogenius.kube.resources import (
    APPLICATION,
    MANAGED_BY_LABEL,
    OUR_JOBS_SELECTOR,
    RUN_ID_LABEL,
    SPEC_HASH_ANNOTATION,
    JsonObject,
    events_path,
    jobs_path,
    pods_path,
    text_at,
    value_at,
)


@dataclass(frozen=True, slots=True)
class Created:
    """The API server holds the Job now."""

    uid: str


CreateOutcome = Created | Refusal


@dataclass(frozen=True, slots=True)
class Found:
    """An object of this name is there, as it is stored at this moment."""

    job: JsonObject


@dataclass(frozen=True, slots=True)
class Missing:
    """The API server says that no such object exists."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing may be concluded: the API server gave no usable answer."""

    message: str


FindOutcome = Found | Missing | NoAnswer


class Jobs:
    """Shared by threads; keeps nothing."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def reachable(self) -> bool:
        """Whether the API server answers right now."""
        return isinstance(self._client.exchange(Request("GET", "/version")), Answered)

    def create(self, job: JsonObject) -> CreateOutcome:
        """Send this Job once. The second time answers AlreadyExists, since its name is fixed by the run."""
        path = jobs_path(text_at(job, "metadata", "namespace"))
        outcome = self._client.exchange(Request("POST", path, body=job))
        if not isinstance(outcome, Answered):
            return outcome
        uid = text_at(outcome.body, "metadata", "uid")
        if text_at(outcome.body, "kind") != "Job" or not uid:
            return Unknown("UnexpectedAnswer", f"HTTP {outcome.status} without the Job that was asked for")
        return Created(uid)

    def find(self, namespace: str, name: str) -> FindOutcome:
        """Read a Job by name, from the store and not from a cache."""
        outcome = self._client.exchange(Request("GET", jobs_path(namespace, name)))
        match outcome:
            case Answered(body=body) if text_at(body, "kind") == "Job":
                return Found(body)
            case NotFound():
                return Missing()
            case _:
                return NoAnswer(f"Job {namespace}/{name} cannot be read: {outcome}")

    def observe(self, namespace: str, name: str, run_id: RunId) -> Observation:
        """What the Job of a run looks like now, with the words of its pods. Changes nothing.

        Raises KubernetesUnavailable when any of it cannot be read: nothing is concluded from half a look.
        """
        found = self.find(namespace, name)
        match found:
            case Missing():
                return Absent()
            case NoAnswer(message=message):
                raise KubernetesUnavailable(message)
            case Found(job=job):
                if not carries(job, run_id):
                    return Foreign(f"Job {namespace}/{name} exists and does not belong to run {run_id}")
                pods = self._pods(namespace, job)
                observation = read_evidence(job, pods)
                if not waits_silently(observation):
                    return observation
                return read_evidence(job, pods, self._last_warning(namespace, youngest(pods) or job))

    def delete(self, namespace: str, name: str, uid: str) -> None:
        """Delete exactly this Job, with its pods after it; one that is gone or was replaced is left as it is.

        Raises KubernetesUnavailable where the answer does not say that it is going.
        """
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        outcome = self._client.exchange(Request("DELETE", jobs_path(namespace, name), body=body))
        if not isinstance(outcome, (Answered, NotFound, Conflicted)):
            raise KubernetesUnavailable(f"Job {namespace}/{name} cannot be deleted: {outcome}")

    def labelled(self, namespaces: Sequence[str] = ()) -> Iterator[JsonObject]:
        """Our Jobs, in these namespaces or everywhere, page by page.

        Raises KubernetesUnavailable, also after the first pages: then the list is not complete.
        """
        for namespace in namespaces or (None,):
            yield from list_all(self._client, jobs_path(namespace), {"labelSelector": OUR_JOBS_SELECTOR})

    def _pods(self, namespace: str, job: JsonObject) -> list[JsonObject]:
        selector = f"batch.kubernetes.io/controller-uid={text_at(job, 'metadata', 'uid')}"
        return list(list_all(self._client, pods_path(namespace), {"labelSelector": selector}))

    def _last_warning(self, namespace: str, subject: JsonObject) -> JsonObject | None:
        """The latest warning about a Job or a pod; it embellishes only, so trouble reading it is no trouble."""
        selector = f"involvedObject.uid={text_at(subject, 'metadata', 'uid')},type=Warning"
        try:
            events = list(list_all(self._client, events_path(namespace), {"fieldSelector": selector}))
        except KubernetesUnavailable:
            return None
        return max(events, key=lambda event: text_at(event, "lastTimestamp"), default=None)


def carries(job: JsonObject, run_id: RunId) -> bool:
    """Whether this Job was made by us for this run; an operator of another version made it just as well."""
    labels = value_at(job, "metadata", "labels")
    return (
        text_at(labels, RUN_ID_LABEL) == str(run_id)
        and text_at(labels, MANAGED_BY_LABEL) == APPLICATION
        and hash_of(job) != ""
    )


def hash_of(job: JsonObject) -> str:
    """The spec hash a Job was created with, or the empty string."""
    return text_at(job, "metadata", "annotations", SPEC_HASH_ANNOTATION)


def being_deleted(job: JsonObject) -> bool:
    """Whether the Job is on its way out."""
    return text_at(job, "metadata", "deletionTimestamp") != ""
