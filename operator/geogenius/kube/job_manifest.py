"""The Job of a run, as sent to the API server: a pure function of the run, the installation and the request."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from geogenius.domain.errors import InvalidRequest
from geogenius.domain.manifest import JsonValue
from geogenius.domain.run import Run, workload_name
from geogenius.kube.artifact_files import ArtifactFiles, mounted
from geogenius.kube.resources import (
    API_VERSION,
    APPLICATION,
    ATTEMPT_ANNOTATION,
    COMPONENT_LABEL,
    KIND,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    REQUEST_LABEL,
    RUN_ID_LABEL,
    SPEC_HASH_ANNOTATION,
    JsonObject,
)

CONTAINER = "importer"
FINAL_EXIT_CODES = (64, 65, 69, 70, 76, 77)
"""Exit codes after which no second pod may start; 75 and signals fall to the back-off limit, which is 0 as well."""

DATABASE_URL_VARIABLE = "GEOGENIUS_DATABASE__URL"
_LABEL_LIMIT = 63
_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Secret in the namespace of the Job."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class PodSecurity:
    """User and group numbers, where the image's own user will not do; everything else is the restricted profile."""

    run_as_user: int | None = None
    fs_group: int | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """Kubernetes quantities by the name of the resource (`memory`, `cpu`, ...)."""

    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """What the installation decides for every Job.

    `env` is plain, never secret; `ttl` is how long a finished Job stays; `scratch_size_limit` (a quantity such as
    `2Gi`) bounds /tmp, the only place that can be written to.
    """

    image: str
    database_secret: SecretKey
    pull_policy: str = "IfNotPresent"
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    service_account: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    ttl: timedelta = timedelta(days=1)
    termination_grace: timedelta = timedelta(seconds=60)
    scratch_size_limit: str | None = None
    security: PodSecurity = field(default_factory=PodSecurity)


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What one request decides for its pod; what it leaves open the installation's template decides.

    What it says about a resource, as request or as limit, replaces all that the template says about that resource:
    a default limit below a wanted request would be refused.
    """

    resources: Resources = field(default_factory=Resources)
    files: ArtifactFiles = ()
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ExecuteFlags:
    """What `geogenius execute` is told beside the run id."""

    publish: bool
    stale_after_seconds: int


def build_job(run: Run, flags: ExecuteFlags, template: JobTemplate, pod: PodOptions) -> JsonObject:
    """The Job that carries this run: the same input gives the same Job, with the same spec hash.

    Raises InvalidRequest when the run has no workload of its own fixed name, or when files cannot be mounted.
    """
    if run.workload is None or run.workload.name != workload_name(run.run_id):
        raise InvalidRequest(f"run {run.run_id} has no workload of its own name", reason="WorkloadMissing")
    labels = _labels(run)
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _present(
            {
                "name": run.workload.name,
                "namespace": run.workload.namespace,
                "labels": labels,
                "annotations": {ATTEMPT_ANNOTATION: str(run.attempt)},
                "ownerReferences": _owners(run, run.workload.namespace),
            }
        ),
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": _failure_rules()},
            "activeDeadlineSeconds": _seconds(run.deadlines.active),
            "ttlSecondsAfterFinished": _seconds(template.ttl if pod.ttl is None else pod.ttl),
            "template": {"metadata": {"labels": dict(labels)}, "spec": _pod(run, flags, template, pod)},
        },
    }
    return _with_hash(job)


def spec_hash(job: JsonObject) -> str:
    """The SHA-256, in hex, of the canonical JSON of a Job without its own hash."""
    metadata = job.get("metadata")
    bare = dict(metadata) if isinstance(metadata, dict) else {}
    annotations = bare.get("annotations")
    if isinstance(annotations, dict):
        bare["annotations"] = {key: value for key, value in annotations.items() if key != SPEC_HASH_ANNOTATION}
    canonical = json.dumps({**job, "metadata": bare}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def request_label(name: str) -> str:
    """The name of a request as a label value: names may have 253 characters, labels 63. Long ones end in a digest."""
    if len(name) <= _LABEL_LIMIT:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: _LABEL_LIMIT - _DIGEST_CHARACTERS - 1].rstrip('-._')}-{digest}"


def _with_hash(job: JsonObject) -> JsonObject:
    digest = spec_hash(job)
    metadata = job["metadata"]
    if isinstance(metadata, dict) and isinstance(metadata["annotations"], dict):
        metadata["annotations"][SPEC_HASH_ANNOTATION] = digest
    return job


def _labels(run: Run) -> JsonObject:
    labels: JsonObject = {
        NAME_LABEL: APPLICATION,
        COMPONENT_LABEL: CONTAINER,
        MANAGED_BY_LABEL: APPLICATION,
        RUN_ID_LABEL: str(run.run_id),
    }
    if run.request is not None:
        labels[REQUEST_LABEL] = request_label(run.request.name)
    return labels


def _owners(run: Run, namespace: str) -> JsonValue:
    """The request, in its own namespace only: an owner elsewhere counts as gone, and the Job would be collected."""
    if run.request is None or run.request.namespace != namespace:
        return None
    return [
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": run.request.name,
            "uid": str(run.request.uid),
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]


def _failure_rules() -> JsonValue:
    exit_codes: JsonObject = {"containerName": CONTAINER, "operator": "In", "values": list(FINAL_EXIT_CODES)}
    return [
        {"action": "FailJob", "onExitCodes": exit_codes},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]


def _pod(run: Run, flags: ExecuteFlags, template: JobTemplate, pod: PodOptions) -> JsonObject:
    volumes, mounts = mounted(pod.files)
    scratch = _present({"sizeLimit": template.scratch_size_limit})
    return _present(
        {
            "restartPolicy": "Never",
            "serviceAccountName": template.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": _seconds(template.termination_grace),
            "securityContext": _present(
                {
                    "runAsNonRoot": True,
                    "runAsUser": template.security.run_as_user,
                    "fsGroup": template.security.fs_group,
                    "seccompProfile": {"type": "RuntimeDefault"},
                }
            ),
            "imagePullSecrets": [{"name": name} for name in template.image_pull_secrets] or None,
            "containers": [_container(run, flags, template, pod, mounts)],
            "volumes": [{"name": "scratch", "emptyDir": scratch}, *volumes],
        }
    )


def _container(
    run: Run, flags: ExecuteFlags, template: JobTemplate, pod: PodOptions, mounts: list[JsonValue]
) -> JsonObject:
    return {
        "name": CONTAINER,
        "image": template.image,
        "imagePullPolicy": template.pull_policy,
        "args": _arguments(run, flags),
        "env": _environment(template),
        "resources": _resources(template.resources, pod.resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}, *mounts],  # noqa: S108 - a volume of the pod alone
    }


def _arguments(run: Run, flags: ExecuteFlags) -> list[JsonValue]:
    publish: list[JsonValue] = ["--publish"] if flags.publish else []
    return ["execute", str(run.run_id), *publish, "--stale-after-seconds", str(flags.stale_after_seconds)]


def _environment(template: JobTemplate) -> list[JsonValue]:
    secret: JsonObject = {"name": template.database_secret.name, "key": template.database_secret.key}
    plain: list[JsonValue] = [
        {"name": name, "value": value} for name, value in sorted(template.env.items()) if name != DATABASE_URL_VARIABLE
    ]
    return [{"name": DATABASE_URL_VARIABLE, "valueFrom": {"secretKeyRef": secret}}, *plain]


def _resources(installed: Resources, wanted: Resources) -> JsonObject:
    named = wanted.requests.keys() | wanted.limits.keys()

    def merged(defaults: Mapping[str, str], own: Mapping[str, str]) -> JsonObject:
        kept = {name: amount for name, amount in defaults.items() if name not in named}
        return {**kept, **own}

    return {
        "requests": merged(installed.requests, wanted.requests),
        "limits": merged(installed.limits, wanted.limits),
    }


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())


def _present(fields: JsonObject) -> JsonObject:
    """The fields that have a value: the API server has defaults for the rest."""
    return {key: value for key, value in fields.items() if value is not None}
