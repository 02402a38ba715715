from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from geogenius.testing import CatalogBench, prepare_catalog
from tests.contract.evidence import Outcomes
from tests.support.databases import OWNER, WRITER, PostgresCluster, migrated_template, running_cluster
from tests.support.queues import queue_template

STARTER = "geogenius_starter"
"""The side of a runner: a writer that cannot record failures."""

OUTCOMES = pytest.StashKey[Outcomes]()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """One private server for the session."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def template(postgres: PostgresCluster) -> str:
    """The name of a catalog that is prepared for the suite, with a queue."""
    name = migrated_template(postgres)
    postgres.execute(name, f"create role {STARTER} login")
    prepare_catalog(postgres.conninfo(name, OWNER), writer=WRITER, starter=STARTER)
    return queue_template(postgres, name)


@pytest.fixture
def dbname(postgres: PostgresCluster, template: str) -> Iterator[str]:
    """A catalog of the test's own."""
    name = postgres.create(template)
    yield name
    postgres.drop(name)


@pytest.fixture
def bench(postgres: PostgresCluster, dbname: str, tmp_path: Path) -> Iterator[CatalogBench]:
    """The bench on that catalog."""
    with CatalogBench.open(postgres.conninfo(dbname, WRITER), postgres.conninfo(dbname, STARTER), tmp_path) as bench:
        yield bench


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = Outcomes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.config.stash[OUTCOMES].note(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[OUTCOMES].write()
