"""More than one operator, and an operator that may see one namespace only."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from demo.installation import Installation
from tests.support.desk import Desk, collection_of, square, until

CONTENT = collection_of([square(n) for n in range(10)])
Change = Callable[..., None]
OPERATOR = "app.kubernetes.io/component=operator"


@pytest.fixture
def changed(installation: Installation) -> Iterator[Change]:
    """Installs the chart with other values; puts it back afterwards."""

    def change(**values: Any) -> None:  # noqa: ANN401  values of the chart
        replace(installation, values={**installation.values, **values}).operator()

    yield change
    installation.operator()


def imported(desk: Desk, name: str) -> dict[str, Any]:
    desk.supply(name, CONTENT)
    desk.apply(desk.request(name, CONTENT))
    return desk.finished(name)


def test_a_second_operator_waits_and_takes_over_when_the_first_one_dies(
    desk: Desk, installation: Installation, changed: Change
) -> None:
    changed(operator={**installation.values["operator"], "replicas": 2})
    assert imported(desk, "two")["state"] == "Succeeded"
    pods = json.loads(installation.kubectl("get", "pods", "-l", OPERATOR, "-o", "json"))["items"]
    logs = {pod["metadata"]["name"]: installation.kubectl("logs", pod["metadata"]["name"]) for pod in pods}
    (leader,) = (name for name, log in logs.items() if "leading; watching" in log)

    installation.kubectl("delete", "pod", leader, "--force", "--grace-period=0")

    assert imported(desk, "after")["state"] == "Succeeded"
    assert len(desk.jobs()) == 2


def test_an_operator_with_the_rights_of_one_namespace_serves_that_one_and_no_other(
    desk: Desk, installation: Installation, changed: Change
) -> None:
    other = f"{desk.namespace}-other"
    installation.kubectl("create", "namespace", other)
    elsewhere = Desk(installation, other)
    changed(watch={"namespaces": [desk.namespace]})
    elsewhere.apply(elsewhere.request("ignored", CONTENT))

    assert imported(desk, "served")["state"] == "Succeeded"
    assert "status" not in elsewhere.get("ignored")
    roles = installation.kubectl("get", "role", "geogenius-operator", f"--namespace={desk.namespace}", "-o", "name")
    assert roles.strip() == "role.rbac.authorization.k8s.io/geogenius-operator"
    installation.kubectl("delete", "namespace", other, "--wait=false")


def test_metrics_and_probes_are_served_while_it_works(desk: Desk, installation: Installation) -> None:
    imported(desk, "measured")
    address = installation.kubectl("get", "pods", "-l", OPERATOR, "-o", "jsonpath={.items[0].metadata.name}")
    path = f"/api/v1/namespaces/{installation.namespace}/pods/{address}:8080/proxy"

    metrics = installation.kubectl("get", "--raw", f"{path}/metrics")
    lines = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))

    assert float(lines["geogenius_leader"]) == 1
    assert float(lines['geogenius_reconcile_total{result="done"}']) > 0
    for probe in ("livez", "readyz"):
        assert installation.kubectl("get", "--raw", f"{path}/{probe}") == "ok\n"
    until(
        lambda: "geogenius_live_runs 0.0" in installation.kubectl("get", "--raw", f"{path}/metrics"), 20, "still live"
    )
