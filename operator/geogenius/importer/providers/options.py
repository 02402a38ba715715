"""Reading of provider options: every complaint starts with the path `options.…` and says what to do."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from geogenius.domain.errors import ManifestInvalid
from geogenius.domain.manifest import JsonValue, Manifest
from geogenius.importer.text import shortened


@dataclass(frozen=True, slots=True)
class OptionReader:
    """The options of one manifest; names are in snake_case already."""

    options: Mapping[str, JsonValue]

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse an option that nobody reads."""
        for key in self.options:
            if key not in known:
                raise ManifestInvalid(
                    f"options.{key}: is not an option of this provider; known are: {', '.join(sorted(known))}"
                )

    def text(self, key: str) -> str | None:
        """A string that is not blank; None if the option is absent or null."""
        value = self.options.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise ManifestInvalid(f"options.{key}: must be a string, not {shortened(value)}")
        if not value.strip():
            raise ManifestInvalid(f"options.{key}: must not be blank")
        return value

    def required_text(self, key: str) -> str:
        """A string that must be there and must not be blank."""
        value = self.text(key)
        if value is None:
            raise ManifestInvalid(f"options.{key}: is required")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of some words; the first one if the option is absent or null."""
        value = self.text(key) or choices[0]
        if value not in choices:
            raise ManifestInvalid(f"options.{key}: must be one of {', '.join(choices)}, not {shortened(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of different strings; empty if the option is absent or null."""
        value = self.options.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ManifestInvalid(f"options.{key}: must be a list of strings, not {shortened(value)}")
        texts: list[str] = []
        for at, item in enumerate(value):
            if not isinstance(item, str) or not item.strip():
                raise ManifestInvalid(f"options.{key}[{at}]: must be a string that is not blank")
            if item in texts:
                raise ManifestInvalid(f"options.{key}[{at}]: {shortened(item)} is listed twice")
            texts.append(item)
        return tuple(texts)


def chosen_area_type(manifest: Manifest, reader: OptionReader) -> str:
    """The required option `area_type`, which must be one of the manifest's area types."""
    chosen = reader.required_text("area_type")
    return _declared("area_type", chosen, "areaTypes", [kind.key for kind in manifest.area_types])


def chosen_authority(manifest: Manifest, reader: OptionReader) -> str:
    """The option `authority`; without it the manifest's single authority."""
    keys = [authority.key for authority in manifest.authorities]
    chosen = reader.text("authority")
    if chosen is not None:
        return _declared("authority", chosen, "authorities", keys)
    if len(keys) != 1:
        raise ManifestInvalid(f"options.authority: is required; the manifest has several: {', '.join(keys)}")
    return keys[0]


def _declared(key: str, chosen: str, field: str, declared: list[str]) -> str:
    if chosen not in declared:
        listed = ", ".join(declared) or "none"
        raise ManifestInvalid(f"options.{key}: {shortened(chosen)} is not among the manifest's {field}: {listed}")
    return chosen
