"""ImportRequests as users write them: one valid document, and what is wrong with others."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[1] / "e2e" / "data" / "crd"

UID = "0d9a5b1e-6c40-4f8e-9a57-2f1f3f1f8f11"


@dataclass(frozen=True, slots=True)
class Refused:
    """One wrong document, and the text that both the API server and our own validation answer with."""

    case: str
    document: dict[str, Any]
    names: str
    api: str


def valid() -> dict[str, Any]:
    """The document of valid.yaml."""
    document: dict[str, Any] = _documents("valid.yaml")
    return document


def served(document: dict[str, Any], **metadata: object) -> dict[str, Any]:
    """The document as the API server would give it."""
    given = {"namespace": "maps", "name": "parcels", "uid": UID, "generation": 1} | metadata
    return document | {"metadata": document["metadata"] | given}


def refused() -> list[Refused]:
    """All documents of refused.yaml."""
    return [_refused(case) for case in _documents("refused.yaml")]


def changed(
    document: dict[str, Any], at: list[str | int], to: object = None, *, remove: bool = False
) -> dict[str, Any]:
    """A copy of the document with another value, or none, at this path; the end of a list may be appended to."""
    copied = copy.deepcopy(document)
    node: Any = copied
    for step in at[:-1]:
        node = node[step]
    last: Any = at[-1]
    if remove:
        del node[last]
    elif isinstance(node, list) and last == len(node):
        node.append(to)
    else:
        node[last] = to
    return copied


def _refused(case: dict[str, Any]) -> Refused:
    to = "x" * 257 if case.get("to") == "REPEATED" else case.get("to")
    document = changed(valid(), case["at"], to, remove=case.get("remove", False))
    return Refused(case["case"], document, case["names"], case.get("api", case["names"]))


def _documents(name: str) -> Any:  # noqa: ANN401  what is in a file is known when it was read
    return yaml.safe_load((DATA / name).read_text())
