"""The composition root: settings in, built parts out. Nothing else reads settings."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from geogenius.api.translate import ClaimFiles, ConfigMapFiles, ImportRequest
from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.leadership import Leadership
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs
from geogenius.db.migrate import SchemaState, schema_state
from geogenius.db.pool import Database
from geogenius.domain.errors import GeogeniusError, Misconfigured
from geogenius.domain.executed import Executed
from geogenius.domain.run import ExecutorId, RunId
from geogenius.importer.cancellation import Cancellation
from geogenius.importer.downloader import DownloadPolicy
from geogenius.importer.pipeline import Pipeline, RunCatalog, Workplace
from geogenius.importer.providers import check_manifest
from geogenius.kube import artifact_files
from geogenius.kube.client import ClusterAccess, KubeClient
from geogenius.kube.job_manifest import JobTemplate, PodOptions, Resources, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.kube.requests import Requests
from geogenius.launcher.launch import Launcher
from geogenius.launcher.reconcile import Reconciler, Sides
from geogenius.library.context import Context
from geogenius.runners.inline import InlineRunner
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from geogenius.settings import Settings, read_settings
from geogenius.telemetry import configure_logging


@dataclass(frozen=True, slots=True)
class CatalogContext:
    """The catalog, for commands that read and write it."""

    database: Database
    runs: Runs
    executions: Executions
    areas: Areas
    publications: Publications


@dataclass(frozen=True, slots=True)
class ImportContext:
    """The catalog and the pipeline in this process."""

    catalog: CatalogContext
    pipeline: Pipeline
    cancellation: Cancellation

    def execute(self, run_id: RunId) -> Executed:
        """Execute the run as an executor of its own; SIGTERM ends it at the next batch."""
        with self.cancellation.on_signals():
            return self.pipeline.execute(run_id, ExecutorId(uuid4()))

    @property
    def library(self) -> Context:
        """The same catalog for the library, with a runner that executes runs right here."""
        return Context.on(self.catalog.database, InlineRunner(self.execute))


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
def catalog_context() -> Iterator[CatalogContext]:
    """Open the catalog. Raises Misconfigured where no database is set."""
    with _catalog(_started(), "geogenius") as catalog:
        yield catalog


@contextmanager
def import_context() -> Iterator[ImportContext]:
    """Open the catalog and build the pipeline."""
    settings = _started()
    with _catalog(settings, "geogenius-importer") as catalog:
        cancellation = Cancellation()
        yield ImportContext(catalog, _pipeline(settings, catalog, cancellation), cancellation)


@contextmanager
def library_context() -> Iterator[Context]:
    """Open the catalog for the library, as the settings say."""
    settings = _started()
    with _catalog(settings, "geogenius") as catalog:
        cancellation = Cancellation()
        yield ImportContext(catalog, _pipeline(settings, catalog, cancellation), cancellation).library


@contextmanager
def operator_context() -> Iterator[OperatorContext]:
    """Build the operator.

    Raises Misconfigured on a schema that is not up to date, and KubernetesUnavailable when the cluster does not tell
    its identity.
    """
    settings = _started()
    with ExitStack() as stack:
        catalog = stack.enter_context(_catalog(settings, "geogenius-operator"))
        _refuse_outdated(catalog.database)
        client = stack.enter_context(KubeClient(ClusterAccess(settings.kubernetes.kubeconfig)))
        yield _operator(settings, catalog, client)


def _refuse_outdated(database: Database) -> None:
    """Refuse to work on a schema that lacks something of ours; a newer one only has more (ADR 0004)."""
    if schema_state(database) is SchemaState.OUTDATED:
        raise Misconfigured("the catalog's schema is not up to date: run `geogenius migrate`", reason="SchemaOutdated")


def _operator(settings: Settings, catalog: CatalogContext, client: KubeClient) -> OperatorContext:
    template = _job_template(settings)  # first: a wrong setting is refused before anybody is asked
    cluster_id = client.cluster_id()
    jobs, requests = Jobs(client), Requests(client, settings.kubernetes.namespaces)

    def launcher_of(request: ImportRequest) -> Launcher:
        pod = _pod_options(request)

        def lookup(run_id: RunId) -> Launchable | None:
            run = catalog.runs.get(run_id)
            return None if run is None else Launchable(run, pod)

        return Launcher(catalog.runs, KubernetesJobRunner(jobs, template, lookup))

    def now() -> datetime:
        return datetime.now(UTC)

    return OperatorContext(
        runs=catalog.runs,
        requests=requests,
        reconciler=Reconciler(Sides(requests, catalog.runs, jobs, launcher_of, check_manifest, cluster_id, now)),
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


def _pipeline(settings: Settings, catalog: CatalogContext, cancellation: Cancellation) -> Pipeline:
    download, importer = settings.download, settings.importer
    policy = DownloadPolicy(
        allow_http=download.allow_http,
        allow_private=download.allow_private_addresses,
        connect_seconds=download.connect_timeout_seconds,
        read_seconds=download.read_timeout_seconds,
    )
    base = importer.work_dir or Path(tempfile.gettempdir()) / "geogenius"
    workplace = Workplace(work_dir=base, artifact_folder=importer.artifact_dir, download=policy)
    written = RunCatalog(catalog.runs, catalog.executions, catalog.areas)
    return Pipeline(catalog.database, written, workplace, cancellation)


def _started() -> Settings:
    settings = read_settings()
    configure_logging(settings.telemetry.level, settings.telemetry.format)
    return settings


@contextmanager
def _catalog(settings: Settings, application_name: str) -> Iterator[CatalogContext]:
    url = settings.database.url.get_secret_value()
    if not url:
        raise Misconfigured("GEOGENIUS_DATABASE__URL is not set", reason="SettingsInvalid")
    group = settings.database
    database = Database(url, application_name=application_name, schema=group.schema_name, max_size=group.pool_size)
    try:
        yield CatalogContext(
            database=database,
            runs=Runs(database),
            executions=Executions(database),
            areas=Areas(database),
            publications=Publications(database),
        )
    finally:
        database.close()
