"""The messages that a worker holds right now, shared by the threads that begin, keep and conclude them."""

from threading import Lock

from geogenius.domain.run import RunId
from geogenius.pgflow.leases import Delivery


class Held:
    """Deliveries by run: a run is held once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._deliveries: dict[RunId, Delivery] = {}

    def __len__(self) -> int:
        with self._lock:
            return len(self._deliveries)

    def add(self, delivery: Delivery) -> None:
        """Hold it from now on."""
        with self._lock:
            self._deliveries[delivery.run_id] = delivery

    def drop(self, delivery: Delivery) -> None:
        """Let go of it; repeating it is harmless."""
        with self._lock:
            if self._deliveries.get(delivery.run_id) is delivery:
                del self._deliveries[delivery.run_id]

    def now(self) -> tuple[Delivery, ...]:
        """All of them at this moment."""
        with self._lock:
            return tuple(self._deliveries.values())
