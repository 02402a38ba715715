"""ImportRequest v1alpha1 as pydantic models: the single source of the CRD, of validation and of the status written.

Field descriptions are user documentation: `kubectl explain` prints them. Everything is bounded, because the API
server estimates the cost of rules from the bounds.
"""

import re
from datetime import datetime
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from geogenius.api.names import (
    CONDITION_TYPE_PATTERN,
    CONFIG_KEY_PATTERN,
    DNS_LABEL_PATTERN,
    DNS_SUBDOMAIN_PATTERN,
    QUANTITY_PATTERN,
    REASON_PATTERN,
    ConditionStatus,
    RequestState,
)
from geogenius.manifest.model import FileName, Key, ManifestModel

MESSAGE_LENGTH = 1024
QUANTITY_LENGTH = 32
INT32_MAX = 2**31 - 1
EXACT_MAX = 2**53 - 1
DAY = 86_400

ONE_SOURCE_OF_FILES = "give exactly one of configMap and persistentVolumeClaim"
CLAIM_STANDS_ALONE = "a persistentVolumeClaim is mounted whole and must be the only entry"

Count = Annotated[int, Field(ge=0, le=EXACT_MAX)]
Identifier = Annotated[str, StringConstraints(max_length=36)]
ObjectName = Annotated[str, StringConstraints(pattern=DNS_SUBDOMAIN_PATTERN, max_length=253)]


def _quantity(value: object) -> str:
    """A quantity as text: the API server takes numbers as well."""
    text = value if isinstance(value, str) else str(value) if type(value) is int else ""
    if re.fullmatch(QUANTITY_PATTERN, text) is None or len(text) > QUANTITY_LENGTH:
        raise PydanticCustomError("quantity", "must be a quantity such as 2, 500m or 256Mi")
    return text


Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": QUANTITY_LENGTH,
            "minimum": 0,
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
Quantities = Annotated[dict[str, Quantity], Field(max_length=8)]


class SpecPart(BaseModel):
    """What users write: camelCase as the API server takes it, no unknown fields, no values of another type."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


class StatusPart(BaseModel):
    """What the operator writes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class FileKey(SpecPart):
    """One key of a ConfigMap and the file it becomes."""

    key: str = Field(description="Key in the ConfigMap.", pattern=CONFIG_KEY_PATTERN, max_length=253)
    path: FileName = Field(description="Name of the file it becomes: the logicalName of an artifact.")


class ConfigMapFiles(SpecPart):
    """Files out of a ConfigMap in the namespace of the request."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    items: list[FileKey] = Field(
        default_factory=list,
        description="Which keys become files, and under which names. Without it every key becomes a file of its name.",
        max_length=64,
    )

    @field_validator("items")
    @classmethod
    def _keys_once(cls, items: list[FileKey]) -> list[FileKey]:
        _refuse_twice([item.key for item in items], "key")
        return items


class ClaimFiles(SpecPart):
    """Files on a persistent volume."""

    claim_name: ObjectName = Field(
        description="Name of a PersistentVolumeClaim in the namespace of the request. It is mounted read-only; "
        "the files lie at its root."
    )


class SuppliedFiles(SpecPart):
    """One place that supplies files to artifacts without a URL; the file's name is the artifact's logicalName."""

    name: str = Field(description="Name of this place, used once.", pattern=DNS_LABEL_PATTERN, max_length=48)
    config_map: ConfigMapFiles | None = Field(default=None, description="Files out of a ConfigMap (at most 1 MiB).")
    persistent_volume_claim: ClaimFiles | None = Field(default=None, description="Files on a persistent volume.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.config_map is None) == (self.persistent_volume_claim is None):
            raise PydanticCustomError("one_of", ONE_SOURCE_OF_FILES)
        return self


class DeadlinesSpec(SpecPart):
    """How long the stages of the import may take."""

    launch_seconds: int = Field(
        default=600,
        description="Seconds after which an import fails that could not be started, for lack of quota for example.",
        ge=10,
        le=DAY,
    )
    active_seconds: int = Field(
        default=21_600,
        description="Seconds the Job may run before it is stopped: its activeDeadlineSeconds.",
        ge=10,
        le=30 * DAY,
    )


class RejectsSpec(SpecPart):
    """How many rows of the artifacts may be refused."""

    limit: int = Field(
        default=0,
        description="Rows that may be rejected, with position and reason recorded, before the import fails.",
        ge=0,
        le=INT32_MAX,
    )


class MinimumAreas(SpecPart):
    """The least that a release must hold of one area type."""

    area_type: Key = Field(description="Key of an area type of the manifest.")
    count: int = Field(description="Fewer areas of this type fail the import.", ge=1, le=INT32_MAX)


class VerificationSpec(SpecPart):
    """What the release must show beyond soundness before it is complete; the import fails otherwise."""

    minimum_areas: list[MinimumAreas] = Field(
        default_factory=list, description="How many areas of each type there must be.", max_length=64
    )
    required_types: list[Key] = Field(
        default_factory=list, description="Area types of which there must be at least one area.", max_length=64
    )
    max_shrink_percent: int | None = Field(
        default=None,
        description="By how many percent the number of areas of a type may fall below that of the release readers see.",
        ge=0,
        le=100,
    )

    @field_validator("minimum_areas")
    @classmethod
    def _types_once(cls, minimum_areas: list[MinimumAreas]) -> list[MinimumAreas]:
        _refuse_twice([minimum.area_type for minimum in minimum_areas], "areaType")
        return minimum_areas


class ResourcesSpec(SpecPart):
    """Resources of the pod, as in a container; what is not given comes from the defaults of the installation."""

    requests: Quantities = Field(
        default_factory=dict, description="What the pod is scheduled with, for example cpu: 500m, memory: 256Mi."
    )
    limits: Quantities = Field(default_factory=dict, description="What the pod may use at most.")


class PodSpec(SpecPart):
    """The pod that executes the import."""

    resources: ResourcesSpec = Field(default=ResourcesSpec(), description="Requests and limits of the pod.")


class ImportRequestSpec(SpecPart):
    """What is to be imported, and how. It cannot be changed after creation."""

    manifest: ManifestModel = Field(description="What is to be built, and from which reviewed files.")
    publish: bool = Field(
        default=False,
        description="Whether the release becomes visible to readers as soon as it is complete and verified. "
        "Otherwise it waits until it is published on purpose.",
    )
    owner: str | None = Field(
        default=None,
        description="Who asks, as recorded in the catalog; namespace/name of the request if not given.",
        pattern=r"\S",
        max_length=256,
    )
    stale_after_seconds: int = Field(
        default=900,
        description="Seconds without a sign of life after which a running import is reported as Stalled. "
        "It is only reported: nothing takes the import over.",
        ge=10,
        le=DAY,
    )
    deadlines: DeadlinesSpec = Field(default=DeadlinesSpec(), description="How long the stages of the import may take.")
    rejects: RejectsSpec = Field(default=RejectsSpec(), description="How many rows may be refused.")
    verification: VerificationSpec = Field(
        default=VerificationSpec(), description="What the release must show before it is complete."
    )
    ttl_seconds_after_finished: int = Field(
        default=DAY,
        description="Seconds after its end for which the Job and its logs are kept. The request and the catalog keep "
        "the outcome.",
        ge=0,
        le=30 * DAY,
    )
    files: list[SuppliedFiles] = Field(
        default_factory=list,
        description="Where the files of artifacts with operatorSupplied: true come from.",
        max_length=16,
    )
    pod: PodSpec = Field(default=PodSpec(), description="The pod that executes the import.")

    @field_validator("files")
    @classmethod
    def _files_fit(cls, files: list[SuppliedFiles]) -> list[SuppliedFiles]:
        _refuse_twice([place.name for place in files], "name")
        if len(files) > 1 and any(place.persistent_volume_claim is not None for place in files):
            raise PydanticCustomError("alone", CLAIM_STANDS_ALONE)
        return files


class Condition(StatusPart):
    """One aspect of the request, as in all Kubernetes resources."""

    type: str = Field(
        description="Accepted, Launched, Succeeded or Stalled.", pattern=CONDITION_TYPE_PATTERN, max_length=316
    )
    status: ConditionStatus = Field(description="True, False, or Unknown where it is not known.")
    observed_generation: Count = Field(description="Generation of the request this was said about.")
    last_transition_time: datetime = Field(description="When the status last changed.")
    reason: str = Field(
        description="One word for programs; stable.", pattern=REASON_PATTERN, min_length=1, max_length=128
    )
    message: str = Field(description="A sentence for people; may be empty.", max_length=MESSAGE_LENGTH)


class Progress(StatusPart):
    """How far the import is."""

    percent: int = Field(description="Estimate of the work done, from 0 to 100.", ge=0, le=100)
    rows: Count = Field(description="Rows read from the artifacts.")
    rejected: Count = Field(description="Rows that were rejected.")
    bytes: Count = Field(description="Bytes of the artifacts that are at hand, downloaded or supplied.")


class ImportRequestStatus(StatusPart):
    """What became of the request: a mirror of the catalog, written by the operator."""

    observed_generation: Count = Field(description="Generation of the request this status was made for.")
    state: RequestState = Field(
        description="Summary for people, derived from the conditions. Programs read the conditions."
    )
    phase: str | None = Field(default=None, description="Where the run stands, or stood when it failed.", max_length=64)
    run_id: Identifier | None = Field(default=None, description="Run of the catalog that serves this request.")
    attempt: int | None = Field(
        default=None, description="Number of the run among the attempts at its release.", ge=1, le=INT32_MAX
    )
    job_name: str | None = Field(default=None, description="Job that carries the run.", max_length=63)
    release_id: Identifier | None = Field(default=None, description="Release that is built.")
    published: bool = Field(description="Whether the release is the one that readers see.")
    progress: Progress | None = Field(default=None, description="How far the import is.")
    start_time: datetime | None = Field(default=None, description="When the run was started by its pod.")
    completion_time: datetime | None = Field(default=None, description="When the outcome was final.")
    finished: bool = Field(
        description="Whether the outcome is final, good or bad: kubectl wait --for=jsonpath='{.status.finished}'=true."
    )
    conditions: list[Condition] = Field(description="Aspects of the request, one of each type.", max_length=16)


def _refuse_twice(names: list[str], field: str) -> None:
    """Refuse the second use of a name; the error carries the place below the validated list in its context."""
    for at, name in enumerate(names):
        if name in names[:at]:
            context = {"value": name, "below": (at, field)}
            raise PydanticCustomError("used_twice", "{value} is used already; each must be unique", context)
