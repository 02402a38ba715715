"""How commands that read print what they found: a table for people, JSON for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

Facts = Mapping[str, object]
Command = TypeVar("Command", bound=Callable[..., object])


def output_option(command: Command) -> Command:
    """Adds `--output` to a command."""
    choice = click.Choice(["table", "json"])
    return click.option("--output", type=choice, default="table", show_default=True, help="For people or programs.")(
        command
    )


def print_facts(facts: Facts, output: str) -> None:
    """One thing: a line for each fact, or a JSON object."""
    if output == "json":
        click.echo(json.dumps(facts, default=str))
        return
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, _text(value))
    Console().print(table)


def print_rows(columns: Sequence[str], rows: Sequence[Facts], output: str) -> None:
    """Many things: these columns of each, or a JSON list with every fact."""
    if output == "json":
        click.echo(json.dumps(rows, default=str))
        return
    table = Table(*(column.upper() for column in columns), box=None)
    for row in rows:
        table.add_row(*(_text(row[column]) for column in columns))
    Console().print(table)


def _text(value: object) -> str:
    return "" if value is None else str(value)
