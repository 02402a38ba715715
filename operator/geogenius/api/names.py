"""Names of the resource and the closed sets of words in it."""

from enum import StrEnum

GROUP = "geogenius.io"
VERSION = "v1alpha1"
KIND = "ImportRequest"
PLURAL = "importrequests"

NAME_LENGTH = 63
"""The name of a request becomes the value of a label on its Job; labels end here."""

DNS_LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
CONFIG_KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"
CONDITION_TYPE_PATTERN = r"^[A-Z][A-Za-z]*$"
REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
QUANTITY_PATTERN = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


class ConditionStatus(StrEnum):
    """The three answers of a condition; the third is a fact of its own."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """Aspects of a request. All of them are set from the first status on, in this order."""

    ACCEPTED = "Accepted"
    """The catalog registered a run for this request."""
    LAUNCHED = "Launched"
    """The cluster has the workload of the run."""
    SUCCEEDED = "Succeeded"
    """The summary: Unknown until the outcome is final."""
    STALLED = "Stalled"
    """The run works, by all that is known, and gives no sign of life."""


class RequestState(StrEnum):
    """The request in one word for people; derived, nothing is decided by it."""

    PENDING = "Pending"
    LAUNCHING = "Launching"
    RUNNING = "Running"
    STALLED = "Stalled"
    PUBLISHING = "Publishing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Reason(StrEnum):
    """The reasons of our own in conditions: a stable interface.

    Beside them stand the reasons of errors (`GeogeniusError.reason`, `RunError.reason`) and of the cluster.
    """

    REGISTERED = "Registered"
    WAITING = "Waiting"
    NOT_ACCEPTED = "NotAccepted"
    RELEASE_PROTECTED = "ReleaseProtected"
    ORPHAN_CANDIDATE = "OrphanCandidate"
    STALE_IMPORT = "StaleImport"
    LIVE_IMPORT = "LiveImport"
    MANIFEST_CHANGED = "ManifestChanged"
    EARLIER_RUN_FAILED = "EarlierRunFailed"
    SOURCE_DEFINITION_CHANGED = "SourceDefinitionChanged"
    RUN_NOT_FOUND = "RunNotFound"
    CANDIDATE_MISMATCH = "CandidateMismatch"
    NOT_LATEST_ATTEMPT = "NotLatestAttempt"
    RUN_NOT_FAILED = "RunNotFailed"

    LAUNCHING = "Launching"
    LAUNCHED = "Launched"
    STARTED = "Started"
    NOT_ENQUEUED = "NotEnqueued"
    OUTCOME_UNKNOWN = "OutcomeUnknown"

    RUNNING = "Running"
    COMPLETED = "Completed"
    PUBLISHED = "Published"
    FAILED = "Failed"

    NOT_STARTED = "NotStarted"
    ALIVE = "Alive"
    HEARTBEAT_OVERDUE = "HeartbeatOverdue"
    FINISHED = "Finished"
