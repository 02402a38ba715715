import os
import socket
import ssl

import pytest

from tests.support.fault_server import TLS
from tests.support.kube_api import KubeApi

HEAD = b"GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"


@pytest.mark.parametrize(
    "sent", [HEAD[:9], HEAD, HEAD + b"\r\n", HEAD + b"\r\n{}"], ids=["line", "head", "no body", "half a body"]
)
def test_half_a_request_of_a_client_that_died_was_not_received(sent: bytes) -> None:
    trust = ssl.create_default_context(cafile=str(TLS / "trusted-ca.pem"))
    with KubeApi() as api:
        line = socket.create_connection(("127.0.0.1", api.port), timeout=5)
        beneath = os.dup(line.fileno())
        with trust.wrap_socket(line, server_hostname="127.0.0.1") as secured, socket.socket(fileno=beneath) as raw:
            secured.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            assert raw_end(raw)
        assert api.received == []


def raw_end(raw: socket.socket) -> bool:
    """Whether the server ends the connection; what TLS says before that does not matter."""
    raw.settimeout(5)
    while raw.recv(4096):
        pass
    return True
