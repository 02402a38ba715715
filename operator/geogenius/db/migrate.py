"""Brings a database to the schema of this program: numbered migrations, then all functions anew."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path

import psycopg
from psycopg import Connection, errors, sql
from psycopg.rows import DictRow

from geogenius.db.pool import Database
from geogenius.db.sql import literal, load_queries
from geogenius.db.timeouts import Call, milliseconds
from geogenius.domain.deadline import Deadline
from geogenius.domain.errors import Misconfigured

_HOME = Path(__file__).parent
_QUERIES = load_queries(_HOME / "queries" / "migrate.sql")
_FUNCTIONS = "functions"
_MINIMUM_POSTGRES = 15
_EXTENSIONS = {"postgis": 3, "pg_trgm": 1}
"""What the catalog stands on, with the oldest major version that will do."""


_LOCK_WAIT = timedelta(milliseconds=500)
_PATIENCE = timedelta(minutes=10)
"""How long a migration waits for one lock, and how long it goes on trying while imports and readers are in the way."""


class SchemaState(StrEnum):
    """How the schema of a database stands to this program."""

    CURRENT = "current"
    OUTDATED = "outdated"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A file to be executed as a whole."""

    name: str
    text: str

    @property
    def checksum(self) -> str:
        """sha256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_files(folder: Path) -> list[SqlFile]:
    """The `.sql` files of a folder in the order of their numbers."""
    return [SqlFile(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql"))]


def migrations() -> list[SqlFile]:
    """The migrations of this program, oldest first."""
    return read_files(_HOME / "migrations")


def functions() -> list[SqlFile]:
    """The functions and views of this program; later files build on earlier ones."""
    return read_files(_HOME / _FUNCTIONS)


def migrate(database: Database, files: list[SqlFile] | None = None) -> list[str]:
    """Applies what is missing and gives its names; a second call applies nothing but rights.

    Each file is one transaction, all under one advisory lock. The role needs no more than a schema that it owns where
    PostGIS and pg_trgm are installed. Raises Misconfigured for an old PostgreSQL, a missing
    extension, a file that was edited after it was applied, and a database that is newer than this program.
    """
    files = migrations() if files is None else files
    with _one_at_a_time(database), database.dedicated() as connection:
        with database.transaction(connection, Call.BULK):
            _prepare(connection, database.schema)
            applied = _applied(connection)
        missing = _missing(files, applied)
        for file in missing:
            _patiently(database, connection, partial(_apply, connection, file.name, file.checksum, [file]))
        current = applied.get(_FUNCTIONS) == _functions_checksum()
        _patiently(database, connection, partial(_renew, connection, functions_too=not current))
    return [file.name for file in missing]


@contextmanager
def _one_at_a_time(database: Database) -> Iterator[None]:
    """Waits for a migration under way. The lock lives in a transaction of its own, which poolers leave in one piece."""
    with database.dedicated() as connection:
        connection.autocommit = False
        database.configure(connection, Call.BULK, idle=True)
        connection.execute(_QUERIES["lock_migration"], {"schema": database.schema})
        yield


def _patiently(database: Database, connection: Connection[DictRow], apply: Callable[[], None]) -> None:
    """Applies in one transaction that never waits long for a lock: others would queue behind it.

    It is tried again until nobody is in the way. Raises DatabaseUnavailable when that takes too long.
    """
    deadline = Deadline.after(_PATIENCE.total_seconds(), time.monotonic)
    while True:
        try:
            with database.transaction(connection, Call.BULK):
                connection.execute(_QUERIES["limit_lock_wait"], {"lock_timeout": milliseconds(_LOCK_WAIT)})
                apply()
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            if deadline.passed:
                raise
            time.sleep(_LOCK_WAIT.total_seconds())
        else:
            return


def _renew(connection: Connection[DictRow], *, functions_too: bool) -> None:
    """Functions, then rights, in one transaction: a new function is at nobody's disposal in between."""
    if functions_too:
        _apply(connection, _FUNCTIONS, _functions_checksum(), functions())
    connection.execute(_QUERIES["renew_all_access"])


def _prepare(connection: Connection[DictRow], name: str) -> None:
    schema = sql.Identifier(name)
    if not connection.execute(_QUERIES["has_schema"], {"schema": name}).fetchall()[0]["present"]:
        connection.execute(sql.SQL(_QUERIES["create_schema"]).format(schema=schema))
    _require_server(connection)
    connection.execute(sql.SQL(_QUERIES["create_schema_migration"]).format(schema=schema))


def grant(database: Database, access: str, role: str) -> None:
    """Makes a role of the server a `writer` or a `reader` of the catalog; repeating it renews its rights.

    For the owner of the schema. Raises InvalidRequest (UnknownRole) where the server has no such role.
    """
    with database.connection() as connection:
        connection.execute(_QUERIES["grant_access"], {"role": role, "access": access})


def schema_state(database: Database) -> SchemaState:
    """Compares a database with this program; changes nothing. Misconfigured for an edited file."""
    with database.connection() as connection:
        table = f"{database.schema}.schema_migration"
        present = connection.execute(_QUERIES["has_schema_migration"], {"table": table}).fetchone()
        applied = _applied(connection) if present and present["present"] else {}
    if _unknown(migrations(), applied):
        return SchemaState.NEWER
    current = not _missing(migrations(), applied) and applied.get(_FUNCTIONS) == _functions_checksum()
    return SchemaState.CURRENT if current else SchemaState.OUTDATED


def _missing(files: list[SqlFile], applied: dict[str, str]) -> list[SqlFile]:
    if unknown := _unknown(files, applied):
        raise Misconfigured(
            f"the database is newer than this program, which does not know {', '.join(unknown)}", reason="SchemaNewer"
        )
    for file in files:
        if applied.get(file.name, file.checksum) != file.checksum:
            raise Misconfigured(f"{file.name} was edited after it was applied to this database", reason="SchemaEdited")
    return [file for file in files if file.name not in applied]


def _unknown(files: list[SqlFile], applied: dict[str, str]) -> list[str]:
    return sorted(applied.keys() - {file.name for file in files} - {_FUNCTIONS})


def _functions_checksum() -> str:
    return SqlFile(_FUNCTIONS, "".join(file.text for file in functions())).checksum


def _applied(connection: Connection[DictRow]) -> dict[str, str]:
    return {row["name"]: row["checksum"] for row in connection.execute(_QUERIES["applied_migrations"])}


def _apply(connection: Connection[DictRow], name: str, checksum: str, files: list[SqlFile]) -> None:
    for file in files:
        _execute(connection, file)
    connection.execute(_QUERIES["record_migration"], {"name": name, "checksum": checksum})


def _execute(connection: Connection[DictRow], file: SqlFile) -> None:
    try:
        connection.execute(literal(file.text))
    except psycopg.Error as error:
        error.add_note(f"in {file.name}, line {_line(file.text, error.diag.statement_position)}")
        raise


def _line(text: str, position: str | None) -> int:
    """The line of a character position as PostgreSQL counts, from 1."""
    return text[: int(position) - 1].count("\n") + 1 if position else 1


def _require_server(connection: Connection[DictRow]) -> None:
    major = connection.info.server_version // 10000
    if major < _MINIMUM_POSTGRES:
        raise Misconfigured(f"PostgreSQL {major} is too old: {_MINIMUM_POSTGRES} or newer is needed")
    for extension, minimum in _EXTENSIONS.items():
        found = _installed(connection, extension) or _create(connection, extension)
        if int(found["extversion"].split(".")[0]) < minimum:
            raise Misconfigured(f"{extension} {found['extversion']} is too old: {minimum} or newer is needed")
        if not found["reachable"]:
            raise Misconfigured(
                f"{extension} is in schema {found['nspname']}; it must be in public or in the catalog's own"
            )


def _installed(connection: Connection[DictRow], extension: str) -> DictRow | None:
    return connection.execute(_QUERIES["extension_version"], {"extension": extension}).fetchone()


def _create(connection: Connection[DictRow], extension: str) -> DictRow:
    statement = sql.SQL(_QUERIES["create_extension"]).format(extension=sql.Identifier(extension))
    try:
        connection.execute(statement)
    except (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile) as error:
        message = f"{extension} is missing: a role with the right to do so must run CREATE EXTENSION {extension}"
        raise Misconfigured(message) from error
    return connection.execute(_QUERIES["extension_version"], {"extension": extension}).fetchall()[0]
