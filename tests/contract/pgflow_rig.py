"""The runner `pgflow` on the test bench: the real queue, a proxy before the server, and a worker in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from typing_extensions import override

from geogenius.db import Database
from geogenius.domain.delivery import Execute
from geogenius.domain.enqueued import Enqueued
from geogenius.domain.run import RunId
from geogenius.launcher.work import Work
from geogenius.pgflow.leases import Leases
from geogenius.pgflow.names import flow_slug
from geogenius.pgflow.order import Order, order_of
from geogenius.processes.supervisor import Ended, Submitted, TaskSupervisor
from geogenius.runners.contract import Arguments
from geogenius.runners.pgflow import PgflowRunner
from geogenius.testing import Arrived, CatalogBench, RunnerRig
from tests.support.databases import OWNER, PostgresCluster, opened, session
from tests.support.postgres_proxy import Fault, PostgresProxy, proxied
from tests.support.queues import DEADLINE

LEASE = timedelta(seconds=60)
SLUG = flow_slug("geogenius")


class TroubledPgflow(PgflowRunner):
    """The runner of a host that something happens to."""

    trouble: Callable[[Callable[[], Enqueued]], Enqueued] | None = None

    @override
    def enqueue(self, run_id: RunId, args: Arguments) -> Enqueued:
        trouble, self.trouble = self.trouble, None

        def start() -> Enqueued:
            return super(TroubledPgflow, self).enqueue(run_id, args)

        return start() if trouble is None else trouble(start)


class InThisProcess(TaskSupervisor):
    """Executes where a worker would have a child do it."""

    def __init__(self, bench: CatalogBench) -> None:
        super().__init__((), {})
        self._bench = bench

    @override
    def submit(
        self, run_id: RunId, *, deadline: timedelta | None = None, ended: Callable[[Ended], None] | None = None
    ) -> Submitted:
        self._bench.execute(run_id)
        return Submitted(0)


class PgflowRig(RunnerRig):
    """Its backend is the database as the runner reaches it; what it has committed is there when it comes back."""

    def __init__(self, bench: CatalogBench, starter: Database, owner: Database, proxy: PostgresProxy) -> None:
        self.bench = bench
        self.runner = TroubledPgflow(starter, DEADLINE)
        self._owner = owner
        self._proxy = proxy
        self._leases = Leases(bench.database, SLUG, uuid4(), LEASE, "a worker")
        self._leases.register()
        self._work = Work(bench.runs, self._leases, InThisProcess(bench), "geogenius")

    @override
    def work(self) -> None:
        while deliveries := self._leases.claim(10):
            for delivery in deliveries:
                if isinstance(self._work.begin(delivery, lambda _: None), Execute):
                    self._work.conclude(delivery)

    @override
    def arrived(self, run_id: RunId) -> Arrived | None:
        """What a worker reads in the message of the run."""
        with session(self._owner) as connection:
            rows = connection.execute("select input from pgflow.runs where run_id = %s", [run_id]).fetchall()
        if not rows:
            return None
        order = order_of(rows[0]["input"], "geogenius")
        assert isinstance(order, Order), order
        return Arrived(order.publish, int(order.stale_after.total_seconds()))

    @override
    def refuse_next(self) -> None:
        """Somebody stored another deadline with the flow."""

        def refused(start: Callable[[], Enqueued]) -> Enqueued:
            self._store(1)
            try:
                return start()
            finally:
                self._store(int(DEADLINE.total_seconds()))

        self.runner.trouble = refused

    @override
    def lose_reply(self) -> None:
        self._proxy.fault = Fault.LOSE_ANSWER

    @override
    def break_next(self) -> None:
        def broken(_: Callable[[], Enqueued]) -> Enqueued:
            raise RuntimeError("a bug")

        self.runner.trouble = broken

    @override
    def die_in_next(self) -> None:
        def dying(start: Callable[[], Enqueued]) -> Enqueued:
            self._proxy.fault = Fault.LOSE_COMMIT
            answer = start()
            self.stop()
            return answer

        self.runner.trouble = dying

    @override
    def stop(self) -> None:
        self._proxy.stop()

    @override
    def start(self) -> None:
        self._proxy.start()

    def _store(self, seconds: int) -> None:
        with session(self._owner) as connection:
            connection.execute("update pgflow.flows set opt_timeout = %s where flow_slug = %s", [seconds, SLUG])


@contextmanager
def pgflow_rig(bench: CatalogBench, cluster: PostgresCluster, dbname: str, starter: str) -> Iterator[PgflowRig]:
    """The side of the runner connects as `starter`, through the proxy; the owner looks into the queue."""
    with (
        proxied(cluster) as proxy,
        opened(proxy.conninfo(dbname, starter), "starter") as database,
        opened(cluster.conninfo(dbname, OWNER), "owner") as owner,
    ):
        yield PgflowRig(bench, database, owner, proxy)
