"""`geogenius import`: the same manifest, without a cluster."""

from pathlib import Path
from typing import assert_never
from uuid import uuid4

import click

from geogenius.api.refusals import explained
from geogenius.domain.enqueued import OutcomeUnknown
from geogenius.domain.errors import Conflict, InvalidRequest, ManifestInvalid
from geogenius.domain.executed import Claim, Done, Executed, Failed, NoOp, Unrecorded
from geogenius.domain.intent import ImportIntent
from geogenius.domain.prepared import Existing, Redelivered, Refused, Registered
from geogenius.domain.run import Run, RunId, RunState
from geogenius.importer.exit_code import exit_code, explain
from geogenius.importer.providers import check_manifest
from geogenius.launcher.launch import LeftPending, Rejected, Started
from geogenius.manifest.document import load, normal_form
from geogenius.wiring import ImportContext, import_context

INLINE = "inline"


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--runner", type=click.Choice([INLINE]), default=INLINE, show_default=True, help="What executes the run.")
@click.option("--publish/--no-publish", default=False, help="Make the release visible when it is complete.")
@click.option("--owner", default="cli", show_default=True, help="Who asks; the same owner may repeat the command.")
@click.option("--reject-limit", type=click.IntRange(min=0), default=0, show_default=True, help="Rows that may be bad.")
def import_(file: Path, runner: str, owner: str, reject_limit: int, *, publish: bool) -> int:
    """Import the manifest FILE (JSON or YAML) in this process; exit codes as those of `execute`."""
    manifest = load(_text(file))
    check_manifest(manifest)
    intent = ImportIntent(RunId(uuid4()), owner, runner, publish=publish, reject_limit=reject_limit)
    with import_context() as context:
        prepared = context.catalog.runs.prepare(normal_form(manifest), intent)
        match prepared:
            case Registered(run_id=run_id):
                executed = _start(context, run_id, fresh=True)
            case Redelivered(run_id=run_id):
                executed = _start(context, run_id, fresh=False)
            case Existing(run_id=run_id):
                executed = _outcome(_run(context, run_id))
            case Refused():
                reason, sentence = explained(prepared)
                raise InvalidRequest(f"{manifest.collection}/{manifest.release}: {sentence}", reason=reason)
            case _:
                assert_never(prepared)
    click.echo(explain(executed), err=exit_code(executed) != 0)
    return exit_code(executed)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ManifestInvalid(f"{file} is not UTF-8: byte {error.start}") from error


def _start(context: ImportContext, run_id: RunId, *, fresh: bool) -> Executed:
    launch = context.inline_launcher().start(_run(context, run_id), fresh=fresh)
    match launch:
        case Started():
            return _outcome(_run(context, run_id))
        case LeftPending(answer=answer):
            return Unrecorded(run_id, isinstance(answer, OutcomeUnknown), str(answer))
        case Rejected(error=error, recorded=True):
            return Failed(run_id, error)
        case Rejected(error=error, why_not=why_not):
            return Unrecorded(run_id, started=False, message=f"{error.reason}: {error.message}; {why_not}")
        case _:
            assert_never(launch)


def _run(context: ImportContext, run_id: RunId) -> Run:
    run = context.catalog.runs.get(run_id)
    if run is None:
        raise Conflict(f"run {run_id} is no longer in the catalog")
    return run


def _outcome(run: Run) -> Executed:
    """The end of a run as the catalog has it; one that has not ended is executed by somebody else."""
    if run.state is RunState.COMPLETED:
        return Done(run.run_id)
    return NoOp(run.run_id, Claim.OCCUPIED) if run.error is None else Failed(run.run_id, run.error)
