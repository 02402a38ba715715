"""A request on a small API server behind TLS, a real catalog, and two operators between them."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from geogenius.api.translate import ImportRequest
from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.domain.run import ExecutorId, Fence, Run, RunId
from geogenius.importer.providers import check_manifest
from geogenius.kube.client import KubeClient, Limits
from geogenius.kube.job_manifest import JobTemplate, PodOptions, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.kube.requests import Requests
from geogenius.kube.resources import jobs_path, pods_path, requests_path
from geogenius.launcher.launch import Launcher
from geogenius.launcher.reconcile import Reconciler, Sides
from geogenius.manifest.document import normal_form, parse
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from geogenius.runners.pgflow import PgflowRunner
from tests.support.catalog import CLUSTER_ID, SHA
from tests.support.fault_server import Behaviour, Received, reset
from tests.support.kube_api import KubeApi
from tests.support.queues import DEADLINE

NAMESPACE, NAME = "maps", "world"
REQUEST = requests_path(NAMESPACE, NAME)
MANIFEST: dict[str, Any] = {
    "collection": "world",
    "release": "r1",
    "provider": "geojson",
    "authorities": [{"key": "iso", "name": "ISO"}],
    "areaTypes": [{"key": "country", "rank": 10, "requiresGeometry": True}],
    "sources": [
        {
            "sourceKey": "natural_earth",
            "license": "public domain",
            "releaseKey": "5.1",
            "artifacts": [
                {
                    "logicalName": "countries.geojson",
                    "format": "geojson",
                    "sha256": SHA,
                    "bytes": 100,
                    "operatorSupplied": True,
                }
            ],
        }
    ],
    "options": {"areaType": "country", "codeProperty": "code"},
}
"""What the areas of `tests.support.catalog` fit into."""


def a_manifest(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    """The manifest in normal form, as the catalog keeps it."""
    return normal_form(parse(copy.deepcopy(MANIFEST) | changes))


@dataclass(frozen=True, slots=True)
class RequestDesk:
    """Puts requests and Jobs where the reconciler sees them, and shows what became of them."""

    api: KubeApi
    database: Database
    reconcilers: tuple[Reconciler, Reconciler]

    @property
    def runs(self) -> Runs:
        return Runs(self.database)

    def apply(self, uid: UUID | None = None, manifest: dict[str, Any] | None = None, **spec: Any) -> UUID:  # noqa: ANN401
        """A request as the API server would keep it; its uid."""
        known = uid or uuid4()
        metadata = {"namespace": NAMESPACE, "uid": str(known), "generation": 1}
        wanted = {"manifest": copy.deepcopy(MANIFEST) | (manifest or {}), "publish": True, **spec}
        self.api.put(REQUEST, apiVersion="geogenius.io/v1alpha1", kind="ImportRequest", metadata=metadata, spec=wanted)
        return known

    def reconcile(self, operator: int = 0) -> float | None:
        """One look by one of two operators."""
        return self.reconcilers[operator].reconcile(NAMESPACE, NAME)

    def delete(self) -> None:
        """Delete the request, as nobody's garbage collector would notice."""
        del self.api.objects[REQUEST]

    def run(self, uid: UUID) -> Run:
        """The run of a request."""
        run = self.runs.find_by_request(uid)
        assert run is not None
        return run

    def launched(self, **spec: Any) -> Run:  # noqa: ANN401  any field of a spec
        """A run that was registered for a request and whose Job is accepted."""
        uid = self.apply(**spec)
        self.reconcile()
        return self.run(uid)

    def claimed(self, run: Run) -> Fence:
        """The fence of an executor that has claimed the run."""
        fence = Fence(run.run_id, ExecutorId(uuid4()))
        assert Executions(self.database).claim(fence) == "claimed"
        return fence

    def status(self) -> dict[str, Any]:
        """What the request shows."""
        status: dict[str, Any] = self.api.objects[REQUEST].get("status", {})
        return status

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of a condition."""
        (found,) = [item for item in self.status()["conditions"] if item["type"] == kind]
        return found["status"], found["reason"], found["message"]

    def jobs(self) -> list[dict[str, Any]]:
        """Every Job there is."""
        return [job for path, job in self.api.objects.items() if "/jobs/" in path]

    def job(self, run: Run, **status: Any) -> dict[str, Any]:  # noqa: ANN401  any field of a status
        """The Job of a run, with this status from now on."""
        assert run.workload is not None
        job = self.api.objects[jobs_path(NAMESPACE, run.workload.name)]
        job["status"] = status
        return job

    def pod(self, job: dict[str, Any], **status: Any) -> None:  # noqa: ANN401  any field of a status
        """The pod of a Job, in this status."""
        labels = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}
        container = {"name": "importer", "resources": {"limits": {"memory": "300Mi"}}}
        self.api.put(
            f"{pods_path(NAMESPACE)}/pod", metadata={"labels": labels}, spec={"containers": [container]}, status=status
        )

    def lose_job(self, run: Run) -> None:
        """Remove the Job as somebody else would."""
        assert run.workload is not None
        del self.api.objects[jobs_path(NAMESPACE, run.workload.name)]

    def sent(self, method: str) -> int:
        """How many requests of this method reached the server."""
        return sum(request.method == method for request in list(self.api.received))

    def intercept(self, answer: Callable[[Received], Behaviour | None]) -> None:
        """From now on this answers; where it gives None, the server does as usual."""
        usual = self.api._otherwise
        self.api._otherwise = lambda request: answer(request) or usual(request)

    def refuse(self, method: str, behaviour: Behaviour) -> None:
        """From now on every request of this method is answered like this."""
        self.intercept(lambda request: behaviour if request.method == method else None)

    def lose_answers(self, method: str) -> None:
        """From now on requests of this method are carried out, and the connection breaks instead of an answer."""
        usual = self.api._otherwise

        def answer(request: Received) -> Behaviour | None:
            if request.method != method:
                return None
            usual(request)
            return reset

        self.intercept(answer)


@contextmanager
def request_desk(database: Database, folder: Path, runner: str = "kubernetes_job") -> Iterator[RequestDesk]:
    """A desk with its API server, which ends with the block; new requests are started by this runner."""
    limits = Limits(read_seconds=0.5, total_seconds=2)
    with KubeApi() as api, KubeClient(api.access(folder), limits) as client:
        runs, jobs = Runs(database), Jobs(client)

        def lookup(run_id: RunId) -> Launchable | None:
            run = runs.get(run_id)
            return None if run is None else Launchable(run, PodOptions())

        queue = PgflowRunner(database, DEADLINE, worker_required=False)

        def launcher_of(_: ImportRequest, runner: str) -> Launcher:
            if runner == queue.name():
                return Launcher(runs, queue)
            template = JobTemplate("geogenius:test", SecretKey("catalog", "url"))
            return Launcher(runs, KubernetesJobRunner(jobs, template, lookup, pause=lambda _: None))

        def now() -> datetime:
            return datetime.now(UTC)

        sides = Sides(Requests(client), runs, jobs, queue, runner, launcher_of, check_manifest, CLUSTER_ID, now)
        yield RequestDesk(api, database, (Reconciler(sides), Reconciler(sides)))
