"""The whole operator in this process: kopf, workers, ticks, probes, leadership; a small API server, a real catalog."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from geogenius.catalog.leadership import Leadership
from geogenius.controller.program import Operator
from geogenius.db import Database
from geogenius.domain.run import RunError
from geogenius.kube.client import KubeClient
from geogenius.kube.requests import Requests
from geogenius.wiring import OperatorContext
from tests.support import fault_server as server
from tests.support.catalog import CLUSTER_ID
from tests.support.request_desk import RequestDesk, request_desk

KINDS = {
    "/api/v1": [("namespaces", "Namespace", False), ("events", "Event", True)],
    "/apis/batch/v1": [("jobs", "Job", True)],
    "/apis/geogenius.io/v1alpha1": [("importrequests", "ImportRequest", True)],
}
VERBS = ["list", "watch"]
GROUPS = [("batch", {"version": "v1"}), ("geogenius.io", {"version": "v1alpha1"})]

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kopf leaves sockets open


def discovery(request: server.Received) -> server.Behaviour | None:
    """What kopf asks before it watches, and watches in which nothing happens."""
    path = request.path.partition("?")[0]
    if "watch=true" in request.path:
        return server.silence
    if path == "/api":
        return server.answer(200, {"versions": ["v1"]})
    if path == "/apis":
        groups = [{"name": name, "versions": [v], "preferredVersion": v} for name, v in GROUPS]
        return server.answer(200, {"groups": groups})
    if path in KINDS:
        kinds = [
            {"name": plural, "kind": kind, "singularName": kind.lower(), "namespaced": namespaced, "verbs": VERBS}
            for plural, kind, namespaced in KINDS[path]
        ]
        return server.answer(200, {"resources": kinds})
    return None


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[RequestDesk]:
    with request_desk(database, tmp_path) as desk:
        desk.intercept(discovery)
        yield desk


@pytest.fixture
def operator(desk: RequestDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")  # put back afterwards; the operator's own setting counts
    access = desk.api.access(tmp_path)
    with KubeClient(access) as client:
        yield Operator(
            OperatorContext(
                runs=desk.runs,
                requests=Requests(client),
                reconciler=desk.reconcilers[0],
                leadership=Leadership(desk.database),
                database=desk.database,
                cluster_id=CLUSTER_ID,
                namespaces=(),
                kubeconfig=access.kubeconfig,
                workers=2,
                tick_seconds=0.1,
                resync_seconds=300,
                probe_port=0,
            )
        )
    gc.collect()  # so that what kopf left open is complained about here


@contextmanager
def meanwhile(operator: Operator, look: Callable[[], None]) -> Iterator[None]:
    """Look from another thread while the block runs the operator, which ends when the look does."""
    failures: list[BaseException] = []

    def looking() -> None:
        try:
            look()
        except BaseException as failure:  # noqa: BLE001  carried over to the test
            failures.append(failure)
        finally:
            operator._ending.ask()

    thread = threading.Thread(target=looking)
    thread.start()
    yield
    thread.join()
    if failures:
        raise failures[0]


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_request_is_carried_through_by_events_and_ticks(operator: Operator, desk: RequestDesk) -> None:
    uid = desk.apply()

    def look() -> None:
        until(lambda: desk.status().get("jobName"))
        assert (operator.not_alive(), operator.not_ready()) == (None, None)
        desk.runs.fail(desk.claimed(desk.run(uid)), RunError("staging", "DataRefused", "row 7"))
        until(lambda: desk.status()["finished"])  # nothing but the tick tells

    with meanwhile(operator, look):
        assert operator.run() == 0
    assert (len(desk.jobs()), desk.sent("POST")) == (1, 1)
    assert operator.not_ready() == "this process is ending"


def test_an_operator_that_starts_before_its_kind_is_known_waits_for_it(operator: Operator, desk: RequestDesk) -> None:
    desk.apply()
    unknown = threading.Event()
    unknown.set()

    def missing(request: server.Received) -> server.Behaviour | None:
        return server.answer(404, b"404 page not found") if unknown.is_set() and "geogenius" in request.path else None

    desk.intercept(missing)

    def look() -> None:
        until(lambda: desk.sent("GET"))
        assert operator.not_ready() == "the watch has not started"
        unknown.clear()
        until(desk.status)

    with meanwhile(operator, look):
        assert operator.run() == 0


def test_a_watch_that_ends_ends_the_program(operator: Operator, desk: RequestDesk) -> None:
    def forbidden(request: server.Received) -> server.Behaviour | None:
        broken = server.answer(200, {"type": "ERROR", "object": {"code": 500, "message": "no"}})
        return broken if "watch=true" in request.path else None

    desk.intercept(forbidden)
    assert operator.run() == 1
    assert operator._ending.failure == "the watch ended unasked"


def test_a_second_operator_waits_and_takes_over(operator: Operator, desk: RequestDesk, database: Database) -> None:
    first = Leadership(database)
    assert first.try_acquire()
    desk.apply()

    def look() -> None:
        time.sleep(0.3)
        assert desk.sent("GET") == 0
        assert operator.not_ready() is None
        first.release()
        until(desk.status)

    with meanwhile(operator, look):
        assert operator.run() == 0


def test_a_lost_session_of_the_leader_ends_the_program(operator: Operator, desk: RequestDesk) -> None:
    operator._leader._check_seconds = 0.1

    def look() -> None:
        until(lambda: operator._leader.leading)
        with desk.database.dedicated() as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()"
            )
        until(lambda: operator._ending.asked)

    with meanwhile(operator, look):
        assert operator.run() == 1
    assert operator._ending.failure == "leadership is lost"
