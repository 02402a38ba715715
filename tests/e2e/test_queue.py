"""Imports without a Job each: the operator queues them in the catalog's database, a Deployment of workers does them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
import yaml

from demo.installation import Installation
from tests.cluster.images.names import PRODUCT
from tests.support.desk import Desk, collection_of, square, until
from tests.support.file_server import FileServer
from tests.support.queues import core_archive

CONTENT = collection_of([square(n) for n in range(10)])
WORKERS = "app.kubernetes.io/component=worker"
DEADLINE_SECONDS = 3900
INSTALLER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pgflow-install"},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "install",
                "image": PRODUCT,
                "args": ["pgflow", "install", "--core", "/core/core.tgz"],
                "env": [
                    {
                        "name": "GEOGENIUS_DATABASE__URL",
                        "valueFrom": {"secretKeyRef": {"name": "geogenius-database", "key": "url"}},
                    },
                    {"name": "GEOGENIUS_PGFLOW__DEADLINE_SECONDS", "value": str(DEADLINE_SECONDS)},
                ],
                "volumeMounts": [{"name": "core", "mountPath": "/core"}],
            }
        ],
        "volumes": [{"name": "core", "configMap": {"name": "pgflow-core"}}],
    },
}


@pytest.fixture(scope="module")
def queueing(installation: Installation) -> Iterator[Installation]:
    """The queue installed by a pod of the product, two workers, and an operator that queues."""
    installation.kubectl("create", "configmap", "pgflow-core", f"--from-file=core.tgz={core_archive()}")
    installation.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(INSTALLER))
    until(lambda: _phase(installation) in ("Succeeded", "Failed"), 60, "the queue is not installed")
    assert _phase(installation) == "Succeeded", installation.kubectl("logs", "pgflow-install")
    values: dict[str, Any] = {
        **installation.values,
        "operator": {**installation.values["operator"], "runner": "pgflow"},
        "worker": {"enabled": True, "replicas": 2, "leaseSeconds": 5, "deadlineSeconds": DEADLINE_SECONDS},
    }
    replace(installation, values=values).operator()
    yield installation
    installation.operator()


def _phase(installation: Installation) -> str:
    return installation.kubectl("get", "pod", "pgflow-install", "-o", "jsonpath={.status.phase}")


def workers(installation: Installation) -> dict[str, str]:
    """What each worker has said, by the name of its pod."""
    pods = json.loads(installation.kubectl("get", "pods", "-l", WORKERS, "-o", "json"))["items"]
    names = [pod["metadata"]["name"] for pod in pods]
    return {name: installation.kubectl("logs", name, check=False) for name in names}


def worker_of(installation: Installation, run_id: str) -> str:
    """The pod whose executor has the run."""
    (name,) = [name for name, log in workers(installation).items() if f"{run_id}" in log and "executor" in log]
    return name


def under_way(desk: Desk, files: FileServer, name: str, **spec: Any) -> str:  # noqa: ANN401  fields of the spec
    """A request whose run downloads and goes on when its file is let go; the id of the run."""
    files.files[name], files.stuck[name] = CONTENT, Event()
    desk.apply(desk.request(name, CONTENT, files.url(name), **spec))
    until(lambda: name in files.asked, 60, lambda: f"{name} does not download: {desk.get(name).get('status')}")
    run_id: str = desk.get(name)["status"]["runId"]
    return run_id


def test_a_request_is_done_by_a_worker_and_has_no_job(queueing: Installation, desk: Desk, files: FileServer) -> None:
    files.files["queued"] = CONTENT
    desk.apply(desk.request("queued", CONTENT, files.url("queued")))

    status = desk.finished("queued")

    assert status["state"] == "Succeeded"
    assert desk.count("published_areas", "queued") == 10
    assert desk.run(status["runId"], "runner_backend") == "pgflow"
    assert desk.jobs() == []
    assert "jobName" not in status
    assert worker_of(queueing, status["runId"])


def test_a_worker_that_is_told_to_go_lets_its_run_end(queueing: Installation, desk: Desk, files: FileServer) -> None:
    run_id = under_way(desk, files, "drained")
    worker = worker_of(queueing, run_id)

    queueing.kubectl("delete", "pod", worker, "--wait=false")
    files.stuck["drained"].set()

    assert desk.finished("drained")["state"] == "Succeeded"
    until(lambda: worker not in workers(queueing), 60, f"{worker} is still there")


def test_a_run_whose_worker_died_is_failed_on_evidence_and_nobody_takes_it_over(
    queueing: Installation, desk: Desk, files: FileServer
) -> None:
    run_id = under_way(desk, files, "lost", staleAfterSeconds=10)
    executor = desk.run(run_id, "executor_id")

    queueing.kubectl("delete", "pod", worker_of(queueing, run_id), "--force", "--grace-period=0")

    status = desk.finished("lost")
    (succeeded,) = [condition for condition in status["conditions"] if condition["type"] == "Succeeded"]
    assert (status["state"], succeeded["reason"]) == ("Failed", "WorkloadLost")
    assert desk.run(run_id, "executor_id") == executor
    assert files.asked.count("lost") == 1


def test_a_request_with_files_of_its_own_is_told_that_it_needs_a_job(queueing: Installation, desk: Desk) -> None:
    assert queueing.values
    desk.supply("supplied", CONTENT)
    desk.apply(desk.request("supplied", CONTENT))

    status = desk.finished("supplied")

    (accepted,) = [condition for condition in status["conditions"] if condition["type"] == "Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "NeedsJob")
    assert "spec.files" in accepted["message"]


def test_workers_serve_probes_and_metrics(queueing: Installation) -> None:
    for name in workers(queueing):
        path = f"/api/v1/namespaces/{queueing.namespace}/pods/{name}:8080/proxy"
        assert queueing.kubectl("get", "--raw", f"{path}/readyz") == "ok\n"
        assert "geogenius_worker_held 0.0" in queueing.kubectl("get", "--raw", f"{path}/metrics")
