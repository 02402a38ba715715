"""Named queries from `.sql` files: the only way SQL reaches the database.

A block starts with `-- name: verb_noun (one | at most one | many | none)` and at least one line of comment on
purpose, locks or index; then the statement, with named parameters. Placeholders in braces are identifiers.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString

_HEADER = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*) \((?:one|at most one|many|none)\)$")
_START = re.compile(r"^(?=-- name:)", re.MULTILINE)


class QueryFileError(Exception):
    """A `.sql` file does not follow the form; found when the module that uses it is imported."""


def load_queries(path: Path) -> Mapping[str, LiteralString]:
    """The statements of a file by name. Raises QueryFileError for a nameless, undescribed or repeated block."""
    queries: dict[str, LiteralString] = {}
    for block in filter(str.strip, _START.split(path.read_text(encoding="utf-8"))):
        header, *lines = block.strip().splitlines()
        found = _HEADER.match(header)
        if found is None:
            raise QueryFileError(f"{path.name}: not the head of a named query: {header!r}")
        if found["name"] in queries:
            raise QueryFileError(f"{path.name}: {found['name']} is there twice")
        if not lines or not lines[0].startswith("-- "):
            raise QueryFileError(f"{path.name}: {found['name']} has no description")
        queries[found["name"]] = literal("\n".join(line for line in lines if not line.startswith("--")))
    return queries


def literal(text: str) -> LiteralString:
    """Text of our own `.sql` files as psycopg wants it. The one place where text is called a literal (mypy lets it)."""
    return text
