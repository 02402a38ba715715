"""The command line: assembles the commands, and maps every error to an exit code in one place."""

import logging
import sys
from importlib import import_module

import click
from typing_extensions import override

import geogenius
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


_COMMANDS = {
    "cancel": "runs",
    "controller": "controller",
    "crd": "crd",
    "execute": "execute",
    "import": "import_",
    "migrate": "migrate",
    "pgflow": "pgflow",
    "publish": "releases",
    "releases": "releases",
    "retire": "releases",
    "retry": "import_",
    "rollback": "releases",
    "runners": "runners",
    "runs": "runs",
    "status": "runs",
    "sweep": "sweep",
    "verify": "releases",
    "worker": "worker",
}
"""Each command with the module beside this one that has it under its name."""


class _Commands(click.Group):
    """Loads a command when it is asked for: the pod of a Job starts a second earlier without all the others."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"geogenius.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        return command


@click.group(cls=_Commands)
@click.version_option(geogenius.__version__)
def cli() -> None:
    """Import named geographic areas into a versioned PostGIS catalog."""


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
