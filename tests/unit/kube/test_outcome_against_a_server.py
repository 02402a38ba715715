"""Each fault provoked for real: what the client says of it, and that no POST is ever sent twice."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from geogenius.kube.client import ClusterAccess, KubeClient, Limits, Request
from geogenius.kube.outcome import (
    AlreadyExists,
    Answered,
    NotFound,
    NotSent,
    Outcome,
    QuotaExceeded,
    Rejected,
    RejectionKind,
    Throttled,
    Unauthenticated,
    Unknown,
)
from geogenius.kube.wire import Call
from tests.support import fault_server as server
from tests.support.fault_server import Behaviour, FaultServer

LIMITS = Limits(connect_seconds=0.4, read_seconds=0.4, total_seconds=1.0, calls=2)
JOBS = "/apis/batch/v1/namespaces/maps/jobs"
A_JOB = Request("POST", JOBS, body={"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "geogenius-1"}})


@pytest.fixture
def faulty() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def sent(access: ClusterAccess, request: Request = A_JOB, limits: Limits = LIMITS) -> Outcome:
    with KubeClient(access, limits) as client:
        return client.exchange(request)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        pytest.param(server.silence, Unknown("ReadTimeout", ""), id="no answer"),
        pytest.param(server.reset, Unknown("ConnectionBroken", ""), id="reset after the request"),
        pytest.param(server.hang_up, Unknown("ConnectionBroken", ""), id="closed after the request"),
        pytest.param(server.truncated, Unknown("ConnectionBroken", ""), id="truncated body of a 201"),
        pytest.param(server.truncated_chunks, Unknown("ConnectionBroken", ""), id="truncated chunks of a 201"),
        pytest.param(server.garbage, Unknown("ConnectionBroken", ""), id="garbage instead of HTTP"),
        pytest.param(server.broken_tls, Unknown("TlsBroken", ""), id="TLS broken after the request"),
        pytest.param(server.dripping_head, Unknown("DeadlineExceeded", ""), id="head that drips"),
        pytest.param(server.dripping_body, Unknown("DeadlineExceeded", ""), id="body that drips"),
        pytest.param(server.answer(502, b"<html>bad gateway</html>"), Unknown("ServerError", ""), id="502 in HTML"),
        pytest.param(server.status(500, "InternalError", "oops"), Unknown("ServerError", ""), id="500 as a Status"),
        pytest.param(server.status(503, "ServiceUnavailable", "later"), Unknown("ServerError", ""), id="503"),
        pytest.param(server.status(504, "Timeout", "too slow"), Unknown("ServerError", ""), id="504"),
        pytest.param(server.answer(404, b"<html>no</html>"), Unknown("UnexpectedAnswer", ""), id="404 in HTML"),
        pytest.param(server.answer(201, b"<html>fine</html>"), Unknown("UnexpectedAnswer", ""), id="201 in HTML"),
        pytest.param(
            server.answer(307, b"", {"Location": "/elsewhere"}), Unknown("UnexpectedAnswer", ""), id="a redirect"
        ),
        pytest.param(
            server.answer(429, b"Too many requests, please try again later.", {"Retry-After": "7"}),
            Throttled("", 7.0),
            id="429 in plain text",
        ),
        pytest.param(
            server.status(403, "Forbidden", 'jobs.batch "x" is forbidden: exceeded quota: team, used: 3'),
            QuotaExceeded(""),
            id="403 for a quota",
        ),
        pytest.param(
            server.status(403, "Forbidden", 'jobs.batch is forbidden: User "x" cannot create resource "jobs"'),
            Rejected(403, "Forbidden", "", RejectionKind.FORBIDDEN),
            id="403 for a missing right",
        ),
        pytest.param(
            server.status(422, "Invalid", "spec: Required value"),
            Rejected(422, "Invalid", "", RejectionKind.INVALID),
            id="422",
        ),
        pytest.param(server.status(404, "NotFound", 'namespaces "maps" not found'), NotFound(""), id="404"),
        pytest.param(server.status(409, "AlreadyExists", "already exists"), AlreadyExists(""), id="409"),
    ],
)
def test_what_a_server_does_after_the_request_is_told_apart_and_never_repeated(
    faulty: FaultServer, tmp_path: Path, behaviour: Behaviour, expected: Outcome
) -> None:
    faulty.queued.append(behaviour)

    outcome = sent(faulty.access(tmp_path))

    assert without_words(outcome) == without_words(expected)
    assert len(faulty.posts()) == 1


def stall(_: socket.socket, stopped: threading.Event) -> None:
    stopped.wait()


def hang_up(line: socket.socket, _: threading.Event) -> None:
    line.recv(65536)  # a connection that is closed with something unread is reset


def reset(line: socket.socket, _: threading.Event) -> None:
    line.recv(1)  # the client is in the handshake now
    server.abort(line)


def drip(line: socket.socket, stopped: threading.Event) -> None:
    with suppress(OSError):
        line.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")  # the start of a long record of a handshake
        for _ in range(server.DRIPS):
            if stopped.wait(server.DRIP_SECONDS):
                break
            line.sendall(b"\x03")


@pytest.mark.parametrize(
    ("at_connect", "reason"),
    [
        pytest.param(stall, "ReadTimeout", id="handshake that stalls"),
        pytest.param(reset, "ConnectionBroken", id="reset in the handshake"),
        pytest.param(hang_up, "TlsBroken", id="closed in the handshake"),
    ],
)
def test_a_handshake_that_fails_is_known_not_to_have_sent_anything(
    faulty: FaultServer, tmp_path: Path, at_connect: Callable[[socket.socket, threading.Event], None], reason: str
) -> None:
    faulty.at_connect = at_connect

    outcome = sent(faulty.access(tmp_path))

    assert without_words(outcome) == NotSent(reason, "", temporary=True)
    assert (faulty.connections, faulty.received) == (1, [])


def test_a_handshake_that_drips_ends_at_the_deadline(faulty: FaultServer, tmp_path: Path) -> None:
    faulty.at_connect = drip

    outcome = sent(faulty.access(tmp_path), limits=Limits(connect_seconds=60, total_seconds=0.5))

    assert without_words(outcome) == NotSent("DeadlineExceeded", "", temporary=True)
    assert faulty.received == []


def test_a_certificate_of_another_authority_is_final_and_nothing_is_sent(faulty: FaultServer, tmp_path: Path) -> None:
    outcome = sent(faulty.access(tmp_path, authority="other-ca.pem"))

    assert without_words(outcome) == NotSent("CertificateInvalid", "", temporary=False)
    assert faulty.received == []


def test_a_refused_connection_is_temporary(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    outcome = sent(server.access_to(f"https://127.0.0.1:{port}", tmp_path))

    assert without_words(outcome) == NotSent("ConnectionRefused", "", temporary=True)


def test_a_refused_connection_without_tls_is_not_taken_for_a_sent_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    outcome = sent(server.access_to(f"http://127.0.0.1:{port}", tmp_path))

    assert without_words(outcome) == NotSent("ConnectionRefused", "", temporary=True)


def test_a_server_that_does_not_accept_connections_is_temporary(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        first.connect(full.getsockname())
        second.settimeout(0)
        second.connect_ex(full.getsockname())

        outcome = sent(server.access_to(f"https://127.0.0.1:{full.getsockname()[1]}", tmp_path))

    assert without_words(outcome) == NotSent("ConnectTimeout", "", temporary=True)


def test_a_name_that_does_not_resolve_is_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolved(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)

    outcome = sent(server.access_to("https://kube.example", tmp_path))

    assert without_words(outcome) == NotSent("NameNotResolved", "", temporary=True)


def test_a_name_that_resolves_after_the_deadline_sends_nothing_any_more(
    faulty: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, resolved = socket.getaddrinfo, threading.Event()

    def slow(*args: Any, **named: Any) -> Any:  # noqa: ANN401  as the system's
        resolved.wait()
        return resolve(*args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with KubeClient(faulty.access(tmp_path), Limits(total_seconds=0.2)) as client:
        outcome = client.exchange(A_JOB)
        resolved.set()

    assert without_words(outcome) == NotSent("DeadlineExceeded", "", temporary=True)
    assert faulty.received == []


def test_a_body_that_is_no_json_is_final_and_not_sent(faulty: FaultServer, tmp_path: Path) -> None:
    outcome = sent(faulty.access(tmp_path), Request("POST", JOBS, body={"when": object()}))  # type: ignore[dict-item]

    assert isinstance(outcome, NotSent)
    assert not outcome.temporary
    assert faulty.received == []


def test_a_dripping_server_holds_a_call_no_longer_than_the_deadline_and_frees_its_thread(
    faulty: FaultServer, tmp_path: Path
) -> None:
    faulty.queued.extend([server.dripping_head] * 3)
    began = monotonic()

    with KubeClient(faulty.access(tmp_path), Limits(0.4, 0.4, total_seconds=0.5, calls=1)) as client:
        outcomes = [client.exchange(A_JOB) for _ in range(3)]
        took = monotonic() - began

    assert {without_words(outcome) for outcome in outcomes} == {Unknown("DeadlineExceeded", "")}
    assert took < 3 * 0.5 + 1.0
    assert len(faulty.posts()) == 3


def test_a_client_whose_calls_are_all_in_use_says_that_nothing_was_sent(faulty: FaultServer, tmp_path: Path) -> None:
    released = threading.Event()
    with KubeClient(faulty.access(tmp_path), Limits(total_seconds=0.1, calls=1)) as client:
        client._threads.submit(released.wait)
        outcome = client.exchange(A_JOB)
        released.set()

    assert without_words(outcome) == NotSent("ClientBusy", "", temporary=True)
    assert faulty.received == []


def test_a_call_that_was_cut_before_it_sent_never_sends(faulty: FaultServer, tmp_path: Path) -> None:
    call = Call()
    call.cut()
    with KubeClient(faulty.access(tmp_path), LIMITS) as client:
        outcome = client._perform(A_JOB, call)

    assert isinstance(outcome, NotSent)
    assert faulty.received == []


def test_an_unknown_token_is_read_again_once_and_the_request_repeated(faulty: FaultServer, tmp_path: Path) -> None:
    access = faulty.access(tmp_path, token="old")
    faulty.queued.extend([server.status(401, "Unauthorized", "Unauthorized"), server.answer(201, {"kind": "Job"})])
    with KubeClient(access, LIMITS) as client:
        faulty.access(tmp_path, token="new")
        outcome = client.exchange(A_JOB)

    assert outcome == Answered(201, {"kind": "Job"})
    assert [request.headers["authorization"] for request in faulty.received] == ["Bearer old", "Bearer new"]


def test_a_token_that_stays_unknown_is_no_rejection(faulty: FaultServer, tmp_path: Path) -> None:
    faulty.queued.extend([server.status(401, "Unauthorized", "Unauthorized")] * 2)

    assert sent(faulty.access(tmp_path)) == Unauthenticated(401, "Unauthorized")


def test_connections_are_kept_and_a_dropped_one_is_replaced(faulty: FaultServer, tmp_path: Path) -> None:
    def last(line: server.Line) -> bool:
        server.answer(200, {"n": 2})(line)
        return False

    faulty.queued.extend([server.answer(200, {"n": 1}), last, server.answer(200, {"n": 3})])
    with KubeClient(faulty.access(tmp_path), LIMITS) as client:
        outcomes = [client.exchange(Request("GET", "/version")) for _ in range(2)]
        kept = faulty.connections
        outcomes.append(client.exchange(Request("GET", "/version")))

    assert [outcome.body["n"] for outcome in outcomes if isinstance(outcome, Answered)] == [1, 2, 3]
    assert (kept, faulty.connections) == (1, 2)


def without_words(outcome: Outcome) -> Outcome:
    """The outcome without what it says to people."""
    return outcome if isinstance(outcome, Answered) else replace(outcome, message="")
