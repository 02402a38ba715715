"""Connections that say whether a request began to leave, and that another thread can cut.

The transport of the client bounds each socket operation, never a whole call, and its errors do not tell a stalled
handshake from a lost answer. Both facts are known here, where the bytes go out.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from typing_extensions import override
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class CallCut(TimeoutError):
    """The call was cut before its request left."""


class Call:
    """One exchange with the server. Safe to use from the thread that makes it and the one that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[socket.socket] = []
        self._sent: bool | None = None
        self._cut = False

    @property
    def sent(self) -> bool | None:
        """Whether the request began to leave on the connection that was made for it; None while none was made.

        After `cut` this is final: what had not begun never begins.
        """
        with self._lock:
            return self._sent

    def watch(self, descriptor: int, *, sending: bool) -> None:
        """Note a connection this call uses. Raises CallCut when the call was cut already."""
        with self._lock:
            self._sent = bool(self._sent)
            if self._cut:
                raise CallCut("the deadline passed before the request was sent")
            # A duplicate is the same connection under another number: it stays valid while TLS takes over the first.
            self._lines.append(socket.socket(fileno=os.dup(descriptor)))
            self._sent = self._sent or sending

    def cut(self) -> None:
        """End whatever the call waits for, at once. A second call does nothing."""
        with self._lock:
            self._cut = True
            for line in self._lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connections; they stay usable for others."""
        with self._lock:
            for line in self._lines:
                line.close()
            self._lines.clear()


_CURRENT: ContextVar[Call | None] = ContextVar("call", default=None)


@contextmanager
def observed(call: Call) -> Iterator[None]:
    """Every connection used inside reports to this call."""
    token = _CURRENT.set(call)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        call.close()


def _report(line: Any, *, sending: bool) -> None:  # noqa: ANN401 - a socket, or what TLS makes of it
    call = _CURRENT.get()
    if call is not None and line is not None:
        call.watch(line.fileno(), sending=sending)


class _ObservingConnection(HTTPConnection):
    """Over http, and what https adds to."""

    @override
    def _new_conn(self) -> socket.socket:
        line = super()._new_conn()
        _report_or_close(line)
        return line

    @override
    def putrequest(self, method: str, url: str, *flags: bool, **named: bool) -> None:
        _before_sending(self)
        super().putrequest(method, url, *flags, **named)


class _TlsConnection(_ObservingConnection, HTTPSConnection):
    """Over https: it is connected before the handshake, and sends after it."""


def _report_or_close(line: socket.socket) -> None:
    try:
        _report(line, sending=False)
    except CallCut:
        line.close()
        raise


def _before_sending(connection: HTTPConnection) -> None:
    """Called with nothing written yet; connects first, so that a refused connection is not taken for a sent request."""
    if connection.is_closed:
        connection.connect()
    _report(connection.sock, sending=True)


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _ObservingConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


POOL_CLASSES: dict[str, type[HTTPConnectionPool]] = {"http": _PlainPool, "https": _TlsPool}
"""What a urllib3 pool manager takes as its `pool_classes_by_scheme`."""
