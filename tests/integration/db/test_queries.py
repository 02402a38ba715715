import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import LiteralString

import pytest

import geogenius
from geogenius.db import Database
from geogenius.db.sql import literal, load_queries
from tests.support.databases import OWNER, PostgresCluster, opened, session
from tests.support.queues import queue_template

PACKAGE = Path(geogenius.__file__).parent
FILES = sorted(PACKAGE.rglob("queries/*.sql"))
QUERIES = [(file, name, text) for file in FILES for name, text in load_queries(file).items()]
NOT_PREPARABLE = re.compile(r"^(create|copy|alter|do|drop|grant|lock|set)\b")
IDENTIFIERS = {"{schema}": "geogenius", "{queue}": "q_geogenius_import", "{archive}": "a_geogenius_import"}
LATER_CORE = """
create function pgflow.start_tasks(text, bigint[], uuid, text) returns setof pgflow.step_task_record
language sql as 'select * from pgflow.start_tasks($1, $2, $3)'
"""


@pytest.fixture(scope="module")
def with_queue(postgres: PostgresCluster, template: str) -> Iterator[Database]:
    """A database with the queue, whose core has the functions of later ones as well."""
    name = queue_template(postgres, template)
    postgres.execute(name, LATER_CORE)
    with opened(postgres.conninfo(name, OWNER)) as database:
        yield database
    postgres.drop(name)


@pytest.mark.parametrize(("file", "name", "text"), QUERIES, ids=lambda value: value if isinstance(value, str) else None)
def test_every_query_is_prepared_and_used(with_queue: Database, file: Path, name: str, text: str) -> None:
    code = "\n".join(path.read_text() for path in file.parent.parent.glob("*.py"))
    assert f'"{name}"' in code
    if NOT_PREPARABLE.match(text):
        return
    with session(with_queue) as connection:
        connection.execute(literal(f"prepare checked as {numbered(named(text))}"))


def test_every_name_that_code_asks_for_exists() -> None:
    for folder in {file.parent for file in FILES}:
        known: set[str] = set().union(*(load_queries(file) for file in folder.glob("*.sql")))
        code = "\n".join(path.read_text() for path in folder.parent.glob("*.py"))
        assert set(re.findall(r'_QUERIES\["(\w+)"\]', code)) <= known


def named(text: str) -> str:
    """With the identifiers that the program would put in."""
    for placeholder, name in IDENTIFIERS.items():
        text = text.replace(placeholder, name)
    return text


def numbered(text: str) -> str:
    """Named parameters as PostgreSQL numbers them."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    return re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", text)


def test_the_loader_gives_literal_strings() -> None:
    queries: Mapping[str, LiteralString] = load_queries(FILES[0])
    assert queries
