"""`geogenius pgflow`: installs the queue of pgflow, tells how it is, tidies it, and takes it away."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import click

from geogenius.cli.output import output_option, print_facts, print_rows
from geogenius.domain.errors import Misconfigured
from geogenius.pgflow import install as installing
from geogenius.pgflow.prune import prune as prune_queue
from geogenius.pgflow.sources import core_source, pgmq_source
from geogenius.pgflow.status import Component, QueueStatus
from geogenius.pgflow.status import status as status_of
from geogenius.pgflow.uninstall import uninstall as uninstall_queue
from geogenius.wiring.queueing import queue_context

COLUMNS = ("component", "present", "whose", "version", "origin")


@click.group()
def pgflow() -> None:
    """The queue of the runner `pgflow`, in the database of the catalog."""


@pgflow.command()
@click.option("--core", type=click.Path(path_type=Path), help="An archive or folder of @pgflow/core; else npm gets it.")
def install(core: Path | None) -> None:
    """Install what is missing of pgmq, pgflow and our flow. A second run changes nothing.

    For the owner of the catalog, who may create schemas. GEOGENIUS_PGFLOW__DEADLINE_SECONDS is stored with the flow.
    """
    with queue_context() as context:
        if context.deadline is None:
            raise Misconfigured(
                "GEOGENIUS_PGFLOW__DEADLINE_SECONDS is not set: how long one execution may take. It must exceed the"
                " largest stale window of any run; 3900 leaves room for windows of an hour. Set it the same for all",
                reason="DeadlineMissing",
            )
        sources = installing.Sources(pgmq_source, lambda: core_source(core))
        steps = installing.install(context.database, sources, context.deadline)
    _print_steps(steps)


@pgflow.command()
@output_option
def status(output: str) -> None:
    """Tell what is installed and by whom, what waits, and what keeps runs from being queued."""
    with queue_context() as context:
        found = status_of(context.database, context.deadline, worker_required=context.worker_required)
    if output == "json":
        print_facts(asdict(found), output)
    else:
        _print_status(found)


@pgflow.command()
@click.option("--force", is_flag=True, help="Also while runs wait or are worked on: the queue forgets them.")
def uninstall(*, force: bool) -> None:
    """Remove what `install` made for this catalog and nobody else needs. What others made stays."""
    with queue_context() as context:
        steps = uninstall_queue(context.database, force=force)
    _print_steps(steps)


@pgflow.command()
@click.option("--older-than-days", type=click.IntRange(min=0), default=30, show_default=True)
def prune(older_than_days: int) -> None:
    """Remove old flow runs that ended and old archived messages. Workers need not stop."""
    with queue_context() as context:
        pruned = prune_queue(
            context.database,
            timedelta(days=older_than_days),
            lambda removed: click.echo(f"removed {removed} more", err=True),
        )
    click.echo(f"removed {pruned.runs} flow runs and {pruned.messages} archived messages")


def _print_steps(steps: list[installing.Step]) -> None:
    for step in steps:
        version = f" ({step.version})" if step.version else ""
        reason = f", {step.reason}" if step.reason else ""
        click.echo(f"{step.component}: {step.did}{version}{reason}")


def _print_status(found: QueueStatus) -> None:
    rows = [
        {**asdict(part), "component": part.name, "present": "yes" if part.present else "no", "whose": _whose(part)}
        for part in found.components
    ]
    print_rows(COLUMNS, rows, "table")
    flow = found.flow
    facts = {
        "flow": found.slug,
        "steps": None if flow is None else ", ".join(flow.steps),
        "stored deadline": None if flow is None else f"{flow.timeout} s",
        "flow runs": ", ".join(f"{count} {state}" for state, count in found.runs.items()) or "none",
        "messages": f"{found.waiting} waiting, {found.worked_on} being worked on",
        "healthy workers": found.healthy_workers,
    }
    print_facts(facts, "table")
    for role, rights in found.lacking.items():
        click.echo(f"{role} lacks {', '.join(rights)}")
    for problem in found.problems:
        click.echo(f"{problem.reason}: {problem.message}")


def _whose(part: Component) -> str:
    if not part.present:
        return ""
    return "ours" if part.ours else "others"
