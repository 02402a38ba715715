"""Runners on the test bench: each with its backend, and ways to make the next start go wrong.

A new runner joins the suite of `test_runner_contract.py` by a rig of its own in `RIGS`.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from geogenius.domain.enqueued import Accepted, Enqueued
from geogenius.domain.executed import Claim, Done, Executed, NoOp, Unrecorded
from geogenius.domain.run import Run, RunId
from geogenius.kube.client import KubeClient, Limits
from geogenius.kube.job_manifest import JobTemplate, PodOptions, SecretKey
from geogenius.kube.jobs import Jobs
from geogenius.runners.contract import Arguments, Runner, publish, stale_after_seconds
from geogenius.runners.inline import InlineRunner
from geogenius.runners.kubernetes_job import KubernetesJobRunner, Launchable
from tests.support import fault_server as server
from tests.support.kube_api import KubeApi


class Catalog:
    """What a runner could touch of the catalog: reading a run and executing it behind the fence.

    Executing twice does nothing the second time, as the database refuses it.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.executed: list[tuple[bool, int]] = []
        self.trouble: Callable[[RunId], Executed] | None = None

    def execute(self, run_id: RunId) -> Executed:
        """Execute the run with the publish intent and the window that are stored with it."""
        if self.trouble is not None:
            trouble, self.trouble = self.trouble, None
            return trouble(run_id)
        return self.execute_with(run_id, self.run.publish, int(self.run.stale_after.total_seconds()))

    def execute_with(self, run_id: RunId, publishing: bool, window: int | None) -> Executed:  # noqa: FBT001
        """Execute the run with what arrived."""
        if self.executed:
            return NoOp(run_id, Claim.COMPLETED)
        self.executed.append((publishing, window or 0))
        return Done(run_id)


class Rig(Protocol):
    """One runner and its backend."""

    runner: Runner

    def refuse_next(self) -> None:
        """The next start is definitely refused."""

    def lose_next(self) -> None:
        """The next start happens, and the answer is lost."""

    def break_next(self) -> None:
        """Something that nobody foresaw goes wrong in the next start."""

    def executions(self) -> list[tuple[bool, int]]:
        """Publish intent and window, as they reach the executor, of everything started so far."""


class InlineRig:
    """Executes in the caller."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.runner: Runner = InlineRunner(catalog.execute)

    def refuse_next(self) -> None:
        self._catalog.trouble = lambda run_id: Unrecorded(run_id, started=False, message="no claim")

    def lose_next(self) -> None:
        def lost(run_id: RunId) -> Executed:
            self._catalog.execute(run_id)
            return Unrecorded(run_id, started=True, message="the database went away")

        self._catalog.trouble = lost

    def break_next(self) -> None:
        def broken(_: RunId) -> Executed:
            raise RuntimeError("a bug")

        self._catalog.trouble = broken

    def executions(self) -> list[tuple[bool, int]]:
        return self._catalog.executed


class HostRunner:
    """A host's own: a queue of JSON, written against the older contract (an error is returned, not typed)."""

    def __init__(self) -> None:
        self.queue: list[str] = []
        self.trouble: Callable[[], Enqueued | str] | None = None

    def name(self) -> str:
        return "host_queue"

    def available(self) -> bool:
        return True

    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        message = json.dumps({"run_id": str(run_id), "args": dict(args)})
        trouble, self.trouble = self.trouble, None
        if trouble is None:
            self.queue.append(message)
            return Accepted()
        answer = trouble()
        self.queue.append(message)
        if isinstance(answer, Accepted):
            raise TimeoutError("the queue did not answer")
        self.queue.pop()
        return answer  # type: ignore[return-value]  # the older contract knew strings


class HostRig:
    """The host's queue with a worker behind it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._host = HostRunner()
        self.runner: Runner = self._host

    def refuse_next(self) -> None:
        self._host.trouble = lambda: "the queue is full"

    def lose_next(self) -> None:
        self._host.trouble = Accepted

    def break_next(self) -> None:
        def broken() -> Enqueued:
            raise RuntimeError("a bug")

        self._host.trouble = broken

    def executions(self) -> list[tuple[bool, int]]:
        while self._host.queue:
            message = json.loads(self._host.queue.pop(0))
            arrived = message["args"]
            self._catalog.execute_with(message["run_id"], publish(arrived), stale_after_seconds(arrived))
        return self._catalog.executed


class KubernetesJobRig:
    """Jobs on a small API server behind TLS."""

    def __init__(self, catalog: Catalog, api: KubeApi, client: KubeClient) -> None:
        self._catalog = catalog
        self._api = api
        self._broken = False
        template = JobTemplate("geogenius:test", SecretKey("catalog", "url"))
        self.runner: Runner = KubernetesJobRunner(Jobs(client), template, self._lookup)

    def refuse_next(self) -> None:
        self._api.queued.append(server.status(422, "Invalid", "spec.template: refused"))

    def lose_next(self) -> None:
        self._api.lose_reply()

    def break_next(self) -> None:
        self._broken = True

    def executions(self) -> list[tuple[bool, int]]:
        """Every Job there is, as its pod would read it."""
        started = []
        for job in self._api.objects.values():
            (container,) = job["spec"]["template"]["spec"]["containers"]
            _, _, *flags = container["args"]
            started.append(("--publish" in flags, int(flags[-1])))
        return started

    def _lookup(self, _: RunId) -> Launchable:
        if self._broken:
            self._broken = False
            raise RuntimeError("a bug")
        return Launchable(self._catalog.run, PodOptions())


@contextmanager
def inline_rig(catalog: Catalog, _: Path) -> Iterator[Rig]:
    yield InlineRig(catalog)


@contextmanager
def host_rig(catalog: Catalog, _: Path) -> Iterator[Rig]:
    yield HostRig(catalog)


@contextmanager
def kubernetes_job_rig(catalog: Catalog, folder: Path) -> Iterator[Rig]:
    with KubeApi() as api, KubeClient(api.access(folder), Limits(read_seconds=0.5, total_seconds=2)) as client:
        yield KubernetesJobRig(catalog, api, client)


RIGS = {"inline": inline_rig, "host_queue": host_rig, "kubernetes_job": kubernetes_job_rig}
"""By the name that each runner stores."""
