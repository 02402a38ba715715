import re
from pathlib import Path

import psycopg
import pytest

import geogenius.db.errors
from geogenius.db.errors import MEANINGS, translate
from geogenius.domain.errors import DatabaseUnavailable, DataRefused, GeogeniusError, Misconfigured

FUNCTIONS = Path(geogenius.db.errors.__file__).parent / "functions"
TEXT = "\n".join(path.read_text() for path in sorted(FUNCTIONS.glob("*.sql")))


INLINED = {
    "area_key",
    "catalog_clock",
    "catalog_now",
    "collection_table",
    "manifest_artifact",
    "release_table",
    "staging_table",
}
"""One expression over pg_catalog each; they say so."""


def test_the_table_knows_exactly_the_words_that_the_functions_say() -> None:
    said = set(re.findall(r"refuse\('(\w{5})', '(\w+)'", TEXT))
    assert said == {key for key in MEANINGS if key[1]}


def test_every_function_pins_its_search_path_or_says_why_not() -> None:
    heads = re.findall(r"create or replace function (\w+)(.*?)as \$\$", TEXT, re.DOTALL)
    unpinned = {name for name, head in heads if "set search_path from current" not in head}
    assert unpinned == INLINED


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.OperationalError("connection refused"), DatabaseUnavailable),
        (psycopg.InterfaceError("the connection is closed"), DatabaseUnavailable),
        (psycopg.errors.AdminShutdown("terminating connection"), DatabaseUnavailable),
        (psycopg.errors.QueryCanceled("statement timeout"), DatabaseUnavailable),
        (psycopg.errors.DeadlockDetected("deadlock"), DatabaseUnavailable),
        (psycopg.errors.TooManyConnections("too many"), DatabaseUnavailable),
        (psycopg.errors.InsufficientPrivilege("permission denied"), Misconfigured),
        (psycopg.errors.UndefinedFunction("no such function"), Misconfigured),
        (psycopg.errors.InvalidTextRepresentation("invalid"), DataRefused),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), DataRefused),
        (psycopg.errors.SyntaxError("syntax"), GeogeniusError),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_an_error_of_the_driver_means_one_of_ours(error: psycopg.Error, kind: type[GeogeniusError]) -> None:
    assert type(translate(error)) is kind
