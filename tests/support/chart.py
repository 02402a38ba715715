"""The chart as helm renders it, without a cluster."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster.binaries import binaries

CHART = Path(__file__).resolve().parents[2] / "charts" / "geogenius"
RELEASE, NAMESPACE = "geogenius", "geogenius-system"

Values = Mapping[str, Any]


class ChartError(Exception):
    """Helm refused; the message is what it said."""


def render(values: Values | None = None) -> str:
    """Every manifest of a release with these values, as text; the same every time."""
    return helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-", values=values)


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
