"""What Jobs and pods say, in the shapes a 1.37 cluster gives them."""

import pytest

from geogenius.domain.observation import Ended, Observation, Running, Waiting
from geogenius.kube.evidence import read_evidence
from geogenius.kube.resources import JsonObject

UID = "11111111-0000-0000-0000-000000000001"


def a_job(*conditions: tuple[str, str, str, str]) -> JsonObject:
    return {
        "metadata": {"uid": UID},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "reason": reason, "message": message}
                for kind, status, reason, message in conditions
            ]
        },
    }


def a_pod(phase: str, state: JsonObject, *, created: str = "2030-01-01T00:00:00Z", **status: object) -> JsonObject:
    container: JsonObject = {"name": "importer", "state": state}
    pod: JsonObject = {
        "metadata": {"creationTimestamp": created},
        "spec": {"containers": [{"name": "importer", "resources": {"limits": {"memory": "300Mi"}}}]},
        "status": {"phase": phase, "containerStatuses": [container] if state else [], **status},  # type: ignore[dict-item]
    }
    return pod


def ended(code: int, reason: str = "Error", message: str = "") -> JsonObject:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


POLICY = ("Failed", "True", "PodFailurePolicy", "Container importer failed with exit code 65")
LIMIT = ("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
LATE = ("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline")
INTERIM = ("FailureTarget", "True", "PodFailurePolicy", "soon")


@pytest.mark.parametrize(
    ("job", "pods", "expected"),
    [
        pytest.param(
            a_job(("Complete", "True", "CompletionsReached", "")),
            [a_pod("Succeeded", ended(0, "Completed"))],
            Ended(UID, succeeded=True, reason="Complete", message="", exit_code=0),
            id="complete",
        ),
        pytest.param(
            a_job(INTERIM, POLICY),
            [a_pod("Failed", ended(65, message="countries.geojson: feature 7: no code\n"))],
            Ended(
                UID,
                succeeded=False,
                reason="PodFailurePolicy",
                message="Container importer failed with exit code 65; exit code 65; "
                "countries.geojson: feature 7: no code",
                exit_code=65,
            ),
            id="exit code of ours, with the pod's last words",
        ),
        pytest.param(
            a_job(LIMIT),
            [a_pod("Failed", ended(137, "OOMKilled"))],
            Ended(
                UID,
                succeeded=False,
                reason="OOMKilled",
                message="Job has reached the specified backoff limit; memory limit 300Mi; exit code 137",
                exit_code=137,
            ),
            id="out of memory",
        ),
        pytest.param(
            a_job(LIMIT),
            [a_pod("Failed", {}, reason="Evicted", message="The node was low on resource: memory.")],
            Ended(
                UID,
                succeeded=False,
                reason="Evicted",
                message="Job has reached the specified backoff limit; The node was low on resource: memory.",
            ),
            id="evicted",
        ),
        pytest.param(
            a_job(LATE),
            [],
            Ended(UID, succeeded=False, reason="DeadlineExceeded", message=LATE[3]),
            id="deadline, pod deleted",
        ),
        pytest.param(a_job(INTERIM), [a_pod("Running", {"running": {}})], Running(UID), id="about to fail"),
        pytest.param(
            a_job(("Failed", "False", "", "")), [a_pod("Running", {"running": {}})], Running(UID), id="not failed"
        ),
        pytest.param(
            a_job(),
            [a_pod("Failed", ended(143)), a_pod("Running", {"running": {}}, created="2030-01-01T00:01:00Z")],
            Running(UID),
            id="replaced after an eviction",
        ),
        pytest.param(
            a_job(),
            [a_pod("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": 'image "x" not found'}})],
            Waiting(UID, "ImagePullBackOff", 'image "x" not found'),
            id="image",
        ),
        pytest.param(
            a_job(),
            [a_pod("Pending", {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" is gone'}})],
            Waiting(UID, "CreateContainerConfigError", 'secret "x" is gone'),
            id="secret",
        ),
        pytest.param(
            a_job(),
            [
                a_pod(
                    "Pending",
                    {},
                    conditions=[
                        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
                    ],
                )
            ],
            Waiting(UID, "Unschedulable", "0/1 nodes"),
            id="unschedulable",
        ),
        pytest.param(a_job(), [a_pod("Pending", {})], Waiting(UID, "Pending", ""), id="pending"),
        pytest.param(a_job(), [], Waiting(UID, "NoPodYet", "the Job has no pod yet"), id="no pod yet"),
        pytest.param(
            a_job(),
            [a_pod("Failed", ended(143))],
            Waiting(UID, "PodEnded", "the pod ended and the Job has not been settled yet"),
            id="pod ended, Job not settled",
        ),
        pytest.param(
            a_job(("Suspended", "True", "JobSuspended", "Job suspended")),
            [],
            Waiting(UID, "Suspended", "Job suspended"),
            id="suspended",
        ),
        pytest.param({"metadata": {"uid": UID}}, [], Waiting(UID, "NoPodYet", "the Job has no pod yet"), id="new"),
    ],
)
def test_the_status_of_a_workload_is_read_in_its_own_words(
    job: JsonObject, pods: list[JsonObject], expected: Observation
) -> None:
    assert read_evidence(job, pods) == expected


def test_a_job_that_can_make_no_pod_says_why() -> None:
    warning: JsonObject = {"reason": "FailedCreate", "message": 'serviceaccount "x" not found'}

    assert read_evidence(a_job(), [], warning) == Waiting(UID, "FailedCreate", 'serviceaccount "x" not found')


def test_a_pod_that_waits_without_a_word_says_what_its_events_say() -> None:
    warning: JsonObject = {"reason": "FailedMount", "message": 'configmap "absent" not found'}
    waiting: JsonObject = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    pod: JsonObject = {"status": {"phase": "Pending", "containerStatuses": [waiting]}}

    assert read_evidence(a_job(), [pod], warning) == Waiting(UID, "FailedMount", 'configmap "absent" not found')


def test_a_pod_with_words_of_its_own_keeps_them() -> None:
    waiting: JsonObject = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    pod: JsonObject = {"status": {"phase": "Pending", "containerStatuses": [waiting]}}

    assert read_evidence(a_job(), [pod], {"reason": "Other"}) == Waiting(UID, "ImagePullBackOff", "no such image")


def test_the_last_words_of_a_pod_are_cut_from_the_front() -> None:
    observation = read_evidence(a_job(LIMIT), [a_pod("Failed", ended(70, message="x" * 9000 + "the end"))])

    assert isinstance(observation, Ended)
    assert len(observation.message) < 1200
    assert observation.message.endswith("the end")
