"""The chart as helm renders it, without a cluster."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.binaries import binaries

CHART = Path(__file__).resolve().parents[2] / "charts" / "geogenius"
RELEASE, NAMESPACE = "geogenius", "geogenius-system"

Values = Mapping[str, Any]


class ChartError(Exception):
    """Helm refused; the message is what it said."""


def render(values: Values | None = None) -> str:
    """Every manifest of a release with these values, as text; the same every time."""
    return helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-", values=values)


class Rendered:
    """The objects of a rendered chart, to be asked for by their kind."""

    def __init__(self, values: Values | None = None) -> None:
        self.text = render(values)
        self.objects: list[dict[str, Any]] = [found for found in yaml.safe_load_all(self.text) if found]

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Every object of the kind."""
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """The only object of the kind."""
        (found,) = self.all(kind)
        return found

    @property
    def pod(self) -> dict[str, Any]:
        """The spec of the operator's pod."""
        spec: dict[str, Any] = self.one("Deployment")["spec"]["template"]["spec"]
        return spec

    @property
    def operator(self) -> dict[str, Any]:
        """The operator's container."""
        (found,) = self.pod["containers"]
        return dict(found)


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Every container of a pod, those that run first included."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def lint(values: Values | None = None) -> str:
    """What `helm lint --strict` says; a warning is a failure."""
    return helm("lint", "--strict", str(CHART), "--values", "-", values=values)


def helm(*arguments: str, values: Values | None = None) -> str:
    """Run helm with the values on its standard input; what it printed. Raises ChartError where it fails."""
    command = [str(binaries().helm), *arguments]
    given = json.dumps(values or {})
    ended = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)
    if ended.returncode != 0:
        raise ChartError(f"{ended.stdout}{ended.stderr}")
    return ended.stdout
