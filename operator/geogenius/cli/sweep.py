"""`geogenius sweep`: remove tables that nobody needs any more."""

from datetime import timedelta
from typing import assert_never

import click

from geogenius.catalog.sweep import Kept, Sweep, Swept, Waiting
from geogenius.wiring.catalog import catalog_context


@click.command()
@click.option("--yes", is_flag=True, help="Remove them; without it they are only listed.")
@click.option("--wait", type=click.IntRange(min=1), default=60, show_default=True, help="Seconds for one table.")
def sweep(*, yes: bool, wait: int) -> int:
    """Remove staging tables of ended runs, left-over candidates and retired releases. For the owner of the schema.

    Exit code 75 if a table had to be left to the next sweep, because a long transaction reads its collection.
    """
    waiting = 0
    with catalog_context() as context:
        sweeper = Sweep(context.database, timedelta(seconds=wait))
        for table in sweeper.list():
            if not yes:
                click.echo(f"{table.relation} ({table.kind})")
                continue
            outcome = sweeper.sweep(table)
            match outcome:
                case Swept():
                    click.echo(f"{table.relation}: removed")
                case Kept():
                    click.echo(f"{table.relation}: needed again")
                case Waiting():
                    waiting += 1
                    click.echo(f"{table.relation}: a transaction that reads {table.parent} is in the way", err=True)
                case _:
                    assert_never(outcome)
    return 75 if waiting else 0
