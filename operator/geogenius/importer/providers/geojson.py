"""The provider `geojson`: one area a feature of a FeatureCollection."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from geogenius.domain.area import Reject, StagedArea
from geogenius.domain.manifest import Artifact, JsonValue, Manifest, Source
from geogenius.importer.geojson.feature import FeatureRefused, check_storable, read_feature
from geogenius.importer.geojson.reader import FeatureCollectionReader, RawFeature
from geogenius.importer.providers.batches import Row, in_batches
from geogenius.importer.providers.contract import Batch
from geogenius.importer.providers.options import OptionReader, chosen_area_type, chosen_authority
from geogenius.importer.text import shortened

OPTIONS = frozenset({"area_type", "authority", "code_property", "name_property", "attribute_properties", "relations"})
MEASURED, NONE = "measured", "none"
CODE_CHARACTERS = 256
NAME_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class GeojsonOptions:
    """Which properties of a feature make the area."""

    authority: str
    area_type: str
    code_property: str
    name_property: str
    attribute_properties: tuple[str, ...]
    relations: str

    @classmethod
    def of(cls, manifest: Manifest) -> "GeojsonOptions":
        """The options of a manifest with defaults filled in; ManifestInvalid names the wrong one."""
        reader = OptionReader(manifest.options)
        reader.refuse_unknown(OPTIONS)
        return cls(
            authority=chosen_authority(manifest, reader),
            area_type=chosen_area_type(manifest, reader),
            code_property=reader.required_text("code_property"),
            name_property=reader.text("name_property") or "name",
            attribute_properties=reader.texts("attribute_properties"),
            relations=reader.choice("relations", (MEASURED, NONE)),
        )


class GeojsonProvider:
    """Reads FeatureCollections in bounded memory. A bad feature is one reject; the rest goes on."""

    name = "geojson"

    def check_options(self, manifest: Manifest) -> None:
        """As in the contract."""
        GeojsonOptions.of(manifest)

    def measures_relations(self, manifest: Manifest) -> bool:
        """As in the contract: unless the option `relations` is `none`."""
        return GeojsonOptions.of(manifest).relations == MEASURED

    def read(self, manifest: Manifest, source: Source, artifact: Artifact, path: Path) -> Iterator[Batch]:  # noqa: ARG002
        """As in the contract."""
        options = GeojsonOptions.of(manifest)
        with path.open("rb") as file:
            reader = FeatureCollectionReader(file, artifact.logical_name)
            yield from in_batches(
                Row(area_or_reject(raw, options), len(raw.text), raw.byte_offset + len(raw.text)) for raw in reader
            )


def area_or_reject(raw: RawFeature, options: GeojsonOptions) -> StagedArea | Reject:
    """What becomes of one feature. Pure."""
    try:
        feature = read_feature(raw.text)
        return StagedArea(
            position=raw.position,
            authority=options.authority,
            area_type=options.area_type,
            code=_code(feature.properties, options.code_property),
            name=_name(feature.properties, options.name_property),
            wkb=feature.wkb,
            attributes=_attributes(feature.properties, options.attribute_properties),
        )
    except FeatureRefused as error:
        return Reject(raw.position, raw.byte_offset, error.reason, error.detail)


def _code(properties: dict[str, JsonValue], key: str) -> str:
    value = properties.get(key)
    if value is None:
        problem = "is null" if key in properties else "is missing"
        raise FeatureRefused("blank_code", f"the property {shortened(key)}, which holds the code, {problem}")
    code = _text(value, key, "bad_code", CODE_CHARACTERS)
    if not code:
        raise FeatureRefused("blank_code", f"the property {shortened(key)}, which holds the code, is blank")
    return code


def _name(properties: dict[str, JsonValue], key: str) -> str | None:
    value = properties.get(key)
    return None if value is None else _text(value, key, "bad_name", NAME_CHARACTERS) or None


def _text(value: JsonValue, key: str, reason: str, characters: int) -> str:
    """A text or number as trimmed text; 7.0 is 7."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FeatureRefused(reason, f"the property {shortened(key)} is {shortened(value)}, not a text or number")
    check_storable(value, f"the property {shortened(key)}")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    if len(text) > characters:
        raise FeatureRefused(reason, f"the property {shortened(key)} has more than {characters} characters")
    return text


def _attributes(properties: dict[str, JsonValue], keys: tuple[str, ...]) -> dict[str, JsonValue]:
    attributes = {key: properties[key] for key in keys if key in properties}
    for key, value in attributes.items():
        check_storable(value, f"the property {shortened(key)}")
    return attributes
