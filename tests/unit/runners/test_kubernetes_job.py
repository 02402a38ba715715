"""The Kubernetes Job runner against a small API server that can break."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from uuid import UUID

import pytest

from geogenius.domain.enqueued import Accepted, EnqueueState, NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import DatabaseUnavailable, KubernetesUnavailable
from geogenius.domain.observation import Absent, Waiting
from geogenius.domain.run import Run, RunState
from geogenius.kube.artifact_files import ArtifactFiles, ClaimFiles
from geogenius.kube.client import KubeClient, Limits
from geogenius.kube.job_manifest import JobTemplate, PodOptions, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.runners.contract import Cancels, Forgets, Observes, arguments
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from tests.support import fault_server as server
from tests.support.builders import CLUSTER_ID, RUN_ID, a_run
from tests.support.kube_api import KubeApi

TEMPLATE = JobTemplate("geogenius:test", SecretKey("catalog", "url"))
NAME = f"geogenius-{RUN_ID.hex}"
FOLDER = "/apis/batch/v1/namespaces/maps/jobs"
PATH = f"{FOLDER}/{NAME}"
RUN = a_run()
UNKNOWN = a_run(enqueue_state=EnqueueState.UNKNOWN)
ARGS = arguments(publish=RUN.publish, stale_after=RUN.stale_after)
FORBIDDEN = server.status(403, "Forbidden", 'User "x" cannot create resource "jobs"')


@dataclass
class Scene:
    """A runner, the server it talks to, and how long it paused."""

    api: KubeApi
    jobs: Jobs
    pauses: list[float] = field(default_factory=list)

    def runner(
        self, run: Run | None = RUN, template: JobTemplate = TEMPLATE, files: ArtifactFiles = ()
    ) -> KubernetesJobRunner:
        found = None if run is None else Launchable(run, PodOptions(files=files))
        return KubernetesJobRunner(self.jobs, template, lambda _: found, self.pauses.append)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with KubeApi() as api, KubeClient(api.access(tmp_path), Limits(read_seconds=0.5, total_seconds=2)) as client:
        yield Scene(api, Jobs(client))


def test_a_run_becomes_one_job_however_often_it_is_enqueued(scene: Scene) -> None:
    first, second = scene.runner().enqueue(RUN_ID, ARGS), scene.runner().enqueue(RUN_ID, ARGS)

    assert first == second == Accepted(scene.api.objects[PATH]["metadata"]["uid"])
    assert len(scene.api.objects) == 1


def test_a_lost_reply_is_unknown_and_the_next_call_finds_the_job(scene: Scene) -> None:
    scene.api.lose_reply()
    lost = scene.runner().enqueue(RUN_ID, ARGS)
    posts = len(scene.api.posts())
    resolved = scene.runner(UNKNOWN).enqueue(RUN_ID, ARGS)

    assert isinstance(lost, OutcomeUnknown)
    assert resolved == Accepted(scene.api.objects[PATH]["metadata"]["uid"])
    assert (posts, len(scene.api.posts())) == (1, 1)


def test_a_request_that_never_arrived_is_sent_again_after_a_look(scene: Scene) -> None:
    scene.api.queued.append(server.reset)
    lost = scene.runner().enqueue(RUN_ID, ARGS)
    resolved = scene.runner(UNKNOWN).enqueue(RUN_ID, ARGS)

    assert isinstance(lost, OutcomeUnknown)
    assert isinstance(resolved, Accepted)
    assert [request.method for request in scene.api.received] == ["POST", "GET", "POST"]


def test_an_unknown_run_stays_unknown_while_nobody_answers(scene: Scene) -> None:
    scene.api.queued.append(server.answer(502, b"<html>"))

    assert isinstance(scene.runner(UNKNOWN).enqueue(RUN_ID, ARGS), OutcomeUnknown)
    assert scene.api.posts() == []


@pytest.mark.parametrize(
    ("behaviours", "expected"),
    [
        pytest.param(
            [server.status(422, "Invalid", "spec: wrong")], NotEnqueued("Invalid", "spec: wrong"), id="invalid"
        ),
        pytest.param(
            [server.status(404, "NotFound", 'namespaces "maps" not found')],
            NotEnqueued("NamespaceNotFound", 'namespaces "maps" not found'),
            id="no namespace",
        ),
        pytest.param(
            [server.status(403, "Forbidden", "ending", causes=[{"reason": "NamespaceTerminating"}])],
            NotEnqueued("NamespaceTerminating", "ending"),
            id="namespace ends",
        ),
        pytest.param(
            [server.status(403, "Forbidden", "exceeded quota: q")],
            NotEnqueued("WaitingForQuota", "exceeded quota: q", 10.0),
            id="quota",
        ),
        pytest.param(
            [server.answer(429, b"busy", {"Retry-After": "31"})], NotEnqueued("Throttled", "busy", 31.0), id="throttled"
        ),
        pytest.param(
            [server.status(401, "Unauthorized", "who")] * 2, NotEnqueued("Unauthenticated", "who", 10.0), id="unknown"
        ),
        pytest.param(
            [server.status(403, "", "")] * 2,
            NotEnqueued("Unauthenticated", "HTTP 403 without a message", 10.0),
            id="mute 403",
        ),
        pytest.param(
            [server.status(409, "Conflict", "the quota was changed")],
            NotEnqueued("Conflict", "the quota was changed", 2.0),
            id="conflict",
        ),
        pytest.param(
            [FORBIDDEN] * 3, NotEnqueued("Forbidden", 'User "x" cannot create resource "jobs"'), id="no right"
        ),
    ],
)
def test_a_refusal_keeps_the_words_of_the_server_and_says_whether_it_is_final(
    scene: Scene, behaviours: list[server.Behaviour], expected: NotEnqueued
) -> None:
    scene.api.queued.extend(behaviours)

    assert scene.runner().enqueue(RUN_ID, ARGS) == expected
    assert len(scene.api.received) == len(behaviours)
    assert scene.api.objects == {}


def test_a_right_that_arrives_late_is_waited_for(scene: Scene) -> None:
    scene.api.queued.extend([FORBIDDEN, FORBIDDEN])

    assert isinstance(scene.runner().enqueue(RUN_ID, ARGS), Accepted)
    assert scene.pauses == [0.5, 1.5]


def test_credentials_that_became_old_are_read_again(scene: Scene) -> None:
    scene.api.queued.append(server.status(401, "Unauthorized", "expired"))

    assert isinstance(scene.runner().enqueue(RUN_ID, ARGS), Accepted)


@pytest.mark.parametrize(
    "labels", [{}, {"geogenius.io/run-id": str(RUN_ID), "app.kubernetes.io/managed-by": "geogenius"}]
)
def test_an_object_of_the_name_that_is_not_ours_is_never_adopted(scene: Scene, labels: dict[str, str]) -> None:
    scene.api.put(PATH, kind="Job", metadata={"labels": labels})

    answer = scene.runner().enqueue(RUN_ID, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == ("NameConflict", None)


def test_a_job_of_another_specification_is_a_name_conflict(scene: Scene) -> None:
    scene.runner().enqueue(RUN_ID, ARGS)

    answer = scene.runner(template=changed(TEMPLATE, image="geogenius:next")).enqueue(RUN_ID, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert answer.reason == "NameConflict"
    assert "another specification" in answer.message


def test_a_job_on_its_way_out_is_waited_for(scene: Scene) -> None:
    scene.runner().enqueue(RUN_ID, ARGS)
    scene.api.objects[PATH]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"

    answer = scene.runner().enqueue(RUN_ID, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == ("JobBeingDeleted", 2.0)


def test_a_job_that_exists_but_cannot_be_read_is_unknown(scene: Scene) -> None:
    scene.runner().enqueue(RUN_ID, ARGS)
    exists = server.status(409, "AlreadyExists", "exists")
    scene.api.queued.extend([exists, server.reset, exists, server.status(404, "NotFound", "gone")])

    unread, gone = scene.runner().enqueue(RUN_ID, ARGS), scene.runner().enqueue(RUN_ID, ARGS)

    assert isinstance(unread, OutcomeUnknown)
    assert isinstance(gone, NotEnqueued)
    assert gone.retry_after == 2.0


def test_a_run_that_has_ended_is_accepted_without_a_job(scene: Scene) -> None:
    answer = scene.runner(a_run(state=RunState.FAILED)).enqueue(RUN_ID, ARGS)

    assert answer == Accepted()
    assert scene.api.received == []


@pytest.mark.parametrize(
    ("run", "files", "reason"),
    [
        pytest.param(None, (), "RunMissing", id="no run"),
        pytest.param(a_run(workload=None), (), "WorkloadMissing", id="no workload"),
        pytest.param(RUN, (ClaimFiles("a"), ClaimFiles("b")), "FilesInvalid", id="files"),
    ],
)
def test_what_cannot_become_a_job_is_refused_for_good(
    scene: Scene, run: Run | None, files: ArtifactFiles, reason: str
) -> None:
    answer = scene.runner(run, files=files).enqueue(RUN_ID, ARGS)

    assert isinstance(answer, NotEnqueued)
    assert (answer.reason, answer.retry_after) == (reason, None)
    assert scene.api.received == []


def test_a_catalog_that_does_not_answer_is_temporary_and_nothing_is_sent(scene: Scene) -> None:
    def unavailable(_: object) -> Launchable:
        raise DatabaseUnavailable("no connection")

    answer = KubernetesJobRunner(scene.jobs, TEMPLATE, unavailable).enqueue(RUN_ID, ARGS)

    assert answer == NotEnqueued("DatabaseUnavailable", "no connection", 2.0)
    assert scene.api.received == []


def test_the_window_of_the_run_stands_in_where_the_arguments_name_none(scene: Scene) -> None:
    scene.runner().enqueue(RUN_ID, {"publish": "yes", "stale_after_seconds": "soon"})

    (container,) = scene.api.objects[PATH]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["execute", str(RUN_ID), "--stale-after-seconds", "900"]


def test_it_is_available_while_the_server_answers(scene: Scene) -> None:
    up = scene.runner().available()
    scene.api.queued.append(server.silence)

    assert (up, scene.runner().available()) == (True, False)


def test_it_can_be_observed_cancelled_and_forgotten(scene: Scene) -> None:
    runner = scene.runner()

    assert isinstance(runner, Observes)
    assert isinstance(runner, Cancels)
    assert isinstance(runner, Forgets)


def test_observing_is_possible_before_and_after_the_job(scene: Scene) -> None:
    runner = scene.runner()
    before = runner.observe(RUN)
    runner.enqueue(RUN_ID, ARGS)

    assert (before, type(runner.observe(RUN))) == (Absent(), Waiting)
    assert runner.observe(a_run(workload=None)) == Absent()


def with_uid(run: Run, uid: str) -> Run:
    assert run.workload is not None
    assert run.workload.cluster_id == CLUSTER_ID
    return changed(run, workload=changed(run.workload, uid=UUID(uid)))


@pytest.mark.parametrize("known", [True, False])
def test_cancelling_deletes_the_job_and_twice_is_no_trouble(scene: Scene, known: bool) -> None:  # noqa: FBT001
    accepted = scene.runner().enqueue(RUN_ID, ARGS)
    assert isinstance(accepted, Accepted)
    run = with_uid(RUN, accepted.workload_uid or "") if known else RUN

    scene.runner().cancel(run)
    scene.runner().cancel(run)
    scene.runner().cancel(a_run(workload=None))

    assert scene.api.objects == {}


def test_cancelling_leaves_the_job_of_somebody_else(scene: Scene) -> None:
    scene.api.put(PATH, kind="Job")

    scene.runner().cancel(RUN)

    assert PATH in scene.api.objects


def test_only_a_run_that_has_ended_is_forgotten(scene: Scene) -> None:
    runner = scene.runner()
    runner.enqueue(RUN_ID, ARGS)
    runner.forget(RUN)
    kept = PATH in scene.api.objects
    runner.forget(a_run(state=RunState.COMPLETED))
    runner.forget(a_run(state=RunState.COMPLETED))

    assert kept
    assert scene.api.objects == {}


@pytest.mark.parametrize("ability", [lambda r: r.observe(RUN), lambda r: r.cancel(RUN)])
def test_a_server_that_does_not_answer_is_no_verdict(
    scene: Scene, ability: Callable[[KubernetesJobRunner], object]
) -> None:
    scene.api.queued.append(server.hang_up)

    with pytest.raises(KubernetesUnavailable):
        ability(scene.runner())
