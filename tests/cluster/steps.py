"""Steps that start programs: they say what goes on, they end, and their failures explain themselves."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.contract import ClusterError

PROGRESS_SECONDS = 10
POLL_SECONDS = 0.1
TAIL_LINES = 25


def say(text: str) -> None:
    """Tell the person who waits; standard output stays free for results."""
    print(text, file=sys.stderr, flush=True)


def run(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What a quick program printed. A failure names the command and shows what it said."""
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=_environment(env))
    if done.returncode:
        raise ClusterError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def succeeds(*command: str | Path) -> bool:
    """Whether a quick program ends well; what it prints is of no interest."""
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class SlowStep:
    """A program that takes long enough for a person to wonder."""

    title: str
    usually: str
    """How long it takes, in words."""
    command: tuple[str, ...]
    log: Path
    folder: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Run it with a line of progress every ten seconds; a failure shows the end of its log."""
        say(f"{self.title} (usually {self.usually})")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=_environment(self.env),
            )
            try:
                self._watch(process, began)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            raise ClusterError(f"{self.title} ended with {process.returncode}; {log_tail(self.log)}")
        say(f"  done in {time.monotonic() - began:.0f} s")

    def _watch(self, process: subprocess.Popen[bytes], began: float) -> None:
        while True:
            try:
                process.wait(PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                last = (_last_lines(self.log, 1) or [""])[0]
                say(f"  {time.monotonic() - began:4.0f} s  {last.strip()[:100]}")
            else:
                return


def wait_for(what: str, ready: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    """Return when it is ready; past the deadline, name what is not and show the end of its log."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            explanation = f"; {log_tail(log)}" if log else ""
            raise ClusterError(f"{what} did not get ready in {seconds:.0f} s{explanation}")
        time.sleep(POLL_SECONDS)


def log_tail(log: Path) -> str:
    """The end of a log in words for an error message."""
    lines = "\n".join(f"    {line}" for line in _last_lines(log, TAIL_LINES))
    return f"the end of {log}:\n{lines}"


def _last_lines(file: Path, count: int) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-count:] if file.exists() else []


def _environment(extra: Mapping[str, str] | None) -> dict[str, str] | None:
    return {**os.environ, **extra} if extra else None
