"""Reading long lists in pages."""

from collections.abc import Iterator, Mapping

from geogenius.domain.errors import KubernetesUnavailable
from geogenius.kube.client import KubeClient, Request
from geogenius.kube.outcome import Answered
from geogenius.kube.resources import JsonObject, objects_at, text_at

PAGE_SIZE = 200


def list_all(client: KubeClient, path: str, query: Mapping[str, str]) -> Iterator[JsonObject]:
    """The items at this path, a page at a time, all of one moment.

    Raises KubernetesUnavailable, also between pages (the server keeps a moment for minutes only): the list is then
    not complete, and absence from it means nothing.
    """
    token = ""
    while True:
        page = {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
        outcome = client.exchange(Request("GET", path, {**query, **page}))
        if not isinstance(outcome, Answered):
            raise KubernetesUnavailable(f"{path} cannot be listed: {outcome}")
        yield from objects_at(outcome.body, "items")
        token = text_at(outcome.body, "metadata", "continue")
        if not token:
            return
