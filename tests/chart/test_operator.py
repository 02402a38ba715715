"""The operator's pod: restricted, without secrets in plain sight, with settings and probes that the program knows."""

import os
from http.client import HTTPConnection
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from geogenius.cli import cli
from geogenius.settings import ControllerSettings, Settings, read_settings
from geogenius.telemetry.probes import Probes, serve
from tests.support.chart import Rendered, containers

SECRET = {"existingSecret": "maps-db", "urlKey": "dsn", "schema": "maps"}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example/geo", "tag": "1.2", "pullPolicy": "Always"},
    "database": SECRET,
    "watch": {"namespaces": ["maps", "more"]},
    "operator": {
        "replicas": 2,
        "workers": 7,
        "runner": "pgflow",
        "tickSeconds": 0.5,
        "resyncSeconds": 1000000,
        "logLevel": "DEBUG",
        "logFormat": "text",
        "extraEnv": [{"name": "GEOGENIUS_DATABASE__POOL_SIZE", "value": "3"}],
    },
    "importer": {
        "serviceAccountName": "importer",
        "memory": "1Gi",
        "cpu": "1",
        "download": {"allowHttp": True, "allowPrivateAddresses": True},
    },
}
BOTH = [pytest.param({}, id="defaults"), pytest.param(EVERYTHING, id="everything set")]
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without any setting of the machine that runs the tests."""
    for name in [name for name in os.environ if name.startswith("GEOGENIUS_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def settings_of(container: dict[str, Any], environment: pytest.MonkeyPatch) -> Settings:
    """What the program reads from the environment that the chart gives it."""
    for variable in container["env"]:
        environment.setenv(variable["name"], variable.get("value", "from a Secret"))
    return read_settings()


def known_variables() -> set[str]:
    """Every variable that the program knows."""
    names: set[str] = set()
    for group, field in Settings.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, BaseModel)
        names |= {f"GEOGENIUS_{group}__{name}".upper() for name in field.annotation.model_fields}
    return names


@pytest.mark.parametrize("values", BOTH)
def test_the_pod_keeps_to_the_restricted_profile(values: dict[str, Any]) -> None:
    pod = Rendered(values).pod

    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert [volume.keys() - {"name"} for volume in pod["volumes"]] == [{"emptyDir"}, {"projected"}]
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, container["name"]
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize("values", BOTH)
def test_every_container_asks_for_what_it_needs_and_has_a_limit_of_memory(values: dict[str, Any]) -> None:
    for container in containers(Rendered(values).pod):
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def test_the_connection_string_comes_from_the_secret_and_stands_nowhere() -> None:
    rendered = Rendered(EVERYTHING)

    for container in containers(rendered.pod):
        (url,) = [found for found in container["env"] if found["name"] == "GEOGENIUS_DATABASE__URL"]
        assert url == {
            "name": "GEOGENIUS_DATABASE__URL",
            "valueFrom": {"secretKeyRef": {"name": "maps-db", "key": "dsn"}},
        }
        assert "command" not in container
        assert len(container["args"]) == 1
    assert "postgresql://" not in rendered.text


def test_the_arguments_are_commands_of_the_program() -> None:
    for container in containers(Rendered().pod):
        (command,) = container["args"]
        assert CliRunner().invoke(cli, [command, "--help"]).exit_code == 0


@pytest.mark.parametrize("values", BOTH)
def test_every_setting_of_the_chart_is_known_to_the_program(
    values: dict[str, Any], no_settings: pytest.MonkeyPatch
) -> None:
    for container in containers(Rendered(values).pod):
        assert {found["name"] for found in container["env"]} <= known_variables()
        settings_of(container, no_settings)


def test_the_program_reads_the_values_that_were_given(no_settings: pytest.MonkeyPatch) -> None:
    settings = settings_of(Rendered(EVERYTHING).operator, no_settings)

    assert (settings.database.schema_name, settings.database.pool_size) == ("maps", 3)
    assert settings.kubernetes.namespaces == ("maps", "more")
    assert settings.job.model_dump() == {
        "image": "registry.example/geo:1.2",
        "image_pull_policy": "Always",
        "database_secret": "maps-db",
        "database_secret_key": "dsn",
        "service_account": "importer",
        "memory": "1Gi",
        "cpu": "1",
    }
    assert (settings.download.allow_http, settings.download.allow_private_addresses) == (True, True)
    assert (settings.controller.workers, settings.controller.tick_seconds) == (7, 0.5)
    assert settings.controller.resync_seconds == 1_000_000
    assert settings.runner.name == "pgflow"
    assert (settings.telemetry.level, settings.telemetry.format) == ("DEBUG", "text")


def test_the_defaults_of_chart_and_program_agree(no_settings: pytest.MonkeyPatch) -> None:
    given = settings_of(Rendered().operator, no_settings).model_dump(exclude={"database": {"url"}})
    for name in [name for name in os.environ if name.startswith("GEOGENIUS_")]:
        no_settings.delenv(name)
    expected = read_settings().model_dump(exclude={"database": {"url"}})

    expected["job"]["image"] = "geogenius:0.1.0"
    expected["runner"]["name"] = "kubernetes_job"  # what the program does by itself is said in so many words
    expected["pgflow"]["deadline_seconds"] = 3900  # the program alone has none
    expected["telemetry"]["format"] = "json"  # a cluster's logs are read by machines
    assert given == expected


def test_the_probes_ask_for_paths_and_the_port_that_the_program_serves() -> None:
    operator = Rendered().operator
    paths = {kind: operator[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    assert {operator[f"{kind}Probe"]["httpGet"]["port"] for kind in paths} == {"probes"}
    assert operator["ports"] == [{"name": "probes", "containerPort": ControllerSettings().probe_port}]

    server = serve(0, Probes(lambda: None, lambda: None, CollectorRegistry()))
    try:
        for path in paths.values():
            connection = HTTPConnection("localhost", server.server_address[1], timeout=5)
            connection.request("GET", path)
            assert connection.getresponse().status == 200, path
            connection.close()
    finally:
        server.shutdown()
        server.server_close()


def test_an_outage_of_the_database_restarts_no_pod() -> None:
    """Readiness looks at the database; what restarts the container looks at the process alone."""
    operator = Rendered().operator

    assert "/readyz" not in (operator[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness"))


def test_the_schema_is_brought_up_to_date_before_the_operator_starts() -> None:
    (migrate,) = Rendered().pod["initContainers"]

    assert migrate["args"] == ["migrate"]
    assert migrate["image"] == Rendered().operator["image"]


def test_migrations_can_be_left_to_somebody_else() -> None:
    assert "initContainers" not in Rendered({"migrations": {"enabled": False}}).pod


def test_more_environment_variables_reach_the_operator_after_its_own() -> None:
    extra = [
        {"name": "TZ", "value": "UTC"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]

    assert Rendered({"operator": {"extraEnv": extra}}).operator["env"][-2:] == extra
    assert Rendered({"operator": {"extraEnv": extra}}).operator["env"][:-2] == Rendered().operator["env"]


@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_a_standby_is_allowed(replicas: int) -> None:
    assert Rendered({"operator": {"replicas": replicas}}).one("Deployment")["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param({}, "geogenius:0.1.0", id="the version of the chart's program"),
        pytest.param({"tag": "1.2"}, "geogenius:1.2", id="a tag"),
        pytest.param({"repository": "r.example:5000/a/b"}, "r.example:5000/a/b:0.1.0", id="a registry with a port"),
        pytest.param({"digest": DIGEST}, f"geogenius@{DIGEST}", id="a digest"),
        pytest.param({"tag": "1.2", "digest": DIGEST}, f"geogenius@{DIGEST}", id="a digest goes before a tag"),
    ],
)
def test_operator_migrations_and_importer_run_the_same_image(image: dict[str, str], expected: str) -> None:
    rendered = Rendered({"image": image})
    values = {found["name"]: found.get("value") for found in rendered.operator["env"]}

    assert {container["image"] for container in containers(rendered.pod)} == {expected}
    assert values["GEOGENIUS_JOB__IMAGE"] == expected


def test_annotations_of_the_pod_are_kept_and_are_left_out_when_there_are_none() -> None:
    annotated = Rendered({"operator": {"podAnnotations": {"a/b": "true"}}})

    assert annotated.one("Deployment")["spec"]["template"]["metadata"]["annotations"] == {"a/b": "true"}
    assert "annotations" not in Rendered().one("Deployment")["spec"]["template"]["metadata"]


def test_the_deployment_finds_its_own_pods() -> None:
    spec = Rendered().one("Deployment")["spec"]

    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
