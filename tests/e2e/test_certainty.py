"""What is not known is said to be not known, and there is one Job whatever breaks."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from demo.installation import Installation
from tests.support.api_proxy import ApiProxy, Fault, api_proxy
from tests.support.desk import Desk, collection_of, square, until

JOBS = r"/apis/batch/v1/namespaces/[^/]+/jobs(\?|$)"


@pytest.fixture(scope="module")
def proxy(installation: Installation) -> Iterator[ApiProxy]:
    """The operator speaks to the API server through a proxy; put back afterwards."""
    with api_proxy(installation.cluster) as proxy:
        through = [{"name": name, "value": value} for name, value in proxy.env.items()]
        operator = {**installation.values["operator"], "extraEnv": through}
        replace(installation, values={**installation.values, "operator": operator}).operator()
        yield proxy
        installation.operator()


def test_a_lost_answer_is_shown_as_unknown_and_resolves_by_itself(desk: Desk, proxy: ApiProxy) -> None:
    content = collection_of([square(n) for n in range(10)])
    desk.supply("lost", content)
    rule = proxy.on("POST", JOBS, Fault.LOSE_ANSWER)

    with desk.followed("lost") as seen:
        desk.apply(desk.request("lost", content))
        status = desk.finished("lost")

    assert rule.hit.is_set()
    assert status["state"] == "Succeeded"
    changes = seen.values_of("Launched")
    assert [reason for value, reason in changes if value == "Unknown" and reason != "Launching"], changes
    launched = [value for value, _ in changes]
    assert launched[-1] == "True"
    assert "False" not in launched
    assert len(desk.jobs()) == 1


def test_an_operator_that_dies_between_the_job_and_the_status_leaves_one_job_and_a_success(
    desk: Desk, proxy: ApiProxy
) -> None:
    content = collection_of([square(n) for n in range(10)])
    desk.supply("crash", content)
    rule = proxy.on("PATCH", "/importrequests/crash/status", Fault.HOLD)

    desk.apply(desk.request("crash", content))
    assert rule.hit.wait(60), "no status was written"
    until(lambda: len(desk.jobs()) == 1, 30, "there is no Job")
    assert "runId" not in desk.get("crash").get("status", {})
    desk.installation.kubectl(
        "delete", "pod", "-l", "app.kubernetes.io/component=operator", "--force", "--grace-period=0"
    )
    rule.lifted.set()

    assert desk.finished("crash")["state"] == "Succeeded"
    assert len(desk.jobs()) == 1
    runs = "select count(*) from import_run where request_namespace = :'namespace'"
    assert desk.value(runs, namespace=desk.namespace) == "1"
