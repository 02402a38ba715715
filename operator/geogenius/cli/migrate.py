"""`geogenius migrate`: bring the catalog's schema up to date."""

import click

from geogenius.db.migrate import migrate as apply_migrations
from geogenius.wiring import catalog_context


@click.command()
def migrate() -> None:
    """Create or update the schema of the catalog. A second run changes nothing."""
    with catalog_context() as context:
        applied = apply_migrations(context.database)
    for name in applied:
        click.echo(f"applied {name}")
    click.echo("the catalog is up to date")
