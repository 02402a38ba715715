"""The error taxonomy: what went wrong, and whose move it is."""


class GeogeniusError(Exception):
    """Something this product names. `reason` is CamelCase and stable; it goes into conditions and run errors."""

    reason = "InternalError"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class InvalidRequest(GeogeniusError):
    """The user must change something; trying again cannot help."""

    reason = "InvalidRequest"


class ManifestInvalid(InvalidRequest):
    """A field of the manifest is wrong. The message starts with the path of the field."""

    reason = "ManifestInvalid"


class DataRefused(InvalidRequest):
    """The data of an artifact cannot be imported as it is. The message names file and position."""

    reason = "DataRefused"


class Conflict(GeogeniusError):
    """The world moved on: the fence, a phase or an attempt is no longer ours."""

    reason = "Conflict"


class LeaseLost(Conflict):
    """Another executor, a failure recorded from outside, or a later attempt: this executor may write no more."""

    reason = "LeaseLost"


class Unavailable(GeogeniusError):
    """Try again later: something this needs does not answer."""

    reason = "Unavailable"


class DatabaseUnavailable(Unavailable):
    """PostgreSQL does not answer, or the connection broke; what a write did is not known."""

    reason = "DatabaseUnavailable"


class KubernetesUnavailable(Unavailable):
    """The API server gave no usable answer; nothing may be concluded from it."""

    reason = "KubernetesUnavailable"


class SourceUnavailable(Unavailable):
    """The source of an artifact does not answer or does not have it."""

    reason = "SourceUnavailable"


class Interrupted(Unavailable):
    """The execution was cut short by those who supervise it, not by its own fault; another attempt may get through."""

    reason = "Interrupted"


class Cancelled(GeogeniusError):
    """The process was asked to stop, and stopped."""

    reason = "Cancelled"


class Misconfigured(GeogeniusError):
    """The installer must act; the program refuses to start."""

    reason = "Misconfigured"
