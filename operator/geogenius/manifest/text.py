"""A manifest's text as a mapping. YAML is read as JSON is: no dates, no aliases, no merging, no key twice."""

import json
from collections.abc import Hashable
from typing import Any, NoReturn

import yaml
from typing_extensions import override

from geogenius.domain.errors import ManifestInvalid

TEXT_BYTES = 4 << 20
NOT_IN_JSON = tuple(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "merge", "value"))
"""What YAML takes some plain words for (2030-01-01, <<, =); they are texts here."""


def read_text(text: str) -> dict[str, object]:
    """The mapping in a JSON or YAML text; ManifestInvalid with line and column otherwise."""
    if len(text.encode(errors="surrogatepass")) > TEXT_BYTES:
        raise ManifestInvalid(f"manifest: the text is larger than {TEXT_BYTES >> 20} MiB")
    document = _json(text) if text.lstrip().startswith("{") else _yaml(text)
    if not isinstance(document, dict):
        raise ManifestInvalid("manifest: must be an object with the fields collection, release, provider, ...")
    return document


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ManifestInvalid(f"manifest: not JSON: {error.msg} at line {error.lineno} column {error.colno}") from error
    except RecursionError as error:
        raise ManifestInvalid("manifest: is nested too deep") from error
    except ValueError as error:
        raise ManifestInvalid("manifest: not JSON: a number has more digits than any field takes") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document: dict[str, object] = {}
    for key, value in pairs:
        if key in document:
            raise ManifestInvalid(f"manifest: the key {key!r} is given twice in one object")
        document[key] = value
    return document


def _no_constant(constant: str) -> NoReturn:
    raise ManifestInvalid(f"manifest: {constant} is not a value of JSON")


def _yaml(text: str) -> object:
    try:
        return yaml.load(text, Loader=_JsonLikeLoader)  # noqa: S506  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise ManifestInvalid(f"manifest: not YAML: {error.problem}{where}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestInvalid(f"manifest: not YAML: {' '.join(str(error).split())[:200]}") from error


class _JsonLikeLoader(yaml.SafeLoader):
    """A SafeLoader without what JSON does not have either."""

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs leave it out
            raise yaml.composer.ComposerError(None, None, "aliases are not supported; repeat the value", mark)
        return super().compose_node(parent, index)

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain text", key.start_mark)
            if key.value in seen:
                problem = f"the key {key.value!r} is given twice in one object"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_JsonLikeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in NOT_IN_JSON]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
