"""Classes of failure: whose move it is, and so whether trying again can help."""

from enum import StrEnum


class FailureClass(StrEnum):
    """Stored with the error of a failed run under `class`."""

    INFRASTRUCTURE = "infrastructure"
    OUT_OF_MEMORY = "out_of_memory"
    SOURCE_UNAVAILABLE = "source_unavailable"
    DATA = "data"
    CONFIGURATION = "configuration"
    CANCELLED = "cancelled"
    INTERNAL = "internal"
