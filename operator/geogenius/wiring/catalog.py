"""The catalog alone: for commands that read and write it, and under everything else that is built."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from geogenius.catalog.areas import Areas
from geogenius.catalog.executions import Executions
from geogenius.catalog.publications import Publications
from geogenius.catalog.runs import Runs
from geogenius.db.migrate import SchemaState, schema_state
from geogenius.db.pool import Database
from geogenius.domain.errors import Misconfigured
from geogenius.settings import Settings, read_settings
from geogenius.telemetry.logs import configure_logging


@dataclass(frozen=True, slots=True)
class CatalogContext:
    """The catalog, for commands that read and write it."""

    database: Database
    runs: Runs
    executions: Executions
    areas: Areas
    publications: Publications


@contextmanager
def catalog_context() -> Iterator[CatalogContext]:
    """Open the catalog. Raises Misconfigured where no database is set."""
    with opened(started(), "geogenius") as catalog:
        yield catalog


def started() -> Settings:
    """The settings, read once at the start of a program, with logging set up as they say."""
    settings = read_settings()
    configure_logging(settings.telemetry.level, settings.telemetry.format)
    return settings


@contextmanager
def opened(settings: Settings, application_name: str) -> Iterator[CatalogContext]:
    """The catalog as the settings say, closed at the end. Raises Misconfigured where no database is set."""
    group = settings.database
    database = Database(
        database_url(settings), application_name=application_name, schema=group.schema_name, max_size=group.pool_size
    )
    try:
        yield CatalogContext(
            database=database,
            runs=Runs(database),
            executions=Executions(database),
            areas=Areas(database),
            publications=Publications(database),
        )
    finally:
        database.close()


def database_url(settings: Settings) -> str:
    """The connection string of the catalog. Raises Misconfigured where there is none."""
    url = settings.database.url.get_secret_value()
    if not url:
        raise Misconfigured("GEOGENIUS_DATABASE__URL is not set", reason="SettingsInvalid")
    return url


def refuse_outdated(database: Database) -> None:
    """Refuse to work on a schema that lacks something of ours; a newer one only has more (ADR 0004)."""
    if schema_state(database) is SchemaState.OUTDATED:
        raise Misconfigured("the catalog's schema is not up to date: run `geogenius migrate`", reason="SchemaOutdated")
