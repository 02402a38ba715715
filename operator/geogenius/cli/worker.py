"""`geogenius worker`: takes runs from the queue."""

import click

from geogenius.wiring.working import worker_context


@click.command()
def worker() -> int:
    """Execute the runs of the queue in child processes until asked to stop; install it with `geogenius pgflow install`.

    On SIGTERM nothing more is taken; runs under way may go on for a while, then they are asked to end.
    """
    from geogenius.worker.program import Worker  # noqa: PLC0415  the help of all commands needs none of it

    with worker_context() as context:
        return Worker(context).run()
