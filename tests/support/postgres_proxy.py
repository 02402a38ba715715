"""A proxy before the real PostgreSQL that loses commits and answers, or is gone, where a test says so.

It passes bytes on and looks for one word in them: what psycopg sends at the end of a transaction.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

from tests.support.databases import PostgresCluster

_COMMIT = b"COMMIT"


class Fault(StrEnum):
    """What happens to the next commit; the connection is cut each time."""

    LOSE_COMMIT = "lose commit"
    """It never reaches the server."""
    LOSE_ANSWER = "lose answer"
    """The server commits, and the client does not hear of it."""


class PostgresProxy:
    """Reachable at `conninfo` while it is started; `fault` is used up by one commit."""

    def __init__(self, cluster: PostgresCluster) -> None:
        self.fault: Fault | None = None
        self._cluster = cluster
        self._port = 0
        self._listener: socket.socket | None = None
        self._connections: list[socket.socket] = []

    def conninfo(self, dbname: str, user: str) -> str:
        return f"host=127.0.0.1 port={self._port} user={user} dbname={dbname}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Cut everything and listen no longer."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        for connection in self._connections:
            _cut(connection)
        self._connections.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((self._cluster.host, self._cluster.port))
                self._connections += [client, server]
                hears = threading.Event()
                hears.set()
                for work, arguments in ((self._up, (client, server, hears)), (self._down, (client, server, hears))):
                    threading.Thread(target=work, args=arguments, daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, hears: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if _COMMIT in data and self.fault is not None:
                    fault, self.fault = self.fault, None
                    if fault is Fault.LOSE_COMMIT:
                        break
                    hears.clear()
                server.sendall(data)
        _cut(client)
        if hears.is_set():
            _cut(server)

    def _down(self, client: socket.socket, server: socket.socket, hears: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(65536)) and hears.is_set():
                client.sendall(data)
        _cut(client)
        _cut(server)


@contextmanager
def proxied(cluster: PostgresCluster) -> Iterator[PostgresProxy]:
    """A started proxy, gone at the end."""
    proxy = PostgresProxy(cluster)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
