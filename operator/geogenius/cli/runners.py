"""`geogenius runners`: what can start imports here."""

from dataclasses import asdict

import click

from geogenius.cli.output import output_option, print_rows
from geogenius.wiring.importing import listed_runners

COLUMNS = ("name", "origin", "available", "reason")


@click.command()
@output_option
def runners(output: str) -> None:
    """Print the runners that `import --runner` takes, and why one cannot accept work right now."""
    print_rows(COLUMNS, [asdict(runner) for runner in listed_runners()], output)
