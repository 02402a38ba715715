import tarfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from geogenius.db import Database
from geogenius.db.sql import literal
from geogenius.domain.errors import Misconfigured
from geogenius.pgflow import sources as sources_module
from geogenius.pgflow.enqueue import Queued, enqueue
from geogenius.pgflow.install import Did, Sources, install
from geogenius.pgflow.sources import core_source, pgmq_source
from tests.integration.pgflow.conftest import Sql, an_order, ledger, objects, schemas
from tests.support.databases import OWNER, PostgresCluster, opened
from tests.support.queues import DEADLINE, core_archive, may_create_schemas, sources

SLUG = "geogenius_import"
ALL = {"pgmq", "realtime", "pgflow", "flow"}


@pytest.fixture
def bare(postgres: PostgresCluster, template: str) -> Iterator[str]:
    """A migrated database without a queue, whose owner may create schemas."""
    name = postgres.create(template)
    may_create_schemas(postgres, name)
    yield name
    postgres.drop(name)


@pytest.fixture
def bare_owner(postgres: PostgresCluster, bare: str) -> Iterator[Database]:
    with opened(postgres.conninfo(bare, OWNER)) as database:
        yield database


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The package of the core as npm unpacks it."""
    with tarfile.open(core_archive()) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def did(database: Database, given: Sources | None = None, deadline: timedelta = DEADLINE) -> dict[str, Did]:
    return {step.component: step.did for step in install(database, given or sources(), deadline)}


def refused(database: Database, given: Sources | None = None) -> Misconfigured:
    with pytest.raises(Misconfigured) as error:
        install(database, given or sources(), DEADLINE)
    return error.value


def untouchable() -> Sources:
    """Where nothing is missing, nothing is asked for."""

    def fetch() -> sources_module.Source:
        pytest.fail("a script was fetched")

    return Sources(fetch, fetch)


def with_core(path: Path | None) -> Sources:
    return Sources(pgmq_source, lambda: core_source(path))


def queue_schemas(postgres: PostgresCluster, dbname: str) -> set[str]:
    with opened(postgres.conninfo(dbname)) as database, database.connection() as connection:
        return schemas(connection) | ledger(connection)


def test_on_a_plain_database_everything_is_made_and_written_down(bare_owner: Database) -> None:
    assert did(bare_owner) == dict.fromkeys(ALL, Did.MADE)
    with bare_owner.connection() as connection:
        assert ledger(connection) == ALL
        assert schemas(connection) == ALL - {"flow"}


def test_a_second_installation_finds_everything_and_changes_nothing(owner: Database, sql: Sql) -> None:
    before = objects(sql)
    assert did(owner, untouchable()) == dict.fromkeys(ALL, Did.FOUND)
    assert objects(sql) == before


def test_a_changed_deadline_is_stored(owner: Database, sql: Sql) -> None:
    assert did(owner, deadline=timedelta(seconds=5000))["flow"] is Did.CHANGED
    (row,) = sql.execute("select opt_timeout from pgflow.flows").fetchall()
    assert row["opt_timeout"] == 5000
    assert did(owner, deadline=timedelta(seconds=5000))["flow"] is Did.FOUND


def test_what_others_installed_is_taken_as_it_is(postgres: PostgresCluster, bare: str, bare_owner: Database) -> None:
    with opened(postgres.conninfo(bare)) as superuser:
        with superuser.connection() as connection:
            connection.execute("create schema realtime")
            connection.execute(
                "create function realtime.send(jsonb, text, text, boolean) returns void language sql as 'select'"
            )
            for script in (*pgmq_source().scripts, *core_source(core_archive()).scripts):
                connection.execute(literal(script.text))
            for schema in ("pgmq", "pgflow", "realtime"):
                connection.execute(literal(f"grant usage, create on schema {schema} to {OWNER}"))
                connection.execute(literal(f"grant all on all tables in schema {schema} to {OWNER}"))
        with superuser.connection() as connection:
            before = objects(connection)
        found = did(bare_owner, untouchable())
        with superuser.connection() as connection:
            after = objects(connection)
    assert found == {**dict.fromkeys(ALL, Did.FOUND), "flow": Did.MADE}
    assert before <= after
    new = {name for _, name, *_ in after - before}
    assert all(SLUG in name for name in new), "only our queue is new"


@pytest.mark.parametrize(
    "dropped",
    [
        "pgflow.fail_task(uuid,text,integer,text)",
        "pgmq.set_vt(text,bigint,integer)",
        "pgflow.start_flow(text,jsonb,uuid)",
    ],
)
def test_what_is_half_installed_or_old_is_refused_and_left_alone(owner: Database, sql: Sql, dropped: str) -> None:
    sql.execute(literal(f"drop function {dropped}"))
    before = objects(sql)
    error = refused(owner)
    assert error.reason == "PgflowIncomplete"
    assert dropped in str(error).replace(", ", ",")
    assert objects(sql) == before


def test_a_flow_with_a_step_of_others_is_refused(owner: Database, sql: Sql) -> None:
    sql.execute("select pgflow.add_step(%s, 'extra')", [SLUG])
    assert refused(owner).reason == "FlowStepsDiffer"


def test_an_unknown_archive_or_folder_is_refused_and_nothing_is_made(
    postgres: PostgresCluster, bare: str, bare_owner: Database, unpacked: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "core.tgz"
    archive.write_bytes(core_archive().read_bytes() + b"\0")
    edited = next(unpacked.rglob("*.sql"))
    edited.write_text(edited.read_text() + "\n")
    for given in (archive, unpacked):
        assert refused(bare_owner, with_core(given)).reason == "DigestDiffers"
    assert queue_schemas(postgres, bare) == set()


def test_without_the_right_to_create_schemas_nothing_is_made_and_the_right_is_named(
    postgres: PostgresCluster, template: str
) -> None:
    name = postgres.create(template)
    with opened(postgres.conninfo(name, OWNER)) as database:
        error = refused(database)
    assert error.reason == "PermissionMissing"
    assert f"GRANT CREATE ON DATABASE {name} TO {OWNER}" in str(error)
    assert queue_schemas(postgres, name) == set()
    postgres.drop(name)


def test_an_archive_and_its_folders_give_the_same(bare_owner: Database, unpacked: Path) -> None:
    scripts = core_source(core_archive()).scripts
    for folder in (unpacked, unpacked / "package", unpacked / "package/dist/supabase/migrations"):
        assert core_source(folder).scripts == scripts
    assert did(bare_owner, with_core(unpacked)) == dict.fromkeys(ALL, Did.MADE)


def test_without_npm_the_remedy_is_named(bare_owner: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(bare_owner, with_core(None))
    assert (error.reason, "--core" in str(error)) == ("CoreMissing", True)
    assert refused(bare_owner, with_core(tmp_path / "nothing")).reason == "CoreMissing"


def test_without_the_package_pgmq_the_extra_is_named(bare_owner: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "find_spec", lambda _: None)
    error = refused(bare_owner)
    assert (error.reason, "geogenius[pgflow]" in str(error)) == ("ExtraMissing", True)


def test_a_schema_whose_name_leaves_no_room_is_refused(conninfo: str) -> None:
    database = Database(conninfo, application_name="tests", schema="a" * 41)
    assert "at most 40 characters" in str(refused(database))
    database.close()


def test_a_writer_may_queue_runs_and_a_reader_may_not(database: Database, reader: Database) -> None:
    with database.connection() as connection:
        assert enqueue(connection, SLUG, an_order()) == Queued()
    with pytest.raises(Misconfigured) as error, reader.connection() as connection:
        enqueue(connection, SLUG, an_order())
    assert error.value.reason == "PermissionMissing"
