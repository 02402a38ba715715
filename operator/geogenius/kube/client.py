"""The client of the Kubernetes API: one request, one answer or the lack of one, within a deadline."""

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import OpenApiException
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

import geogenius
from geogenius.domain.errors import KubernetesUnavailable, Misconfigured
from geogenius.kube.outcome import (
    Answered,
    NotSent,
    Outcome,
    Unauthenticated,
    Unknown,
    outcome_of_answer,
    outcome_of_error,
)
from geogenius.kube.resources import JsonObject, text_at
from geogenius.kube.wire import POOL_CLASSES, Call, observed

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"

_LARGEST_ANSWER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Which cluster, and as whom: a kubeconfig file with an optional context, or, without a file, the pod's own."""

    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call: seconds to connect, between two pieces of an answer, and in all; and calls at once."""

    connect_seconds: float = 3.0
    read_seconds: float = 10.0
    total_seconds: float = 15.0
    calls: int = 8


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to the API server. `path` is quoted already."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: JsonObject | None = None
    content_type: str = JSON


class KubeClient:
    """Sends requests, each at most once. Shared by threads; `close` it at the end.

    The deadline: the timeouts of the client hold for single socket operations only, and a name lookup has none. So a
    call runs in one of a bounded number of threads, the caller waits no longer than `total_seconds`, and then cuts the
    connection under the call, which frees its thread. Whatever had not begun to leave by then never leaves.
    """

    def __init__(self, access: ClusterAccess, limits: Limits | None = None) -> None:
        """Raises Misconfigured where there is no usable configuration. Nothing is sent."""
        self._access = access
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        try:
            self._api = _api_client(access, self._limits)
        except (ConfigException, OSError) as error:
            raise Misconfigured(f"no way to the Kubernetes API: {error}", reason="KubernetesConfiguration") from error
        self._threads = ThreadPoolExecutor(self._limits.calls, thread_name_prefix="kube")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the calls under way (each has its deadline) and let go of all connections."""
        self._threads.shutdown()
        self._api.close()  # type: ignore[no-untyped-call]  # untyped there

    def exchange(self, request: Request) -> Outcome:
        """Send once and say what came of it. Never raises for trouble on the way.

        Where the server does not know us, the credentials are read anew and the request is sent again: the first
        one was certainly not carried out.
        """
        outcome = self._attempt(request)
        if isinstance(outcome, Unauthenticated) and self.refresh_credentials():
            return self._attempt(request)
        return outcome

    def refresh_credentials(self) -> bool:
        """Read token, certificates and configuration anew; False where that fails, and the old ones stay."""
        try:
            fresh = _api_client(self._access, self._limits)
        except (ConfigException, OSError):
            return False
        with self._lock:
            old, self._api = self._api, fresh
        old.close()  # type: ignore[no-untyped-call]  # untyped there
        return True

    def cluster_id(self) -> UUID:
        """The identity of the cluster: the uid of its namespace kube-system. Raises KubernetesUnavailable."""
        outcome = self.exchange(Request("GET", "/api/v1/namespaces/kube-system"))
        uid = text_at(outcome.body, "metadata", "uid") if isinstance(outcome, Answered) else ""
        try:
            return UUID(uid)
        except ValueError:
            raise KubernetesUnavailable(f"namespace kube-system cannot be read: {outcome}") from None

    def _attempt(self, request: Request) -> Outcome:
        call = Call()
        future = self._threads.submit(self._perform, request, call)
        try:
            return future.result(self._limits.total_seconds)
        except TimeoutError:
            return self._overrun(call, started=not future.cancel())

    def _overrun(self, call: Call, *, started: bool) -> NotSent | Unknown:
        call.cut()
        seconds = self._limits.total_seconds
        if not started:
            message = f"all {self._limits.calls} calls at once are in use for {seconds:g} s"
            return NotSent("ClientBusy", message, temporary=True)
        if not call.sent:
            return NotSent("DeadlineExceeded", f"no connection within {seconds:g} s", temporary=True)
        return Unknown("DeadlineExceeded", f"no complete answer within {seconds:g} s")

    def _perform(self, request: Request, call: Call) -> Outcome:
        with self._lock:
            api = self._api
        with observed(call):
            try:
                prepared = _prepared(api, request)
            except (ConfigException, OSError) as error:  # the token file, read again as requests are signed
                return NotSent("CredentialsUnreadable", str(error), temporary=True)
            except (ValueError, TypeError) as error:
                return outcome_of_error(error, sent=False)
            try:
                return self._speak(api, *prepared)
            except (HTTPError, OpenApiException, OSError, HTTPException, ValueError, TypeError) as error:
                return outcome_of_error(error, sent=call.sent)

    def _speak(
        self, api: ApiClient, method: str, url: str, headers: dict[str, str], body: JsonObject | None
    ) -> Outcome:
        limits = (self._limits.connect_seconds, self._limits.read_seconds)
        answer = api.call_api(method, url, headers, body, _request_timeout=limits).response
        content = answer.read(_LARGEST_ANSWER_BYTES + 1)
        if len(content) > _LARGEST_ANSWER_BYTES:
            answer.close()
            return Unknown("AnswerTooLarge", f"HTTP {answer.status} with more than {_LARGEST_ANSWER_BYTES} bytes")
        return outcome_of_answer(answer.status, answer.headers.get("Retry-After"), content)


def _prepared(api: ApiClient, request: Request) -> tuple[str, str, dict[str, str], JsonObject | None]:
    """Method, address, headers with credentials, and body: all that happens before a connection is needed."""
    json.dumps(request.body, allow_nan=False)  # the client itself sends whatever it can turn into a string
    method, url, headers, _, _ = api.param_serialize(
        method=request.method,
        resource_path=request.path,
        query_params=list(request.query.items()),
        header_params={"Accept": JSON, "Content-Type": request.content_type},
        auth_settings=["BearerToken"],
    )
    return method, url, headers, request.body


def _api_client(access: ClusterAccess, limits: Limits) -> ApiClient:
    configuration = Configuration()
    if access.kubeconfig is None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # untyped there
    elif not access.kubeconfig.is_file():
        raise ConfigException(f"{access.kubeconfig} is no file")
    else:
        load_kube_config(str(access.kubeconfig), access.context, configuration, persist_config=False)  # type: ignore[no-untyped-call]  # untyped there
    if (configuration.proxy or "").startswith("socks"):
        raise ConfigException("a SOCKS proxy cannot be used")  # its connections would not report what they sent
    configuration.retries = False  # the default sends a POST four times when TLS breaks after it was delivered
    configuration.connection_pool_maxsize = limits.calls
    api = ApiClient(configuration)
    api.user_agent = f"geogenius/{geogenius.__version__}"
    api.rest_client.pool_manager.pool_classes_by_scheme = POOL_CLASSES
    return api
