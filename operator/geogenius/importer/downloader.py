"""Downloads one reviewed file: over https, from a checked address, without redirects, hashed while it streams."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import urllib3

from geogenius.domain.deadline import Deadline, MonotonicClock
from geogenius.domain.errors import DataRefused, InvalidRequest, SourceUnavailable
from geogenius.domain.manifest import Artifact
from geogenius.importer.addresses import Address, Resolve, checked_addresses, resolve
from geogenius.importer.text import shortened

CHUNK_BYTES = 1 << 18
RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504})
RETRIED_ERRORS = (
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ProtocolError,
    urllib3.exceptions.ReadTimeoutError,
)
"""What may pass by itself. A refused certificate is not here: it stays refused."""


@dataclass(frozen=True, slots=True)
class DownloadPolicy:
    """What downloads may do. Times are in seconds; `total_seconds` bounds one file with all its attempts."""

    allow_http: bool = False
    allow_private: bool = False
    connect_seconds: float = 5.0
    read_seconds: float = 15.0
    total_seconds: float = 3600.0
    attempts: int = 3
    pause_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a download takes from outside: the clock, waiting, reports and names.

    `wait` may raise to stop a download; `report` is called with the bytes of each chunk and may raise as well.
    """

    clock: MonotonicClock
    wait: Callable[[float], None]
    report: Callable[[int], None]
    lookup: Resolve = resolve


@dataclass(frozen=True, slots=True)
class Observed:
    """What a file really is."""

    sha256: str
    bytes: int


class _TryAgain(Exception):
    """This attempt failed in a way that may pass."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class Downloader:
    """Fetches artifacts that have a URL. Proxies in the environment are not used: addresses could not be checked."""

    def __init__(self, policy: DownloadPolicy, surroundings: Surroundings) -> None:
        self._policy = policy
        self._surroundings = surroundings

    def fetch(self, artifact: Artifact, destination: Path) -> Observed:
        """Write the file to `destination`, which appears whole and as reviewed or not at all. Repeating it replaces it.

        Raises DataRefused (SizeMismatch, ChecksumMismatch), InvalidRequest (UrlRefused, AddressRefused) and
        SourceUnavailable.
        """
        url = self._checked_url(artifact)
        deadline = Deadline.after(self._policy.total_seconds, self._surroundings.clock)
        partial = destination.with_name(f".{destination.name}.part")  # no file of a manifest starts with a dot
        try:
            observed = self._attempts(artifact, url, partial, deadline)
            partial.replace(destination)
        finally:
            partial.unlink(missing_ok=True)
        return observed

    def _attempts(self, artifact: Artifact, url: SplitResult, partial: Path, deadline: Deadline) -> Observed:
        for attempt in range(1, self._policy.attempts + 1):
            try:
                return self._attempt(artifact, url, partial, deadline)
            except _TryAgain as failure:
                pause = failure.after or self._policy.pause_seconds * 2 ** (attempt - 1)
                if attempt == self._policy.attempts or pause >= deadline.remaining():
                    tries = f"{attempt} attempt{'s' if attempt > 1 else ''}"
                    raise SourceUnavailable(
                        f"{artifact.logical_name} cannot be downloaded from {shown(url)} after {tries}: {failure}"
                    ) from failure
                self._surroundings.wait(pause)
        raise AssertionError("attempts is at least 1")

    def _attempt(self, artifact: Artifact, url: SplitResult, partial: Path, deadline: Deadline) -> Observed:
        received = 0
        try:
            with self._response(artifact, url, deadline) as response, partial.open("wb") as file:
                digest = hashlib.sha256()
                for chunk in response.stream(CHUNK_BYTES, decode_content=False):
                    received += len(chunk)
                    self._surroundings.report(len(chunk))
                    _check_size(artifact, received, at_end=False)
                    digest.update(chunk)
                    file.write(chunk)
                    if deadline.passed:
                        raise SourceUnavailable(
                            f"{artifact.logical_name} is not complete after {self._policy.total_seconds:.0f} s: "
                            f"{received} of {artifact.bytes} bytes from {shown(url)}"
                        )
        except RETRIED_ERRORS as error:
            self._surroundings.report(-received)
            raise _TryAgain(_words(error)) from error
        except urllib3.exceptions.HTTPError as error:
            raise SourceUnavailable(
                f"{artifact.logical_name} cannot be downloaded from {shown(url)}: {_words(error)}"
            ) from error
        observed = Observed(digest.hexdigest(), received)
        check_observed(artifact, observed)
        return observed

    @contextlib.contextmanager
    def _response(
        self, artifact: Artifact, url: SplitResult, deadline: Deadline
    ) -> Iterator[urllib3.response.BaseHTTPResponse]:
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        addresses = checked_addresses(
            host, port, allow_private=self._policy.allow_private, lookup=self._surroundings.lookup
        )
        with contextlib.ExitStack() as stack:
            response = self._connected(url, port, list(addresses), deadline, stack)
            stack.callback(response.close)
            _check_status(artifact, url, response)
            yield response

    def _connected(
        self, url: SplitResult, port: int, addresses: list[Address], deadline: Deadline, stack: contextlib.ExitStack
    ) -> urllib3.response.BaseHTTPResponse:
        """The answer of the first address that takes the connection."""
        timeout = urllib3.Timeout(connect=self._policy.connect_seconds, read=self._policy.read_seconds)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {"Host": url.netloc, "Accept-Encoding": "identity", "User-Agent": "geogenius"}
        last: urllib3.exceptions.HTTPError | None = None
        for address in addresses:
            pool = stack.enter_context(self._pool(url, str(address), port))
            try:
                return pool.urlopen(
                    "GET",
                    target,
                    headers=headers,
                    timeout=timeout,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
            except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
                last = error
                self._surroundings.wait(0)
                if deadline.passed:
                    break
        raise last or _TryAgain(f"{url.hostname} has no address")

    def _pool(self, url: SplitResult, address: str, port: int) -> urllib3.HTTPConnectionPool:
        """Connections to the address that was checked; certificates are checked against the name all the same."""
        if url.scheme == "http":
            return urllib3.HTTPConnectionPool(address, port, maxsize=1)
        return urllib3.HTTPSConnectionPool(
            address,
            port,
            maxsize=1,
            server_hostname=url.hostname,
            assert_hostname=url.hostname,
            cert_reqs="CERT_REQUIRED",
        )

    def _checked_url(self, artifact: Artifact) -> SplitResult:
        url = urlsplit(artifact.url or "")
        allowed = ("https", "http") if self._policy.allow_http else ("https",)
        if url.scheme not in allowed or not url.hostname:
            raise InvalidRequest(
                f"{artifact.logical_name} has the url {shown(url)}; only {' and '.join(allowed)} is allowed here",
                reason="UrlRefused",
            )
        return url


def check_observed(artifact: Artifact, observed: Observed) -> None:
    """Compare a file with its review; DataRefused (SizeMismatch, ChecksumMismatch) names what was expected and seen."""
    _check_size(artifact, observed.bytes, at_end=True)
    if observed.sha256 != artifact.sha256:
        raise DataRefused(
            f"{artifact.logical_name} has the sha256 {observed.sha256}, expected {artifact.sha256}",
            reason="ChecksumMismatch",
        )


def shown(url: SplitResult) -> str:
    """A URL for messages: without its query, which may hold a signature."""
    return f"{url.scheme}://{url.hostname or ''}{f':{url.port}' if url.port else ''}{url.path}"


def _check_size(artifact: Artifact, seen: int, *, at_end: bool) -> None:
    if seen > artifact.bytes or (at_end and seen != artifact.bytes):
        amount = f"{seen} bytes" if at_end else f"more than {artifact.bytes} bytes"
        raise DataRefused(f"{artifact.logical_name} has {amount}, expected {artifact.bytes}", reason="SizeMismatch")


def _check_status(artifact: Artifact, url: SplitResult, response: urllib3.response.BaseHTTPResponse) -> None:
    status = response.status
    if status in RETRIED_STATUSES:
        raise _TryAgain(f"the server answers {_named(status)}", _retry_after(response))
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        target = urlsplit(response.headers.get("Location", ""))
        raise SourceUnavailable(
            f"{artifact.logical_name}: {shown(url)} redirects to {shortened(shown(target))}; "
            "redirects are not followed, put the final address into the manifest"
        )
    if status != HTTPStatus.OK:
        raise SourceUnavailable(f"{artifact.logical_name}: {shown(url)} answers {_named(status)}")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise SourceUnavailable(
            f"{artifact.logical_name}: {shown(url)} answers with the encoding {shortened(encoding)}"
        )
    length = response.headers.get("Content-Length", "")
    if length.isdecimal():
        _check_size(artifact, int(length), at_end=True)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _retry_after(response: urllib3.response.BaseHTTPResponse) -> float | None:
    seconds = response.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else None


def _words(error: urllib3.exceptions.HTTPError) -> str:
    """What went wrong without the addresses of objects that urllib3 puts in front."""
    words = str(error).rpartition(">: ")[2] or type(error).__name__
    return f"the certificate is refused: {words}" if isinstance(error, urllib3.exceptions.SSLError) else words
