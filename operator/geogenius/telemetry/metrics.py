"""What our programs tell Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class ControllerMetrics:
    """What the operator tells Prometheus; names after controller-runtime's."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.queue_depth = Gauge("geogenius_workqueue_depth", "Keys that wait", registry=self.registry)
        self.reconciles = Counter(
            "geogenius_reconcile_total", "Reconciles by result", ["result"], registry=self.registry
        )
        self.reconcile_seconds = Histogram(
            "geogenius_reconcile_seconds", "Duration of a reconcile", registry=self.registry
        )
        self.live_runs = Gauge(
            "geogenius_live_runs", "Runs of this cluster that have not ended", registry=self.registry
        )
        self.leader = Gauge("geogenius_leader", "1 while this process leads", registry=self.registry)
        self.watch_events = Counter(
            "geogenius_watch_events_total", "Events seen by kind", ["kind"], registry=self.registry
        )


class WorkerMetrics:
    """What a worker tells Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.held = Gauge("geogenius_worker_held", "Messages that this worker holds", registry=self.registry)
        self.deliveries = Counter(
            "geogenius_worker_deliveries_total", "Messages that were claimed", registry=self.registry
        )
        self.steps = Counter(
            "geogenius_worker_steps_total", "What became of messages, by step", ["step"], registry=self.registry
        )
        self.lost = Counter("geogenius_worker_lost_total", "Messages lost to another worker", registry=self.registry)
        self.failures = Counter(
            "geogenius_worker_failures_total", "Tries that did not work and are repeated", registry=self.registry
        )
