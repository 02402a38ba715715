"""`python -m bench.launch`: from `kubectl apply` of ten areas to a finished request, beside a bare Job.

The floor is what nobody can go below: `kubectl create job` with the same image, whose command prints its version and
ends. Both run on one cluster, in turns, and are watched in the same way. What the product adds is shown by the times
that the catalog keeps.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import monotonic, time

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.table import Result, show, spread
from bench.watching import ApiServer, JsonObject
from demo.installation import Installation
from tests.cluster.images.names import PRODUCT
from tests.cluster.providers import cluster as cluster_named
from tests.support.desk import Desk, collection_of, request, square

NAME = "bench"
NAMESPACE = "geogenius-bench"
PAIRS = 9
FEATURES = 10
WAIT_SECONDS = 120
GOAL_OVER_FLOOR_SECONDS = 5.0

STAGES = (
    "kubectl apply -> run registered (created_at)",
    "-> Job accepted (enqueue_changed_at)",
    "-> importer claims the run (execution_started_at)",
    "-> release published (completed_at)",
    "-> status.finished is seen",
)

console = Console(width=160)


@dataclass(frozen=True, slots=True)
class Timed:
    """One measured work: how long it took, and the wall clock at both ends, to lay it beside the catalog's times."""

    seconds: float
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What all pairs gave; requests by name, in order."""

    jobs: list[Timed]
    requests: dict[str, Timed]


@dataclass(frozen=True, slots=True)
class Bench:
    """A cluster with the product, and what measures on it."""

    desk: Desk
    api: ApiServer

    def bare_job(self, name: str) -> Timed:
        """A Job of nothing but the product's image, until it is complete."""
        create = ("create", "job", name, f"--image={PRODUCT}", "--", "geogenius", "--version")
        path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
        return self._timed(path, name, lambda: self.desk.kubectl(*create), job_is_complete)

    def import_request(self, name: str) -> Timed:
        """A request for ten areas whose file lies in a ConfigMap already, until it is finished and published."""
        content = collection_of([square(position) for position in range(FEATURES)])
        document = request(name, content)
        self.desk.supply(name, content)
        path = f"/apis/geogenius.io/v1alpha1/namespaces/{NAMESPACE}/importrequests"
        return self._timed(path, name, lambda: self.desk.apply(document), request_is_finished)

    def _timed(self, path: str, name: str, make: Callable[[], object], holds: Callable[[JsonObject], bool]) -> Timed:
        with self.api.watch(path, name, WAIT_SECONDS) as stream:
            began, clock = time(), monotonic()
            make()
            stream.until(holds)
            return Timed(monotonic() - clock, began, time())


def job_is_complete(job: JsonObject) -> bool:
    """Whether a Job is complete. Raises AssertionError for one that has failed: it measures nothing."""
    conditions = {found["type"] for found in job.get("status", {}).get("conditions", []) if found["status"] == "True"}
    assert "Failed" not in conditions, job["status"]
    return "Complete" in conditions


def request_is_finished(document: JsonObject) -> bool:
    """Whether a request is finished. Raises AssertionError for one whose areas are not published."""
    status = document.get("status", {})
    if not status.get("finished"):
        return False
    assert status["published"], status
    return True


def installed() -> Bench:
    """The product as a user installs it, with the chart's default values, on a cluster of the benchmark's own."""
    cluster = cluster_named(NAME)
    cluster.up()
    installation = Installation(cluster, NAMESPACE)
    installation.load_images()
    installation.database()
    installation.operator()
    return Bench(Desk(installation, NAMESPACE), ApiServer(cluster.kubeconfig))


def measure(bench: Bench, pairs: int) -> Measured:
    """Both works in turns, each first in every other pair; a pair before the first warms up and is not counted."""
    measured, stamp = Measured([], {}), f"{int(time()):x}"
    for number in track(range(pairs + 1), "pairs, the first to warm up", console=console):
        name = f"r-{stamp}-{number}"

        def ours(name: str = name) -> None:
            measured.requests[name] = bench.import_request(name)

        def floor(number: int = number) -> None:
            measured.jobs.append(bench.bare_job(f"bare-{stamp}-{number}"))

        for work in (floor, ours) if number % 2 else (ours, floor):
            work()
        if number == 0:
            measured.requests.clear()
            measured.jobs.clear()
    return measured


def catalog_times(desk: Desk) -> dict[str, list[float]]:
    """When each request was registered, accepted, claimed and completed, in seconds of the epoch."""
    columns = ("created_at", "enqueue_changed_at", "execution_started_at", "completed_at")
    times = ", ".join(f"extract(epoch from {column})::float8" for column in columns)
    statement = f"select json_object_agg(request_name, json_build_array({times})) from import_run_status"  # noqa: S608
    found: dict[str, list[float]] = json.loads(desk.value(statement))
    return found


def stages(requests: Mapping[str, Timed], times: Mapping[str, list[float]]) -> list[list[float]]:
    """Seconds in each stage, one list a stage; the clocks of pods and of this process are those of one machine."""
    lines = [(timed.began, *times[name], timed.ended) for name, timed in requests.items()]
    return [list(column) for column in zip(*([b - a for a, b in pairwise(line)] for line in lines), strict=True)]


def show_stages(durations: list[list[float]]) -> None:
    """Print where the time of ours goes."""
    table = Table("where our time goes", "median (min-max)", "share")
    whole = sum(median(column) for column in durations)
    for stage, column in zip(STAGES, durations, strict=True):
        table.add_row(stage, spread(column), f"{median(column) / whole:.0%}")
    console.print(table)


def result_of(measured: Measured) -> Result:
    """Ours beside the floor."""
    floor = [timed.seconds for timed in measured.jobs]
    return Result(
        work=f"launch: kubectl apply to finished, {FEATURES} features",
        ours=[timed.seconds for timed in measured.requests.values()],
        floor=floor,
        goal_seconds=median(floor) + GOAL_OVER_FLOOR_SECONDS,
        goal=f"floor + {GOAL_OVER_FLOOR_SECONDS:.0f} s",
    )


def run(pairs: int) -> int:
    """Measure and report; 1 when the goal is missed."""
    bench = installed()
    before = os.getloadavg()[0]
    measured = measure(bench, pairs)
    result = result_of(measured)
    show([result], console)
    show_stages(stages(measured.requests, catalog_times(bench.desk)))
    console.print(
        f"{pairs} pairs in turns; {os.cpu_count()} cores; load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    return 0 if result.met else 1


def main() -> int:
    """Read the arguments, run, and take the cluster down again unless it is to be kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.launch", description="The launch, beside a bare Job.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many pairs are counted (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    options = parser.parse_args()
    try:
        return run(options.pairs)
    finally:
        if not options.keep:
            cluster_named(NAME).down()


if __name__ == "__main__":
    sys.exit(main())
