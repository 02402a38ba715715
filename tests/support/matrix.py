"""Long forms of tests: `make test` runs the short ones, `make matrix` the long ones, which also write docs/evidence."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence"


def full() -> bool:
    """Whether this is `make matrix`."""
    return os.environ.get("GEOGENIUS_MATRIX") == "full"


def write_evidence(name: str, title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table of what a test has just proven; written by `make matrix` only, so that `make test` changes no file."""
    if not full():
        return
    lines = [
        f"# {title}",
        "",
        "Written by `make matrix` from the test that proves it. Do not edit.",
        "",
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
    ]
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    (EVIDENCE / f"{name}.md").write_text("\n".join(lines) + "\n")
