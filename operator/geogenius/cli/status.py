"""`geogenius status`: a run as the catalog knows it."""

import json
from dataclasses import asdict
from uuid import UUID

import click
from rich.console import Console
from rich.table import Table

from geogenius.domain.run import Run, RunId
from geogenius.wiring import catalog_context


@click.command()
@click.argument("run_id", type=click.UUID)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def status(run_id: UUID, output: str) -> None:
    """Print the run RUN_ID."""
    with catalog_context() as context:
        run = context.runs.get(RunId(run_id))
    if run is None:
        raise click.ClickException(f"there is no run {run_id}")
    facts = facts_of(run)
    if output == "json":
        click.echo(json.dumps(facts, default=str))
        return
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, str(value))
    Console().print(table)


def facts_of(run: Run) -> dict[str, object]:
    """What of a run is set, by name."""
    return {name: value for name, value in asdict(run).items() if value not in (None, {}, "")}
