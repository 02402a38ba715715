"""The messages that a worker holds right now, shared by the threads that begin, keep and conclude them."""

from threading import Lock

from geogenius.domain.run import RunId
from geogenius.pgflow.leases import Delivery


class Held:
    """Deliveries by run: a run is held once. One whose lease is lost is still held while its executor is there."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._deliveries: dict[RunId, Delivery] = {}
        self._lost: set[RunId] = set()

    def __len__(self) -> int:
        with self._lock:
            return len(self._deliveries)

    def add(self, delivery: Delivery) -> bool:
        """Hold it from now on; True where another delivery of its run was held until now."""
        with self._lock:
            before = delivery.run_id in self._deliveries
            self._deliveries[delivery.run_id] = delivery
            self._lost.discard(delivery.run_id)
            return before

    def of(self, run_id: RunId) -> Delivery | None:
        """The delivery of a run."""
        with self._lock:
            return self._deliveries.get(run_id)

    def drop(self, delivery: Delivery) -> None:
        """Let go of it; repeating it is harmless."""
        with self._lock:
            if self._deliveries.get(delivery.run_id) is delivery:
                del self._deliveries[delivery.run_id]
                self._lost.discard(delivery.run_id)

    def lose(self, delivery: Delivery) -> bool:
        """Note that its lease is lost; False where it is not held any more."""
        with self._lock:
            held = self._deliveries.get(delivery.run_id) is delivery
            if held:
                self._lost.add(delivery.run_id)
            return held

    def leased(self) -> tuple[Delivery, ...]:
        """Those whose lease is not lost, at this moment."""
        with self._lock:
            return tuple(each for run_id, each in self._deliveries.items() if run_id not in self._lost)

    def now(self) -> tuple[Delivery, ...]:
        """All of them at this moment."""
        with self._lock:
            return tuple(self._deliveries.values())
