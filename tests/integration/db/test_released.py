"""Programs of 0.1 go on working on a database of today: an upgrade meets importers and operators that are at work.

`released/0.1` holds what 0.1 asked the database, and the schema that it made.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from geogenius.catalog.places import Places
from geogenius.db import Database
from geogenius.db.migrate import SchemaState, migrate, migrations, schema_state
from geogenius.db.sql import literal, load_queries
from geogenius.domain.run import NEXT_PHASE, RunState
from tests.support.catalog import GERMANY_AND_FRANCE, SHA, a_manifest, square
from tests.support.databases import OWNER, PostgresCluster, opened, session
from tests.support.digest import digest

HOME = Path(__file__).parent / "released" / "0.1"
QUERIES = {name: text for file in ("runs", "areas") for name, text in load_queries(HOME / f"{file}.sql").items()}
KNOWN = ("0001_create_catalog.sql", "0002_create_runs.sql", "0003_create_areas.sql")
AREAS = [("DE", square(10, 50)), ("FR", square(2, 46))]
TYPES = ("text", "int8", "text", "text", "text", "text", "jsonb", "bytea")


@pytest.fixture
def old(postgres: PostgresCluster) -> Iterator[Database]:
    """A database as 0.1 made it, as its owner, who was also the only role."""
    name = postgres.create()
    postgres.execute(name, "create extension postgis; create extension pg_trgm")
    postgres.execute(name, f"create schema geogenius authorization {OWNER}")
    with opened(postgres.conninfo(name, OWNER)) as database:
        with session(database) as connection:
            connection.execute("create table schema_migration (name text primary key, checksum text not null,"
                               " applied_at timestamptz not null default now())")  # fmt: skip
            connection.execute((HOME / "schema.sql").read_bytes())
            for file in migrations():
                if file.name in KNOWN:
                    row = [file.name, hashlib.sha256(file.text.encode()).hexdigest()]
                    connection.execute("insert into schema_migration (name, checksum) values (%s, %s)", row)
        yield database
    postgres.drop(name)


class OldImporter:
    """Drives a run with the queries of 0.1, and nothing else."""

    def __init__(self, connection: psycopg.Connection[psycopg.rows.DictRow], release: str) -> None:
        self.connection = connection
        self.pair = {"run": uuid4(), "executor": uuid4()}
        self.ask("prepare_import", manifest=Jsonb(a_manifest(release=release)), claim=Jsonb({
            "run_id": str(self.pair["run"]), "owner": "old", "runner_backend": "inline", "publish": True,
            "stale_after_seconds": 900, "launch_deadline_seconds": 600, "active_deadline_seconds": 21600,
            "reject_limit": 0,
        }))  # fmt: skip
        assert self.ask("claim_import_execution")[0]["claim"] == "claimed"
        self.state = RunState.PENDING

    def ask(self, name: str, **arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401  for the driver
        with self.connection.transaction():
            return self.connection.execute(QUERIES[name], {**self.pair, **arguments}).fetchall()

    def go_to(self, goal: RunState) -> None:
        """Through the phases with their work, up to the beginning of `goal`."""
        while self.state is not goal:
            self.work()
            self.state = NEXT_PHASE[self.state]
            self.ask("advance_import", phase=self.state, metrics=Jsonb({}))
            self.ask("heartbeat_import", progress=Jsonb({"rows": 1}))

    def work(self) -> None:
        match self.state:
            case RunState.DOWNLOADING:
                for file in self.ask("run_artifacts"):
                    seen = {"artifact": file["artifact_id"], "sha256": SHA, "bytes": file["bytes"]}
                    self.ask("record_artifact_observation", **seen)
            case RunState.STAGING:
                self.ask("create_staging")
                self.copy()
            case RunState.NORMALIZING:
                assert self.ask("merge_staging", staged=2) == [
                    {"areas": 2, "boundaries": 2, "repaired": 0, "rejected": 0}
                ]
            case RunState.INDEXING:
                self.ask("index_release")
            case RunState.VERIFYING:
                assert self.ask("verify_release")[0]["report"]["ok"]
            case _:
                pass

    def copy(self) -> None:
        with self.connection.transaction():
            staging = self.connection.execute(QUERIES["assert_staging"], self.pair).fetchall()[0]["staging"]
            statement = psycopg.sql.SQL(QUERIES["copy_staging"]).format(staging=psycopg.sql.Identifier(staging))
            with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.set_types(TYPES)
                for position, (code, wkb) in enumerate(AREAS, start=1):
                    row = ("countries.geojson", position, "iso", "country", code, f"Country {code}", Jsonb({}), wkb)
                    copy.write_row(row)
            self.connection.execute(QUERIES["record_rejects"], {
                **self.pair, "artifact": "countries.geojson", "positions": [], "reasons": [], "byte_offsets": [],
                "details": [],
            })  # fmt: skip

    def half_done(self) -> None:
        """What an importer may have done in the middle of a phase; it does it again after the upgrade."""
        if self.state in (RunState.STAGING, RunState.NORMALIZING):
            self.work()

    def publish(self) -> None:
        self.go_to(RunState.PUBLISHING)
        self.ask("publish_import")


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "copy_staging"])
def test_each_query_of_the_released_program_is_prepared(database: Database, name: str) -> None:
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", QUERIES[name])))
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", QUERIES[name])
    with session(database) as connection:
        connection.execute(literal(f"prepare checked as {text}"))


@pytest.mark.parametrize("phase", [state for state in RunState if not state.terminal])
def test_an_import_under_way_survives_the_upgrade_in_every_phase(old: Database, phase: RunState) -> None:
    with session(old) as connection:
        OldImporter(connection, "r0").publish()
        importer = OldImporter(connection, "r1")
        importer.go_to(phase)
        importer.half_done()
        migrate(old)
        assert schema_state(old) is SchemaState.CURRENT
        importer.publish()
        OldImporter(connection, "r2").publish()
    matches = Places(old).for_point(10.5, 50.5)
    assert [(match.release, match.code, match.codes) for match in matches] == [("r2", "DE", {"iso": ["DE"]})]


def test_a_release_of_the_old_program_answers_every_question_and_keeps_its_rows(old: Database) -> None:
    with session(old) as connection:
        OldImporter(connection, "r0").publish()
        rows = "select count(*) as many from release_area"
        before = connection.execute(rows).fetchall()
        migrate(old)
        assert connection.execute(rows).fetchall() == before
        places = Places(old)
        assert [match.code for match in places.for_point(10.5, 50.5)] == ["DE"]
        assert [match.code for match in places.near(10.5, 50.5, 1000)] == ["DE"]
        again = digest(connection)
        assert migrate(old) == []
        assert digest(connection) == {**again, "schema_migration": digest(connection)["schema_migration"]}
        release: UUID = connection.execute("select id from release").fetchall()[0]["id"]
        report = connection.execute("select verify_release(%s) as report", [release]).fetchall()[0]["report"]
    assert (report["ok"], report["area_count"]) == (True, len(GERMANY_AND_FRANCE))
