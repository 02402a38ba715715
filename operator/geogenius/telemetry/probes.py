"""/livez, /readyz and /metrics on one small HTTP server."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from typing_extensions import override

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""None when all is well, else one line that says what is not."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What the server answers. Liveness looks at this process only, or an outage elsewhere becomes a restart storm."""

    alive: Check
    ready: Check
    metrics: CollectorRegistry


def serve(port: int, probes: Probes) -> ThreadingHTTPServer:
    """Start answering in a thread of its own; port 0 takes a free one. Stop it with `shutdown` and `server_close`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = _answer(self.path, probes)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            logger.debug(format, *args)

    server = ThreadingHTTPServer(("", port), Handler)
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server


def _answer(path: str, probes: Probes) -> tuple[HTTPStatus, bytes]:
    match path:
        case "/livez":
            problem = probes.alive()
        case "/readyz":
            problem = probes.ready()
        case "/metrics":
            return HTTPStatus.OK, generate_latest(probes.metrics)
        case _:
            return HTTPStatus.NOT_FOUND, b"not found\n"
    if problem is None:
        return HTTPStatus.OK, b"ok\n"
    return HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n".encode()
