"""ImportRequests on a real cluster: made, applied, waited for, and everything they went through."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import Any

import yaml

from demo.installation import Installation, InstallationError

LOOK_SECONDS = 0.2


def square(position: int, *, code: str | None = None) -> dict[str, Any]:
    """A Feature of one square degree with a code of its own."""
    west, south = -180 + 2 * (position % 170), -80 + 2 * (position // 170)
    ring = [[west, south], [west + 1, south], [west + 1, south + 1], [west, south + 1], [west, south]]
    properties = {"code": f"A{position}" if code is None else code, "name": f"Area {position}"}
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def collection_of(features: list[dict[str, Any]]) -> bytes:
    """A FeatureCollection as a file."""
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def request(name: str, content: bytes, url: str | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """A request to import this content, from a URL, or supplied by a ConfigMap of the request's name.

    `changes` are fields of the spec; `artifact` and `manifest` change those parts.
    """
    artifact = {
        "logicalName": f"{name}.geojson",
        "format": "geojson",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": max(1, len(content)),
        **({"operatorSupplied": True} if url is None else {"url": url}),
    } | changes.pop("artifact", {})
    manifest = {
        "collection": name.replace("-", "_"),
        "release": "1",
        "provider": "geojson",
        "authorities": [{"key": "test", "name": "Test"}],
        "areaTypes": [{"key": "area", "rank": 10, "requiresGeometry": True}],
        "sources": [{"sourceKey": "s", "license": "CC0-1.0", "releaseKey": "1", "artifacts": [artifact]}],
        "options": {"areaType": "area", "codeProperty": "code"},
    } | changes.pop("manifest", {})
    files = [] if url is not None else [{"name": "files", "configMap": {"name": name}}]
    spec = {"publish": True, "files": files, "manifest": manifest} | changes
    return {
        "apiVersion": "geogenius.io/v1alpha1",
        "kind": "ImportRequest",
        "metadata": {"name": name},
        "spec": spec,
    }


@dataclass(frozen=True, slots=True)
class Desk:
    """Where requests are handed in: one namespace of a cluster with the product installed."""

    installation: Installation
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        return self.installation.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, check=check)

    def supply(self, name: str, content: bytes) -> None:
        """Put the file of a request into a ConfigMap of its name."""
        data = {f"{name}.geojson": content.decode()}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        self.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(document))

    def request(self, name: str, content: bytes, url: str | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
        """As `request`, into a collection that no other test has."""
        document = request(name, content, url, **changes)
        document["spec"]["manifest"]["collection"] = self.collection(name)
        return document

    def collection(self, name: str) -> str:
        """The collection of the request of this name."""
        return f"{name}_{self.namespace[-6:]}".replace("-", "_")

    def apply(self, document: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(document))

    def refused(self, document: dict[str, Any]) -> str:
        """What the API server says about a document that it must refuse."""
        try:
            self.apply(document)
        except InstallationError as refusal:
            return str(refusal)
        raise AssertionError("the document was accepted")

    def get(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "importrequest", name, "-o", "json"))
        return found

    def finished(self, name: str, seconds: float = 90) -> dict[str, Any]:
        """The status of a request once it is finished."""
        status: dict[str, Any] = {}

        def done() -> bool:
            nonlocal status
            status = self.get(name).get("status", {})
            return bool(status.get("finished"))

        until(done, seconds, lambda: f"{name} is not finished: {status}")
        return status

    def jobs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", "jobs", "-o", "json"))["items"]
        return items

    def value(self, statement: str, **variables: str) -> str:
        """The first column of the only row; psql reads a variable as `:'name'`."""
        lines = self.installation.query(statement, **variables).splitlines()
        assert len(lines) == 5, lines
        return lines[2].strip()

    def count(self, view: str, name: str) -> int:
        """How many rows of a published view the collection of this request has."""
        counted = {
            "published_areas": "select count(*) from published_areas where collection_key = :'collection'",
            "published_boundaries": "select count(*) from published_boundaries where collection_key = :'collection'",
        }
        return int(self.value(counted[view], collection=self.collection(name)))

    def run(self, run_id: str, column: str) -> str:
        """A column of the run as the catalog has it, as text."""
        return self.value(
            "select to_jsonb(r) ->> :'column' from import_run_status r where run_id = :'run'", run=run_id, column=column
        )

    @contextmanager
    def followed(self, name: str) -> Iterator["Followed"]:
        """Everything that the status of a request was while the block ran."""
        command = [*self.installation.cluster.kubectl, f"--namespace={self.namespace}"]
        command += ["get", "importrequests", "--watch", "-o", "json", f"--field-selector=metadata.name={name}"]
        seen = Followed()
        with TemporaryFile() as output, subprocess.Popen(command, stdout=output) as watcher:
            try:
                yield seen
            finally:
                watcher.terminate()
                watcher.wait()
                output.seek(0)
                seen.read(output.read().decode())


@dataclass(slots=True)
class Followed:
    """The statuses of one request, in order."""

    statuses: list[dict[str, Any]] = field(default_factory=list)

    def read(self, text: str) -> None:
        decoder, at = json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            document, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
            self.statuses.append(document.get("status", {}))

    def values_of(self, condition: str) -> list[tuple[str, str]]:
        """Status and reason of a condition, each change once."""
        changes: list[tuple[str, str]] = []
        for status in self.statuses:
            for found in status.get("conditions", []):
                value = (found["status"], found["reason"])
                if found["type"] == condition and changes[-1:] != [value]:
                    changes.append(value)
        return changes


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in status["conditions"] if item["type"] == kind)
    return found


def until(holds: Any, seconds: float, message: Any) -> None:  # noqa: ANN401  callables
    """Look until it holds; fail with the message after a deadline."""
    end = monotonic() + seconds
    while not holds():
        if monotonic() > end:
            raise AssertionError(message() if callable(message) else message)
        sleep(LOOK_SECONDS)
