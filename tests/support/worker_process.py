"""Workers of the queue as processes: started, looked at from outside, killed in every way."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from geogenius.importer.pipeline import Workplace
from tests.support.host_processes import SECONDS, family_of, nursery_of, until
from tests.support.probing import probed
from tests.support.queues import DEADLINE


@dataclass(frozen=True, slots=True)
class Worker:
    """A running `geogenius worker`."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def executors(self) -> list[int]:
        """The processes that execute runs, guardians included."""
        nursery = nursery_of(self.pid)
        return [pid for pid in family_of(nursery) if pid != nursery]

    def probe(self, path: str) -> tuple[int, str]:
        return probed(self.port, path)

    def ended(self, number: signal.Signals | None = None) -> int:
        """The exit code, after this signal or by itself."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def kill_all(self) -> None:
        """As when its node is gone: the worker, its nursery and its executors, at once."""
        nursery = nursery_of(self.pid)
        for pid in (self.pid, nursery, *self.executors):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(SECONDS)


def worker_environment(conninfo: str, workplace: Workplace, *, lease_seconds: int) -> dict[str, str]:
    """The settings of a worker that may fetch from this machine."""
    return {
        **os.environ,
        "GEOGENIUS_DATABASE__URL": conninfo,
        "GEOGENIUS_PGFLOW__DEADLINE_SECONDS": str(int(DEADLINE.total_seconds())),
        "GEOGENIUS_WORKER__LEASE_SECONDS": str(lease_seconds),
        "GEOGENIUS_RUNNER__GRACE_SECONDS": "3",
        "GEOGENIUS_IMPORTER__WORK_DIR": str(workplace.work_dir),
        "GEOGENIUS_IMPORTER__ARTIFACT_DIR": str(workplace.artifact_folder),
        "GEOGENIUS_DOWNLOAD__ALLOW_HTTP": "true",
        "GEOGENIUS_DOWNLOAD__ALLOW_PRIVATE_ADDRESSES": "true",
        "GEOGENIUS_DOWNLOAD__READ_TIMEOUT_SECONDS": "120",
    }


@contextmanager
def running_worker(environment: Mapping[str, str], log: Path) -> Iterator[Worker]:
    """A worker that is ready, or has ended; at the end nothing of it is left."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {**environment, "GEOGENIUS_WORKER__PROBE_PORT": str(port)}
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "geogenius", "worker"], env=variables, stderr=output)
    worker = Worker(process, port, log)
    try:
        until(lambda: process.poll() is not None or worker.probe("/readyz")[0] == 200, "the worker is ready")
        yield worker
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(SECONDS)
