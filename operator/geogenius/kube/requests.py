"""ImportRequests in the API: read, listed, and their status written."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from geogenius.domain.errors import KubernetesUnavailable
from geogenius.kube.client import APPLY_PATCH, KubeClient, Request
from geogenius.kube.listing import list_all
from geogenius.kube.outcome import Answered, Conflicted, NotFound
from geogenius.kube.resources import API_VERSION, FIELD_MANAGER, KIND, JsonObject, requests_path, text_at


class Requests:
    """The requests in these namespaces, or in all. Shared by threads; keeps nothing.

    Objects are plain JSON: the api layer knows what they mean.
    """

    def __init__(self, client: KubeClient, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)

    def get(self, namespace: str, name: str) -> JsonObject | None:
        """The request as it is stored now, or None where the server says that there is none.

        Raises KubernetesUnavailable where it does not say.
        """
        outcome = self._client.exchange(Request("GET", requests_path(namespace, name)))
        match outcome:
            case Answered(body=body):
                return body
            case NotFound():
                return None
            case _:
                raise KubernetesUnavailable(f"ImportRequest {namespace}/{name} cannot be read: {outcome}")

    def list(self) -> Iterator[JsonObject]:
        """All requests, page by page. Items carry no kind of their own.

        Raises KubernetesUnavailable, also after the first pages: then the list is not complete.
        """
        for namespace in self._namespaces or (None,):
            yield from list_all(self._client, requests_path(namespace), {})

    def names(self) -> Iterator[tuple[str, str]]:
        """Namespace and name of every request; raises as `list` does."""
        for document in self.list():
            yield text_at(document, "metadata", "namespace"), text_at(document, "metadata", "name")

    def apply_status(self, namespace: str, name: str, status: JsonObject, *, uid: UUID | None = None) -> bool:
        """Make this the status we own, whole; False where the request is gone. The same status again changes nothing.

        With `uid`, a request of the same name that was created later counts as gone and is not touched.
        Raises KubernetesUnavailable where the server does not say that it is written.
        """
        metadata: JsonObject = {"namespace": namespace, "name": name}
        if uid is not None:
            metadata["uid"] = str(uid)
        body: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        path = f"{requests_path(namespace, name)}/status"
        outcome = self._client.exchange(Request("PATCH", path, query, body, APPLY_PATCH))
        match outcome:
            case Answered():
                return True
            case NotFound():
                return False
            case Conflicted() if uid is not None:
                return False
            case _:
                raise KubernetesUnavailable(f"the status of ImportRequest {namespace}/{name} is not written: {outcome}")
