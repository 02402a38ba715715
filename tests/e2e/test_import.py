"""`kubectl apply` imports real areas, once, and lets go of them cleanly."""

import json
import threading

from tests.support.desk import Desk, collection_of, condition, square, until
from tests.support.file_server import FileServer
from tests.support.packages import natural_earth_states

STATES = 4596
MEMORY_LIMIT = 300 * 1024 * 1024


def test_all_states_of_the_world_are_accounted_for_within_the_memory_of_the_pod(desk: Desk, files: FileServer) -> None:
    content = natural_earth_states().read_bytes()
    files.files["admin1.json"] = content
    limited = {"resources": {"requests": {"memory": "300Mi"}, "limits": {"memory": "300Mi"}}}
    document = desk.request("ne-states", content, files.url("admin1.json"), pod=limited)
    document["spec"]["manifest"]["options"] |= {"codeProperty": "adm1_code", "nameProperty": "name"}

    desk.apply(document)
    status = desk.finished("ne-states")

    assert status["state"] == "Succeeded", status
    assert status["published"] is True
    assert status["progress"]["rows"] == STATES
    (job,) = desk.jobs()
    assert status["runId"] in job["spec"]["template"]["spec"]["containers"][0]["args"]
    rejects = "select count(*) from import_reject where run_id = :'run'"
    rejected = int(desk.value(rejects, run=status["runId"]))
    areas = desk.count("published_areas", "ne-states")
    assert areas + rejected == STATES
    repaired = "select count(*) from published_boundaries where collection_key = :'collection' and repaired"
    assert desk.value(repaired, collection=desk.collection("ne-states")) == "2"
    point = "select name from areas_for_point(13.4, 52.5, array[:'collection'])"
    assert desk.value(point, collection=desk.collection("ne-states")) == "Berlin"
    peak = json.loads(desk.run(status["runId"], "metrics"))["peak_memory_bytes"]
    print(f"importer: {peak / 2**20:.0f} MiB at most, {len(content) / 1e6:.1f} MB, {areas} areas, {rejected} rejected")
    assert peak < MEMORY_LIMIT


def test_the_same_file_applied_twice_gives_one_run_and_one_job(desk: Desk) -> None:
    content = collection_of([square(n) for n in range(10)])
    desk.supply("twice", content)
    document = desk.request("twice", content)

    desk.apply(document)
    desk.apply(document)
    first = desk.finished("twice")
    desk.apply(document)
    desk.kubectl("annotate", "importrequest", "twice", "note=touched")

    desk.supply("later", content)
    desk.apply(desk.request("later", content))
    desk.finished("later")  # what came before it in the queue of the operator has been worked on
    assert desk.get("twice")["metadata"]["annotations"]["note"] == "touched"
    assert desk.get("twice")["status"]["runId"] == first["runId"]
    uid = desk.get("twice")["metadata"]["uid"]
    assert desk.value("select count(*) from import_run where request_uid = :'uid'", uid=uid) == "1"
    owners = [job["metadata"]["ownerReferences"][0]["uid"] for job in desk.jobs()]
    assert (owners.count(uid), len(owners)) == (1, 2)


def test_a_request_that_is_deleted_while_it_runs_leaves_nothing_behind(desk: Desk, files: FileServer) -> None:
    content = collection_of([square(n) for n in range(10)])
    files.files["slow.json"] = content
    files.stuck["slow.json"] = threading.Event()
    desk.apply(desk.request("gone", content, files.url("slow.json")))
    until(lambda: desk.get("gone").get("status", {}).get("phase") == "downloading", 60, "the import does not run")
    found = desk.get("gone")
    assert "finalizers" not in found["metadata"]
    run = found["status"]["runId"]

    desk.kubectl("delete", "importrequest", "gone", "--wait=false")

    until(lambda: desk.jobs() == [], 60, lambda: f"Jobs are left: {desk.jobs()}")
    until(lambda: desk.run(run, "state") == "failed", 30, "the run is not failed")
    assert json.loads(desk.run(run, "error"))["reason"] in ("RequestDeleted", "Cancelled")
    assert desk.value("select count(*) from import_run_lease where run_id = :'run'", run=run) == "0"
    pods = lambda: json.loads(desk.kubectl("get", "pods", "-o", "json"))["items"]  # noqa: E731  read in a loop
    until(lambda: pods() == [], 90, "a pod is left")


def test_a_request_that_is_deleted_while_the_operator_is_away_is_noticed_afterwards(
    desk: Desk, files: FileServer
) -> None:
    content = collection_of([square(n) for n in range(10)])
    files.files["away.json"] = content
    files.stuck["away.json"] = threading.Event()
    desk.apply(desk.request("away", content, files.url("away.json")))
    until(lambda: desk.get("away").get("status", {}).get("phase") == "downloading", 60, "the import does not run")
    run = desk.get("away")["status"]["runId"]

    desk.installation.kubectl("scale", "deployment/geogenius-operator", "--replicas=0", "--timeout=60s")
    desk.installation.kubectl("wait", "pod", "-l", "app.kubernetes.io/component=operator", "--for=delete")
    desk.kubectl("delete", "importrequest", "away", "--wait=true", "--timeout=30s")
    desk.installation.kubectl("scale", "deployment/geogenius-operator", "--replicas=1")

    until(lambda: desk.run(run, "state") == "failed", 60, "the run is not failed")
    assert desk.jobs() == []


def test_a_request_without_publish_completes_and_shows_readers_nothing(desk: Desk) -> None:
    content = collection_of([square(1)])
    desk.supply("quiet", content)
    desk.apply(desk.request("quiet", content, publish=False))

    status = desk.finished("quiet")

    assert (status["state"], status["published"]) == ("Succeeded", False)
    assert condition(status, "Succeeded")["reason"] == "Completed"
    assert desk.count("published_areas", "quiet") == 0


def test_a_request_whose_files_are_missing_says_so_and_goes_on_when_they_are_there(desk: Desk) -> None:
    content = collection_of([square(1)])
    desk.apply(desk.request("late", content))

    def says_why() -> bool:
        conditions = desk.get("late").get("status", {}).get("conditions", [])
        return any("FailedMount" in (item["reason"], *item["message"].split()) for item in conditions)

    until(says_why, 60, lambda: f"nothing says what is missing: {desk.get('late').get('status')}")
    desk.supply("late", content)

    assert desk.finished("late", 180)["state"] == "Succeeded"
