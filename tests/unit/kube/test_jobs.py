import pytest

from geogenius.domain.errors import KubernetesUnavailable
from geogenius.domain.observation import Absent, Ended, Foreign, Running, Waiting
from geogenius.kube.client import KubeClient
from geogenius.kube.job_manifest import ExecuteFlags, JobTemplate, PodOptions, SecretKey, build_job
from geogenius.kube.jobs import Created, Found, Jobs, Missing, NoAnswer
from geogenius.kube.listing import PAGE_SIZE
from geogenius.kube.outcome import AlreadyExists, NotFound, Unknown
from geogenius.kube.resources import MANAGED_BY_LABEL, RUN_ID_LABEL, value_at
from tests.support import fault_server as server
from tests.support.builders import RUN_ID, a_run
from tests.support.kube_api import KubeApi

TEMPLATE = JobTemplate("geogenius:test", SecretKey("catalog", "url"))
JOB = build_job(a_run(), ExecuteFlags(publish=False, stale_after_seconds=900), TEMPLATE, PodOptions())
NAME = f"geogenius-{RUN_ID.hex}"
FOLDER = "/apis/batch/v1/namespaces/maps/jobs"
PATH = f"{FOLDER}/{NAME}"
PODS = "/api/v1/namespaces/maps/pods"


def a_pod_of(api: KubeApi, phase: str, state: dict[str, object]) -> None:
    labels = {"batch.kubernetes.io/controller-uid": api.objects[PATH]["metadata"]["uid"]}
    status = {"phase": phase, "containerStatuses": [{"state": state}]}
    api.put(f"{PODS}/{NAME}-x", metadata={"labels": labels}, status=status)


def test_a_job_is_created_once_and_found_as_it_was_sent(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)

    first, second = jobs.create(JOB), jobs.create(JOB)
    found = jobs.find("maps", NAME)

    assert isinstance(second, AlreadyExists)
    assert isinstance(found, Found)
    assert first == Created(api.objects[PATH]["metadata"]["uid"])
    assert found.job["spec"] == JOB["spec"]


def test_a_created_answer_without_the_job_is_unknown(api: KubeApi, client: KubeClient) -> None:
    api.queued.append(server.answer(201, {"kind": "Status"}))

    assert isinstance(Jobs(client).create(JOB), Unknown)


def test_a_missing_namespace_is_told(api: KubeApi, client: KubeClient) -> None:
    api.queued.append(server.status(404, "NotFound", 'namespaces "maps" not found'))

    assert Jobs(client).create(JOB) == NotFound('namespaces "maps" not found')


def test_absent_and_no_answer_are_different_facts(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)
    missing = jobs.find("maps", NAME)
    api.queued.append(server.answer(502, b"<html>"))
    unknown = jobs.find("maps", NAME)

    assert missing == Missing()
    assert isinstance(unknown, NoAnswer)


def test_a_job_is_observed_with_its_pods(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)
    seen = [jobs.observe("maps", NAME, RUN_ID)]
    jobs.create(JOB)
    seen.append(jobs.observe("maps", NAME, RUN_ID))
    a_pod_of(api, "Running", {"running": {}})
    seen.append(jobs.observe("maps", NAME, RUN_ID))
    a_pod_of(api, "Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
    condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    api.objects[PATH]["status"] = {"conditions": [condition]}
    seen.append(jobs.observe("maps", NAME, RUN_ID))

    assert [type(observation) for observation in seen] == [Absent, Waiting, Running, Ended]
    assert isinstance(seen[3], Ended)
    assert (seen[3].reason, seen[3].exit_code) == ("OOMKilled", 137)


def test_a_job_without_pods_is_observed_with_its_latest_warning(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)
    jobs.create(JOB)
    events = "/api/v1/namespaces/maps/events"
    api.put(f"{events}/a", reason="Older", message="old", lastTimestamp="2030-01-01T00:00:00Z")
    api.put(f"{events}/b", reason="FailedCreate", message="no account", lastTimestamp="2030-01-01T00:00:09Z")

    assert jobs.observe("maps", NAME, RUN_ID) == Waiting(
        api.objects[PATH]["metadata"]["uid"], "FailedCreate", "no account"
    )


def test_events_that_cannot_be_read_do_not_hide_the_job(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)
    jobs.create(JOB)
    api.queued.extend(
        [
            server.answer(200, {"kind": "Job", **api.objects[PATH]}),
            server.answer(200, {"items": []}),
            server.status(403, "Forbidden", "User cannot list events"),
        ]
    )

    assert isinstance(jobs.observe("maps", NAME, RUN_ID), Waiting)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="no labels"),
        pytest.param({RUN_ID_LABEL: "another", MANAGED_BY_LABEL: "geogenius"}, id="another run"),
        pytest.param({RUN_ID_LABEL: str(RUN_ID), MANAGED_BY_LABEL: "somebody"}, id="another maker"),
        pytest.param({RUN_ID_LABEL: str(RUN_ID), MANAGED_BY_LABEL: "geogenius"}, id="no spec hash"),
    ],
)
def test_a_job_that_is_not_ours_is_foreign(api: KubeApi, client: KubeClient, labels: dict[str, str]) -> None:
    api.put(PATH, kind="Job", metadata={"labels": labels})

    assert isinstance(Jobs(client).observe("maps", NAME, RUN_ID), Foreign)


@pytest.mark.parametrize("good_answers", [0, 1])
def test_nothing_is_concluded_from_half_a_look(api: KubeApi, client: KubeClient, good_answers: int) -> None:
    jobs = Jobs(client)
    jobs.create(JOB)
    good = server.answer(200, api.objects[PATH])
    api.queued.extend([good] * good_answers + [server.silence])

    with pytest.raises(KubernetesUnavailable):
        jobs.observe("maps", NAME, RUN_ID)


def test_exactly_the_job_that_is_meant_is_deleted_and_twice_is_no_trouble(api: KubeApi, client: KubeClient) -> None:
    jobs = Jobs(client)
    created = jobs.create(JOB)
    assert isinstance(created, Created)

    jobs.delete("maps", NAME, "00000000-0000-0000-0000-000000000000")
    kept = PATH in api.objects
    jobs.delete("maps", NAME, created.uid)
    jobs.delete("maps", NAME, created.uid)

    assert kept
    assert PATH not in api.objects
    assert api.received[-1].document()["propagationPolicy"] == "Background"


def test_a_deletion_without_an_answer_is_not_taken_for_done(api: KubeApi, client: KubeClient) -> None:
    api.queued.append(server.hang_up)

    with pytest.raises(KubernetesUnavailable, match=NAME):
        Jobs(client).delete("maps", NAME, "uid")


def test_our_jobs_are_listed_in_pages_and_others_are_not(api: KubeApi, client: KubeClient) -> None:
    ours = {RUN_ID_LABEL: "x", MANAGED_BY_LABEL: "geogenius"}
    for number in range(PAGE_SIZE + 1):
        api.put(f"{FOLDER}/job-{number}", metadata={"labels": ours})
    api.put(f"{FOLDER}/foreign", metadata={"labels": {"app": "x"}})
    api.put("/apis/batch/v1/namespaces/other/jobs/job-x", metadata={"labels": ours})
    jobs = Jobs(client)

    everywhere = [value_at(job, "metadata", "name") for job in jobs.labelled()]

    assert len(everywhere) == len(set(everywhere)) == PAGE_SIZE + 2
    assert len(list(jobs.labelled(["other"]))) == 1
    assert len(api.received) == 3


def test_a_list_that_breaks_off_is_not_taken_for_complete(api: KubeApi, client: KubeClient) -> None:
    first = {"metadata": {"continue": "2"}, "items": [{"metadata": {"name": "a"}}]}
    api.queued.extend([server.answer(200, first), server.status(410, "Expired", "too old")])

    with pytest.raises(KubernetesUnavailable, match="too old"):
        list(Jobs(client).labelled())


def test_whether_the_server_answers_is_told(api: KubeApi, client: KubeClient) -> None:
    up = Jobs(client).reachable()
    api.queued.append(server.reset)

    assert (up, Jobs(client).reachable()) == (True, False)
