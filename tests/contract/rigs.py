"""Runners on the test bench: each with its backend, and ways to make the next start go wrong.

A new runner of this package joins the suite by a rig here and a class in `test_runners.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

from typing_extensions import override

from geogenius.catalog import Executions, Runs
from geogenius.db import Database
from geogenius.domain.enqueued import Enqueued
from geogenius.domain.executed import Executed, Unrecorded
from geogenius.domain.intent import ImportIntent
from geogenius.domain.run import ExecutorId, Fence, RunId, Workload, workload_name
from geogenius.kube.client import KubeClient, Limits
from geogenius.kube.job_manifest import JobTemplate, PodOptions, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.runners.contract import Arguments
from geogenius.runners.inline import InlineRunner
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from geogenius.testing import Arrived, CatalogBench, RunnerRig
from tests.contract.host_spool import SpoolRunner, work
from tests.support import fault_server as server
from tests.support.kube_api import Document, KubeApi

CLUSTER_ID = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
NAMESPACE = "maps"
NOWHERE = "https://127.0.0.1:1"
"""Nothing listens there."""


class InlineRig(RunnerRig):
    """Executes in the caller; its backend is the catalog as the pipeline reaches it."""

    def __init__(self, bench: CatalogBench, gone: Database) -> None:
        self.bench = bench
        self.runner = InlineRunner(self._execute)
        self._gone = gone
        self._alive = True
        self._next: Callable[[RunId], Executed] | None = None

    @override
    def work(self) -> None:
        """Everything was executed when it was accepted."""

    @override
    def refuse_next(self) -> None:
        self._next = lambda run_id: self.bench.execute(run_id, self._gone)

    @override
    def lose_reply(self) -> None:
        def lost(run_id: RunId) -> Executed:
            self.bench.execute(run_id)
            return Unrecorded(run_id, started=True, message="the reply to the last write was lost")

        self._next = lost

    @override
    def break_next(self) -> None:
        def broken(_: RunId) -> Executed:
            raise RuntimeError("a bug")

        self._next = broken

    @override
    def die_in_next(self) -> None:
        def dying(run_id: RunId) -> Executed:
            Executions(self.bench.database).claim(Fence(run_id, ExecutorId(uuid4())))
            self.stop()
            return Unrecorded(run_id, started=True, message="the database is gone and nothing could be recorded")

        self._next = dying

    @override
    def stop(self) -> None:
        self._alive = False

    @override
    def start(self) -> None:
        self._alive = True

    def _execute(self, run_id: RunId) -> Executed:
        trouble, self._next = self._next, None
        if trouble is not None:
            return trouble(run_id)
        return self.bench.execute(run_id) if self._alive else self.bench.execute(run_id, self._gone)


class TroubledSpool(SpoolRunner):
    """The host's runner on a disk that something happens to."""

    full = False
    trouble: Callable[[Callable[[], None]], None] | None = None

    @override
    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        self.most, self.full = (0 if self.full else 1000), False
        return super().enqueue(run_id, args)

    @override
    def keep(self, path: Path, text: str) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is None:
            super().keep(path, text)
        else:
            trouble(lambda: SpoolRunner.keep(self, path, text))


class SpoolRig(RunnerRig):
    """The host's own: a folder, and a worker that is told everything by its files."""

    def __init__(self, bench: CatalogBench, folder: Path) -> None:
        folder.mkdir()
        self.bench = bench
        self._spool = TroubledSpool(folder)
        self.runner = self._spool
        self._away = folder.with_name("away")
        self._arrived: dict[RunId, Arrived] = {}

    @override
    def work(self) -> None:
        def execute(run_id: RunId, publishing: bool, window: int | None) -> None:  # noqa: FBT001  as they arrive
            self._arrived[run_id] = Arrived(publishing, window)
            self.bench.execute(run_id)

        work(self._spool.folder, execute)

    @override
    def arrived(self, run_id: RunId) -> Arrived | None:
        return self._arrived.get(run_id)

    @override
    def refuse_next(self) -> None:
        self._spool.full = True

    @override
    def lose_reply(self) -> None:
        def lost(keep: Callable[[], None]) -> None:
            keep()
            raise TimeoutError("the disk did not answer")

        self._spool.trouble = lost

    @override
    def break_next(self) -> None:
        def broken(_: Callable[[], None]) -> None:
            raise RuntimeError("a bug")

        self._spool.trouble = broken

    @override
    def die_in_next(self) -> None:
        def dying(_: Callable[[], None]) -> None:
            self.stop()
            raise OSError("the disk is gone")

        self._spool.trouble = dying

    @override
    def stop(self) -> None:
        self._spool.folder.rename(self._away)

    @override
    def start(self) -> None:
        self._away.rename(self._spool.folder)


class KubernetesJobRig(RunnerRig):
    """Jobs on a small API server behind TLS; every Job of it gets its pod when the backend works."""

    def __init__(self, bench: CatalogBench, api: KubeApi, client: KubeClient, nowhere: KubeClient) -> None:
        self.bench = bench
        self._api = api
        self._runners = {alive: self._runner(used) for alive, used in ((True, client), (False, nowhere))}
        self.runner = self._runners[True]
        self._broken = False
        self._had_pod: set[RunId] = set()

    @override
    def intended(self, intent: ImportIntent) -> ImportIntent:
        return replace(intent, workload=Workload(CLUSTER_ID, NAMESPACE, workload_name(intent.run_id)))

    @override
    def work(self) -> None:
        for job in list(self._api.objects.values()):
            run_id = RunId(UUID(_arguments(job)[1]))
            if run_id not in self._had_pod:
                self._had_pod.add(run_id)
                self.bench.execute(run_id)

    @override
    def arrived(self, run_id: RunId) -> Arrived | None:
        """What the pod of the Job reads on its command line."""
        for job in self._api.objects.values():
            _, told, *flags = _arguments(job)
            if told == str(run_id):
                return Arrived("--publish" in flags, int(flags[-1]))
        return None

    @override
    def refuse_next(self) -> None:
        self._api.queued.append(server.status(422, "Invalid", "spec.template: refused"))

    @override
    def lose_reply(self) -> None:
        self._api.lose_reply()

    @override
    def break_next(self) -> None:
        self._broken = True

    @override
    def die_in_next(self) -> None:
        def dying(line: server.Line) -> bool:
            self.stop()
            return server.reset(line)

        self._api.queued.append(dying)

    @override
    def stop(self) -> None:
        self.runner = self._runners[False]

    @override
    def start(self) -> None:
        self.runner = self._runners[True]

    def _runner(self, client: KubeClient) -> KubernetesJobRunner:
        template = JobTemplate("geogenius:test", SecretKey("catalog", "url"))
        return KubernetesJobRunner(Jobs(client), template, self._lookup)

    def _lookup(self, run_id: RunId) -> Launchable | None:
        if self._broken:
            self._broken = False
            raise RuntimeError("a bug")
        run = Runs(self.bench.starter).get(run_id)
        return None if run is None else Launchable(run, PodOptions())


def _arguments(job: Document) -> list[str]:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


@contextmanager
def inline_rig(bench: CatalogBench, _: Path) -> Iterator[InlineRig]:
    gone = Database("", application_name="gone")
    gone.close()  # what is asked of it is refused as by a server that is not there, without a wait
    yield InlineRig(bench, gone)


@contextmanager
def spool_rig(bench: CatalogBench, folder: Path) -> Iterator[SpoolRig]:
    yield SpoolRig(bench, folder / "spool")


@contextmanager
def kubernetes_job_rig(bench: CatalogBench, folder: Path) -> Iterator[KubernetesJobRig]:
    with KubeApi() as api:
        access = api.access(folder)
        (folder / "nowhere").mkdir()
        limits = Limits(read_seconds=2, total_seconds=4)
        with (
            KubeClient(access, limits) as client,
            KubeClient(server.access_to(NOWHERE, folder / "nowhere"), limits) as nowhere,
        ):
            yield KubernetesJobRig(bench, api, client, nowhere)
