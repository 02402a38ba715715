"""A small API server in memory: creates, reads, lists in pages, deletes with preconditions, applies a status.

It stands at the network's edge, behind real TLS, and can break like any `FaultServer`.
"""

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from tests.support.fault_server import Behaviour, FaultServer, Line, Received, answer, reset, status

Document = dict[str, Any]


class KubeApi(FaultServer):
    """Objects by their path, such as `/apis/batch/v1/namespaces/maps/jobs/geogenius-1`."""

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.objects: dict[str, Document] = {}

    def lose_reply(self) -> None:
        """Carry the next request out, and reset the connection instead of answering."""

        def behave(line: Line) -> bool:
            self._respond(self.received[-1])
            return reset(line)

        self.queued.append(behave)

    def put(self, path: str, **document: Any) -> Document:  # noqa: ANN401  JSON
        """Store an object as if somebody had made it."""
        name = path.rsplit("/", 1)[1]
        metadata = {"name": name, "uid": str(uuid4()), **document.pop("metadata", {})}
        self.objects[path] = {**document, "metadata": metadata}
        return self.objects[path]

    def _respond(self, request: Received) -> Behaviour:
        path = unquote(urlsplit(request.path).path)
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        match request.method:
            case "POST":
                return self._create(f"{path}/{request.document()['metadata']['name']}", request.document())
            case "PATCH":
                return self._apply(path.removesuffix("/status"), request.document())
            case "DELETE":
                return self._delete(path, request.document())
            case _:
                return self._read(path, query)

    def _read(self, path: str, query: dict[str, str]) -> Behaviour:
        if path == "/version":
            return answer(200, {"major": "1"})
        if path in self.objects:
            return answer(200, self.objects[path])
        if "limit" in query:
            return self._list(path, query)
        return status(404, "NotFound", f"{path} not found")

    def _create(self, path: str, document: Document) -> Behaviour:
        if path in self.objects:
            return status(409, "AlreadyExists", f"{path} already exists")
        return answer(201, self.put(path, **document))

    def _apply(self, path: str, document: Document) -> Behaviour:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound", f"{path} not found")
        if document["metadata"].get("uid", stored["metadata"]["uid"]) != stored["metadata"]["uid"]:
            return status(409, "Conflict", "the UID in the precondition differs")
        stored["status"] = document["status"]
        return answer(200, stored)

    def _delete(self, path: str, options: Document) -> Behaviour:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound", f"{path} not found")
        if options["preconditions"]["uid"] != stored["metadata"]["uid"]:
            return status(409, "Conflict", "the UID in the precondition differs")
        del self.objects[path]
        return answer(200, {"kind": "Status", "status": "Success"})

    def _list(self, path: str, query: dict[str, str]) -> Behaviour:
        """One page; the continue token is the number of items already given. Selectors choose by equality."""
        group, _, plural = path.rpartition("/")
        wanted = [item for key, item in sorted(self.objects.items()) if _within(key, group, plural)]
        wanted = [item for item in wanted if _selected(item, query.get("labelSelector", ""))]
        begin = int(query.get("continue", "0"))
        end = begin + int(query["limit"])
        token = {"continue": str(end)} if end < len(wanted) else {}
        return answer(200, {"metadata": token, "items": json.loads(json.dumps(wanted[begin:end]))})


def _within(key: str, group: str, plural: str) -> bool:
    folder, _, _ = key.rpartition("/")
    return folder.startswith(f"{group}/") and folder.endswith(f"/{plural}")


def _selected(item: Document, selector: str) -> bool:
    labels = item["metadata"].get("labels", {})
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    return True
