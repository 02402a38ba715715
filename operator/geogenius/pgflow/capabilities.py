"""What is there of pgflow and of our flow in it, and what of that keeps runs from being queued.

Looked up by names and arguments, never by version: who installed it, and from where, does not matter.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from psycopg import Connection
from psycopg.rows import DictRow

from geogenius.db.sql import load_queries
from geogenius.pgflow.names import STEP

_QUERIES = load_queries(Path(__file__).parent / "queries" / "capabilities.sql")

FRESH = timedelta(seconds=90)
"""A worker that gave no sign of life for longer does not count; it gives one three times in each lease of 60 s."""

INSTALL = "run `geogenius pgflow install`"


@dataclass(frozen=True, slots=True)
class Flow:
    """Our flow as it is stored; timeouts in seconds, None for a step without one of its own."""

    timeout: int
    steps: tuple[str, ...]
    step_timeout: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen in one look. `missing` names functions and columns; `flow` is None where there is none."""

    slug: str
    pgmq: bool
    pgflow: bool
    missing: tuple[str, ...]
    flow: Flow | None = None
    healthy_workers: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run needs of the queue. `stale_after` is None where no run is meant, or it says none."""

    deadline: timedelta | None
    stale_after: timedelta | None
    worker_required: bool
    run_meant: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps runs from being queued, with its remedy; a temporary one may pass without anybody's help."""

    reason: str
    message: str
    temporary: bool = False


def facts(connection: Connection[DictRow], slug: str) -> Facts:
    """Look at everything, in the transaction of the caller. Raises errors of psycopg, as where rights are missing."""
    arguments = {"slug": slug, "step": STEP, "fresh_seconds": FRESH.total_seconds()}
    (schemas,) = connection.execute(_QUERIES["look_for_schemas"]).fetchall()
    functions = connection.execute(_QUERIES["list_functions"]).fetchall()
    missing = tuple(str(row["wanted"]) for row in functions if not row["present"])
    if missing:
        return Facts(slug, schemas["pgmq"], schemas["pgflow"], missing)
    flow = connection.execute(_QUERIES["get_flow"], arguments).fetchone()
    (workers,) = connection.execute(_QUERIES["count_workers"], arguments).fetchall()
    return Facts(
        slug=slug,
        pgmq=True,
        pgflow=True,
        missing=(),
        flow=None if flow is None else Flow(flow["flow_timeout"], tuple(flow["steps"]), flow["step_timeout"]),
        healthy_workers=workers["healthy"],
    )


def problems(seen: Facts, wanted: Wanted) -> tuple[Problem, ...]:
    """Everything that keeps a run from being queued, in the order in which it has to be mended."""
    if seen.missing:
        return (_not_installed(seen),)
    return (*_of_deadline(wanted), *_of_flow(seen, wanted.deadline), *_of_workers(seen, wanted))


def _not_installed(seen: Facts) -> Problem:
    if not seen.pgflow:
        return Problem("PgflowMissing", f"pgflow is not installed in this database: {INSTALL}")
    names = ", ".join(seen.missing)
    return Problem(
        "PgflowIncomplete",
        f"the pgflow in this database lacks {names}: it is half installed, or older than 0.8;"
        f" complete or upgrade it, or remove it and {INSTALL}",
    )


def _of_deadline(wanted: Wanted) -> tuple[Problem, ...]:
    if wanted.deadline is None:
        text = "GEOGENIUS_PGFLOW__DEADLINE_SECONDS is not set: how long an execution may take, above any stale window"
        return (Problem("DeadlineMissing", text),)
    if wanted.run_meant and wanted.stale_after is None:
        return (
            Problem("WindowMissing", "stale_after_seconds of the run is not a positive number of seconds: give it"),
        )
    if wanted.stale_after is not None and wanted.stale_after >= wanted.deadline:
        return (
            Problem(
                "DeadlineTooShort",
                f"the queue's deadline, {_seconds(wanted.deadline)} s, must exceed the stale window of the run,"
                f" {_seconds(wanted.stale_after)} s: raise GEOGENIUS_PGFLOW__DEADLINE_SECONDS and {INSTALL} again",
            ),
        )
    return ()


def _of_flow(seen: Facts, deadline: timedelta | None) -> tuple[Problem, ...]:
    flow = seen.flow
    if flow is None:
        return (Problem("FlowMissing", f"the flow {seen.slug} is not registered: {INSTALL}"),)
    if flow.steps != (STEP,):
        there = ", ".join(flow.steps) or "no step"
        text = f"the flow {seen.slug} has {there} where it must have {STEP} alone: {INSTALL} again, or remove the flow"
        return (Problem("FlowStepsDiffer", text),)
    stored = {"flow": flow.timeout, f"step {STEP}": flow.timeout if flow.step_timeout is None else flow.step_timeout}
    return tuple(
        Problem(
            "StoredDeadlineDiffers",
            f"the {what} {seen.slug} has stored a timeout of {timeout} s and {_seconds(deadline)} s are set:"
            f" make GEOGENIUS_PGFLOW__DEADLINE_SECONDS the same everywhere and {INSTALL} again",
        )
        for what, timeout in stored.items()
        if deadline is not None and timeout != _seconds(deadline)
    )


def _of_workers(seen: Facts, wanted: Wanted) -> tuple[Problem, ...]:
    if seen.healthy_workers or not wanted.worker_required:
        return ()
    text = (
        f"no worker of {seen.slug} gave a sign of life in the last {_seconds(FRESH)} s: start `geogenius worker`,"
        " or set GEOGENIUS_PGFLOW__WORKER_REQUIRED=false to queue runs before one listens"
    )
    return (Problem("NoWorker", text, temporary=True),)


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
