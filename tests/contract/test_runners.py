"""The conformance suite over every runner: the shipped ones, and one of a host's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geogenius.testing import CatalogBench, RunnerContract, RunnerRig
from tests.contract.conftest import STARTER
from tests.contract.pgflow_rig import pgflow_rig
from tests.contract.rigs import inline_rig, kubernetes_job_rig, spool_rig
from tests.contract.task_rig import task_rig
from tests.support.databases import WRITER, PostgresCluster

pytestmark = pytest.mark.matrix


class TestInline(RunnerContract):
    stored_name = "inline"

    @pytest.fixture
    def rig(self, bench: CatalogBench, tmp_path: Path) -> Iterator[RunnerRig]:
        with inline_rig(bench, tmp_path) as rig:
            yield rig


class TestKubernetesJob(RunnerContract):
    stored_name = "kubernetes_job"

    @pytest.fixture
    def rig(self, bench: CatalogBench, tmp_path: Path) -> Iterator[RunnerRig]:
        with kubernetes_job_rig(bench, tmp_path) as rig:
            yield rig


class TestTask(RunnerContract):
    stored_name = "task"

    @pytest.fixture
    def rig(self, bench: CatalogBench, postgres: PostgresCluster, dbname: str) -> Iterator[RunnerRig]:
        with task_rig(bench, postgres.conninfo(dbname, WRITER)) as rig:
            yield rig


class TestPgflow(RunnerContract):
    stored_name = "pgflow"

    @pytest.fixture
    def rig(self, bench: CatalogBench, postgres: PostgresCluster, dbname: str) -> Iterator[RunnerRig]:
        with pgflow_rig(bench, postgres, dbname, STARTER) as rig:
            yield rig


class TestHostSpool(RunnerContract):
    stored_name = "host_spool"

    @pytest.fixture
    def rig(self, bench: CatalogBench, tmp_path: Path) -> Iterator[RunnerRig]:
        with spool_rig(bench, tmp_path) as rig:
            yield rig
