"""The workers' pods: made where they are wanted, as restricted as the operator's, with settings the program knows."""

from typing import Any

import pytest
from click.testing import CliRunner

from geogenius.cli import cli
from geogenius.settings import WorkerSettings, read_settings
from tests.support.chart import ChartError, Rendered, containers, render

EVERYTHING: dict[str, Any] = {
    "importer": {"serviceAccountName": "importer", "download": {"allowHttp": True, "allowPrivateAddresses": True}},
    "worker": {
        "enabled": True,
        "replicas": 3,
        "concurrency": 4,
        "deadlineSeconds": 1000000,
        "leaseSeconds": 30,
        "pollSeconds": 0.5,
        "drainSeconds": 100,
        "graceSeconds": 50,
        "artifactsClaim": "maps",
        "podAnnotations": {"team": "maps"},
        "extraEnv": [{"name": "GEOGENIUS_DATABASE__POOL_SIZE", "value": "3"}],
    },
}
BOTH = [pytest.param({"worker": {"enabled": True}}, id="defaults"), pytest.param(EVERYTHING, id="everything set")]


def worker_of(values: dict[str, Any]) -> dict[str, Any]:
    """The Deployment of the workers."""
    (found,) = [item for item in Rendered(values).all("Deployment") if item["metadata"]["name"].endswith("-worker")]
    return found


def pod_of(values: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = worker_of(values)["spec"]["template"]["spec"]
    return pod


def read_as_the_program(values: dict[str, Any], environment: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  Settings
    (container,) = pod_of(values)["containers"]
    for variable in container["env"]:
        environment.setenv(variable["name"], variable.get("value", "from a Secret"))
    return read_settings()


def test_nobody_gets_workers_unasked() -> None:
    assert len(Rendered().all("Deployment")) == 1


def test_workers_are_told_from_operators_by_their_labels() -> None:
    operator, worker = Rendered({"worker": {"enabled": True}}).all("Deployment")

    for deployment in (operator, worker):
        selector = deployment["spec"]["selector"]["matchLabels"]
        assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert operator["spec"]["selector"] != worker["spec"]["selector"]


@pytest.mark.parametrize("values", BOTH)
def test_the_pod_keeps_to_the_restricted_profile_and_has_no_access_to_the_api(values: dict[str, Any]) -> None:
    pod = pod_of(values)

    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["automountServiceAccountToken"] is False
    assert not any("projected" in volume for volume in pod["volumes"])
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("values", BOTH)
def test_runs_have_the_time_to_end_before_the_pod_is_killed(values: dict[str, Any]) -> None:
    settings = {"drainSeconds": 20, "graceSeconds": 20} | values["worker"]

    longest = settings["drainSeconds"] + settings["graceSeconds"]
    assert pod_of(values)["terminationGracePeriodSeconds"] >= longest + 30


def test_the_program_reads_the_values_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_as_the_program(EVERYTHING, monkeypatch)

    assert settings.worker == WorkerSettings(concurrency=4, lease_seconds=30, poll_seconds=0.5, drain_seconds=100)
    assert settings.pgflow.deadline_seconds == 1_000_000
    assert settings.runner.grace_seconds == 50
    assert settings.database.pool_size == 3
    assert settings.download.allow_http is settings.download.allow_private_addresses is True


def test_the_defaults_of_chart_and_program_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_as_the_program({"worker": {"enabled": True}}, monkeypatch)

    assert settings.worker == WorkerSettings(concurrency=1)  # a pod's memory is that of one run
    assert settings.telemetry.format == "json"


def test_the_arguments_are_commands_of_the_program() -> None:
    for container in containers(pod_of(EVERYTHING)):
        (command,) = container["args"]
        assert CliRunner().invoke(cli, [command, "--help"]).exit_code == 0


def test_operator_supplied_artifacts_are_mounted_read_only() -> None:
    pod = pod_of(EVERYTHING)

    assert {"name": "artifacts", "persistentVolumeClaim": {"claimName": "maps", "readOnly": True}} in pod["volumes"]
    (container,) = pod["containers"]
    assert {"name": "artifacts", "mountPath": "/artifacts", "readOnly": True} in container["volumeMounts"]


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"deadlineSeconds": 0}, {"leaseSeconds": 1}, {"replica": 2}, {"pollSeconds": 0}]
)
def test_a_wrong_value_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ChartError, match=next(iter(wrong))):
        render({"worker": {"enabled": True, **wrong}})
