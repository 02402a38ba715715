"""`geogenius pgflow`, as processes on a real catalog."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from geogenius.db import Database
from geogenius.pgflow.enqueue import enqueue
from tests.integration.pgflow.conftest import an_order
from tests.support.databases import OWNER, WRITER, PostgresCluster, opened
from tests.support.queues import core_archive, may_create_schemas

Pgflow = Callable[..., str]
SLUG = "geogenius_import"


@pytest.fixture
def pgflow(postgres: PostgresCluster, dbname: str) -> Pgflow:
    """Runs the command as the owner; it must end with this exit code."""
    may_create_schemas(postgres, dbname)

    def run(*arguments: str, code: int = 0, **settings: str) -> str:
        environment = {**os.environ, "GEOGENIUS_DATABASE__URL": postgres.conninfo(dbname, OWNER), **settings}
        command = [sys.executable, "-m", "geogenius", "pgflow", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


def installed(pgflow: Pgflow) -> str:
    return pgflow("install", "--core", str(core_archive()), GEOGENIUS_PGFLOW__DEADLINE_SECONDS="3900")


def queue_a_run(database: Database) -> None:
    with database.connection() as connection:
        enqueue(connection, SLUG, an_order())


def test_the_queue_is_installed_shown_tidied_and_taken_away(
    postgres: PostgresCluster, dbname: str, pgflow: Pgflow
) -> None:
    assert "pgflow: not there" in pgflow("uninstall")
    assert "PgflowMissing" in pgflow("status")
    assert f"pgflow: made (0.8.1)\nflow: made ({SLUG}, 3900 s)" in installed(pgflow)
    assert f"pgflow: found\nflow: found ({SLUG}, 3900 s)" in installed(pgflow)
    with opened(postgres.conninfo(dbname, WRITER)) as writer:
        queue_a_run(writer)
    shown = pgflow("status", GEOGENIUS_PGFLOW__DEADLINE_SECONDS="3900")
    for words in ("ours", "3900 s", "1 started", "1 waiting, 0 being worked on", "NoWorker"):
        assert words in shown
    told = json.loads(pgflow("status", "--output", "json", GEOGENIUS_PGFLOW__DEADLINE_SECONDS="3900"))
    assert (told["runs"], [problem["reason"] for problem in told["problems"]]) == ({"started": 1}, ["NoWorker"])
    assert pgflow("prune", "--older-than-days", "0") == "removed 0 flow runs and 0 archived messages\n"
    assert "QueueBusy" in pgflow("uninstall", code=76)
    assert "pgflow: removed (0.8.1)\n" in pgflow("uninstall", "--force")


def test_an_installation_without_a_deadline_is_refused_with_a_proposal(pgflow: Pgflow) -> None:
    said = pgflow("install", code=64)
    assert "DeadlineMissing" in said
    assert "3900" in said


def test_a_catalog_that_is_not_migrated_is_refused(postgres: PostgresCluster, pgflow: Pgflow) -> None:
    name = postgres.create()
    said = pgflow("status", code=64, GEOGENIUS_DATABASE__URL=postgres.conninfo(name))
    assert "SchemaOutdated" in said
    postgres.drop(name)
