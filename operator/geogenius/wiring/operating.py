"""The operator: the catalog, the API server, and what brings the two together."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from geogenius.api.translate import ClaimFiles, ConfigMapFiles, ImportRequest
from geogenius.catalog.leadership import Leadership
from geogenius.catalog.runs import Runs
from geogenius.db.pool import Database
from geogenius.domain.errors import GeogeniusError, Misconfigured
from geogenius.domain.run import RunId
from geogenius.importer.providers import check_manifest
from geogenius.kube import artifact_files
from geogenius.kube.client import ClusterAccess, KubeClient
from geogenius.kube.job_manifest import JobTemplate, PodOptions, Resources, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.kube.requests import Requests
from geogenius.launcher.launch import Launcher
from geogenius.launcher.reconcile import Reconciler, Sides
from geogenius.runners import kubernetes_job, pgflow
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from geogenius.runners.pgflow import PgflowRunner
from geogenius.settings import Settings
from geogenius.wiring.catalog import CatalogContext, opened, refuse_outdated, started
from geogenius.wiring.importing import deadline_of


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """Everything the operator needs, and how it shall work."""

    runs: Runs
    requests: Requests
    reconciler: Reconciler
    leadership: Leadership
    database: Database
    cluster_id: UUID
    namespaces: tuple[str, ...]
    kubeconfig: Path | None
    workers: int
    tick_seconds: float
    resync_seconds: float
    probe_port: int

    def database_answers(self) -> bool:
        """One round trip to the database."""
        try:
            self.database.ping()
        except GeogeniusError:
            return False
        return True


@contextmanager
def operator_context() -> Iterator[OperatorContext]:
    """Build the operator.

    Raises Misconfigured on a schema that is not up to date, and KubernetesUnavailable when the cluster does not tell
    its identity.
    """
    settings = started()
    with ExitStack() as stack:
        catalog = stack.enter_context(opened(settings, "geogenius-operator"))
        refuse_outdated(catalog.database)
        client = stack.enter_context(KubeClient(ClusterAccess(settings.kubernetes.kubeconfig)))
        yield _operator(settings, catalog, client)


def _operator(settings: Settings, catalog: CatalogContext, client: KubeClient) -> OperatorContext:
    template = _job_template(settings)  # first: a wrong setting is refused before anybody is asked
    cluster_id = client.cluster_id()
    jobs, requests = Jobs(client), Requests(client, settings.kubernetes.namespaces)

    queue = PgflowRunner(catalog.database, deadline_of(settings), worker_required=settings.pgflow.worker_required)

    def launcher_of(request: ImportRequest, runner: str) -> Launcher:
        if runner == pgflow.NAME:
            return Launcher(catalog.runs, queue)
        pod = _pod_options(request)

        def lookup(run_id: RunId) -> Launchable | None:
            run = catalog.runs.get(run_id)
            return None if run is None else Launchable(run, pod)

        return Launcher(catalog.runs, KubernetesJobRunner(jobs, template, lookup))

    def now() -> datetime:
        return datetime.now(UTC)

    sides = Sides(
        requests=requests,
        runs=catalog.runs,
        jobs=jobs,
        queue=queue,
        runner=_runner_of(settings),
        launcher_of=launcher_of,
        check_manifest=check_manifest,
        cluster_id=cluster_id,
        clock=now,
    )
    return OperatorContext(
        runs=catalog.runs,
        requests=requests,
        reconciler=Reconciler(sides),
        leadership=Leadership(catalog.database),
        database=catalog.database,
        cluster_id=cluster_id,
        namespaces=settings.kubernetes.namespaces,
        kubeconfig=settings.kubernetes.kubeconfig,
        workers=settings.controller.workers,
        tick_seconds=settings.controller.tick_seconds,
        resync_seconds=settings.controller.resync_seconds,
        probe_port=settings.controller.probe_port,
    )


def _runner_of(settings: Settings) -> str:
    """What new requests are started by. Raises Misconfigured for a runner that no operator can look after."""
    name = settings.runner.name or kubernetes_job.NAME
    if name not in (kubernetes_job.NAME, pgflow.NAME):
        raise Misconfigured(
            f"GEOGENIUS_RUNNER__NAME is {name!r}: an operator starts imports by {kubernetes_job.NAME} or {pgflow.NAME}",
            reason="SettingsInvalid",
        )
    return name


def _job_template(settings: Settings) -> JobTemplate:
    """What the installation gives every Job; the pod's own settings travel as plain environment variables."""
    job, download = settings.job, settings.download
    env = {
        "GEOGENIUS_DATABASE__SCHEMA_NAME": settings.database.schema_name,
        "GEOGENIUS_DOWNLOAD__ALLOW_HTTP": str(download.allow_http).lower(),
        "GEOGENIUS_DOWNLOAD__ALLOW_PRIVATE_ADDRESSES": str(download.allow_private_addresses).lower(),
        "GEOGENIUS_DOWNLOAD__CONNECT_TIMEOUT_SECONDS": str(download.connect_timeout_seconds),
        "GEOGENIUS_DOWNLOAD__READ_TIMEOUT_SECONDS": str(download.read_timeout_seconds),
        "GEOGENIUS_TELEMETRY__FORMAT": settings.telemetry.format,
        "GEOGENIUS_TELEMETRY__LEVEL": settings.telemetry.level,
    }
    if not job.image:
        raise Misconfigured("GEOGENIUS_JOB__IMAGE is not set", reason="SettingsInvalid")
    return JobTemplate(
        image=job.image,
        database_secret=SecretKey(job.database_secret, job.database_secret_key),
        pull_policy=job.image_pull_policy,
        env=env,
        resources=Resources({"cpu": job.cpu, "memory": job.memory}, {"memory": job.memory}),
        service_account=job.service_account or None,
    )


def _pod_options(request: ImportRequest) -> PodOptions:
    """What the request wants of its pod; quantities it does not name are those of the installation."""
    return PodOptions(
        resources=Resources(request.resources.requests, request.resources.limits),
        files=tuple(_mounted(files) for files in request.files),
        ttl=request.ttl_after_finished,
    )


def _mounted(files: ConfigMapFiles | ClaimFiles) -> artifact_files.ConfigMapFiles | artifact_files.ClaimFiles:
    match files:
        case ConfigMapFiles(name=name, items=items):
            named = tuple(artifact_files.FileItem(key, path) for key, path in items)
            return artifact_files.ConfigMapFiles(name, named)
        case ClaimFiles(claim=claim):
            return artifact_files.ClaimFiles(claim)
