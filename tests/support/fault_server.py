"""A TLS server on 127.0.0.1 that answers as it is told, or breaks in one of the ways in which servers break."""

import json
import os
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from geogenius.kube.client import ClusterAccess

TLS = Path(__file__).parent / "tls"
DRIP_SECONDS = 0.02
DRIPS = 400
"""Long beyond every deadline of a test, and still an end: a client that cannot cut fails and does not hang."""
TOKEN = "the token of the tests"


@dataclass(frozen=True, slots=True)
class Received:
    """One complete request that reached the server."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:  # noqa: ANN401  JSON
        """The body as JSON."""
        return json.loads(self.body)


class Line:
    """One connection, seen from the server."""

    def __init__(self, connection: socket.socket, stopped: threading.Event) -> None:
        self.connection = connection
        self.stopped = stopped

    def send(self, data: bytes) -> None:
        """Write through TLS."""
        self.connection.sendall(data)

    def send_beneath_tls(self, data: bytes) -> None:
        """Write what TLS cannot understand."""
        with socket.socket(fileno=os.dup(self.connection.fileno())) as raw:
            raw.sendall(data)


def abort(connection: socket.socket) -> None:
    """Close without a farewell: the other side sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


Behaviour = Callable[[Line], bool]
"""What happens after a request was read; True keeps the connection for the next one."""


def answer(status: int, body: Any = b"", headers: Mapping[str, str] | None = None) -> Behaviour:  # noqa: ANN401
    """A complete answer; a body that is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def behave(line: Line) -> bool:
        fields = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
        line.send(_head(status, fields) + content)
        return True

    return behave


def status(code: int, reason: str, message: str, **details: Any) -> Behaviour:  # noqa: ANN401
    """A refusal in the API server's own form."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return answer(code, body | {"message": message, "details": details})


def silence(line: Line) -> bool:
    """No answer at all."""
    line.stopped.wait()
    return False


def reset(line: Line) -> bool:
    """The connection is reset instead of an answer."""
    abort(line.connection)
    return False


def hang_up(_: Line) -> bool:
    """The connection is closed instead of an answer."""
    return False


def truncated(line: Line) -> bool:
    """An answer that ends in the middle of its body."""
    line.send(_head(201, {"Content-Type": "application/json", "Content-Length": "5000"}) + b'{"kind": "Job", ')
    return False


def truncated_chunks(line: Line) -> bool:
    """An answer in chunks that ends before its last chunk."""
    line.send(_head(201, {"Transfer-Encoding": "chunked"}) + b'10\r\n{"kind": "Job", \r\n')
    return False


def garbage(line: Line) -> bool:
    """Something that is no HTTP."""
    line.send(b"\x00\x01 this is no answer \xff\r\n\r\n")
    return False


def broken_tls(line: Line) -> bool:
    """Something that is no TLS, after the request was read through TLS."""
    line.send_beneath_tls(b"\x00" * 64)
    line.stopped.wait()
    return False


def dripping_head(line: Line) -> bool:
    """A head that comes byte by byte and does not end, each byte well inside any read timeout."""
    line.send(b"HTTP/1.1 201 Created\r\nX-Slow: ")
    return _drip(line)


def dripping_body(line: Line) -> bool:
    """A body that comes byte by byte and does not end, on a connection that closes afterwards."""
    line.send(_head(201, {"Content-Length": "1000000", "Connection": "close"}))
    return _drip(line)


def _drip(line: Line) -> bool:
    for _ in range(DRIPS):
        if line.stopped.wait(DRIP_SECONDS):
            break
        line.send(b"x")
    return False


def _head(code: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class FaultServer:
    """Behaves as queued, request by request; with nothing queued, as `otherwise` says."""

    def __init__(self, otherwise: Callable[[Received], Behaviour] | None = None) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.queued: deque[Behaviour] = deque()
        self.at_connect: Callable[[socket.socket, threading.Event], None] | None = None
        self._otherwise = otherwise or (lambda _: answer(500))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(TLS / "server.pem")
        self._stopped = threading.Event()
        self._lines: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in list(self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join()

    def access(self, folder: Path, *, authority: str = "trusted-ca.pem", token: str = TOKEN) -> ClusterAccess:
        """A kubeconfig for this server."""
        return access_to(f"https://127.0.0.1:{self.port}", folder, authority=authority, token=token)

    def posts(self) -> list[Received]:
        """The requests that would change something."""
        return [request for request in self.received if request.method != "GET"]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._lines.append(connection)
            self._spawn(partial(self._serve, connection))

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            if self.at_connect is not None:
                self.at_connect(connection, self._stopped)
                return
            with self._context.wrap_socket(connection, server_side=True) as secured:
                self._lines.append(secured)
                with secured.makefile("rb") as reader:
                    self._converse(Line(secured, self._stopped), reader)

    def _converse(self, line: Line, reader: Any) -> None:  # noqa: ANN401  a buffered reader
        keep = True
        while keep and not self._stopped.is_set():
            request = _read_request(reader)
            self.received.append(request)
            behaviour = self.queued.popleft() if self.queued else self._otherwise(request)
            keep = behaviour(line)

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()


def access_to(server: str, folder: Path, *, authority: str = "trusted-ca.pem", token: str = TOKEN) -> ClusterAccess:
    """A kubeconfig for the server at this address, written into a folder."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(TLS / authority)}}],
        "users": [{"name": "test", "user": {"token": token}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return ClusterAccess(path)


def _read_request(reader: Any) -> Received:  # noqa: ANN401  a buffered reader
    """The next complete request; EOFError where the client went away before its end, as one that is killed does."""
    method, path, _ = _line(reader).split(" ", 2)
    headers: dict[str, str] = {}
    while (line := _line(reader)) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    body = reader.read(length)
    if len(body) < length:
        raise EOFError
    return Received(method, path, headers, body)


def _line(reader: Any) -> str:  # noqa: ANN401  a buffered reader
    line: bytes = reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line.decode().strip()
