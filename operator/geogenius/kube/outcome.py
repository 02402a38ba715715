"""What an answer of the API server, or the lack of one, means: the one classification table.

Three kinds of facts are kept apart by type: the request was not carried out for certain (`NotSent` and the
refusals), it was (`Answered`), or nobody can tell (`Unknown`). Nothing else in the product reads a status code.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from ssl import SSLCertVerificationError
from ssl import SSLError as PythonSslError

from urllib3.exceptions import (
    ConnectTimeoutError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from geogenius.kube.resources import JsonObject, integer_at, objects_at, text_at, value_at

DEFAULT_RETRY_AFTER_SECONDS = 5.0
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """The server carried the request out; `body` is the object it answered."""

    status: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request did not leave this process for certain. `temporary` says that trying again may help."""

    reason: str
    message: str
    temporary: bool


class RejectionKind(StrEnum):
    """Why the server refuses: what is asked for is wrong, this client may not ask, or the namespace ends."""

    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    NAMESPACE_TERMINATING = "NamespaceTerminating"


@dataclass(frozen=True, slots=True)
class Rejected:
    """The server refused in its own words and did nothing. `reason` is the server's (`Forbidden`, `Invalid`, ...)."""

    status: int
    reason: str
    message: str
    kind: RejectionKind


@dataclass(frozen=True, slots=True)
class Throttled:
    """The server is busy and did nothing; ask again after so many seconds."""

    message: str
    retry_after: float


@dataclass(frozen=True, slots=True)
class QuotaExceeded:
    """A resource quota leaves no room now; nothing was done."""

    message: str


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """The server does not know who asks, or gives no reason for a 403: credentials first, never a rejection."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """An object of this name is there; whose it is must be read."""

    message: str


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another writer, or another object of this name (uid precondition), was there; nothing was done."""

    message: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """The server says that the object, or the namespace it should go to, does not exist."""

    message: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been carried out or not. Only a later look can tell."""

    reason: str
    message: str


Refusal = (
    NotSent | Rejected | Throttled | QuotaExceeded | Unauthenticated | AlreadyExists | Conflicted | NotFound | Unknown
)
Outcome = Answered | Refusal

_DEFINITE_REJECTIONS = frozenset({400, 405, 406, 410, 413, 415, 422})

_NOT_SENT: tuple[tuple[tuple[type[BaseException], ...], str, bool], ...] = (
    ((SSLCertVerificationError,), "CertificateInvalid", False),
    ((NameResolutionError,), "NameNotResolved", True),
    ((NewConnectionError,), "ConnectionRefused", True),
    ((ConnectTimeoutError,), "ConnectTimeout", True),
)
"""(errors, reason, temporary): what is raised only before a request leaves, wherever it hides in the chain of causes.
Order matters: a name that is not resolved is also a connection that is not made."""

_UNKNOWN: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((ReadTimeoutError,), "ReadTimeout"),
    ((ProtocolError, ConnectionError), "ConnectionBroken"),
    ((SSLError, PythonSslError), "TlsBroken"),
)


def outcome_of_error(error: BaseException, *, sent: bool | None = None) -> NotSent | Unknown:
    """What an error of the client means.

    `sent` is what the connection itself observed: True, the request began to leave; False, it certainly did
    not; None, it was not observed. An observation outranks the type of the error: a broken TLS record and an
    untrusted certificate have the same type and the same status 0, and a stalled handshake looks like a lost answer.
    """
    message = _shown(str(error) or type(error).__name__)
    chain = _chain(error)
    if sent is not True:
        for types, reason, temporary in _NOT_SENT:
            if any(isinstance(cause, types) for cause in chain):
                return NotSent(reason, message, temporary)
        if isinstance(error, (ValueError, TypeError)):  # the outermost only: parsing an answer raises them inside
            return NotSent("LocalValidation", message, temporary=False)
    reason = next((name for types, name in _UNKNOWN if any(isinstance(c, types) for c in chain)), "NoUsableAnswer")
    return NotSent(reason, message, temporary=True) if sent is False else Unknown(reason, message)


def outcome_of_answer(status: int, retry_after: str | None, body: bytes) -> Outcome:
    """What a complete HTTP answer means. `retry_after` is the header of that name, in seconds.

    A refusal counts only in the server's own form, a Status object: anything else was said by something in between
    and tells nothing about what the server did. 429 is the exception: the server itself sends it as plain text.
    """
    document = _document(body)
    if 200 <= status < 300:  # noqa: PLR2004 - the class of HTTP answers that mean success
        return Answered(status, document) if document is not None else _unusable(status, body)
    if status == 429:  # noqa: PLR2004 - the table speaks in status codes, as its readers do
        return Throttled(_words(document, body), _retry_after(retry_after, document))
    if document is None or text_at(document, "kind") != "Status" or status >= 500:  # noqa: PLR2004
        return _unusable(status, body)
    return _outcome_of_status(status, document)


def _outcome_of_status(status: int, document: JsonObject) -> Outcome:
    message = text_at(document, "message") or f"HTTP {status} without a message"
    reason = text_at(document, "reason")
    match status:
        case 401:
            return Unauthenticated(status, message)
        case 403:
            return _forbidden(reason, message, document)
        case 404:
            return NotFound(message)
        case 409:
            return AlreadyExists(message) if reason == "AlreadyExists" else Conflicted(message)
        case _ if status in _DEFINITE_REJECTIONS:
            return Rejected(status, reason or "Invalid", message, RejectionKind.INVALID)
        case _:
            return Unknown("UnexpectedAnswer", f"HTTP {status}: {_shown(message)}")


def _forbidden(reason: str, message: str, document: JsonObject) -> Rejected | QuotaExceeded | Unauthenticated:
    """A 403 has five meanings. Two of them the server tells apart only in words: its own quota and its own nobody."""
    causes = {text_at(cause, "reason") for cause in objects_at(document, "details", "causes")}
    if "NamespaceTerminating" in causes:
        return Rejected(403, reason, message, RejectionKind.NAMESPACE_TERMINATING)
    if "exceeded quota" in message:
        return QuotaExceeded(message)
    if not reason or '"system:anonymous"' in message:
        return Unauthenticated(403, message)
    return Rejected(403, reason, message, RejectionKind.FORBIDDEN)


def _retry_after(header: str | None, document: JsonObject | None) -> float:
    seconds = int(header) if header is not None and header.isascii() and header.isdigit() else None
    if seconds is None:
        seconds = integer_at(document, "details", "retryAfterSeconds")
    return float(seconds) if seconds else DEFAULT_RETRY_AFTER_SECONDS


def _unusable(status: int, body: bytes) -> Unknown:
    server_error = status >= 500  # noqa: PLR2004 - the class of HTTP answers that mean trouble in the server
    words = _words(_document(body), body)
    return Unknown("ServerError" if server_error else "UnexpectedAnswer", f"HTTP {status}: {words}")


def _words(document: JsonObject | None, body: bytes) -> str:
    message = value_at(document, "message")
    return _shown(message if isinstance(message, str) else body.decode("utf-8", "replace").strip())


def _document(body: bytes) -> JsonObject | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _chain(error: BaseException) -> list[BaseException]:
    """The error with its causes, outermost first: the client wraps some (`reason`), chains some, hides others."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        wrapped = getattr(current, "original_error", None) or getattr(current, "reason", None)
        current = wrapped if isinstance(wrapped, BaseException) else current.__cause__ or current.__context__
    return chain


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
