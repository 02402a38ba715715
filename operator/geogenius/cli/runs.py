"""Commands about runs: `status`, `runs`, `cancel`."""

from dataclasses import asdict
from uuid import UUID

import click

from geogenius import library
from geogenius.cli.output import output_option, print_facts, print_rows
from geogenius.domain.errors import InvalidRequest
from geogenius.domain.run import CancelAnswer, Run, RunId
from geogenius.wiring.importing import library_context

COLUMNS = ("run_id", "release", "attempt", "state", "published", "owner", "created_at")


@click.command()
@click.argument("run_id", type=click.UUID)
@output_option
def status(run_id: UUID, output: str) -> None:
    """Print the run RUN_ID."""
    with library_context() as context:
        run = library.status(context, RunId(run_id))
    if run is None:
        raise click.ClickException(f"there is no run {run_id}")
    print_facts(facts_of(run), output)


@click.command()
@click.argument("collection")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@output_option
def runs(collection: str, limit: int, output: str) -> None:
    """Print the latest runs of COLLECTION, newest first."""
    with library_context() as context:
        found = library.runs(context, collection, limit)
    print_rows(COLUMNS, [asdict(run) for run in found], output)


@click.command()
@click.argument("run_id", type=click.UUID)
def cancel(run_id: UUID) -> None:
    """Ask that RUN_ID stops; how it ends is told by its status."""
    with library_context() as context:
        answer = library.cancel(context, RunId(run_id))
    match answer:
        case CancelAnswer.REQUESTED:
            click.echo(f"run {run_id} is asked to stop")
        case CancelAnswer.COMPLETED | CancelAnswer.FAILED:
            click.echo(f"run {run_id} has ended already: {answer}")
        case library.UnknownRun():
            raise InvalidRequest(f"there is no run {run_id}", reason="UnknownRun")


def facts_of(run: Run) -> dict[str, object]:
    """What of a run is set, by name."""
    return {name: value for name, value in asdict(run).items() if value not in (None, {}, "")}
