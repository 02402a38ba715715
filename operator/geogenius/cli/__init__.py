"""The command line: assembles the commands, and maps every error to an exit code in one place."""

import logging
import sys

import click

import geogenius
from geogenius.cli.controller import controller
from geogenius.cli.crd import crd
from geogenius.cli.execute import execute
from geogenius.cli.import_ import import_, retry
from geogenius.cli.migrate import migrate
from geogenius.cli.releases import publish, releases, retire, rollback, verify
from geogenius.cli.runs import cancel, runs, status
from geogenius.cli.sweep import sweep
from geogenius.domain.errors import (
    Cancelled,
    Conflict,
    DatabaseUnavailable,
    GeogeniusError,
    InvalidRequest,
    Misconfigured,
    Unavailable,
)
from geogenius.importer.exit_code import CANCELLED, INTERNAL, NOT_OURS, NOT_RECORDED, REFUSED, UNAVAILABLE, USAGE

logger = logging.getLogger(__name__)


_EXIT_CODES: tuple[tuple[type[GeogeniusError], int], ...] = (
    (Misconfigured, USAGE),
    (InvalidRequest, REFUSED),
    (DatabaseUnavailable, NOT_RECORDED),
    (Unavailable, UNAVAILABLE),
    (Conflict, NOT_OURS),
    (Cancelled, CANCELLED),
)
"""The first that fits counts; any other error of ours is internal."""


@click.group()
@click.version_option(geogenius.__version__)
def cli() -> None:
    """Import named geographic areas into a versioned PostGIS catalog."""


_COMMANDS = (
    cancel,
    controller,
    crd,
    execute,
    import_,
    migrate,
    publish,
    releases,
    retire,
    retry,
    rollback,
    runs,
    status,
    sweep,
    verify,
)
for command in _COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except click.Abort:  # how click tells an interrupt from the keyboard
        sys.exit(CANCELLED)
    except GeogeniusError as error:
        click.echo(f"{error.reason}: {error}", err=True)
        sys.exit(_exit_code(error))
    except Exception:
        logger.exception("internal error")
        sys.exit(INTERNAL)


def _exit_code(error: GeogeniusError) -> int:
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), INTERNAL)
