"""Each row of the classification table, with the very errors that the client raises."""

import http.client
import json
import socket
import ssl
from typing import Any

import pytest
from kubernetes.client import V1Job
from kubernetes.client.exceptions import ApiException, ApiValueError
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    IncompleteRead,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from geogenius.kube.outcome import (
    AlreadyExists,
    Answered,
    Conflicted,
    NotFound,
    NotSent,
    Outcome,
    QuotaExceeded,
    Rejected,
    RejectionKind,
    Throttled,
    Unauthenticated,
    Unknown,
    outcome_of_answer,
    outcome_of_error,
)

POOL = HTTPSConnectionPool("kube.example")
CONNECTION = HTTPSConnection("kube.example")


def chained(error: Exception, cause: Exception, *, hidden: bool = False) -> Exception:
    """The error as it is raised while the cause is handled; hidden: as the client does, without `from`."""
    if hidden:
        error.__context__ = cause
    else:
        error.__cause__ = cause
    return error


def refused() -> NewConnectionError:
    return NewConnectionError(CONNECTION, "Failed to establish a new connection: [Errno 111] Connection refused")


def unresolved() -> NameResolutionError:
    return NameResolutionError("kube.example", CONNECTION, socket.gaierror(-2, "Name or service not known"))


def untrusted() -> ssl.SSLCertVerificationError:
    return ssl.SSLCertVerificationError(1, "certificate verify failed: unable to get local issuer certificate")


def status_zero(cause: Exception) -> Exception:
    """A TLS failure as the client hides it: the same type and status for two opposite facts."""
    return chained(ApiException(status=0, reason=f"SSLError\n{cause}"), chained(SSLError(cause), cause), hidden=True)


def validation_error() -> Exception:
    with pytest.raises(ValueError, match="validation error") as caught:
        V1Job.from_dict({"spec": {"backoffLimit": "many"}})
    return caught.value


@pytest.mark.parametrize(
    ("error", "reason", "temporary"),
    [
        pytest.param(refused(), "ConnectionRefused", True, id="refused"),
        pytest.param(MaxRetryError(POOL, "/", refused()), "ConnectionRefused", True, id="refused, after retries"),
        pytest.param(ProxyError("no proxy", refused()), "ConnectionRefused", True, id="proxy refused"),
        pytest.param(unresolved(), "NameNotResolved", True, id="no such name"),
        pytest.param(MaxRetryError(POOL, "/", unresolved()), "NameNotResolved", True, id="no such name, after retries"),
        pytest.param(ConnectTimeoutError(CONNECTION, "timed out"), "ConnectTimeout", True, id="connect timeout"),
        pytest.param(status_zero(untrusted()), "CertificateInvalid", False, id="wrong authority"),
        pytest.param(
            MaxRetryError(POOL, "/", chained(SSLError(untrusted()), untrusted())),
            "CertificateInvalid",
            False,
            id="wrong authority, after retries",
        ),
        pytest.param(validation_error(), "LocalValidation", False, id="refused by the model"),
        pytest.param(ApiValueError("two bodies"), "LocalValidation", False, id="refused by the client"),
        pytest.param(TypeError("not JSON serializable"), "LocalValidation", False, id="no JSON"),
    ],
)
def test_what_is_raised_before_a_request_leaves_is_definite(error: Exception, reason: str, *, temporary: bool) -> None:
    outcome = outcome_of_error(error)

    assert isinstance(outcome, NotSent)
    assert (outcome.reason, outcome.temporary) == (reason, temporary)
    assert outcome.message


UNKNOWN = [
    pytest.param(ReadTimeoutError(POOL, "/", "Read timed out."), "ReadTimeout", id="read timeout"),
    pytest.param(
        chained(ProtocolError("Connection aborted."), ConnectionResetError(104, "reset by peer")),
        "ConnectionBroken",
        id="reset",
    ),
    pytest.param(
        ProtocolError("aborted", http.client.RemoteDisconnected("no response")), "ConnectionBroken", id="closed"
    ),
    pytest.param(ProtocolError("broken", IncompleteRead(10, 90)), "ConnectionBroken", id="truncated"),
    pytest.param(ProtocolError("aborted", http.client.BadStatusLine("?")), "ConnectionBroken", id="garbled"),
    pytest.param(
        chained(ProtocolError("bad chunk"), ValueError("invalid literal for int()")), "ConnectionBroken", id="bad chunk"
    ),
    pytest.param(status_zero(ssl.SSLError(1, "wrong version number")), "TlsBroken", id="TLS broken"),
    pytest.param(MaxRetryError(POOL, "/", SSLError("bad record mac")), "TlsBroken", id="TLS broken, after retries"),
    pytest.param(ApiException(status=0, reason="SSLError"), "NoUsableAnswer", id="status 0 without a cause"),
    pytest.param(RuntimeError("what is this"), "NoUsableAnswer", id="anything else"),
]


@pytest.mark.parametrize(("error", "reason"), UNKNOWN)
def test_what_may_be_raised_after_a_request_left_is_unknown(error: Exception, reason: str) -> None:
    outcome = outcome_of_error(error)

    assert isinstance(outcome, Unknown)
    assert outcome.reason == reason
    assert outcome == outcome_of_error(error, sent=True)


@pytest.mark.parametrize(("error", "reason"), UNKNOWN)
def test_a_connection_that_saw_nothing_leave_makes_it_definite(error: Exception, reason: str) -> None:
    outcome = outcome_of_error(error, sent=False)

    assert isinstance(outcome, NotSent)
    assert (outcome.reason, outcome.temporary) == (reason, True)


@pytest.mark.parametrize("error", [refused(), status_zero(untrusted()), ValueError("no JSON in the answer")])
def test_a_connection_that_saw_a_request_leave_makes_it_unknown(error: Exception) -> None:
    assert isinstance(outcome_of_error(error, sent=True), Unknown)


def answered(status: int, reason: str, message: str, **details: Any) -> Outcome:  # noqa: ANN401  JSON
    document = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "details": details}
    return outcome_of_answer(status, None, json.dumps(document).encode())


NAMESPACE_ENDS = {"causes": [{"reason": "NamespaceTerminating", "message": "namespace maps is being terminated"}]}


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        *(
            pytest.param(
                answered(code, "R", "words"), Rejected(code, "R", "words", RejectionKind.INVALID), id=str(code)
            )
            for code in (400, 405, 406, 410, 413, 415, 422)
        ),
        pytest.param(answered(401, "Unauthorized", "words"), Unauthenticated(401, "words"), id="401"),
        pytest.param(answered(403, "", "words"), Unauthenticated(403, "words"), id="403 without a reason"),
        pytest.param(
            answered(403, "Forbidden", 'User "system:anonymous" cannot create'),
            Unauthenticated(403, 'User "system:anonymous" cannot create'),
            id="403 for nobody",
        ),
        pytest.param(
            answered(403, "Forbidden", 'User "system:serviceaccount:a:b" cannot create'),
            Rejected(403, "Forbidden", 'User "system:serviceaccount:a:b" cannot create', RejectionKind.FORBIDDEN),
            id="403 for a missing right",
        ),
        pytest.param(
            answered(403, "Forbidden", 'violates PodSecurity "restricted:latest"'),
            Rejected(403, "Forbidden", 'violates PodSecurity "restricted:latest"', RejectionKind.FORBIDDEN),
            id="403 for pod security",
        ),
        pytest.param(
            answered(403, "Forbidden", "failed quota: q: must specify limits.memory"),
            Rejected(403, "Forbidden", "failed quota: q: must specify limits.memory", RejectionKind.FORBIDDEN),
            id="403 for a Job that no quota can count",
        ),
        pytest.param(
            answered(403, "Forbidden", "x is forbidden: exceeded quota: q"),
            QuotaExceeded("x is forbidden: exceeded quota: q"),
            id="403 for a full quota",
        ),
        pytest.param(
            answered(403, "Forbidden", "being terminated", **NAMESPACE_ENDS),
            Rejected(403, "Forbidden", "being terminated", RejectionKind.NAMESPACE_TERMINATING),
            id="403 for a namespace that ends",
        ),
        pytest.param(answered(404, "NotFound", "words"), NotFound("words"), id="404"),
        pytest.param(answered(409, "AlreadyExists", "words"), AlreadyExists("words"), id="409 exists"),
        pytest.param(answered(409, "Conflict", "words"), Conflicted("words"), id="409 conflict"),
        pytest.param(answered(429, "TooManyRequests", "words"), Throttled("words", 5.0), id="429"),
        pytest.param(
            answered(429, "TooManyRequests", "words", retryAfterSeconds=9), Throttled("words", 9.0), id="429 in details"
        ),
        pytest.param(outcome_of_answer(429, "7", b"busy"), Throttled("busy", 7.0), id="429 in plain text"),
        pytest.param(outcome_of_answer(429, "soon", b"busy"), Throttled("busy", 5.0), id="429 with a strange header"),
        pytest.param(outcome_of_answer(201, None, b'{"kind":"Job"}'), Answered(201, {"kind": "Job"}), id="201"),
        *(
            pytest.param(answered(code, "R", "words"), Unknown("ServerError", f"HTTP {code}: words"), id=str(code))
            for code in (500, 502, 503, 504, 599)
        ),
        *(
            pytest.param(answered(code, "R", "w"), Unknown("UnexpectedAnswer", f"HTTP {code}: w"), id=str(code))
            for code in (302, 402, 408, 418)
        ),
        *(
            pytest.param(
                outcome_of_answer(code, None, b"<html>"),
                Unknown("ServerError" if code >= 500 else "UnexpectedAnswer", f"HTTP {code}: <html>"),
                id=f"{code} in HTML",
            )
            for code in (200, 201, 307, 400, 401, 403, 404, 409, 422, 502)
        ),
        pytest.param(
            outcome_of_answer(404, None, b'{"kind": "Oops", "message": "no"}'),
            Unknown("UnexpectedAnswer", "HTTP 404: no"),
            id="404 in JSON that is no Status",
        ),
        pytest.param(
            outcome_of_answer(200, None, b"[1]"), Unknown("UnexpectedAnswer", "HTTP 200: [1]"), id="200 with a list"
        ),
    ],
)
def test_an_answer_means_what_the_table_says(outcome: Outcome, expected: Outcome) -> None:
    assert outcome == expected


def test_what_an_answer_says_is_cut_to_what_a_person_reads() -> None:
    outcome = outcome_of_answer(502, None, b"x" * 100_000)

    assert isinstance(outcome, Unknown)
    assert len(outcome.message) < 600
