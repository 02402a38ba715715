"""`geogenius import`: the same manifest, without a cluster."""

from pathlib import Path
from typing import assert_never
from uuid import uuid4

import click

from geogenius.domain.intent import ImportIntent
from geogenius.domain.prepared import Existing, Redelivered, Refused, Registered
from geogenius.domain.run import RunId, RunState
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
    """Import the manifest FILE (JSON or YAML) in this process."""
    manifest = load(file.read_text(encoding="utf-8"))
    check_manifest(manifest)
    intent = ImportIntent(RunId(uuid4()), owner, runner, publish=publish, reject_limit=reject_limit)
    with import_context() as context:
        prepared = context.catalog.runs.prepare(normal_form(manifest), intent)
        match prepared:
            case Registered(run_id=run_id):
                return _start(context, run_id, fresh=True)
            case Redelivered(run_id=run_id):
                return _start(context, run_id, fresh=False)
            case Existing(run_id=run_id):
                return _report(context, run_id)
            case Refused(reason=reason, run_id=run_id):
                said = f" (run {run_id})" if run_id else ""
                raise click.ClickException(f"{manifest.collection}/{manifest.release} is refused: {reason}{said}")
            case _:
                assert_never(prepared)


def _start(context: ImportContext, run_id: RunId, *, fresh: bool) -> int:
    run = context.catalog.runs.get(run_id)
    if run is None:
        raise click.ClickException(f"run {run_id} is no longer in the catalog")
    launch = context.inline_launcher().start(run, fresh=fresh)
    match launch:
        case Started():
            return _report(context, run_id)
        case LeftPending():
            raise click.ClickException(f"run {run_id} is left pending: {launch.settlement}")
        case Rejected(error=error):
            raise click.ClickException(f"run {run_id} was not started: {error.reason}: {error.message}")
        case _:
            assert_never(launch)


def _report(context: ImportContext, run_id: RunId) -> int:
    run = context.catalog.runs.get(run_id)
    if run is None:
        raise click.ClickException(f"run {run_id} is no longer in the catalog")
    click.echo(f"run {run_id} of {run.collection}/{run.release}: {run.state}")
    if run.error is not None:
        click.echo(f"{run.error.reason}: {run.error.message}", err=True)
    return 0 if run.state is RunState.COMPLETED else 65
