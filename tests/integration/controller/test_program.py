"""The operator as a process: kopf, workers, ticks, probes, leadership; a small API server and a real catalog."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from geogenius.catalog.leadership import Leadership
from geogenius.db import Database
from geogenius.domain.run import RunError
from tests.support import fault_server as server
from tests.support.catalog import CLUSTER_ID
from tests.support.databases import session
from tests.support.probing import probed
from tests.support.request_desk import RequestDesk, request_desk

SECONDS = 30.0
VERBS = ["list", "watch"]
GROUPS = [("batch", {"version": "v1"}), ("geogenius.io", {"version": "v1alpha1"})]
KINDS = {
    "/api/v1": [("namespaces", "Namespace", False), ("events", "Event", True)],
    "/apis/batch/v1": [("jobs", "Job", True)],
    "/apis/geogenius.io/v1alpha1": [("importrequests", "ImportRequest", True)],
}


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


@dataclass(frozen=True, slots=True)
class Program:
    """A running `geogenius controller`."""

    process: subprocess.Popen[bytes]
    port: int

    def probe(self, path: str) -> tuple[int, str]:
        return probed(self.port, path)

    def ended(self, number: signal.Signals | None = None) -> int:
        """The exit code, after this signal or by itself."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[RequestDesk]:
    with request_desk(database, tmp_path) as desk:
        desk.intercept(discovery)
        desk.api.put("/api/v1/namespaces/kube-system", metadata={"uid": str(CLUSTER_ID)})
        yield desk


@pytest.fixture
def environment(desk: RequestDesk, conninfo: str, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "KUBECONFIG": "/nowhere",  # the operator's own setting counts
        "GEOGENIUS_DATABASE__URL": conninfo,
        "GEOGENIUS_KUBERNETES__KUBECONFIG": str(desk.api.access(tmp_path).kubeconfig),
        "GEOGENIUS_JOB__IMAGE": "geogenius:test",
        "GEOGENIUS_CONTROLLER__TICK_SECONDS": "0.1",
    }


@contextmanager
def running(environment: dict[str, str]) -> Iterator[Program]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = environment | {"GEOGENIUS_CONTROLLER__PROBE_PORT": str(port)}
    command = [sys.executable, "-m", "geogenius", "controller"]
    with subprocess.Popen(command, env=variables) as process:
        try:
            yield Program(process, port)
        finally:
            process.kill()


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_request_is_carried_through_by_events_and_ticks(environment: dict[str, str], desk: RequestDesk) -> None:
    uid = desk.apply()
    with running(environment) as program:
        until(lambda: desk.status().get("jobName"))
        assert program.probe("/livez") == (200, "ok")
        until(lambda: program.probe("/readyz") == (200, "ok"))
        desk.runs.fail(desk.claimed(desk.run(uid)), RunError("staging", "DataRefused", "row 7"))
        until(lambda: desk.status()["finished"])  # nothing but the tick tells
        assert program.ended(signal.SIGTERM) == 0
    assert (len(desk.jobs()), desk.sent("POST")) == (1, 1)


def test_an_operator_that_is_killed_leaves_all_to_the_next_one(environment: dict[str, str], desk: RequestDesk) -> None:
    uid = desk.apply()
    with running(environment) as program:
        until(desk.jobs)
        program.ended(signal.SIGKILL)
    with running(environment) as program:
        until(lambda: desk.status().get("jobName"))
        desk.runs.fail(desk.claimed(desk.run(uid)), RunError("staging", "DataRefused", "row 7"))
        until(lambda: desk.status()["finished"])
        assert program.ended(signal.SIGTERM) == 0
    assert len(desk.jobs()) == 1


def test_an_operator_that_starts_before_its_kind_is_known_waits_for_it(
    environment: dict[str, str], desk: RequestDesk
) -> None:
    desk.apply()
    unknown, asked = threading.Event(), threading.Event()
    unknown.set()

    def missing(request: server.Received) -> server.Behaviour | None:
        if not unknown.is_set() or "geogenius.io" not in request.path:
            return None
        asked.set()
        return server.answer(404, b"404 page not found")

    desk.intercept(missing)
    with running(environment) as program:
        assert asked.wait(SECONDS)
        assert program.probe("/readyz") == (503, "the watch has not started")
        unknown.clear()
        until(desk.status)
        assert program.ended(signal.SIGTERM) == 0


def test_a_watch_that_breaks_ends_the_program(environment: dict[str, str], desk: RequestDesk) -> None:
    broken = server.answer(200, {"type": "ERROR", "object": {"code": 500, "message": "no"}})
    desk.intercept(lambda request: broken if "watch=true" in request.path else None)
    with running(environment) as program:
        assert program.ended() == 1


def test_a_standby_is_ready_ends_when_asked_and_takes_over_when_it_may(
    environment: dict[str, str], desk: RequestDesk, database: Database
) -> None:
    first = Leadership(database)
    assert first.try_acquire()
    desk.apply()
    with running(environment) as program:
        until(lambda: program.probe("/readyz") == (200, "ok"))
        assert program.ended(signal.SIGTERM) == 0
    assert desk.status() == {}
    with running(environment) as program:
        until(lambda: program.probe("/readyz") == (200, "ok"))
        first.release()
        until(desk.status)
        assert program.ended(signal.SIGTERM) == 0


def test_a_lost_session_of_the_leader_ends_the_program(environment: dict[str, str], desk: RequestDesk) -> None:
    desk.apply()
    with running(environment) as program, session(desk.database) as connection:
        until(desk.status)
        connection.execute("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")
        assert program.ended() == 1
