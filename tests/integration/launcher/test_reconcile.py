"""The life of a request between the API server and the catalog, one look after another, killed anywhere."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.errors import KubernetesUnavailable
from geogenius.domain.run import RunError, RunState, VerificationGates
from geogenius.kube.resources import jobs_path
from tests.support import fault_server as server
from tests.support.catalog import a_job_intent, an_intent, completed, published, registered
from tests.support.request_desk import MANIFEST, NAME, NAMESPACE, REQUEST, RequestDesk, a_manifest

FAILED_JOB = {
    "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "spent"}]
}


def test_a_request_is_registered_once_and_has_one_job_however_often_it_is_looked_at(desk: RequestDesk) -> None:
    uid = desk.apply()
    for _ in range(3):
        assert desk.reconcile() is not None
    run = desk.run(uid)
    assert [job["metadata"]["name"] for job in desk.jobs()] == [run.workload.name if run.workload else ""]
    assert (run.enqueue_state, desk.sent("POST")) == (EnqueueState.ACCEPTED, 1)
    assert desk.status()["runId"] == str(run.run_id)
    assert desk.condition("Launched")[0] == "True"


def test_a_status_is_written_only_when_it_differs(desk: RequestDesk) -> None:
    desk.launched()
    desk.reconcile()
    written = desk.sent("PATCH")
    desk.reconcile()
    assert desk.sent("PATCH") == written


@pytest.mark.parametrize(
    ("manifest", "word"),
    [({"provider": "parquet"}, "there is no provider 'parquet'"), ({"collection": ""}, "spec.manifest: collection")],
    ids=["unknown-provider", "blank-collection"],
)
def test_a_manifest_that_cannot_be_imported_is_answered_for_good(
    desk: RequestDesk, manifest: dict[str, Any], word: str
) -> None:
    uid = desk.apply(manifest=manifest)
    assert desk.reconcile() is None
    status, reason, message = desk.condition("Succeeded")
    assert (status, reason, desk.status()["finished"]) == ("False", "ManifestInvalid", True)
    assert word in message
    assert desk.runs.find_by_request(uid) is None
    assert desk.reconcile() is None
    assert (desk.jobs(), desk.sent("PATCH")) == ([], 1)


def test_gates_are_stored_with_the_run_and_must_fit_the_manifest(desk: RequestDesk) -> None:
    uid = desk.apply(verification={"minimumAreas": [{"areaType": "city", "count": 1}]})
    assert desk.reconcile() is None
    assert desk.condition("Succeeded")[1] == "UnknownAreaType"
    assert desk.runs.find_by_request(uid) is None
    run = desk.launched(verification={"minimumAreas": [{"areaType": "country", "count": 9}], "maxShrinkPercent": 5})
    assert run.gates == VerificationGates({"country": 9}, (), 5)


def test_a_lost_answer_is_unknown_until_a_look_finds_the_job(desk: RequestDesk) -> None:
    uid = desk.apply()
    desk.lose_answers("POST")
    again = desk.reconcile()
    assert desk.condition("Launched")[0] == "Unknown"
    assert again is not None
    assert desk.run(uid).enqueue_state is EnqueueState.UNKNOWN
    desk.reconcile()
    assert desk.condition("Launched")[0] == "True"
    assert (len(desk.jobs()), desk.sent("POST")) == (1, 1)


def test_a_temporary_refusal_is_not_sent_again_by_every_event(desk: RequestDesk) -> None:
    desk.apply()
    desk.refuse("POST", server.answer(429, b"too many requests", {"Retry-After": "7"}))
    first = desk.reconcile()
    later = [desk.reconcile() for _ in range(3)]
    assert first == 7.0
    assert all(seconds is not None and 0 < seconds <= 7 for seconds in later)
    assert desk.sent("POST") == 1
    assert desk.condition("Launched")[:2] == ("False", "Throttled")


def test_a_definite_refusal_fails_the_run_in_the_servers_words(desk: RequestDesk) -> None:
    uid = desk.apply()
    desk.refuse("POST", server.status(422, "Invalid", "spec.template: a policy says no"))
    assert desk.reconcile() is None
    run = desk.run(uid)
    assert run.state is RunState.FAILED
    assert desk.condition("Succeeded") == ("False", "Invalid", "spec.template: a policy says no")


def test_a_job_that_is_gone_is_believed_after_two_looks_only(desk: RequestDesk) -> None:
    run = desk.launched()
    desk.lose_job(run)
    before = desk.sent("GET")
    desk.reconcile()
    assert desk.sent("GET") - before == 3  # the request, and the Job twice
    assert desk.condition("Succeeded")[:2] == ("False", "WorkloadLost")
    assert desk.run(run.request.uid if run.request else uuid4()).state is RunState.FAILED


def test_a_job_that_another_operator_makes_between_the_look_and_the_reading_is_not_lost(desk: RequestDesk) -> None:
    uid = uuid4()
    registered(desk.database, a_manifest(), a_job_intent(uid))
    desk.apply(uid)
    others = [1]

    def overtaken(request: server.Received) -> server.Behaviour | None:
        if request.method != "GET" or "/jobs/" not in request.path or not others:
            return None
        desk.reconcile(operator=others.pop())
        return server.status(404, "NotFound", "as it was when the request came in")

    desk.intercept(overtaken)
    desk.reconcile()
    assert desk.condition("Succeeded")[0] == "Unknown"
    assert (desk.run(uid).enqueue_state, len(desk.jobs())) == (EnqueueState.ACCEPTED, 1)


def test_a_job_that_one_look_misses_and_the_next_one_sees_is_alive(desk: RequestDesk) -> None:
    run = desk.launched()
    path = jobs_path(NAMESPACE, run.workload.name) if run.workload else ""
    missed = [server.status(404, "NotFound", "a stale answer")]
    desk.intercept(lambda request: missed.pop() if missed and request.path == path else None)
    desk.reconcile()
    assert missed == []
    assert desk.condition("Succeeded")[0] == "Unknown"


def test_a_killed_pod_fails_the_run_in_its_own_words(desk: RequestDesk) -> None:
    run = desk.launched()
    job = desk.job(run, **FAILED_JOB)
    terminated = {"reason": "OOMKilled", "exitCode": 137}
    desk.pod(job, phase="Failed", containerStatuses=[{"state": {"terminated": terminated}}])
    desk.reconcile()
    status, reason, message = desk.condition("Succeeded")
    assert (status, reason) == ("False", "OOMKilled")
    assert "memory limit 300Mi" in message
    assert "exit code 137" in message


def test_what_keeps_a_pod_waiting_is_shown_and_looked_at_again(desk: RequestDesk) -> None:
    run = desk.launched()
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    desk.pod(desk.job(run), phase="Pending", containerStatuses=[{"state": {"waiting": waiting}}])
    assert desk.reconcile() is not None
    assert desk.condition("Launched") == ("True", "ImagePullBackOff", "no such image")


def test_the_failure_that_the_executor_recorded_counts_before_any_evidence(desk: RequestDesk) -> None:
    run = desk.launched()
    desk.runs.fail(desk.claimed(run), RunError("staging", "DataRefused", "row 7 is no polygon"))
    desk.lose_job(run)
    assert desk.reconcile() is None
    assert desk.condition("Succeeded") == ("False", "DataRefused", "row 7 is no polygon")


def test_deleting_a_request_fails_its_run_first_and_then_deletes_its_job(desk: RequestDesk) -> None:
    run = desk.launched()
    fence = desk.claimed(run)
    desk.delete()
    states: list[RunState] = []

    def deleting(request: server.Received) -> server.Behaviour | None:
        if request.method == "DELETE":
            states.append(_state(desk, fence.run_id))
        return None

    desk.intercept(deleting)
    desk.reconcile()
    ended = desk.runs.get(run.run_id)
    assert ended is not None
    assert ended.error is not None
    assert (ended.error.reason, states, desk.jobs()) == ("RequestDeleted", [RunState.FAILED], [])


def test_a_failure_that_cannot_be_recorded_leaves_the_job_alone(
    desk: RequestDesk, sql: psycopg.Connection[Any]
) -> None:
    run = desk.launched()
    desk.delete()
    sql.execute(
        "create function no() returns trigger language plpgsql as $$ begin raise sqlstate '57P03'; end $$;"
        "create trigger no before update on import_run for each row execute function no()"
    )
    with pytest.raises(Exception, match="is not recorded"):
        desk.reconcile()
    assert len(desk.jobs()) == 1
    sql.execute("drop trigger no on import_run")
    desk.reconcile()
    assert _state(desk, run.run_id) is RunState.FAILED
    assert desk.jobs() == []


def test_a_namesake_that_was_created_anew_ends_the_old_run_and_is_judged_by_itself(desk: RequestDesk) -> None:
    run = desk.launched()
    fresh = desk.apply(manifest={"release": "r2"})
    desk.reconcile()
    assert _state(desk, run.run_id) is RunState.FAILED
    assert desk.run(fresh).release == "r2"
    assert [job["metadata"]["name"] for job in desk.jobs()] == [f"geogenius-{desk.run(fresh).run_id.hex}"]


def test_a_release_that_is_complete_is_what_was_asked_for(desk: RequestDesk) -> None:
    fence = completed(desk.database, a_manifest(), intent=an_intent(owner="somebody else"))
    desk.apply(publish=False)
    assert desk.reconcile() is None
    assert (desk.status()["state"], desk.status()["runId"]) == ("Succeeded", str(fence.run_id))
    assert desk.jobs() == []


def test_a_release_that_is_complete_and_not_published_is_no_publication(desk: RequestDesk) -> None:
    completed(desk.database, a_manifest())
    desk.apply()
    assert desk.reconcile() is None
    assert desk.condition("Succeeded")[:2] == ("False", "CompletedUnpublished")


def test_a_live_run_of_another_request_is_never_taken_over(desk: RequestDesk) -> None:
    other = registered(desk.database, a_manifest(), a_job_intent())
    for operator in (0, 1):
        desk.apply(owner="maps/world")
        desk.reconcile(operator)
    # the other request, of the same name, is gone: its run was ended, and the release is spent
    assert _state(desk, other) is RunState.FAILED
    assert desk.condition("Succeeded")[1] == "EarlierRunFailed"


def test_a_live_run_that_a_command_of_the_same_owner_started_is_left_to_it(desk: RequestDesk) -> None:
    other = registered(desk.database, a_manifest(), an_intent(owner=f"{NAMESPACE}/{NAME}"))
    desk.apply()
    assert desk.reconcile() is None
    assert desk.condition("Succeeded")[:2] == ("False", "LiveImport")
    assert str(other) in desk.condition("Succeeded")[2]
    assert (_state(desk, other), desk.jobs()) == (RunState.PENDING, [])


def test_a_finished_request_stays_finished_when_its_release_is_superseded(desk: RequestDesk) -> None:
    uid = uuid4()
    published(desk.database, a_manifest(), intent=a_job_intent(uid))
    desk.apply(uid)
    desk.reconcile()
    before = desk.status()
    assert (before["state"], before["published"]) == ("Succeeded", True)
    published(desk.database, a_manifest(release="r2"))
    desk.reconcile()
    after = desk.status()
    assert (after["state"], after["finished"], after["published"]) == ("Succeeded", True, False)
    assert after["completionTime"] == before["completionTime"]
    written = desk.sent("PATCH")
    desk.reconcile()
    assert desk.sent("PATCH") == written


def test_a_refused_request_stays_refused_when_the_way_is_free_later(desk: RequestDesk) -> None:
    completed(desk.database, a_manifest())
    uid = desk.apply()
    desk.reconcile()
    desk.apply(uid, manifest={"release": "r2"})
    desk.api.objects[REQUEST]["status"] = {"finished": True}
    assert desk.reconcile() is None
    assert desk.runs.find_by_request(uid) is None


@pytest.mark.parametrize("broken", ["importrequests", "jobs", "pods"])
def test_an_api_server_that_gives_no_answer_concludes_nothing(desk: RequestDesk, broken: str) -> None:
    run = desk.launched()

    def failing(request: server.Received) -> server.Behaviour | None:
        return server.answer(500, b"{}") if request.method == "GET" and f"/{broken}" in request.path else None

    desk.intercept(failing)
    with pytest.raises(KubernetesUnavailable):
        desk.reconcile()
    assert _state(desk, run.run_id) is RunState.PENDING
    assert len(desk.jobs()) == 1


def test_a_status_that_is_refused_keeps_no_run_from_its_way(desk: RequestDesk) -> None:
    uid = desk.apply()
    desk.refuse("PATCH", server.status(422, "Invalid", "status: too long"))
    with pytest.raises(KubernetesUnavailable):
        desk.reconcile()
    assert (desk.run(uid).enqueue_state, len(desk.jobs())) == (EnqueueState.ACCEPTED, 1)
    desk.runs.fail(desk.claimed(desk.run(uid)), RunError("staging", "DataRefused", "no"))
    with pytest.raises(KubernetesUnavailable):
        desk.reconcile()


def test_a_request_that_became_unreadable_is_still_judged_by_the_evidence(desk: RequestDesk) -> None:
    run = desk.launched()
    desk.api.objects[REQUEST]["spec"] = {"manifest": MANIFEST, "publish": "what"}
    desk.reconcile()
    assert _state(desk, run.run_id) is RunState.PENDING
    desk.lose_job(run)
    desk.reconcile()
    assert desk.condition("Succeeded")[:2] == ("False", "WorkloadLost")


def test_an_operator_that_dies_after_registering_leaves_a_run_that_the_next_one_starts(desk: RequestDesk) -> None:
    uid = uuid4()
    registered(desk.database, a_manifest(), a_job_intent(uid))
    desk.apply(uid)
    desk.reconcile(operator=1)
    assert desk.run(uid).enqueue_state is EnqueueState.ACCEPTED
    assert len(desk.jobs()) == 1


def test_an_operator_that_dies_after_the_post_leaves_a_job_that_the_next_one_finds(
    desk: RequestDesk, sql: psycopg.Connection[psycopg.rows.DictRow]
) -> None:
    uid = uuid4()
    registered(desk.database, a_manifest(), a_job_intent(uid))
    desk.apply(uid)
    desk.reconcile()
    sql.execute("update import_run set enqueue_state = 'intended', workload_uid = null")
    desk.reconcile(operator=1)
    assert desk.run(uid).enqueue_state is EnqueueState.ACCEPTED
    assert (len(desk.jobs()), desk.sent("POST")) == (1, 1)


@pytest.mark.parametrize("attempt", range(10))  # a race: the more often, the surer
def test_two_operators_that_take_the_same_request_at_once_make_one_run_and_one_job(
    desk: RequestDesk, attempt: int
) -> None:
    uid = desk.apply(manifest={"release": f"r{attempt}"})
    with ThreadPoolExecutor(2) as operators:
        for look in [operators.submit(desk.reconcile, operator) for operator in (0, 1)]:
            look.result(30)
    desk.reconcile()
    assert len(desk.jobs()) == 1
    assert desk.status()["runId"] == str(desk.run(uid).run_id)
    assert (desk.status()["state"], desk.status()["finished"]) == ("Launching", False)


def test_the_second_of_two_operators_finds_the_run_that_the_first_one_just_registered(desk: RequestDesk) -> None:
    """The race of the test above, made certain: the first operator registers between the look and the call."""
    uid = desk.apply()
    second = desk.reconcilers[1]
    prepare = second._prepare

    def overtaken(request: Any) -> Any:  # noqa: ANN401  as it is
        desk.reconcile(operator=0)
        return prepare(request)

    second._prepare = overtaken  # type: ignore[method-assign]
    second.reconcile(NAMESPACE, NAME)
    assert desk.run(uid).enqueue_state is EnqueueState.ACCEPTED
    assert desk.status()["finished"] is False
    assert len(desk.jobs()) == 1


def _state(desk: RequestDesk, run_id: Any) -> RunState:  # noqa: ANN401  a run id
    run = desk.runs.get(run_id)
    assert run is not None
    return run.state
