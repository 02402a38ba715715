import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from geogenius.domain.errors import Cancelled, DataRefused, InvalidRequest, SourceUnavailable
from geogenius.domain.manifest import Artifact
from geogenius.importer.addresses import Address
from geogenius.importer.downloader import Downloader, DownloadPolicy, Observed, Surroundings
from tests.support.web import Answer, hang_up, ok, serving, status

BODY = b"0123456789" * 100_000
SHA256 = hashlib.sha256(BODY).hexdigest()
LOCAL = DownloadPolicy(allow_http=True, allow_private=True, connect_seconds=2, read_seconds=2)


class Witness:
    """A clock that moves by waiting only; notes what was waited and reported."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.reported = 0

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def report(self, count: int) -> None:
        self.reported += count

    def surroundings(self) -> Surroundings:
        return Surroundings(lambda: self.now, self.wait, self.report)


def artifact(url: str, body: bytes = BODY) -> Artifact:
    return Artifact("areas.geojson", "geojson", hashlib.sha256(body).hexdigest(), len(body), url)


def fetched(witness: Witness, folder: Path, wanted: Artifact, policy: DownloadPolicy = LOCAL) -> Observed:
    return Downloader(policy, witness.surroundings()).fetch(wanted, folder / "areas.geojson")


def test_a_file_arrives_whole_and_hashed(tmp_path: Path) -> None:
    witness = Witness()
    with serving(ok(BODY)) as server:
        assert fetched(witness, tmp_path, artifact(server.url("/a/b?c=d"))) == Observed(SHA256, len(BODY))
        assert [request["path"] for request in server.requests] == ["/a/b?c=d"]
        assert server.requests[0]["Host"] == f"127.0.0.1:{server.port}"
    assert (tmp_path / "areas.geojson").read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["areas.geojson"]
    assert (witness.reported, witness.waits) == (len(BODY), [])


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (ok(BODY[:-1] + b"x"), "ChecksumMismatch", f"has the sha256 .*, expected {SHA256}"),
        (ok(BODY[:-1]), "SizeMismatch", "has 999999 bytes, expected 1000000"),
        (ok(BODY + b"x"), "SizeMismatch", "has 1000001 bytes, expected 1000000"),
        (ok(BODY + b"x", chunked_without_length=True), "SizeMismatch", "has more than 1000000 bytes"),
        (ok(BODY[:-1], chunked_without_length=True), "SizeMismatch", "has 999999 bytes, expected 1000000"),
    ],
)
def test_a_file_other_than_reviewed_is_refused_and_removed(
    tmp_path: Path, answer: Answer, reason: str, words: str
) -> None:
    with serving(answer) as server, pytest.raises(DataRefused, match=f"areas.geojson {words}") as caught:
        fetched(Witness(), tmp_path, artifact(server.url()))
    assert caught.value.reason == reason
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("bad", [status(500), status(503), status(429), hang_up, ok(BODY[:500_000], length=len(BODY))])
def test_what_may_pass_is_tried_again(tmp_path: Path, bad: Answer) -> None:
    witness = Witness()
    with serving(bad, bad, ok(BODY)) as server:
        assert fetched(witness, tmp_path, artifact(server.url())).sha256 == SHA256
    assert witness.waits == [1.0, 2.0]
    assert witness.reported == len(BODY)


def test_trying_ends(tmp_path: Path) -> None:
    witness = Witness()
    with serving(status(503)) as server, pytest.raises(SourceUnavailable, match=r"after 3 attempts: .*503 Service"):
        fetched(witness, tmp_path, artifact(server.url()))
    assert len(server.requests) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_server_may_ask_for_a_pause(tmp_path: Path) -> None:
    witness = Witness()
    with serving(status(429, Retry_After="7"), ok(BODY)) as server:
        fetched(witness, tmp_path, artifact(server.url()))
    assert witness.waits == [7.0]


def test_no_pause_goes_beyond_the_deadline(tmp_path: Path) -> None:
    witness = Witness()
    with serving(status(429, Retry_After="9999")) as server, pytest.raises(SourceUnavailable, match="1 attempt: "):
        fetched(witness, tmp_path, artifact(server.url()))
    assert witness.waits == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(404), "answers 404 Not Found"),
        (status(403), "answers 403 Forbidden"),
        (status(204), "answers 204 No Content"),
        (status(599), "answers 599"),
        (status(302, Location="https://other.example/x?token=secret"), "redirects to 'https://other.example/x'; "),
        (ok(BODY, Content_Encoding="gzip"), "answers with the encoding 'gzip'"),
    ],
)
def test_other_answers_are_told_and_not_repeated(tmp_path: Path, answer: Answer, words: str) -> None:
    with serving(answer) as server, pytest.raises(SourceUnavailable, match=words) as caught:
        fetched(Witness(), tmp_path, artifact(server.url("/x?signature=secret")))
    assert len(server.requests) == 1
    assert "secret" not in str(caught.value)
    assert "areas.geojson" in str(caught.value)


def test_an_address_where_nobody_listens_is_unavailable(tmp_path: Path) -> None:
    with serving(ok(BODY)) as server:
        url = server.url()
    with pytest.raises(SourceUnavailable, match=r"after 3 attempts: .*[Cc]onnection refused"):
        fetched(Witness(), tmp_path, artifact(url))


def test_a_slow_file_ends_at_the_deadline(tmp_path: Path) -> None:
    witness = Witness()

    def report(count: int) -> None:
        witness.now += count

    policy = replace(LOCAL, total_seconds=300_000)
    with serving(ok(BODY)) as server, pytest.raises(SourceUnavailable, match="is not complete after 300000 s"):
        Downloader(policy, replace(witness.surroundings(), report=report)).fetch(
            artifact(server.url()), tmp_path / "areas.geojson"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_stop_ends_a_download(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise Cancelled("stop")

    with serving(ok(BODY)) as server, pytest.raises(Cancelled):
        Downloader(LOCAL, replace(Witness().surroundings(), report=stop)).fetch(
            artifact(server.url()), tmp_path / "areas.geojson"
        )
    assert list(tmp_path.iterdir()) == []


def test_plain_http_is_refused_unless_allowed(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="only https is allowed") as caught:
        fetched(Witness(), tmp_path, artifact("http://example.org/x"), replace(LOCAL, allow_http=False))
    assert caught.value.reason == "UrlRefused"


def test_private_addresses_are_refused_unless_allowed(tmp_path: Path) -> None:
    with serving(ok(BODY)) as server, pytest.raises(InvalidRequest, match="not public") as caught:
        fetched(Witness(), tmp_path, artifact(server.url(host="localhost")), replace(LOCAL, allow_private=False))
    assert caught.value.reason == "AddressRefused"
    assert server.requests == []


def test_the_checked_address_is_the_one_connected_to(tmp_path: Path) -> None:
    asked: list[str] = []

    def lookup(host: str, _: int) -> Sequence[Address]:
        asked.append(host)
        return [ip_address("127.0.0.1")]

    with serving(ok(BODY)) as server:
        url = server.url(host="areas.invalid")
        Downloader(LOCAL, replace(Witness().surroundings(), lookup=lookup)).fetch(artifact(url), tmp_path / "x")
        assert server.requests[0]["Host"] == f"areas.invalid:{server.port}"
    assert asked == ["areas.invalid"]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the name areas.invalid, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=areas.invalid", "-addext", "subjectAltName=DNS:areas.invalid",
            "-keyout", path, "-out", path.with_suffix(".crt"),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.mark.parametrize(
    ("host", "trusted", "refused"),
    [
        ("areas.invalid", True, None),
        ("other.invalid", True, "the certificate is refused: hostname 'other.invalid' doesn't match"),
        ("areas.invalid", False, "the certificate is refused: .*verify failed"),
    ],
    ids=["good", "other name", "not trusted"],
)
def test_certificates_are_checked_against_the_name(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch, *, host: str, trusted: bool, refused: str | None
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    witness = Witness()
    surroundings = replace(witness.surroundings(), lookup=lambda *_: [ip_address("127.0.0.1")])
    with serving(ok(BODY), certificate=certificate) as server:
        downloader = Downloader(LOCAL, surroundings)
        wanted = artifact(server.url(host=host))
        if refused is None:
            assert downloader.fetch(wanted, tmp_path / "x").sha256 == SHA256
        else:
            with pytest.raises(SourceUnavailable, match=refused):
                downloader.fetch(wanted, tmp_path / "x")
    assert witness.waits == []
