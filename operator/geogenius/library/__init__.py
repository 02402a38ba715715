"""Importing and publishing from a program: what `geogenius` does on the command line, as functions of a `Context`.

What the rules say is returned, one frozen value for each answer; what nobody expects is raised: InvalidRequest for a
manifest or gates that are none, DatabaseUnavailable for a database that does not answer.
"""

from geogenius.catalog.matches import AreaMatch, Clues, MatchMethod, Scope
from geogenius.domain.enqueued import Accepted, NotEnqueued, OutcomeUnknown
from geogenius.importer.pipeline import Workplace
from geogenius.library.answers import (
    Completed,
    Declined,
    FailedRun,
    Imported,
    PublicationUnknown,
    Published,
    Retired,
    RolledBack,
    TimedOut,
    UnknownRun,
    guidance,
)
from geogenius.library.context import Context
from geogenius.library.imports import (
    ImportOptions,
    artifacts,
    await_run,
    cancel,
    import_release,
    retry_failed,
    runs,
    status,
)
from geogenius.library.offer import RunnerOptions, task_supervisor
from geogenius.library.releases import publish, releases, retire, rollback, verify

__all__ = [
    "Accepted",
    "AreaMatch",
    "Clues",
    "Completed",
    "Context",
    "Declined",
    "FailedRun",
    "ImportOptions",
    "Imported",
    "MatchMethod",
    "NotEnqueued",
    "OutcomeUnknown",
    "PublicationUnknown",
    "Published",
    "Retired",
    "RolledBack",
    "RunnerOptions",
    "Scope",
    "TimedOut",
    "UnknownRun",
    "Workplace",
    "artifacts",
    "await_run",
    "cancel",
    "guidance",
    "import_release",
    "publish",
    "releases",
    "retire",
    "retry_failed",
    "rollback",
    "runs",
    "status",
    "task_supervisor",
    "verify",
]
