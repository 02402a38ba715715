"""The life of a request whose run is queued: no Job, the worker sees to its end, and the status mirrors it all."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import DictRow

from geogenius.catalog import Executions
from geogenius.db import Database
from geogenius.domain.enqueued import EnqueueState
from geogenius.domain.run import Run, RunError, RunState
from geogenius.pgflow.leases import Leases
from tests.support.catalog import CLUSTER_ID, driven
from tests.support.databases import PostgresCluster
from tests.support.queues import queue_template
from tests.support.request_desk import RequestDesk, request_desk


@pytest.fixture(scope="session")
def template(postgres: PostgresCluster, template: str) -> str:
    """A migrated database with the queue."""
    return queue_template(postgres, template)


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Iterator[RequestDesk]:
    with request_desk(database, tmp_path, "pgflow") as desk:
        yield desk


@pytest.fixture
def leases(database: Database) -> Leases:
    """A worker that is told of messages and does not execute them by itself."""
    leases = Leases(database, "geogenius_import", uuid4(), timedelta(seconds=60), "a worker")
    leases.register()
    return leases


def test_a_request_is_queued_once_however_often_it_is_looked_at(desk: RequestDesk, leases: Leases) -> None:
    uid = desk.apply()
    for _ in range(3):
        desk.reconcile()

    run = desk.run(uid)
    assert (run.runner, run.workload, run.enqueue_state) == ("pgflow", None, EnqueueState.ACCEPTED)
    assert (desk.jobs(), desk.sent("POST")) == ([], 0)
    assert [delivery.run_id for delivery in leases.claim(10)] == [run.run_id]
    assert desk.condition("Launched") == ("True", "Queued", "the run waits in the queue for a worker")
    assert "jobName" not in desk.status()


def test_the_ticks_of_its_cluster_see_a_queued_run(desk: RequestDesk) -> None:
    run = desk.launched()

    assert [live.run_id for live in desk.runs.live_of_cluster(CLUSTER_ID)] == [run.run_id]


def test_that_there_is_no_job_is_no_evidence_against_a_queued_run(desk: RequestDesk, leases: Leases) -> None:
    run = desk.launched()
    assert len(leases.claim(1)) == 1
    desk.reconcile()
    assert desk.condition("Launched")[2] == "a worker has the run"
    desk.claimed(run)

    assert desk.reconcile() is None

    assert desk.run(request_of(run)).executor_id is not None
    assert desk.condition("Launched")[0] == "True"
    assert desk.condition("Succeeded")[0] == "Unknown"


def test_the_end_of_a_queued_run_is_mirrored(desk: RequestDesk, database: Database) -> None:
    run = desk.launched()
    fence = driven(database, RunState.PUBLISHING, run_id=run.run_id)
    Executions(database).publish(fence)

    assert desk.reconcile() is None

    assert desk.condition("Succeeded")[:2] == ("True", "Published")


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ("drop schema pgflow cascade", "WorkloadLost"),
        ("delete from pgflow.step_tasks; delete from pgflow.step_states; delete from pgflow.runs", "WorkloadLost"),
        ("select pgflow.fail_task(run_id, 'execute', 0, 'given up by hand') from pgflow.step_tasks", "TaskFailed"),
    ],
    ids=["uninstalled", "pruned", "given-up"],
)
def test_a_run_whose_message_is_gone_is_failed_on_that_evidence(
    loss: str, reason: str, desk: RequestDesk, leases: Leases, sql: psycopg.Connection[DictRow]
) -> None:
    run = desk.launched()
    leases.claim(1)
    sql.execute(loss)

    desk.reconcile()

    ended = desk.run(request_of(run))
    assert ended.error is not None
    assert (ended.state, ended.error.reason) == (RunState.FAILED, reason)
    assert "the message in the queue" in ended.error.message


def test_deleting_the_request_fails_its_run_and_nobody_executes_it(desk: RequestDesk) -> None:
    run = desk.launched()
    desk.delete()

    desk.reconcile()

    ended = desk.run(request_of(run))
    assert isinstance(ended.error, RunError)
    assert ended.error.reason == "RequestDeleted"


def test_a_queue_that_is_not_installed_as_it_has_to_be_fails_the_run_with_the_remedy(
    desk: RequestDesk, sql: psycopg.Connection[DictRow]
) -> None:
    sql.execute("delete from pgflow.steps; delete from pgflow.flows")
    uid = desk.apply()

    assert desk.reconcile() is None

    assert desk.run(uid).state is RunState.FAILED
    status, reason, message = desk.condition("Succeeded")
    assert (status, reason) == ("False", "FlowMissing")
    assert "geogenius pgflow install" in message


@pytest.mark.parametrize("spec", [{"files": [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]}])
def test_a_request_that_needs_a_pod_of_its_own_is_refused(desk: RequestDesk, spec: dict[str, object]) -> None:
    uid = desk.apply(**spec)

    assert desk.reconcile() is None

    assert desk.condition("Accepted")[:2] == ("False", "NeedsJob")
    assert desk.runs.find_by_request(uid) is None


def test_what_was_begun_with_jobs_is_ended_with_jobs_after_the_setting_has_changed(
    database: Database, tmp_path: Path
) -> None:
    with request_desk(database, tmp_path) as desk:
        uid = desk.apply()
        desk.lose_answers("POST")
        desk.reconcile()
        with request_desk(database, tmp_path, "pgflow") as changed:
            changed.api.objects.update(desk.api.objects)
            changed.reconcile()
            assert changed.run(uid).enqueue_state is EnqueueState.ACCEPTED
            assert changed.condition("Launched")[0] == "True"
            assert changed.run(uid).runner == "kubernetes_job"


def request_of(run: Run) -> UUID:
    assert run.request is not None
    return run.request.uid
