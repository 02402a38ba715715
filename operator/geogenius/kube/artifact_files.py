"""Files that the operator of the catalog supplies: from ConfigMaps and volumes of the cluster to `/artifacts`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from geogenius.domain.errors import InvalidRequest
from geogenius.domain.manifest import JsonValue
from geogenius.kube.resources import JsonObject

ARTIFACTS_PATH = "/artifacts"
_PROJECTED = "artifacts"


@dataclass(frozen=True, slots=True)
class FileItem:
    """One file of a source (a key of a ConfigMap, a path in a claim) and the logical name it is to have."""

    source: str
    logical_name: str


@dataclass(frozen=True, slots=True)
class ConfigMapFiles:
    """Keys of a ConfigMap in the namespace of the Job; without items every key becomes a file of its name."""

    name: str
    items: tuple[FileItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimFiles:
    """Files of a PersistentVolumeClaim; without items the whole volume, whose file names are the logical names."""

    claim: str
    items: tuple[FileItem, ...] = ()
    read_only: bool = True


ArtifactFiles = tuple[ConfigMapFiles | ClaimFiles, ...]


def mounted(files: ArtifactFiles) -> tuple[list[JsonValue], list[JsonValue]]:
    """The volumes of the pod and the mounts of its container that put every file at `/artifacts/<logical name>`.

    Raises InvalidRequest for a logical name that is no plain relative path, for one that is given twice, and for a
    claim beside another source where one of them does not list its files: nothing can be mounted inside a volume
    that is read only, so then every file is mounted on its own.
    """
    _check(files)
    maps = [source for source in files if isinstance(source, ConfigMapFiles)]
    claims = [source for source in files if isinstance(source, ClaimFiles)]
    volumes: list[JsonValue] = [_projected_volume(maps)] if maps else []
    mounts: list[JsonValue] = _projected_mounts(maps, alone=not claims) if maps else []
    for number, claim in enumerate(claims):
        name = f"claim-{number}"
        reference: JsonObject = {"claimName": claim.claim, "readOnly": claim.read_only}
        volumes.append({"name": name, "persistentVolumeClaim": reference})
        mounts += _claim_mounts(name, claim)
    return volumes, mounts


def _projected_volume(maps: Sequence[ConfigMapFiles]) -> JsonObject:
    sources: list[JsonValue] = []
    for source in maps:
        items: list[JsonValue] = [{"key": item.source, "path": item.logical_name} for item in source.items]
        sources.append({"configMap": {"name": source.name} | ({"items": items} if items else {})})
    return {"name": _PROJECTED, "projected": {"sources": sources}}


def _projected_mounts(maps: Sequence[ConfigMapFiles], *, alone: bool) -> list[JsonValue]:
    if alone:
        return [{"name": _PROJECTED, "mountPath": ARTIFACTS_PATH, "readOnly": True}]
    names = [item.logical_name for source in maps for item in source.items]
    return [_file_mount(_PROJECTED, name, name, read_only=True) for name in names]


def _claim_mounts(volume: str, claim: ClaimFiles) -> list[JsonValue]:
    if not claim.items:
        return [{"name": volume, "mountPath": ARTIFACTS_PATH, "readOnly": claim.read_only}]
    return [_file_mount(volume, item.source, item.logical_name, read_only=claim.read_only) for item in claim.items]


def _file_mount(volume: str, source: str, logical_name: str, *, read_only: bool) -> JsonObject:
    return {
        "name": volume,
        "mountPath": f"{ARTIFACTS_PATH}/{logical_name}",
        "subPath": source,
        "readOnly": read_only,
    }


def _check(files: ArtifactFiles) -> None:
    names = [item.logical_name for source in files for item in source.items]
    paths = names + [item.source for source in files if isinstance(source, ClaimFiles) for item in source.items]
    for path in paths:
        if not _plain(path):
            raise InvalidRequest(f"file {path!r} is no plain relative path", reason="FilesInvalid")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidRequest(f"files given twice: {', '.join(twice)}", reason="FilesInvalid")
    if len(files) > 1 and any(isinstance(source, ClaimFiles) for source in files):
        for source in files:
            if not source.items:
                place = source.claim if isinstance(source, ClaimFiles) else source.name
                raise InvalidRequest(f"{place} must list its files: it is not the only source", reason="FilesInvalid")


def _plain(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path
