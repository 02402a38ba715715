"""`geogenius import` and `geogenius retry`: the same manifest, without a cluster."""

from pathlib import Path
from typing import Any
from uuid import UUID

import click

from geogenius.cli.importing import conclude, import_options, options_of, read_manifest
from geogenius.domain.run import RunId
from geogenius.library import import_release, retry_failed
from geogenius.wiring import library_context

INLINE = "inline"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("import")
@click.argument("file", type=FILE)
@click.option("--runner", type=click.Choice([INLINE]), default=INLINE, show_default=True, help="What executes the run.")
@import_options
def import_(file: Path, runner: str, **wishes: Any) -> int:  # noqa: ANN401  the parameters of import_options
    """Import the manifest FILE (JSON or YAML) in this process; exit codes as those of `execute`."""
    del runner  # there is one so far
    manifest, options = read_manifest(file), options_of(wishes)
    with library_context() as context:
        return conclude(context, manifest, options, import_release(context, manifest, options))


@click.command()
@click.argument("run_id", type=click.UUID)
@click.argument("file", type=FILE)
@import_options
def retry(run_id: UUID, file: Path, **wishes: Any) -> int:  # noqa: ANN401  the parameters of import_options
    """Import FILE as the next attempt after RUN_ID, which failed; exit codes as those of `execute`.

    The manifest may have been corrected; it must name the same release.
    """
    manifest, options = read_manifest(file), options_of(wishes)
    with library_context() as context:
        return conclude(context, manifest, options, retry_failed(context, RunId(run_id), manifest, options))
