"""`geogenius controller`: the operator."""

import click

from geogenius.wiring.operating import operator_context


@click.command()
def controller() -> int:
    """Run the operator until it is asked to stop."""
    from geogenius.controller.program import Operator  # noqa: PLC0415  kopf takes half a second and is needed here only

    with operator_context() as context:
        return Operator(context).run()
