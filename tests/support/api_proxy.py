"""A proxy before the real API server that loses answers, or holds requests back, where a test says so.

It ends TLS with a certificate of the cluster's own authority, so that clients in pods trust it, and passes on who
asks. Watches stream through it.
"""

import http.client
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import yaml
from typing_extensions import override

from tests.cluster.contract import Cluster

HELD_SECONDS = 120.0


class Fault(StrEnum):
    """What happens to a request that a rule matches."""

    LOSE_ANSWER = "lose answer"
    """It reaches the server and is carried out; then the connection breaks instead of an answer."""
    HOLD = "hold"
    """It is kept back until the rule is lifted, or for two minutes."""


@dataclass(slots=True)
class Rule:
    """Applies to the next `times` requests of this method whose path matches."""

    method: str
    path: re.Pattern[str]
    fault: Fault
    times: int
    hit: threading.Event = field(default_factory=threading.Event)
    lifted: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class ApiProxy:
    """Where the proxy listens, and what it is told to break."""

    host: str
    port: int
    rules: list[Rule] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def on(self, method: str, path: str, fault: Fault, times: int = 1) -> Rule:
        """From now on, break the next `times` requests whose path matches this expression."""
        rule = Rule(method, re.compile(path), fault, times)
        with self.lock:
            self.rules.append(rule)
        return rule

    def rule_of(self, method: str, path: str) -> Rule | None:
        """The rule that this request uses up."""
        with self.lock:
            for rule in self.rules:
                if rule.times and rule.method == method and rule.path.search(path):
                    rule.times -= 1
                    return rule
        return None

    @property
    def env(self) -> dict[str, str]:
        """The variables by which clients in a pod come here."""
        return {"KUBERNETES_SERVICE_HOST": self.host, "KUBERNETES_SERVICE_PORT": str(self.port)}


@contextmanager
def api_proxy(cluster: Cluster) -> Iterator[ApiProxy]:
    """A running proxy on the host's address as pods see it."""
    upstream = urlsplit(yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    authority, _ = cluster.ca_files()
    trust = ssl.create_default_context(cafile=str(authority))
    handler = type("Handler", (_Handler,), {"upstream": upstream.netloc, "trust": trust})
    server = ThreadingHTTPServer((cluster.host_address, 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that go away are part of the tests
    with TemporaryDirectory() as folder:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*_certificate(cluster, Path(folder)))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy = ApiProxy(cluster.host_address, server.server_port)
    handler.proxy = proxy  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        for rule in proxy.rules:
            rule.lifted.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ApiProxy
    upstream: str
    trust: ssl.SSLContext

    def do_GET(self) -> None:
        self._pass_on()

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  the names that http.server calls

    def _pass_on(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # the client is gone, as one that is killed: half a request is none
            self.close_connection = True
            return
        rule = self.proxy.rule_of(self.command, self.path)
        if rule is not None and rule.fault is Fault.HOLD:
            rule.hit.set()
            rule.lifted.wait(HELD_SECONDS)
        connection = http.client.HTTPSConnection(self.upstream, context=self.trust)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            if rule is not None and rule.fault is Fault.LOSE_ANSWER:
                response.read()
                rule.hit.set()
                self.close_connection = True
                self.connection.close()
            else:
                self._relay(response)
        finally:
            connection.close()

    def _relay(self, response: http.client.HTTPResponse) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        if response.headers.get("Content-Length") is None:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := response.read1(65536):
            chunked = response.headers.get("Content-Length") is None
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.flush()
        if response.headers.get("Content-Length") is None:
            self.wfile.write(b"0\r\n\r\n")

    @override
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def _certificate(cluster: Cluster, folder: Path) -> tuple[str, str]:
    """A certificate for the host's address, signed by the cluster's authority, and its key."""
    certificate, key, request, names = (folder / name for name in ("proxy.crt", "proxy.key", "proxy.csr", "names"))
    names.write_text(f"subjectAltName=IP:{cluster.host_address}\n")
    authority, authority_key = cluster.ca_files()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    signed = ("-CA", str(authority), "-CAkey", str(authority_key), "-set_serial", "7", "-days", "2")
    for command in (
        ("req", "-new", *curve, "-subj", "/CN=proxy", "-keyout", str(key), "-out", str(request)),
        ("x509", "-req", "-in", str(request), *signed, "-extfile", str(names), "-out", str(certificate)),
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return str(certificate), str(key)
