"""What a provider makes of a file: areas, and rejects with their positions. Nothing is dropped silently."""

from dataclasses import dataclass, field

from geogenius.domain.manifest import JsonValue


@dataclass(frozen=True, slots=True)
class StagedArea:
    """One area as read from an artifact. `wkb` is a little-endian MultiPolygon in EPSG:4326, or None."""

    position: int
    authority: str
    area_type: str
    code: str
    name: str | None
    wkb: bytes | None
    attributes: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that cannot be imported: its number in the artifact (from 1), its first byte where known, and why.

    `reason` is a stable snake_case word; `detail` is a sentence for people, cut to 200 characters when stored.
    """

    position: int
    byte_offset: int | None
    reason: str
    detail: str
