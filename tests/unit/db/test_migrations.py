import re
from pathlib import Path

import geogenius.db
from geogenius.db.migrate import functions, migrations
from geogenius.db.picture import picture

HOME = Path(geogenius.db.__file__).parent


def test_migrations_are_numbered_without_gaps_and_named_for_what_they_do() -> None:
    names = [file.name for file in migrations()]
    assert all(re.fullmatch(r"\d{4}_[a-z]+(_[a-z]+)+\.sql", name) for name in names)
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_files_of_functions_are_numbered() -> None:
    assert all(re.fullmatch(r"\d{3}_[a-z]+\.sql", file.name) for file in functions())


def test_sql_files_are_short() -> None:
    assert [file.name for file in [*migrations(), *functions()] if file.text.count("\n") > 120] == []


def test_the_picture_of_the_schema_is_up_to_date() -> None:
    assert (HOME / "schema.sql").read_text() == picture()
