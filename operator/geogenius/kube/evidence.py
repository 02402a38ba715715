"""What a Job and its pods say about a run: a pure reading of their status."""

from collections.abc import Sequence

from geogenius.domain.observation import Ended, Observation, Running, Waiting
from geogenius.kube.resources import JsonObject, integer_at, objects_at, text_at, value_at

_ORDINARY_ENDS = frozenset({"", "Error", "Completed"})
_SILENT = frozenset({"NoPodYet", "ContainerCreating", "Pending"})
_WORDS_LIMIT = 1000


def read_evidence(job: JsonObject, pods: Sequence[JsonObject], warning: JsonObject | None = None) -> Observation:
    """What the workload looks like; `warning` is the latest warning event of the youngest pod, or of a Job without one.

    Only the conditions Complete and Failed end a Job: the interim ones come while pods still run.
    """
    uid = text_at(job, "metadata", "uid")
    complete = _condition(job, "Complete")
    if complete is not None:
        return Ended(uid, succeeded=True, reason="Complete", message="", exit_code=_exit_code(youngest(pods)))
    failed = _condition(job, "Failed")
    if failed is not None:
        return _ended_badly(uid, failed, youngest(pods))
    if any(_runs(pod) for pod in pods):
        return Running(uid)
    return _waiting(uid, job, pods, warning)


def _ended_badly(uid: str, failed: JsonObject, pod: JsonObject | None) -> Ended:
    terminated = _terminated(pod)
    how = text_at(terminated, "reason")
    evicted = text_at(pod, "status", "reason")
    reason = (how if how not in _ORDINARY_ENDS else "") or evicted or text_at(failed, "reason") or "Failed"
    exit_code = _exit_code(pod)
    words = [
        text_at(failed, "message"),
        _limit_words(pod) if how == "OOMKilled" else "",
        text_at(pod, "status", "message"),
        "" if exit_code is None else f"exit code {exit_code}",
        text_at(terminated, "message").strip()[-_WORDS_LIMIT:],
    ]
    return Ended(uid, succeeded=False, reason=reason, message="; ".join(filter(None, words)), exit_code=exit_code)


def _waiting(uid: str, job: JsonObject, pods: Sequence[JsonObject], warning: JsonObject | None) -> Waiting:
    suspended = _condition(job, "Suspended")
    if suspended is not None:
        return Waiting(uid, "Suspended", text_at(suspended, "message"))
    pod = youngest([pod for pod in pods if text_at(pod, "status", "phase") not in ("Failed", "Succeeded")])
    if pod is not None:
        waiting = _pending(uid, pod)
    elif pods:
        waiting = Waiting(uid, "PodEnded", "the pod ended and the Job has not been settled yet")
    else:
        waiting = Waiting(uid, "NoPodYet", "the Job has no pod yet")
    if warning is not None and waits_silently(waiting):
        return Waiting(uid, text_at(warning, "reason") or "Warning", text_at(warning, "message"))
    return waiting


def waits_silently(observation: Observation) -> bool:
    """Whether a warning event would tell more, as for a volume that cannot be mounted or a quota that is used up."""
    return isinstance(observation, Waiting) and observation.reason in _SILENT


def _pending(uid: str, pod: JsonObject) -> Waiting:
    for condition in objects_at(pod, "status", "conditions"):
        if text_at(condition, "type") == "PodScheduled" and text_at(condition, "status") == "False":
            return Waiting(uid, text_at(condition, "reason") or "Unschedulable", text_at(condition, "message"))
    for status in objects_at(pod, "status", "containerStatuses"):
        reason = text_at(status, "state", "waiting", "reason")
        if reason:
            return Waiting(uid, reason, text_at(status, "state", "waiting", "message"))
    return Waiting(uid, text_at(pod, "status", "reason") or "Pending", text_at(pod, "status", "message"))


def _runs(pod: JsonObject) -> bool:
    return text_at(pod, "status", "phase") == "Running"


def youngest(pods: Sequence[JsonObject]) -> JsonObject | None:
    """The youngest pod: its words are the latest."""
    return max(pods, key=lambda pod: text_at(pod, "metadata", "creationTimestamp"), default=None)


def _condition(job: JsonObject, kind: str) -> JsonObject | None:
    for condition in objects_at(job, "status", "conditions"):
        if text_at(condition, "type") == kind and text_at(condition, "status") == "True":
            return condition
    return None


def _terminated(pod: JsonObject | None) -> JsonObject | None:
    for status in objects_at(pod, "status", "containerStatuses"):
        terminated = value_at(status, "state", "terminated")
        if isinstance(terminated, dict):
            return terminated
    return None


def _exit_code(pod: JsonObject | None) -> int | None:
    return integer_at(_terminated(pod), "exitCode")


def _limit_words(pod: JsonObject | None) -> str:
    limits = [text_at(c, "resources", "limits", "memory") for c in objects_at(pod, "spec", "containers")]
    return f"memory limit {limits[0]}" if limits and limits[0] else "no memory limit of its own"
