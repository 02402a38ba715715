"""Text or mapping in, checked manifest out; every error says which field and what to do."""

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from geogenius.domain.errors import ManifestInvalid
from geogenius.domain.manifest import AreaType, Artifact, Authority, JsonValue, Manifest, Source
from geogenius.manifest.explain import explained
from geogenius.manifest.model import ArtifactModel, ManifestModel, SourceModel
from geogenius.manifest.spelling import to_snake
from geogenius.manifest.text import read_text


def load(text: str) -> Manifest:
    """The manifest of a file's text, JSON or YAML; ManifestInvalid names the wrong fields, or the line."""
    return parse(read_text(text))


def parse(document: Mapping[str, object]) -> Manifest:
    """The manifest of a mapping with camelCase or snake_case keys; ManifestInvalid names the wrong fields."""
    try:
        model = ManifestModel.model_validate(dict(document))
    except ValidationError as error:
        raise ManifestInvalid(explained(error, document)) from error
    return from_model(model)


def from_model(model: ManifestModel) -> Manifest:
    """The domain's manifest of a validated model: providers inherited, names of options in snake_case."""
    return Manifest(
        collection=model.collection,
        release=model.release,
        provider=model.provider,
        authorities=tuple(Authority(authority.key, authority.name) for authority in model.authorities),
        area_types=tuple(AreaType(kind.key, kind.rank, kind.requires_geometry) for kind in model.area_types),
        sources=tuple(_source(source, model.provider) for source in model.sources),
        options=_options(model.options),
    )


def normal_form(manifest: Manifest) -> dict[str, JsonValue]:
    """The document the catalog stores: snake_case, every default filled in, equal for equal manifests.

    `parse(normal_form(manifest)) == manifest`.
    """
    return {
        "collection": manifest.collection,
        "release": manifest.release,
        "provider": manifest.provider,
        "authorities": [{"key": authority.key, "name": authority.name} for authority in manifest.authorities],
        "area_types": [
            {"key": kind.key, "rank": kind.rank, "requires_geometry": kind.requires_geometry}
            for kind in manifest.area_types
        ],
        "sources": [_normal_source(source) for source in manifest.sources],
        "options": manifest.options,
    }


def _source(model: SourceModel, provider: str) -> Source:
    return Source(
        source_key=model.source_key,
        provider=model.provider or provider,
        license=model.license,
        release_key=model.release_key,
        attribution=model.attribution,
        source_date=model.source_date,
        artifacts=tuple(_artifact(artifact) for artifact in model.artifacts),
    )


def _artifact(model: ArtifactModel) -> Artifact:
    return Artifact(model.logical_name, model.format, model.sha256, model.bytes, model.url)


def _normal_source(source: Source) -> dict[str, JsonValue]:
    return {
        "source_key": source.source_key,
        "provider": source.provider,
        "license": source.license,
        "release_key": source.release_key,
        "attribution": source.attribution,
        "source_date": source.source_date.isoformat() if source.source_date else None,
        "artifacts": [
            {
                "logical_name": artifact.logical_name,
                "format": artifact.format,
                "sha256": artifact.sha256,
                "bytes": artifact.bytes,
                "url": artifact.url,
                "operator_supplied": artifact.url is None,
            }
            for artifact in source.artifacts
        ],
    }


def _options(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Option names in snake_case; what is below them is the provider's own vocabulary and stays."""
    named: dict[str, JsonValue] = {}
    for key, value in options.items():
        name = to_snake(key)
        if name in named:
            raise ManifestInvalid(f"options.{key}: is given twice, as {name} and as {to_camel(name)}")
        named[name] = value
    return named
