"""Names of what this product has in the Kubernetes API, and typed reading of its JSON."""

from urllib.parse import quote

from geogenius.domain.manifest import JsonValue

JsonObject = dict[str, JsonValue]

GROUP = "geogenius.io"
VERSION = "v1alpha1"
KIND = "ImportRequest"
PLURAL = "importrequests"
API_VERSION = f"{GROUP}/{VERSION}"

FIELD_MANAGER = "geogenius"
APPLICATION = "geogenius"

RUN_ID_LABEL = "geogenius.io/run-id"
REQUEST_LABEL = "geogenius.io/request"
NAME_LABEL = "app.kubernetes.io/name"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
SPEC_HASH_ANNOTATION = "geogenius.io/spec-hash"
ATTEMPT_ANNOTATION = "geogenius.io/attempt"

OUR_JOBS_SELECTOR = f"{MANAGED_BY_LABEL}={APPLICATION},{RUN_ID_LABEL}"


def jobs_path(namespace: str | None, name: str | None = None) -> str:
    """The path of all Jobs, of those in a namespace, or of one."""
    return _path("/apis/batch/v1", "jobs", namespace, name)


def pods_path(namespace: str) -> str:
    """The path of the pods in a namespace."""
    return _path("/api/v1", "pods", namespace, None)


def events_path(namespace: str) -> str:
    """The path of the core events in a namespace."""
    return _path("/api/v1", "events", namespace, None)


def requests_path(namespace: str | None, name: str | None = None) -> str:
    """The path of all ImportRequests, of those in a namespace, or of one."""
    return _path(f"/apis/{API_VERSION}", PLURAL, namespace, name)


def _path(api: str, plural: str, namespace: str | None, name: str | None) -> str:
    parts = [api]
    if namespace is not None:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(plural)
    if name is not None:
        parts.append(quote(name, safe=""))
    return "/".join(parts)


def value_at(document: JsonValue, *path: str) -> JsonValue:
    """The value at this path of keys, or None where a step is missing or no object."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def text_at(document: JsonValue, *path: str) -> str:
    """The string at this path, or the empty string."""
    value = value_at(document, *path)
    return value if isinstance(value, str) else ""


def integer_at(document: JsonValue, *path: str) -> int | None:
    """The integer at this path, or None."""
    value = value_at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def objects_at(document: JsonValue, *path: str) -> list[JsonObject]:
    """The objects in the list at this path; empty where there is no list."""
    value = value_at(document, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
