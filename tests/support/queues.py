"""Databases with the queue of pgflow, installed by the product from the real packages."""

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

import psycopg

from geogenius.pgflow.install import Sources, install
from geogenius.pgflow.sources import CORE_PACKAGE, CORE_VERSION, core_source, pgmq_source
from tests.cluster.cache import build_once, cache_root
from tests.support.databases import OWNER, PostgresCluster, opened

DEADLINE = timedelta(seconds=3900)

Sql = psycopg.Connection[dict[str, Any]]


def core_archive() -> Path:
    """The archive of pgflow's core, fetched once on a machine; the product checks its digest."""
    folder = cache_root() / "data" / f"pgflow-core-{CORE_VERSION}"

    def fetch(target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", f"{CORE_PACKAGE}@{CORE_VERSION}"]
        subprocess.run(command, cwd=target, check=True, capture_output=True, timeout=300)

    (archive,) = build_once(folder, fetch).glob("*.tgz")
    return archive


def sources() -> Sources:
    """pgmq from the package of this environment, the core from the archive."""
    return Sources(pgmq_source, lambda: core_source(core_archive()))


def may_create_schemas(cluster: PostgresCluster, dbname: str) -> None:
    """What the owner of a catalog needs to install a queue."""
    cluster.execute(dbname, f"grant create on database {dbname} to {OWNER}")


def queue_template(cluster: PostgresCluster, migrated: str) -> str:
    """A clone of a migrated database, with the queue; to be cloned in turn."""
    name = cluster.create(migrated)
    may_create_schemas(cluster, name)
    with opened(cluster.conninfo(name, OWNER)) as owner:
        install(owner, sources(), DEADLINE)
    return name


def task_of(sql: Sql, run_id: UUID) -> dict[str, Any]:
    """What the queue has of a run: its task, and how often its message was handed out."""
    query = "select status, attempts_count, output, error_message from pgflow.step_tasks where run_id = %s"
    (task,) = sql.execute(query, [run_id]).fetchall()
    return task


def waiting(sql: Sql) -> int:
    """Messages that are not done."""
    return _count(sql, "select count(*) from pgmq.q_geogenius_import")


def workers_known(sql: Sql) -> int:
    """Workers that have said that they live, and have not signed off."""
    return _count(sql, "select count(*) from pgflow.workers")


def _count(sql: Sql, query: LiteralString) -> int:
    (row,) = sql.execute(query).fetchall()
    return int(row["count"])
