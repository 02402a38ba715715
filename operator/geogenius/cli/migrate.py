"""`geogenius migrate`: bring the catalog's schema up to date."""

import click

from geogenius.db.migrate import grant
from geogenius.db.migrate import migrate as apply_migrations
from geogenius.wiring.catalog import catalog_context


@click.command()
@click.option("--writer", multiple=True, help="A role of the server that may import and publish; may be repeated.")
@click.option("--reader", multiple=True, help="A role of the server that may read what is complete; may be repeated.")
def migrate(writer: tuple[str, ...], reader: tuple[str, ...]) -> None:
    """Create or update the schema of the catalog. A second run changes nothing.

    Roles that were given rights once keep them over later migrations.
    """
    with catalog_context() as context:
        applied = apply_migrations(context.database)
        for access, roles in (("writer", writer), ("reader", reader)):
            for role in roles:
                grant(context.database, access, role)
    for name in applied:
        click.echo(f"applied {name}")
    click.echo("the catalog is up to date")
