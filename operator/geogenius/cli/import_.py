"""`geogenius import` and `geogenius retry`: the same manifest, without a cluster."""

from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from geogenius.cli.importing import import_options, start
from geogenius.domain.manifest import Manifest
from geogenius.domain.run import RunId
from geogenius.library import Context, ImportOptions, import_release, retry_failed
from geogenius.library.answers import Imported

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("import")
@click.argument("file", type=FILE)
@import_options
def import_(file: Path, **wishes: Any) -> int:  # noqa: ANN401  the parameters of import_options
    """Import the manifest FILE (JSON or YAML), in this process or by a runner; exit codes as those of `execute`."""
    return start(file, import_release, wishes)


@click.command()
@click.argument("run_id", type=click.UUID)
@click.argument("file", type=FILE)
@import_options
def retry(run_id: UUID, file: Path, **wishes: Any) -> int:  # noqa: ANN401  the parameters of import_options
    """Import FILE as the next attempt after RUN_ID, which failed; exit codes as those of `execute`.

    The manifest may have been corrected; it must name the same release.
    """
    return start(file, partial(_retry, RunId(run_id)), wishes)


def _retry(failed: RunId, context: Context, manifest: Manifest, options: ImportOptions) -> Imported:
    return retry_failed(context, failed, manifest, options)
