"""What no event tells: progress inside the database, missed deletions, and runs whose request is gone."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from geogenius.api.status import state_of
from geogenius.api.view import RequestView
from geogenius.catalog.runs import Runs
from geogenius.controller.keyed_queue import Key
from geogenius.controller.threads import Threads
from geogenius.domain.errors import Unavailable
from geogenius.domain.run import Run, RunId
from geogenius.kube.requests import Requests
from geogenius.telemetry.metrics import ControllerMetrics

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scope:
    """What this operator is responsible for: the runs of its own cluster, in these namespaces (none means all)."""

    cluster_id: UUID
    namespaces: tuple[str, ...]


class Resync:
    """Two loops: a quick one over the live runs (one query), a slow one that lists and compares both sides."""

    def __init__(
        self, requests: Requests, runs: Runs, scope: Scope, add: Callable[[Key], None], metrics: ControllerMetrics
    ) -> None:
        self._requests = requests
        self._runs = runs
        self._namespaces = scope.namespaces
        self._cluster_id = scope.cluster_id
        self._add = add
        self._metrics = metrics
        self._seen: dict[RunId, tuple[object, ...]] = {}
        self._stop = threading.Event()
        self._threads = Threads({})

    def start(self, tick_seconds: float, resync_seconds: float) -> None:
        """Begin both loops."""
        self._threads = Threads(
            {
                "tick": partial(self._loop, tick_seconds, self.tick),
                "resync": partial(self._loop, resync_seconds, self.resync),
            }
        )
        self._threads.start()

    def stop(self, seconds: float) -> None:
        """End both loops after what they are doing, and wait for that, this long in all."""
        self._stop.set()
        self._threads.join(seconds)

    @property
    def alive(self) -> bool:
        """Whether both loops run."""
        return self._threads.alive

    def tick(self) -> None:
        """Add the key of every live run that shows something new, and of every run that has ended since."""
        live = {run.run_id: run for run in self._runs.live_of_cluster(self._cluster_id)}
        self._metrics.live_runs.set(len(live))
        for run_id in self._seen.keys() - live.keys():
            ended = self._runs.get(run_id)
            if ended is not None:
                self._add_run(ended)
        for run in live.values():
            if self._seen.get(run.run_id) != _face(run):
                self._add_run(run)
        self._seen = {run_id: _face(run) for run_id, run in live.items()}

    def resync(self) -> None:
        """Add every request that exists, and every live run's request whether it exists or not."""
        for namespace, name in self._requests.names():
            self._add(Key(namespace, name))
        for run in self._runs.live_of_cluster(self._cluster_id):
            self._add_run(run)

    def _add_run(self, run: Run) -> None:
        watched = not self._namespaces or (run.request is not None and run.request.namespace in self._namespaces)
        if run.request is not None and watched:
            self._add(Key(run.request.namespace, run.request.name))

    def _loop(self, seconds: float, action: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                action()
            except Unavailable as error:
                logger.warning("%s: %s", threading.current_thread().name, error)
            except Exception:
                logger.exception("%s failed; trying again", threading.current_thread().name)
            self._stop.wait(seconds)


def _face(run: Run) -> tuple[object, ...]:
    """What of a live run shows in a status, and changes without an event; that it has stalled is one of these."""
    shown = state_of(RequestView(0, run=run), run.read_at)
    return (shown, run.state, run.enqueue_state, run.executor_id, tuple(sorted(run.progress.items())), run.rejected)
