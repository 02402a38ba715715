"""What an installer can set, from the environment: `GEOGENIUS_<GROUP>__<NAME>`. Lists are written as JSON."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from geogenius.domain.errors import Misconfigured


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DatabaseSettings(_Group):
    """Where the catalog is."""

    url: SecretStr = SecretStr("")
    """A libpq connection string or URL. Given by a Secret; never written to arguments or logs."""
    schema_name: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] = "geogenius"
    """The schema that holds the catalog."""
    pool_size: Annotated[int, Field(ge=1, le=100)] = 8
    """The largest number of pooled connections of one process."""


class KubernetesSettings(_Group):
    """How to reach the API server and what to watch there."""

    kubeconfig: Path | None = None
    """A kubeconfig file; without one the pod's service account is used."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to watch; empty means all."""


class JobSettings(_Group):
    """What every Job of an import gets from the installation."""

    image: str = ""
    """The image of the importer; the chart sets the operator's own."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the kubelet pulls the image."""
    database_secret: str = "geogenius-database"  # noqa: S105  the name of a Secret, not its content
    """The Secret, in the namespace of the request, that holds the connection string of the catalog."""
    database_secret_key: str = "url"  # noqa: S105  the name of a key
    """The key of that Secret."""
    service_account: str = ""
    """The service account of the pods; empty means the namespace's default. No token is mounted."""
    memory: str = "300Mi"
    """Memory request and limit where a request names none."""
    cpu: str = "250m"
    """CPU request where a request names none."""


class DownloadSettings(_Group):
    """What the importer may fetch."""

    allow_http: bool = False
    """Whether a plain http address is accepted."""
    allow_private_addresses: bool = False
    """Whether an address that is private, loopback or link-local is accepted."""
    connect_timeout_seconds: Annotated[float, Field(gt=0)] = 10.0
    """How long to wait for a connection."""
    read_timeout_seconds: Annotated[float, Field(gt=0)] = 15.0
    """How long to wait for the next bytes."""


class ImporterSettings(_Group):
    """Where the importer finds and keeps files."""

    artifact_dir: Path = Path("/artifacts")
    """The folder of operator-supplied artifacts, named by their logical names."""
    work_dir: Path | None = None
    """The parent of the private folder of each run; the system's temporary folder when empty."""


class RunnerSettings(_Group):
    """What starts runs, where the call does not say."""

    name: str = ""
    """A shipped runner, one of a host package, or module:attribute; empty means task, or else inline."""
    max_children: Annotated[int, Field(ge=1, le=64)] = 2
    """How many runs the runner `task` executes at the same time."""
    grace_seconds: Annotated[float, Field(ge=0, le=86_400)] = 20.0
    """How long an executor that is asked to end may take before it is killed."""


class PgflowSettings(_Group):
    """The queue: the same for those who put runs into it and for the workers."""

    deadline_seconds: Annotated[int, Field(ge=1, le=2_000_000)] | None = None
    """How long one execution may take; must exceed the stale window of every run, and is stored by the installation."""
    worker_required: bool = True
    """Whether a run is only queued while a worker listens."""


class WorkerSettings(_Group):
    """How a worker of the queue works."""

    concurrency: Annotated[int, Field(ge=1, le=64)] = 2
    """How many runs it executes at the same time."""
    lease_seconds: Annotated[int, Field(ge=2, le=3600)] = 60
    """How long a message stays with a worker that gives no sign of life."""
    poll_seconds: Annotated[float, Field(gt=0)] = 5.0
    """How often it asks for messages that it was not told of."""
    drain_seconds: Annotated[float, Field(ge=0)] = 20.0
    """How long its runs may go on after SIGTERM before they are asked to end."""
    probe_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The port of /livez, /readyz and /metrics."""


class ControllerSettings(_Group):
    """How the operator works."""

    workers: Annotated[int, Field(ge=1, le=64)] = 4
    """How many requests are reconciled at the same time."""
    tick_seconds: Annotated[float, Field(gt=0)] = 1.0
    """How often the progress of all live runs is read, in one query."""
    resync_seconds: Annotated[float, Field(ge=1)] = 300.0
    """How often everything is listed and compared."""
    probe_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The port of /livez, /readyz and /metrics."""


class TelemetrySettings(_Group):
    """What is logged."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least severe level that is logged."""
    format: Literal["json", "text"] = "text"
    """One JSON object a line for machines, or plain lines for people."""


class Settings(BaseSettings):
    """All settings. Unknown names in a group are refused, so that a misspelt one is noticed."""

    model_config = SettingsConfigDict(
        env_prefix="GEOGENIUS_", env_nested_delimiter="__", extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    database: DatabaseSettings = DatabaseSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    job: JobSettings = JobSettings()
    download: DownloadSettings = DownloadSettings()
    importer: ImporterSettings = ImporterSettings()
    runner: RunnerSettings = RunnerSettings()
    pgflow: PgflowSettings = PgflowSettings()
    worker: WorkerSettings = WorkerSettings()
    controller: ControllerSettings = ControllerSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


def read_settings() -> Settings:
    """Read the environment once. Raises Misconfigured, which names each wrong variable and never its value.

    A variable of a group that does not exist is refused as well; names without `__` may come from elsewhere, such as
    those that Kubernetes makes for a Service called geogenius.
    """
    _refuse_unknown_groups(os.environ)
    try:
        return Settings()
    except ValidationError as error:
        problems = "; ".join(f"{_variable(item['loc'])}: {item['msg']}" for item in error.errors(include_input=False))
        raise Misconfigured(f"settings: {problems}", reason="SettingsInvalid") from None
    except SettingsError as error:  # names the group; its cause holds the value
        raise Misconfigured(f"settings: {error}; a list is written as JSON", reason="SettingsInvalid") from None


def _refuse_unknown_groups(environment: Mapping[str, str]) -> None:
    prefixes = tuple(f"{_variable((group,))}__" for group in Settings.model_fields)
    names = (name.upper() for name in environment if name.upper().startswith("GEOGENIUS_") and "__" in name)
    unknown = sorted(name for name in names if not name.startswith(prefixes))
    if unknown:
        known = ", ".join(prefixes)
        raise Misconfigured(
            f"settings: unknown {', '.join(unknown)}; names begin with {known}", reason="SettingsInvalid"
        )


def _variable(location: tuple[int | str, ...]) -> str:
    return "GEOGENIUS_" + "__".join(str(part) for part in location).upper()
