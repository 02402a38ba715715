"""The runner `task` on the test bench: a real supervisor with its nursery and executors."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from unittest.mock import patch

from typing_extensions import override

from geogenius.domain.enqueued import Enqueued
from geogenius.domain.run import RunId
from geogenius.importer.recipe import Recipe
from geogenius.processes import supervisor as supervision
from geogenius.processes.nursery_link import NurseryLink
from geogenius.processes.supervisor import NURSERY, TaskSupervisor
from geogenius.runners.contract import Arguments
from geogenius.runners.task import TaskRunner
from geogenius.testing import CatalogBench, RunnerRig
from tests.support.host_processes import nursery_of, until

DEAF_SECONDS = 0.5
"""How long a host that hears nothing waits for the answer of its nursery."""

Start = Callable[[], Enqueued]
Trouble = Callable[[Start, RunId], Enqueued]


class TroubledTask(TaskRunner):
    """The runner of a host that something happens to."""

    trouble: Trouble | None = None

    @override
    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        trouble, self.trouble = self.trouble, None

        def start() -> Enqueued:
            return super(TroubledTask, self).enqueue(run_id, args)

        return start() if trouble is None else trouble(start, run_id)


class TaskRig(RunnerRig):
    """Its backend is gone when the nursery is killed and the supervisor stopped; back when the host made another."""

    def __init__(self, bench: CatalogBench, recipe: Recipe) -> None:
        self.bench = bench
        self._recipe = recipe
        self._make()

    @override
    def work(self) -> None:
        until(lambda: not self._supervisor.running, "all executors have ended", self.bench.end_seconds)

    @override
    def refuse_next(self) -> None:
        def full(start: Start, _: RunId) -> Enqueued:
            with patch.object(self._supervisor, "max_children", 0):
                return start()

        self.runner.trouble = full

    @override
    def lose_reply(self) -> None:
        def deaf(start: Start, _: RunId) -> Enqueued:
            with patch.object(NurseryLink, "_answer"), patch.object(supervision, "ANSWER_SECONDS", DEAF_SECONDS):
                answer = start()
                self.work()  # the executor ends unheard of, so that nothing of this submission is asked for again
                return answer

        self.runner.trouble = deaf

    @override
    def break_next(self) -> None:
        def broken(_: Start, __: RunId) -> Enqueued:
            raise RuntimeError("a bug")

        self.runner.trouble = broken

    @override
    def die_in_next(self) -> None:
        """The nursery stands still when it is asked, and is killed before it has answered."""

        def dying(start: Start, _: RunId) -> Enqueued:
            nursery = nursery_of(os.getpid())
            os.kill(nursery, signal.SIGSTOP)
            death = Thread(target=self._kill_when_asked, args=(nursery,))
            death.start()
            try:
                return start()
            finally:
                death.join()

        self.runner.trouble = dying

    @override
    def stop(self) -> None:
        os.kill(nursery_of(os.getpid()), signal.SIGKILL)
        self._supervisor.stop()

    @override
    def start(self) -> None:
        """A supervisor that is not stopped replaces a nursery that was killed by itself."""
        if not self._supervisor.alive:
            self._make()

    def close(self) -> None:
        self._supervisor.stop()

    def _make(self) -> None:
        self._supervisor = TaskSupervisor(NURSERY, self._recipe.to_json(), max_children=4)
        self._supervisor.start()
        link = self._supervisor._link
        until(lambda: link is not None and link._ready, "the nursery is loaded")
        self.runner = TroubledTask(self._supervisor)

    def _kill_when_asked(self, nursery: int) -> None:
        until(lambda: self._supervisor.running, "the nursery is asked")
        os.kill(nursery, signal.SIGKILL)


@contextmanager
def task_rig(bench: CatalogBench, conninfo: str) -> Iterator[TaskRig]:
    """Executors have the rights of a pipeline; the side of the runner has no connection at all."""
    rig = TaskRig(bench, Recipe(conninfo=conninfo, workplace=bench.workplace))
    try:
        yield rig
    finally:
        rig.close()
