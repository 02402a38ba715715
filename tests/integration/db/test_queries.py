import re
from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString

import pytest

import geogenius
from geogenius.db import Database
from geogenius.db.sql import literal, load_queries
from tests.support.databases import session

PACKAGE = Path(geogenius.__file__).parent
FILES = sorted(PACKAGE.rglob("queries/*.sql"))
QUERIES = [(file, name, text) for file in FILES for name, text in load_queries(file).items()]
NOT_PREPARABLE = re.compile(r"^(create|copy|alter|do)\b")


@pytest.mark.parametrize(("file", "name", "text"), QUERIES, ids=lambda value: value if isinstance(value, str) else None)
def test_every_query_is_prepared_and_used(database: Database, file: Path, name: str, text: str) -> None:
    code = "\n".join(path.read_text() for path in file.parent.parent.glob("*.py"))
    assert f'"{name}"' in code
    if NOT_PREPARABLE.match(text):
        return
    with session(database) as connection:
        connection.execute(literal(f"prepare checked as {numbered(text)}"))


def test_every_name_that_code_asks_for_exists() -> None:
    for folder in {file.parent for file in FILES}:
        known: set[str] = set().union(*(load_queries(file) for file in folder.glob("*.sql")))
        code = "\n".join(path.read_text() for path in folder.parent.glob("*.py"))
        assert set(re.findall(r'_QUERIES\["(\w+)"\]', code)) <= known


def numbered(text: str) -> str:
    """Named parameters as PostgreSQL numbers them."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    return re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", text)


def test_the_loader_gives_literal_strings() -> None:
    queries: Mapping[str, LiteralString] = load_queries(FILES[0])
    assert queries
