from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from geogenius.telemetry.metrics import ControllerMetrics
from geogenius.telemetry.probes import Probes, serve


@contextmanager
def serving(probes: Probes) -> Iterator[int]:
    server = serve(0, probes)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/livez", 200, "ok\n"),
        ("/readyz", 503, "the database does not answer\n"),
        ("/", 404, "not found\n"),
    ],
)
def test_each_probe_tells_its_own_truth(path: str, status: int, body: str) -> None:
    probes = Probes(lambda: None, lambda: "the database does not answer", ControllerMetrics().registry)
    with serving(probes) as port:
        assert get(port, path) == (status, body)


def test_the_metrics_are_those_of_the_operator() -> None:
    metrics = ControllerMetrics()
    metrics.leader.set(1)
    with serving(Probes(lambda: None, lambda: None, metrics.registry)) as port:
        status, text = get(port, "/metrics")
    assert status == 200
    assert "geogenius_leader 1.0" in text
