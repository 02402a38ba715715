"""What the workload of a run looks like right now."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Absent:
    """The API server says that no such object exists."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The workload exists and no pod of it runs yet; the reason is the cluster's own, where it gives one."""

    uid: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Running:
    """A pod of the workload runs."""

    uid: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The workload is finished and no pod of it is left running; `exit_code` is None where no pod told."""

    uid: str
    succeeded: bool
    reason: str
    message: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """An object of this name exists that is not ours; it is never adopted."""

    message: str


Observation = Absent | Waiting | Running | Ended | Foreign
