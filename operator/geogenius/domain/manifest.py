"""The import document after it was checked: which areas are to be built, from which reviewed files."""

from dataclasses import dataclass, field
from datetime import date

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class Authority:
    """Who defines codes."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class AreaType:
    """A kind of area; a low rank contains a high one."""

    key: str
    rank: int
    requires_geometry: bool


@dataclass(frozen=True, slots=True)
class Artifact:
    """One reviewed file. Without a url the operator of the catalog supplies it in the artifact folder."""

    logical_name: str
    format: str
    sha256: str
    bytes: int
    url: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """Where artifacts come from, at which vintage, read by which provider."""

    source_key: str
    provider: str
    license: str
    release_key: str
    attribution: str | None
    source_date: date | None
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The checked document. `options` are in the vocabulary of its providers, which check them."""

    collection: str
    release: str
    provider: str
    authorities: tuple[Authority, ...]
    area_types: tuple[AreaType, ...]
    sources: tuple[Source, ...]
    options: dict[str, JsonValue] = field(default_factory=dict)
