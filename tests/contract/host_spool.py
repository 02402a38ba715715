"""A runner as a host makes its own: a folder of JSON files with a worker behind it. The example of docs/runners.md.

It is written against the older contract on purpose: a refusal is returned as a plain string.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from geogenius.domain.enqueued import Accepted, Enqueued
from geogenius.domain.run import RunId
from geogenius.runners.contract import Arguments, publish, stale_after_seconds

Execute = Callable[[RunId, bool, int | None], object]


class SpoolRunner:
    """Keeps each run as a file that is named for it, so that a second one is impossible."""

    def __init__(self, folder: Path, most: int = 1000) -> None:
        self.folder = folder
        self.most = most

    def name(self) -> str:
        return "host_spool"

    def available(self) -> bool:
        return os.access(self.folder, os.W_OK)

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        if not self.folder.is_dir():
            return f"there is no folder {self.folder}"  # type: ignore[return-value]  # the older contract knew strings
        if len(list(self.folder.glob("*.json"))) >= self.most:
            return f"the spool has {self.most} runs"  # type: ignore[return-value]  # the same
        self.keep(self.folder / f"{run_id}.json", json.dumps(dict(args)))
        return Accepted()

    def keep(self, path: Path, text: str) -> None:
        """Write the file whole, and once: one of its name is the same run."""
        part = path.with_suffix(f".{uuid4().hex}")
        try:
            part.write_text(text)
            with suppress(FileExistsError):
                path.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)


def work(folder: Path, execute: Execute) -> None:
    """Execute what is in the folder; a file goes when its run has had its execution."""
    for path in sorted(folder.glob("*.json")):
        args = json.loads(path.read_text())
        execute(RunId(UUID(path.stem)), publish(args), stale_after_seconds(args))
        path.unlink()
