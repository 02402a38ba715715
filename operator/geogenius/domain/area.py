"""What a provider makes of a file: areas, and rejects with their positions. Nothing is dropped silently."""

from dataclasses import dataclass, field
from enum import StrEnum

from geogenius.domain.manifest import JsonValue


class NameKind(StrEnum):
    """What a name is for."""

    OFFICIAL = "official"
    ALIAS = "alias"
    MAILING = "mailing"
    ABBREVIATION = "abbreviation"


class RelationType(StrEnum):
    """How a broad area relates to a narrow one, the strongest first."""

    CONTAINS = "contains"
    MOSTLY_CONTAINS = "mostly_contains"
    OVERLAPS = "overlaps"


@dataclass(frozen=True, slots=True)
class AreaName:
    """A name beside the official one; not blank. `locale` is a language tag, or None."""

    name: str
    kind: NameKind = NameKind.ALIAS
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class AreaCode:
    """A code beside the own one. `code_type` is spelt like the key of an authority; neither is blank."""

    code_type: str
    code_value: str


@dataclass(frozen=True, slots=True)
class ParentLink:
    """An edge that a source states: the area of this key contains (or overlaps) the area that says so."""

    area_key: str
    relation_type: RelationType = RelationType.CONTAINS


@dataclass(frozen=True, slots=True)
class StagedArea:
    """One area as read from an artifact.

    `wkb` is a little-endian MultiPolygon, `point` a Point, both in EPSG:4326, or None; the point counts where there is
    no boundary. `names` and `codes` are those beside the official name and the own code.
    """

    position: int
    authority: str
    area_type: str
    code: str
    name: str | None
    wkb: bytes | None
    attributes: dict[str, JsonValue] = field(default_factory=dict)
    point: bytes | None = None
    names: tuple[AreaName, ...] = ()
    codes: tuple[AreaCode, ...] = ()
    parents: tuple[ParentLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that cannot be imported: its number in the artifact (from 1), its first byte where known, and why.

    `reason` is a stable snake_case word; `detail` is a sentence for people, cut to 200 characters when stored.
    """

    position: int
    byte_offset: int | None
    reason: str
    detail: str
