"""Files over HTTP on an address that pods reach; one of them can be made to stand still half-way."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from typing_extensions import override


@dataclass(slots=True)
class FileServer:
    """`files` by name; the second half of a file in `stuck` comes when its event is set."""

    address: str
    port: int
    files: dict[str, bytes] = field(default_factory=dict)
    stuck: dict[str, threading.Event] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"http://{self.address}:{self.port}/{name}"


@contextmanager
def serving_files(address: str) -> Iterator[FileServer]:
    """A running server on this address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            state.asked.append(name)
            body = state.files.get(name)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            half = len(body or b"") // 2
            self.wfile.write((body or b"")[:half])
            if name in state.stuck:
                self.wfile.flush()
                state.stuck[name].wait(120)
            self.wfile.write((body or b"")[half:])

        @override
        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that go away are part of the tests
    state = FileServer(address, server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        for event in state.stuck.values():
            event.set()
        server.shutdown()
        thread.join()
        server.server_close()
