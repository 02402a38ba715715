"""The providers by name."""

from geogenius.domain.errors import ManifestInvalid
from geogenius.domain.manifest import Manifest
from geogenius.importer.providers.contract import Batch, Provider
from geogenius.importer.providers.geojson import GeojsonProvider
from geogenius.importer.text import shortened

__all__ = ["Batch", "Provider", "check_manifest", "provider_named"]

_PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in (GeojsonProvider(),)}


def provider_named(name: str, field: str = "provider") -> Provider:
    """The provider; ManifestInvalid, naming the field of the manifest and the known providers, if there is none."""
    provider = _PROVIDERS.get(name)
    if provider is None:
        known = ", ".join(sorted(_PROVIDERS))
        raise ManifestInvalid(f"{field}: there is no provider {shortened(name)}; known are: {known}")
    return provider


def check_manifest(manifest: Manifest) -> None:
    """Check all that only providers know: their names and options. ManifestInvalid names the field."""
    named = {manifest.provider: "provider"}
    for at, source in enumerate(manifest.sources):
        named.setdefault(source.provider, f"sources[{at}].provider")
    for name, field in named.items():
        provider_named(name, field).check_options(manifest)
