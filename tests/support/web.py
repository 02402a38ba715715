"""A web server on the loopback address whose answers a test decides."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from typing_extensions import override

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class WebServer:
    """`answers` are used up one request each; the last one stays."""

    port: int
    scheme: str
    answers: list[Answer]
    requests: list[dict[str, str]] = field(default_factory=list)

    def url(self, path: str = "/areas.geojson", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextmanager
def serving(*answers: Answer, certificate: Path | None = None) -> Iterator[WebServer]:
    """A running server; with a certificate (and key, in one file) it speaks https."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append({"path": self.path, **dict(self.headers)})
            answer = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            answer(self)

        @override
        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that go away are part of the tests
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    state = WebServer(server.server_port, "https" if certificate else "http", list(answers))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ok(body: bytes, *, length: int | None = None, chunked_without_length: bool = False, **headers: str) -> Answer:
    """200 with this body; another `length` lies, and no length at all leaves the end to the connection."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if not chunked_without_length:
            handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def status(code: int, **headers: str) -> Answer:
    """An answer without a body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True
