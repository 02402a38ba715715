"""Imports: registered and committed, then enqueued, then settled; and what became of them."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import assert_never
from uuid import uuid4

from geogenius.catalog.answers import RunArtifact
from geogenius.domain.deadline import Deadline
from geogenius.domain.enqueued import NotEnqueued, OutcomeUnknown
from geogenius.domain.errors import DatabaseUnavailable, LeaseLost
from geogenius.domain.intent import ImportIntent
from geogenius.domain.manifest import JsonValue, Manifest
from geogenius.domain.prepared import Existing, Prepared, PreparedRetry, Redelivered, Refused, Registered, Retried
from geogenius.domain.run import CancelAnswer, Deadlines, Run, RunId, RunState, VerificationGates
from geogenius.importer.providers import check_manifest
from geogenius.launcher.launch import Launch, Launcher, LeftPending
from geogenius.library.answers import Awaited, Completed, FailedRun, Imported, TimedOut, UnknownRun
from geogenius.library.context import Context
from geogenius.manifest import normal_form, parse
from geogenius.manifest.gates import check_gates

AWAIT_TIMEOUT = timedelta(minutes=30)
POLL_SECONDS = 0.25
REGISTER_TRIES = 2
"""How often a registration is sent whose reply is lost: the second one finds the run that the first one made."""

RETRY_SECONDS = 2.0
"""When to come back after the catalog fell silent between registration and enqueueing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What is wanted of an import beside its manifest. The same owner may repeat a call, another one is refused."""

    publish: bool = False
    owner: str = field(default_factory=socket.gethostname)
    stale_after: timedelta = timedelta(minutes=15)
    reject_limit: int = 0
    gates: VerificationGates = field(default_factory=VerificationGates)
    deadlines: Deadlines = field(default_factory=Deadlines)


def import_release(
    context: Context, manifest: Mapping[str, object] | Manifest, options: ImportOptions | None = None
) -> Imported:
    """Registers an import, committed, and has the runner start it. Raises InvalidRequest and DatabaseUnavailable.

    Repeating it finds the run again: live, it is offered to the runner once more; complete, it is Existing, published
    or not. What the runner says never raises: its answer and what is known of the run are in the answer.
    """
    options = options or ImportOptions()
    document = _checked(manifest, options)
    intent = _intent(context, options)
    return _start(context, intent, lambda: context.runs.prepare(document, intent))


def retry_failed(
    context: Context,
    failed_run: RunId,
    manifest: Mapping[str, object] | Manifest,
    options: ImportOptions | None = None,
) -> Imported:
    """Registers the next attempt after a failed run and has the runner start it; otherwise as `import_release`.

    The manifest may have changed, the release it names may not.
    """
    options = options or ImportOptions()
    document = _checked(manifest, options)
    intent = _intent(context, options)
    return _start(context, intent, lambda: context.runs.retry(failed_run, document, intent))


def status(context: Context, run_id: RunId) -> Run | None:
    """The run as the catalog knows it, whatever started it; None if it does not know it."""
    return context.runs.get(run_id)


def runs(context: Context, collection: str, limit: int = 20) -> list[Run]:
    """The latest runs of a collection, newest first."""
    return context.runs.of_collection(collection, limit)


def artifacts(context: Context, run_id: RunId) -> list[RunArtifact]:
    """The files of a run in the order of its manifest; none for an unknown run."""
    return context.runs.artifacts(run_id)


def cancel(context: Context, run_id: RunId) -> CancelAnswer | UnknownRun:
    """Asks the executor of a run to stop; the end of the run tells whether it did. Repeating it changes nothing."""
    try:
        return context.runs.request_cancel(run_id)
    except LeaseLost:
        return UnknownRun(run_id)


def await_run(context: Context, run_id: RunId, timeout: timedelta | None = AWAIT_TIMEOUT) -> Awaited:
    """Looks at the run until it has ended or the time is up; None waits as long as it takes. Changes nothing."""
    deadline = Deadline.after(inf if timeout is None else timeout.total_seconds(), time.monotonic)
    while True:
        run = context.runs.get(run_id)
        if run is None:
            return UnknownRun(run_id)
        if run.state is RunState.COMPLETED:
            return Completed(run)
        if run.state is RunState.FAILED:
            return FailedRun(run)
        if deadline.passed:
            return TimedOut(run)
        time.sleep(min(POLL_SECONDS, deadline.remaining()))


def _checked(manifest: Mapping[str, object] | Manifest, options: ImportOptions) -> dict[str, JsonValue]:
    """The normal form of what somebody wants imported, once everything that can be known of it was looked at."""
    document = normal_form(manifest) if isinstance(manifest, Manifest) else manifest
    parsed = parse(document)
    check_manifest(parsed)
    check_gates(options.gates, parsed)
    return normal_form(parsed)


def _intent(context: Context, options: ImportOptions) -> ImportIntent:
    return ImportIntent(
        run_id=RunId(uuid4()),
        owner=options.owner,
        runner=context.runner.name(),
        publish=options.publish,
        stale_after=options.stale_after,
        deadlines=options.deadlines,
        reject_limit=options.reject_limit,
        gates=options.gates,
    )


def _start(context: Context, intent: ImportIntent, register: Callable[[], Prepared | PreparedRetry]) -> Imported:
    prepared = _registered(register)
    match prepared:
        case Existing() | Refused():
            return prepared
        case Registered(run_id=run_id) | Retried(run_id=run_id) | Redelivered(run_id=run_id):
            # The id was drawn for this call: under it, nobody else has asked a runner before.
            return _enqueued(context, run_id, fresh=run_id == intent.run_id)
        case _:
            assert_never(prepared)


def _registered(register: Callable[[], Prepared | PreparedRetry]) -> Prepared | PreparedRetry:
    for _ in range(REGISTER_TRIES - 1):
        try:
            return register()
        except DatabaseUnavailable:
            continue
    return register()


def _enqueued(context: Context, run_id: RunId, *, fresh: bool) -> Launch:
    """Have the run started. A catalog that falls silent meanwhile is no reason to forget which run it is about."""
    launcher = Launcher(context.runs, context.runner)
    try:
        run = context.runs.get(run_id)
    except DatabaseUnavailable as lost:
        message = f"the run is registered and could not be read: {lost}"
        return LeftPending(run_id, NotEnqueued(lost.reason, message, RETRY_SECONDS), RETRY_SECONDS)
    if run is None:
        raise LeaseLost(f"run {run_id} is no longer in the catalog", reason="UnknownRun")
    try:
        return launcher.start(run, fresh=True) if fresh else launcher.redeliver(run)
    except DatabaseUnavailable as lost:
        message = f"the answer of the runner could not be recorded: {lost}"
        return LeftPending(run_id, OutcomeUnknown(lost.reason, message), RETRY_SECONDS)
