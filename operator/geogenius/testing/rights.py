"""A catalog for conformance tests: migrated, with a role for the pipeline and one for the side of the runner."""

from pathlib import Path

from geogenius.db.migrate import grant, migrate
from geogenius.db.pool import Database
from geogenius.db.sql import load_queries

_QUERIES = load_queries(Path(__file__).parent / "queries" / "rights.sql")


def prepare_catalog(owner: str, *, writer: str, starter: str, schema: str = "geogenius") -> None:
    """Makes the catalog in the database that the owner connects to; repeating it brings both roles to their rights.

    `writer` gets what a pipeline needs. `starter` gets the same but the right to record a failure: a runner that
    passes with it never does. Both roles exist, and are neither superusers nor the owner. Raises what `geogenius
    migrate` raises. A later migration gives the starter that right again, until this is repeated.
    """
    database = Database(owner, application_name="geogenius-testing", schema=schema)
    try:
        migrate(database)
        grant(database, "writer", writer)
        grant(database, "writer", starter)
        with database.connection() as connection:
            connection.execute(_QUERIES["name_starter"], {"role": starter})
            connection.execute(_QUERIES["withhold_failing"])
    finally:
        database.close()
