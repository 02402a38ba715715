"""The manifest as users write it, in a file or in an ImportRequest: shapes, bounds and the words that explain them.

Keys are camelCase; snake_case is accepted too. Field descriptions are user documentation and end up in the CRD.
Everything is bounded, because the API server refuses rules over lists and strings without an end.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from geogenius.manifest import patterns

UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
OPTIONS_CHARACTERS = 65_536
OPTIONS_DEPTH = 16

Loc = tuple[str | int, ...]


def _storable(text: str) -> str:
    if UNSTORABLE.search(text):
        raise PydanticCustomError("text", "must not contain control characters or broken Unicode")
    return text


def _day(given: object) -> object:
    """Only a day: pydantic would take moments, and numbers as seconds since 1970."""
    if isinstance(given, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", given, re.ASCII):
        return given
    if given is None or type(given) is date:
        return given
    raise PydanticCustomError("date_type", "must be a day")


Key = Annotated[str, StringConstraints(pattern=patterns.KEY, max_length=63)]
ReleaseKey = Annotated[str, StringConstraints(pattern=patterns.RELEASE, max_length=63)]
SourceKey = Annotated[str, StringConstraints(pattern=patterns.SOURCE_KEY, max_length=128)]
FileName = Annotated[str, StringConstraints(pattern=patterns.FILE_NAME, max_length=128)]
Text = Annotated[str, StringConstraints(pattern=patterns.NOT_BLANK, max_length=256), AfterValidator(_storable)]
Day = Annotated[date, BeforeValidator(_day)]
Sha256 = Annotated[str, StringConstraints(pattern=patterns.SHA256, max_length=64)]


class Document(BaseModel):
    """What all parts of the document share: both spellings of keys, no unknown ones, no values of another type."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class AuthorityModel(Document):
    """Who defines codes."""

    key: Key = Field(description="Name of the authority in area keys: lower-case letters, digits and underscores.")
    name: Text = Field(description="Name of the authority for people.")


class AreaTypeModel(Document):
    """A kind of area."""

    key: Key = Field(description="Name of the area type in area keys: lower-case letters, digits and underscores.")
    rank: int = Field(
        description="Place in the hierarchy: a low rank contains a high one. Each rank is used once.",
        strict=True,
        ge=1,
        le=1_000_000,
    )
    requires_geometry: bool = Field(
        default=False,
        description="Whether every area of this type must have a boundary; the release fails verification otherwise.",
        strict=True,
    )


class ArtifactModel(Document):
    """One reviewed file. It comes from a URL or from the operator of the catalog: exactly one of the two."""

    logical_name: FileName = Field(
        description="Name of the file, used once in the manifest. An operator-supplied file is looked up by it."
    )
    format: Key = Field(description="Format of the file, for example geojson.", max_length=32)
    sha256: Sha256 = Field(description="SHA-256 of the file: 64 lower-case hexadecimal digits.")
    bytes: int = Field(description="Size of the file in bytes.", strict=True, ge=1, le=1 << 44)
    url: str | None = Field(
        default=None,
        description="Where the file is downloaded from, without user name or password; redirects are not followed.",
        pattern=patterns.URL,
        max_length=2048,
    )
    operator_supplied: bool = Field(
        default=False,
        description="Whether the file lies in the folder of operator-supplied files.",
        strict=True,
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.url is None and not self.operator_supplied:
            raise PydanticCustomError("origin", "give a url, or operatorSupplied: true")
        if self.url is not None and self.operator_supplied:
            raise PydanticCustomError("origin", "give either a url or operatorSupplied: true, not both")
        return self

    @field_validator("url")
    @classmethod
    def _has_host(cls, url: str | None) -> str | None:
        if url is not None:
            try:
                parts = urlsplit(url)
                usable = bool(parts.hostname) and parts.port != 0
            except ValueError:
                usable = False
            if not usable:
                raise PydanticCustomError("url", "must be a URL with a host and, if any, a port from 1 to 65535")
        return url


class SourceModel(Document):
    """Where artifacts come from, at which vintage."""

    source_key: SourceKey = Field(description="Name of the source inside the collection, the same for all vintages.")
    provider: Key | None = Field(
        default=None, description="What reads the files of this source; the provider of the manifest if not given."
    )
    license: Text = Field(description="Licence of the data, for example CC0-1.0.")
    release_key: SourceKey = Field(description="Vintage of the source, for example 2026-01.")
    attribution: Text | None = Field(default=None, description="Text that must be shown with the data.")
    source_date: Day | None = Field(default=None, description="Day the data describes, as YYYY-MM-DD.")
    artifacts: list[ArtifactModel] = Field(description="The files of this source.", min_length=1, max_length=256)


class ManifestModel(Document):
    """What is to be built, and from which reviewed files."""

    collection: Key = Field(
        description="Name of the collection, the unit of publication: lower-case letters, digits and underscores."
    )
    release: ReleaseKey = Field(description="Name of the release inside the collection, for example 2026.1.")
    provider: Key = Field(description="What reads the files, for example geojson.")
    authorities: list[AuthorityModel] = Field(description="Who defines the codes.", min_length=1, max_length=64)
    area_types: list[AreaTypeModel] = Field(default_factory=list, description="The kinds of areas.", max_length=64)
    sources: list[SourceModel] = Field(description="Where the files come from.", min_length=1, max_length=64)
    options: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Options in the vocabulary of the provider, which checks them.",
        max_length=64,
    )

    @field_validator("authorities")
    @classmethod
    def _authority_keys_once(cls, authorities: list[AuthorityModel]) -> list[AuthorityModel]:
        _refuse_twice({(at, "key"): authority.key for at, authority in enumerate(authorities)})
        return authorities

    @field_validator("area_types")
    @classmethod
    def _area_types_once(cls, area_types: list[AreaTypeModel]) -> list[AreaTypeModel]:
        _refuse_twice({(at, "key"): area_type.key for at, area_type in enumerate(area_types)})
        _refuse_twice({(at, "rank"): area_type.rank for at, area_type in enumerate(area_types)})
        return area_types

    @field_validator("sources")
    @classmethod
    def _files_once(cls, sources: list[SourceModel]) -> list[SourceModel]:
        _refuse_twice({(at, "source_key"): source.source_key for at, source in enumerate(sources)})
        _refuse_twice(
            {
                (at, "artifacts", file, "logical_name"): artifact.logical_name
                for at, source in enumerate(sources)
                for file, artifact in enumerate(source.artifacts)
            }
        )
        return sources

    @field_validator("options")
    @classmethod
    def _options_storable(cls, options: dict[str, JsonValue]) -> dict[str, JsonValue]:
        _refuse_unstorable(options, (), depth=0)
        if len(json.dumps(options)) > OPTIONS_CHARACTERS:
            raise PydanticCustomError(
                "options_size", f"must not be larger than {OPTIONS_CHARACTERS} characters as JSON"
            )
        return options


def _refuse_twice(values: Mapping[Loc, str | int]) -> None:
    """Refuse the second use of a value; the error carries the place below the validated field in its context."""
    seen: set[str | int] = set()
    for loc, value in values.items():
        if value in seen:
            raise PydanticCustomError("used_twice", "{value} is used already; each must be unique", _at(loc, value))
        seen.add(value)


def _refuse_unstorable(value: JsonValue, loc: Loc, depth: int) -> None:
    """Refuse what PostgreSQL cannot keep as JSON: NUL characters, lone surrogates, NaN and Infinity."""
    if depth > OPTIONS_DEPTH:
        raise PydanticCustomError("depth", "must not be nested deeper than {value} levels", _at(loc[:3], OPTIONS_DEPTH))
    match value:
        case str() if UNSTORABLE.search(value):
            raise PydanticCustomError("text", "must not contain control characters or broken Unicode", _at(loc, ""))
        case float() if not math.isfinite(value):
            raise PydanticCustomError("number", "must be a finite number, not {value}", _at(loc, str(value)))
        case list():
            for at, item in enumerate(value):
                _refuse_unstorable(item, (*loc, at), depth + 1)
        case dict():
            for key, item in value.items():
                _refuse_unstorable(key, (*loc, key), depth)
                _refuse_unstorable(item, (*loc, key), depth + 1)
        case _:
            pass


def _at(loc: Loc, value: str | int) -> dict[str, str | int | Loc]:
    return {"value": value, "below": loc}
