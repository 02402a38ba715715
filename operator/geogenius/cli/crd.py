"""`geogenius crd`: the definition of the ImportRequest resource."""

import click

from geogenius.api.crd import crd_yaml


@click.command()
def crd() -> None:
    """Print the CustomResourceDefinition of ImportRequest as YAML."""
    click.echo(crd_yaml(), nl=False)
