"""From the object of the API server to our own types: parsed once, here, and InvalidRequest names the field."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from pydantic import ValidationError

from geogenius.api.v1alpha1 import ImportRequestSpec, SuppliedFiles, VerificationSpec
from geogenius.domain.errors import InvalidRequest, ManifestInvalid
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import Manifest
from geogenius.domain.run import Deadlines, RequestRef, RunId, VerificationGates, Workload, workload_name
from geogenius.manifest.document import parse
from geogenius.manifest.explain import explained

JOBS = "kubernetes_job"
"""The runner whose runs have a Job each; those of others have nothing of Kubernetes but their request."""

SPEC_INVALID = "SpecInvalid"
NEEDS_JOB = "NeedsJob"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Which object it is, and what it says so far: readable even when its spec is not.

    `status` is the status as it stands, or empty.
    """

    ref: RequestRef
    generation: int
    deleting: bool
    status: dict[str, object]


@dataclass(frozen=True, slots=True)
class ConfigMapFiles:
    """Files out of a ConfigMap: pairs of key and file name, or all of it where there are none."""

    name: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ClaimFiles:
    """The files at the root of a persistent volume."""

    claim: str


@dataclass(frozen=True, slots=True)
class Resources:
    """Kubernetes quantities by resource name; what is not in it the installation decides."""

    requests: dict[str, str]
    limits: dict[str, str]


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A request after it was checked."""

    head: RequestHead
    manifest: Manifest
    publish: bool
    owner: str
    stale_after: timedelta
    deadlines: Deadlines
    reject_limit: int
    gates: VerificationGates
    ttl_after_finished: timedelta
    files: tuple[ConfigMapFiles | ClaimFiles, ...]
    resources: Resources


def head_of(document: Mapping[str, object]) -> RequestHead:
    """Which request the object is; InvalidRequest for an object that no API server gives."""
    metadata = _mapping(document, "metadata")
    try:
        uid = UUID(_text(metadata, "uid"))
    except ValueError as error:
        raise InvalidRequest("metadata.uid: must be a UUID", reason=SPEC_INVALID) from error
    generation = metadata.get("generation")
    status = document.get("status")
    return RequestHead(
        ref=RequestRef(_text(metadata, "namespace"), _text(metadata, "name"), uid),
        generation=generation if isinstance(generation, int) else 0,
        deleting=metadata.get("deletionTimestamp") is not None,
        status={str(key): value for key, value in status.items()} if isinstance(status, Mapping) else {},
    )


def translate(document: Mapping[str, object]) -> ImportRequest:
    """The request that the object holds.

    Raises ManifestInvalid, and InvalidRequest with reason SpecInvalid for the rest; the message starts with the path
    of the field and names up to ten fields.
    """
    head = head_of(document)
    spec = _mapping(document, "spec")
    manifest = _manifest(spec)
    try:
        model = ImportRequestSpec.model_validate(dict(spec))
    except ValidationError as error:
        raise InvalidRequest(f"spec: {explained(error, spec)}", reason=SPEC_INVALID) from error
    return ImportRequest(
        head=head,
        manifest=manifest,
        publish=model.publish,
        owner=model.owner or f"{head.ref.namespace}/{head.ref.name}",
        stale_after=timedelta(seconds=model.stale_after_seconds),
        deadlines=Deadlines(
            launch=timedelta(seconds=model.deadlines.launch_seconds),
            active=timedelta(seconds=model.deadlines.active_seconds),
        ),
        reject_limit=model.rejects.limit,
        gates=_gates(model.verification),
        ttl_after_finished=timedelta(seconds=model.ttl_seconds_after_finished),
        files=tuple(_files(place) for place in model.files),
        resources=Resources(dict(model.pod.resources.requests), dict(model.pod.resources.limits)),
    )


def intent(request: ImportRequest, run_id: RunId, cluster_id: UUID, runner: str) -> ImportIntent:
    """What is stored with the run of a request that this runner starts for this cluster.

    Raises InvalidRequest with reason NeedsJob for a request that wants what only a Job of its own gives.
    """
    ref = request.head.ref
    workload = Workload(cluster_id, ref.namespace, workload_name(run_id)) if runner == JOBS else None
    if workload is None:
        _refuse_wishes_of_a_pod(request, runner)
    return ImportIntent(
        run_id=run_id,
        owner=request.owner,
        runner=runner,
        publish=request.publish,
        stale_after=request.stale_after,
        deadlines=request.deadlines,
        reject_limit=request.reject_limit,
        gates=request.gates,
        workload=workload,
        request=ref,
        cluster_id=cluster_id,
    )


def _refuse_wishes_of_a_pod(request: ImportRequest, runner: str) -> None:
    where = f"imports are started by {runner} here, without a pod of their own"
    if request.files:
        remedy = "put the files where the workers find theirs, or give the artifacts a url"
        raise InvalidRequest(f"spec.files: {where}: {remedy}", reason=NEEDS_JOB)
    if request.resources != Resources({}, {}):
        raise InvalidRequest(f"spec.pod.resources: {where}: those of the workers count", reason=NEEDS_JOB)


def _manifest(spec: Mapping[str, object]) -> Manifest:
    document = spec.get("manifest")
    if not isinstance(document, Mapping):
        found = "is required" if document is None else "must be an object"
        raise ManifestInvalid(f"spec.manifest: {found}")
    try:
        return parse(document)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"spec.manifest: {error}") from error


def _gates(verification: VerificationSpec) -> VerificationGates:
    minimum_areas = {minimum.area_type: minimum.count for minimum in verification.minimum_areas}
    return VerificationGates(minimum_areas, tuple(verification.required_types), verification.max_shrink_percent)


def _files(place: SuppliedFiles) -> ConfigMapFiles | ClaimFiles:
    if place.config_map is not None:
        return ConfigMapFiles(place.config_map.name, tuple((item.key, item.path) for item in place.config_map.items))
    if place.persistent_volume_claim is not None:
        return ClaimFiles(place.persistent_volume_claim.claim_name)
    raise AssertionError(f"files {place.name} passed validation without a source")


def _mapping(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = document.get(key)
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{key}: is required", reason=SPEC_INVALID)
    return value


def _text(metadata: Mapping[str, object], key: str) -> str:
    value = metadata.get(key)
    if not isinstance(value, str):
        raise InvalidRequest(f"metadata.{key}: is required", reason=SPEC_INVALID)
    return value
