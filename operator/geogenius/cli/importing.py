"""What `import` and `retry` share: the file, the wishes, and the exit code of how it went."""

from collections.abc import Callable
from datetime import timedelta
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar, assert_never

import click

from geogenius.api.refusals import explained
from geogenius.domain.deadline import Deadline
from geogenius.domain.enqueued import OutcomeUnknown
from geogenius.domain.errors import Conflict, DatabaseUnavailable, InvalidRequest, ManifestInvalid, Misconfigured
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.manifest import Manifest
from geogenius.domain.prepared import Existing, Refused
from geogenius.domain.run import Run, RunId, RunState, VerificationGates
from geogenius.importer.exit_code import COMPLETED, exit_code, explain
from geogenius.launcher.launch import LeftPending, Rejected, Started
from geogenius.library import Context, ImportOptions, TimedOut, await_run, guidance, status
from geogenius.library.answers import Imported
from geogenius.manifest.document import load
from geogenius.runners import task
from geogenius.wiring.importing import starting_context

Command = TypeVar("Command", bound=Callable[..., object])
Begin = Callable[[Context, Manifest, ImportOptions], Imported]

LOOK = timedelta(seconds=2)
"""How often it is said how far a run has come."""


def read_manifest(file: Path) -> Manifest:
    """The manifest of a file. Raises ManifestInvalid."""
    try:
        return load(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ManifestInvalid(f"{file} is not UTF-8: byte {error.start}") from error


def _counts(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """`type=count`, given many times."""
    counts: dict[str, int] = {}
    for value in values:
        area_type, _, count = value.partition("=")
        if not area_type or not count.isdecimal():
            raise click.BadParameter(f"{value!r} is not type=count")
        counts[area_type] = int(count)
    return counts


_OPTIONS = (
    click.option("--runner", metavar="NAME", help="What executes the run; `geogenius runners` lists them.  [inline]"),
    click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the end of the run."),
    click.option(
        "--wait-seconds",
        type=click.FloatRange(min=0),
        default=86400,
        show_default=True,
        help="Wait no longer; the run goes on. Not for the runner task, which ends with the command.",
    ),
    click.option("--publish/--no-publish", default=False, help="Make the release visible when it is complete."),
    click.option("--owner", default="cli", show_default=True, help="Who asks; the same owner may repeat the command."),
    click.option("--stale-after-seconds", type=click.IntRange(min=1), default=900, show_default=True),
    click.option(
        "--reject-limit", type=click.IntRange(min=0), default=0, show_default=True, help="Rows that may fail."
    ),
    click.option("--min-areas", multiple=True, callback=_counts, metavar="TYPE=COUNT", help="Fewer areas are refused."),
    click.option("--require-type", multiple=True, help="A release without areas of this type is refused."),
    click.option("--max-shrink-percent", type=click.IntRange(0, 100), help="Against the published release, by type."),
)


def import_options(command: Command) -> Command:
    """Adds to a command what can be wished of an import; `options_of` reads it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_of(wishes: dict[str, Any]) -> ImportOptions:
    """The parameters of `import_options` as the library takes them."""
    gates = VerificationGates(wishes["min_areas"], wishes["require_type"], wishes["max_shrink_percent"])
    return ImportOptions(
        publish=wishes["publish"],
        owner=wishes["owner"],
        stale_after=timedelta(seconds=wishes["stale_after_seconds"]),
        reject_limit=wishes["reject_limit"],
        gates=gates,
    )


def start(file: Path, begin: Begin, wishes: dict[str, Any]) -> int:
    """Have an import begun as wished, wait for its end, say how it went, and give the exit code.

    Raises InvalidRequest for a refusal of the rules, and Misconfigured for a runner that cannot be used here.
    """
    manifest, options = read_manifest(file), options_of(wishes)
    with starting_context(wishes["runner"]) as context:
        ends_with_us = context.runner.name() == task.NAME
        if ends_with_us and not wishes["wait"]:
            raise Misconfigured("--no-wait: the child processes of the runner task end with this command")
        answer = begin(context, manifest, options)
        if isinstance(answer, Started) and not wishes["wait"]:
            name = context.runner.name()
            click.echo(f"run {answer.run_id} is started by {name}: `geogenius status {answer.run_id}` tells the rest")
            return COMPLETED
        if isinstance(answer, Started):
            _await(context, answer.run_id, None if ends_with_us else timedelta(seconds=wishes["wait_seconds"]))
        executed = _executed(context, manifest, options, answer)
    click.echo(explain(executed), err=exit_code(executed) != 0)
    return exit_code(executed)


def _await(context: Context, run_id: RunId, longest: timedelta | None) -> None:
    """Wait for the end of a run, and say on the way how far it has come."""
    deadline = Deadline.after(inf if longest is None else longest.total_seconds(), monotonic)
    told = None
    while True:
        try:
            look = timedelta(seconds=min(LOOK.total_seconds(), deadline.remaining()))
            awaited = await_run(context, run_id, look)
        except DatabaseUnavailable as silent:
            now = f"run {run_id}: {silent}"
            sleep(min(LOOK.total_seconds(), deadline.remaining()))
        else:
            if not isinstance(awaited, TimedOut):
                return
            now = f"run {run_id}: {awaited.run.state}"
        if deadline.passed:
            return
        if now != told:
            click.echo(now, err=True)
            told = now


def _executed(context: Context, manifest: Manifest, options: ImportOptions, answer: Imported) -> Executed:
    match answer:
        case Started(run_id=run_id):
            return _outcome(_run(context, run_id), started=True)
        case LeftPending(run_id=run_id, answer=why):
            return Unrecorded(run_id, isinstance(why, OutcomeUnknown), f"{why}; {guidance(answer)}")
        case Rejected(run_id=run_id, error=error, recorded=True):
            return Failed(run_id, error)
        case Rejected(run_id=run_id, error=error, why_not=why_not):
            return Unrecorded(run_id, started=False, message=f"{error.reason}: {error.message}; {why_not}")
        case Existing(run_id=run_id):
            return _existing(_run(context, run_id), options)
        case Refused():
            reason, sentence = explained(answer)
            raise InvalidRequest(f"{manifest.collection}/{manifest.release}: {sentence}", reason=reason)
        case _:
            assert_never(answer)


def _existing(run: Run, options: ImportOptions) -> Executed:
    """A release that is complete already: what was asked for, unless it was to be published and is not."""
    if options.publish and not run.published:
        raise InvalidRequest(
            f"{run.collection}/{run.release} was completed by run {run.run_id} and is not published: publish it",
            reason="CompletedUnpublished",
        )
    return _outcome(run)


def _run(context: Context, run_id: RunId) -> Run:
    run = status(context, run_id)
    if run is None:
        raise Conflict(f"run {run_id} is no longer in the catalog")
    return run


def _outcome(run: Run, *, started: bool = False) -> Executed:
    """The end of a run as the catalog has it; one that has not ended is executed by somebody else."""
    if run.state is RunState.COMPLETED:
        return Done(run.run_id)
    if run.error is not None:
        return Failed(run.run_id, run.error)
    if started:
        return Unrecorded(run.run_id, started=True, message=f"it is {run.state} and goes on; we wait no longer")
    return NoOp(run.run_id, Claim.OCCUPIED)
