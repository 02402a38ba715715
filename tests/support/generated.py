"""`python -m tests.support.generated write|verify`: the files that are generated, and whether they are up to date."""

import difflib
import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from geogenius.api.crd import crd_yaml
from geogenius.db.picture import picture
from tests.support.chart import NAMESPACE, render

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLE = CHECKOUT / "manifests" / "samples" / "world-countries.yaml"
SAMPLE_FILE = CHECKOUT / "demo" / "data" / "countries.geojson"
USAGE = 64

INSTALL_HEADER = f"""\
# Generated from charts/geogenius with its default values: `make generate`. Do not edit.
#
# For clusters without helm. The namespace and the Secret come first:
#   kubectl create namespace {NAMESPACE}
#   kubectl --namespace {NAMESPACE} create secret generic geogenius-database --from-literal=url=postgresql://...
#   kubectl apply --server-side -f install.yaml
"""


@dataclass(frozen=True, slots=True)
class Generated:
    """A file of the checkout, and what it must hold."""

    path: Path
    make: Callable[[], str]

    def write(self) -> bool:
        """Bring the file up to date; whether that changed it."""
        wanted = self.make()
        if self._text() == wanted:
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(wanted)
        return True

    def difference(self) -> str:
        """A unified diff from the file to what it must hold; empty when it is up to date."""
        name = str(self.path)
        found, wanted = (text.splitlines(keepends=True) for text in (self._text(), self.make()))
        return "".join(difflib.unified_diff(found, wanted, fromfile=name, tofile=f"{name} (generated)"))

    def _text(self) -> str:
        return self.path.read_text() if self.path.exists() else ""


def install_yaml() -> str:
    """The chart with its default values, as one file for kubectl; no line ends in a blank."""
    lines = (line.rstrip() for line in render().splitlines())
    return INSTALL_HEADER + "\n".join(lines) + "\n"


def generated(root: Path = CHECKOUT) -> tuple[Generated, ...]:
    """Every generated file below this folder; the chart's definition comes before what is rendered from it."""
    return (
        Generated(root / "manifests" / "crds" / "importrequests.yaml", crd_yaml),
        Generated(root / "charts" / "geogenius" / "files" / "importrequests.yaml", crd_yaml),
        Generated(root / "operator" / "geogenius" / "db" / "schema.sql", picture),
        Generated(root / "manifests" / "install.yaml", install_yaml),
    )


def sample_problems(sample: str, content: bytes) -> list[str]:
    """Where a sample request and the file it is about disagree."""
    artifact = yaml.safe_load(sample)["spec"]["manifest"]["sources"][0]["artifacts"][0]
    found = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return [f"{key} is {artifact[key]}, the file has {value}" for key, value in found.items() if artifact[key] != value]


def write(files: Iterable[Generated]) -> int:
    """Bring the files up to date and name those that changed."""
    for file in files:
        if file.write():
            print(f"written: {file.path}")
    return 0


def verify(files: Iterable[Generated]) -> int:
    """Print what is not up to date; 1 when there is any."""
    differences = [difference for file in files if (difference := file.difference())]
    problems = [f"{SAMPLE}: {problem}" for problem in sample_problems(SAMPLE.read_text(), SAMPLE_FILE.read_bytes())]
    for text in (*differences, *problems):
        print(text)
    if differences:
        print("not up to date; run: make generate", file=sys.stderr)
    return 1 if differences or problems else 0


def main(arguments: list[str]) -> int:
    """Do what the one argument says; the exit code."""
    match arguments:
        case ["write"]:
            return write(generated())
        case ["verify"]:
            return verify(generated())
        case _:
            print(__doc__, file=sys.stderr)
            return USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
