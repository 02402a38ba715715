"""One watch stream of the API server, read as it comes: the same eyes for everything that is measured."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import Configuration
from kubernetes.config import load_kube_config

JsonObject = dict[str, Any]


class WatchEndedError(Exception):
    """The stream ended, or was refused, before what was waited for was seen."""


class ApiServer:
    """Watches objects by name over kept connections."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = Configuration()
        load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]  # the client has no types
        self._host = configuration.host
        self._pool = urllib3.PoolManager(
            ca_certs=configuration.ssl_ca_cert, cert_file=configuration.cert_file, key_file=configuration.key_file
        )

    @contextmanager
    def watch(self, path: str, name: str, seconds: int) -> Iterator["Stream"]:
        """A stream of every state of one object, open before the object is made; it ends after this long."""
        fields = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": str(seconds)}
        timeout = urllib3.Timeout(connect=5, read=seconds + 5)
        response = self._pool.request(
            "GET", self._host + path, fields=fields, preload_content=False, timeout=timeout, retries=False
        )
        try:
            if response.status != HTTPStatus.OK:
                raise WatchEndedError(f"{path}: {response.status} {response.read()[:500]!r}")
            yield Stream(response)
        finally:
            response.close()


class Stream:
    """The states of one object, in order."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def until(self, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """The first state for which it holds. Raises WatchEndedError where none comes."""
        seen: JsonObject = {}
        for seen in self._states():
            if holds(seen):
                return seen
        raise WatchEndedError(f"last seen: {seen.get('status')}")

    def _states(self) -> Iterator[JsonObject]:
        rest = b""
        for chunk in self._response.stream():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)["object"]
