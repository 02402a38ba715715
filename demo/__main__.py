"""`python -m demo up|down`: what `make demo` and `make demo-down` run."""

import json
import sys
from collections.abc import Callable
from time import monotonic, sleep

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from demo.installation import CHECKOUT, Installation
from tests.cluster.providers import cluster

NAME = "demo"
REQUEST = "world-countries"
SAMPLE = CHECKOUT / "manifests" / "samples" / f"{REQUEST}.yaml"
COUNTRIES = CHECKOUT / "demo" / "data" / "countries.geojson"
DEADLINE_SECONDS = 180.0
LOOK_SECONDS = 0.5
BERLIN = "select collection_key, area_key, name from areas_for_point(13.4, 52.5)"

console = Console()


def main(action: str = "") -> int:
    """Start or remove the demo; the exit code."""
    match action:
        case "up":
            return up()
        case "down":
            cluster(NAME).down()
            return 0
        case _:
            console.print("usage: python -m demo up|down")
            return 64


def up() -> int:
    """Every step a user would take. A second time finds all of it there and only looks."""
    began = monotonic()
    demo = cluster(NAME)
    demo.up()
    installation = Installation(demo, "geogenius-demo")
    step("images", installation.load_images)
    step("PostGIS in the cluster", installation.database)
    step("helm install geogenius", installation.operator)
    step("kubectl apply", lambda: apply(installation))
    succeeded = wait(installation)
    show(installation)
    console.print(f"\n[bold]{monotonic() - began:.0f} s in all.[/] Clean up with: make demo-down")
    return 0 if succeeded else 1


def step(name: str, action: Callable[[], None]) -> None:
    """Do one step and say how long it took."""
    began = monotonic()
    action()
    console.print(f"[green]✓[/] {name} ({monotonic() - began:.1f} s)")


def apply(installation: Installation) -> None:
    """The file into a ConfigMap, the sample into the cluster."""
    made = installation.kubectl(
        "create", "configmap", REQUEST, f"--from-file={COUNTRIES}", "--dry-run=client", "-o", "yaml"
    )
    installation.kubectl("apply", "--server-side", "-f", "-", stdin=made)
    installation.kubectl("apply", "-f", str(SAMPLE))


def wait(installation: Installation) -> bool:
    """Follow the request until it is finished; whether it succeeded."""
    rows = TextColumn("{task.fields[rows]} rows")
    columns = (TextColumn("{task.description}"), BarColumn(), rows, TimeElapsedColumn())
    end = monotonic() + DEADLINE_SECONDS
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Pending", total=100, rows=0)
        while monotonic() < end:
            status = json.loads(installation.kubectl("get", "importrequest", REQUEST, "-o", "json")).get("status", {})
            done = status.get("progress", {})
            described = f"{status.get('state', 'Pending')} {status.get('phase', '')}"
            progress.update(task, description=described, completed=done.get("percent", 0), rows=done.get("rows", 0))
            if status.get("finished"):
                return bool(status["state"] == "Succeeded")
            sleep(LOOK_SECONDS)
    console.print(f"[red]not finished after {DEADLINE_SECONDS:.0f} s[/]")
    return False


def show(installation: Installation) -> None:
    """The request, its Job, its run, and the answer to a question."""
    run = "\\x on\nselect run_id, state, attempt, owner, published, metrics from import_run_status"
    for title, text in (
        ("kubectl get importrequests", installation.kubectl("get", "importrequests", "-o", "wide")),
        ("kubectl get jobs", installation.kubectl("get", "jobs")),
        ("the run in the catalog", installation.query(run)),
        ("which area covers 13.4, 52.5?", installation.query(BERLIN)),
    ):
        console.print(f"\n[bold]{title}[/]")
        console.print(text.rstrip(), highlight=False, markup=False, soft_wrap=True)
    look = f"python3 -m tests.cluster --name {NAME} kubectl -n {installation.namespace} get all"
    console.print(f"\nLook around: {look}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
