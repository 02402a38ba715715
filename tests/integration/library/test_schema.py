"""Every call works in the schema of its context and in no other."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from geogenius.db import Database
from geogenius.db.migrate import migrate
from geogenius.domain.errors import Misconfigured
from geogenius.domain.manifest import Manifest
from geogenius.domain.prepared import Existing
from geogenius.importer.pipeline import Workplace
from geogenius.launcher.launch import Started
from geogenius.library import (
    Completed,
    Context,
    Declined,
    ImportOptions,
    Published,
    Retired,
    RolledBack,
    UnknownRun,
    artifacts,
    await_run,
    cancel,
    import_release,
    publish,
    releases,
    retire,
    retry_failed,
    rollback,
    runs,
    status,
    verify,
)
from tests.support.databases import WRITER, PostgresCluster
from tests.support.digest import digest

Sql = psycopg.Connection[psycopg.rows.DictRow]
Reviewed = Callable[..., Manifest]
MINE = ImportOptions(owner="me")


@pytest.fixture
def other(postgres: PostgresCluster, dbname: str, conninfo: str, workplace: Workplace, sql: Sql) -> Iterator[Context]:
    """A second catalog in the same database, named like a word of SQL."""
    with closing(Database(postgres.conninfo(dbname), application_name="other", schema="order")) as database:
        migrate(database)
    sql.execute('select "order".grant_access(%s, %s)', [WRITER, "writer"])
    with Context.open(conninfo, schema="order", runner="inline", workplace=workplace) as context:
        yield context


def test_every_call_honours_the_schema(context: Context, other: Context, reviewed: Reviewed, sql: Sql) -> None:
    untouched = digest(sql)
    first = import_release(other, reviewed(), replace(MINE, publish=True))
    assert isinstance(first, Started)
    bad = import_release(other, reviewed(b"nonsense", "2030.2"), MINE)
    assert isinstance(bad, Started)
    second = retry_failed(other, bad.run_id, reviewed(release="2030.2"), MINE)
    assert isinstance(second, Started)
    waited = await_run(other, second.run_id)
    assert isinstance(waited, Completed)
    assert isinstance(import_release(other, reviewed(release="2030.2"), MINE), Existing)
    assert isinstance(publish(other, waited.run.release_id), Published)
    assert isinstance(rollback(other, "world"), RolledBack)
    assert retire(other, "world", 1) == Retired((waited.run.release_id,))
    assert len(runs(other, "world")) == 3
    assert len(releases(other, "world")) == 2
    assert digest(sql) == untouched

    assert (status(context, first.run_id), artifacts(context, first.run_id)) == (None, [])
    assert (runs(context, "world"), releases(context, "world")) == ([], [])
    assert await_run(context, first.run_id) == cancel(context, first.run_id) == UnknownRun(first.run_id)
    assert [type(answer) for answer in (publish(context, waited.run.release_id), rollback(context, "world"))] == [
        Declined,
        Declined,
    ]
    assert isinstance(verify(context, waited.run.release_id), Declined)
    assert isinstance(retire(context, "world", 1), Declined)
    assert isinstance(import_release(context, reviewed(), MINE), Started)


def test_a_runner_of_the_host_is_checked_before_its_first_use(conninfo: str) -> None:
    with pytest.raises(Misconfigured, match="enqueue is missing"), Context.open(conninfo, runner=object()):
        pass
    with Context.open(conninfo, runner="tests.support.library:Willing") as context:
        assert context.runner.name() == "willing"
