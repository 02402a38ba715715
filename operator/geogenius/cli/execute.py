"""`geogenius execute`: what the pod of a Job does."""

from uuid import UUID

import click

from geogenius.domain.run import RunId
from geogenius.importer.exit_code import exit_code, explain
from geogenius.wiring.importing import import_context


@click.command()
@click.argument("run_id", type=click.UUID)
@click.option("--publish", is_flag=True, help="Informative: the run's own stored intent decides.")
@click.option("--stale-after-seconds", type=click.IntRange(min=1), help="Informative, as --publish.")
def execute(run_id: UUID, *, publish: bool, stale_after_seconds: int | None) -> int:
    """Execute the registered run RUN_ID in this process.

    Exit codes: 0 completed, 65 data refused, 69 source unavailable, 70 internal error, 75 nothing could be recorded,
    76 not ours, 77 cancelled. 65, 69, 70 and 77 are recorded in the catalog.
    """
    del publish, stale_after_seconds
    with import_context() as context:
        executed = context.execute(RunId(run_id))
    click.echo(explain(executed), err=True)
    return exit_code(executed)
