"""`python -m bench.launch`: from `kubectl apply` of ten areas to a finished request, beside a bare Job.

The floor is what nobody can go below: `kubectl create job` with the same image, whose command prints its version and
ends. Both run on one cluster, in turns, with the same share of the processor, and are watched in the same way. Where
our time goes is shown by the times that the catalog keeps.

A request is finished when the catalog has its release. Its Job is complete only later, when pod and Job controller have
wound up, and the bare Job is over no sooner. So both are shown: what a user waits for, and like for like.
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
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
REQUESTS = f"/apis/geogenius.io/v1alpha1/namespaces/{NAMESPACE}/importrequests"
GOAL_OVER_FLOOR_SECONDS = 5.0

SAME_SHARE = """
apiVersion: v1
kind: LimitRange
metadata: {name: like-an-importer}
spec: {limits: [{type: Container, defaultRequest: {cpu: 250m, memory: 300Mi}, default: {memory: 300Mi}}]}
"""
"""What the chart gives an importer by default. Without requests the bare Job would starve beside anything busy."""

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

    bare: list[Timed]
    requests: dict[str, Timed]
    jobs: list[Timed]
    """The Jobs of the requests, from the same beginning."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A cluster with the product, and what measures on it."""

    desk: Desk
    api: ApiServer

    def bare_job(self, name: str) -> Timed:
        """A Job of nothing but the product's image, until it is complete."""
        create = ("create", "job", name, f"--image={PRODUCT}", "--", "geogenius", "--version")
        return self._timed(JOBS, name, lambda: self.desk.kubectl(*create), job_is_complete)[0]

    def import_request(self, name: str) -> tuple[Timed, Timed]:
        """A request for areas that lie in a ConfigMap already: until it is published, and until its Job is complete."""
        content = collection_of([square(position) for position in range(FEATURES)])
        document = request(name, content)
        self.desk.supply(name, content)
        finished, found = self._timed(REQUESTS, name, lambda: self.desk.apply(document), request_is_finished)
        with self.api.watch(JOBS, found["status"]["jobName"], WAIT_SECONDS) as stream:
            stream.until(job_is_complete)
            ended = time()
        return finished, Timed(ended - finished.began, finished.began, ended)

    def _timed(
        self, path: str, name: str, make: Callable[[], object], holds: Callable[[JsonObject], bool]
    ) -> tuple[Timed, JsonObject]:
        with self.api.watch(path, name, WAIT_SECONDS) as stream:
            began, clock = time(), monotonic()
            make()
            found = stream.until(holds)
            return Timed(monotonic() - clock, began, time()), found


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
    installation.kubectl("apply", "-f", "-", stdin=SAME_SHARE)
    return Bench(Desk(installation, NAMESPACE), ApiServer(cluster.kubeconfig))


def measure(bench: Bench, pairs: int) -> Measured:
    """Both works in turns, each first in every other pair; a pair before the first warms up and is not counted."""
    measured, stamp = Measured([], {}, []), f"{int(time()):x}"
    warm_up(bench, stamp)
    for number in track(range(pairs), "pairs", console=console):
        if number % 2:
            measure_request(bench, f"r-{stamp}-{number}", measured)
        measured.bare.append(bench.bare_job(f"bare-{stamp}-{number}"))
        if not number % 2:
            measure_request(bench, f"r-{stamp}-{number}", measured)
    return measured


def warm_up(bench: Bench, stamp: str) -> None:
    """A pair that is not counted."""
    bench.bare_job(f"bare-{stamp}-warm")
    bench.import_request(f"r-{stamp}-warm")


def measure_request(bench: Bench, name: str, measured: Measured) -> None:
    """One request, and its Job."""
    measured.requests[name], job = bench.import_request(name)
    measured.jobs.append(job)


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


def results_of(measured: Measured) -> list[Result]:
    """Ours beside the floor: what a user waits for, then like for like."""
    floor = [timed.seconds for timed in measured.bare]
    goal = (median(floor) + GOAL_OVER_FLOOR_SECONDS, f"floor + {GOAL_OVER_FLOOR_SECONDS:.0f} s")
    finished = [timed.seconds for timed in measured.requests.values()]
    complete = [timed.seconds for timed in measured.jobs]
    return [
        Result(f"kubectl apply to finished, {FEATURES} features", finished, floor, *goal),
        Result("the same to its Job Complete", complete, floor, *goal),
    ]


def run(pairs: int) -> int:
    """Measure and report; 1 when the goal is missed."""
    bench = installed()
    before = os.getloadavg()[0]
    measured = measure(bench, pairs)
    results = results_of(measured)
    show(results, console)
    show_stages(stages(measured.requests, catalog_times(bench.desk)))
    console.print(
        f"{pairs} pairs in turns; {os.cpu_count()} cores; load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    return 0 if all(result.met for result in results) else 1


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
