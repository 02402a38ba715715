"""What the chart accepts, what it refuses, and that it says which value is wrong."""

from typing import Any

import pytest

from tests.support.chart import ChartError, Rendered, lint, render

DIGEST = "sha256:" + "0" * 64

ACCEPTED = [
    pytest.param({}, id="defaults"),
    pytest.param({"operator": {"replicas": 2}}, id="a standby"),
    pytest.param({"operator": {"replicas": 0}}, id="none running"),
    pytest.param({"operator": {"tickSeconds": 0.5, "resyncSeconds": 10}}, id="fractions of a second"),
    pytest.param({"watch": {"namespaces": ["maps", "123"]}}, id="namespaces"),
    pytest.param({"crds": {"install": False}, "migrations": {"enabled": False}}, id="neither CRD nor migrations"),
    pytest.param({"crds": {"keep": False}}, id="a CRD that goes"),
    pytest.param({"image": {"repository": "registry.example:5000/geo", "tag": "1.2"}}, id="a registry and a tag"),
    pytest.param({"image": {"digest": DIGEST}}, id="a digest"),
    pytest.param({"operator": {"extraEnv": [{"name": "TZ", "value": "UTC"}]}}, id="more environment"),
    pytest.param({"importer": {"serviceAccountName": "maps", "memory": "1Gi", "cpu": "1"}}, id="importer"),
    pytest.param({"global": {"anything": 1}}, id="globals of a parent chart"),
]

REFUSED = [
    pytest.param({"replicas": 1}, "replicas", id="unknown group"),
    pytest.param({"operator": {"replica": 1}}, "replica", id="misspelt value"),
    pytest.param({"image": {"name": "geogenius"}}, "name", id="unknown value of the image"),
    pytest.param({"importer": {"download": {"allowFtp": True}}}, "allowFtp", id="unknown value two levels down"),
    pytest.param({"database": {"url": "postgresql://u:p@db/geo"}}, "url", id="a connection string in plain sight"),
    pytest.param({"operator": {"replicas": 3}}, "replicas", id="three replicas"),
    pytest.param({"operator": {"replicas": -1}}, "replicas", id="fewer than no replicas"),
    pytest.param({"operator": {"workers": 0}}, "workers", id="no workers"),
    pytest.param({"operator": {"workers": "4"}}, "workers", id="a number as text"),
    pytest.param({"operator": {"tickSeconds": 0}}, "tickSeconds", id="ticks without a pause"),
    pytest.param({"operator": {"resyncSeconds": 0.5}}, "resyncSeconds", id="resync without a pause"),
    pytest.param({"operator": {"logLevel": "debug"}}, "logLevel", id="level in lower case"),
    pytest.param({"operator": {"logFormat": "xml"}}, "logFormat", id="unknown log format"),
    pytest.param({"operator": {"podAnnotations": {"a": 1}}}, "podAnnotations", id="an annotation that is no text"),
    pytest.param({"operator": {"extraEnv": [{"value": "x"}]}}, "extraEnv", id="a variable without a name"),
    pytest.param({"operator": {"extraEnv": {"TZ": "UTC"}}}, "extraEnv", id="variables as a map"),
    pytest.param({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy", id="unknown pull policy"),
    pytest.param({"image": {"repository": ""}}, "repository", id="no repository"),
    pytest.param({"image": {"tag": 1.2}}, "tag", id="a tag that YAML reads as a number"),
    pytest.param({"image": {"tag": DIGEST}}, "tag", id="a digest in place of the tag"),
    pytest.param({"image": {"digest": "sha256:abc"}}, "digest", id="half a digest"),
    pytest.param({"database": {"existingSecret": ""}}, "existingSecret", id="no Secret"),
    pytest.param({"database": {"schema": "Geo-Genius"}}, "schema", id="no name of a schema"),
    pytest.param({"watch": {"namespaces": "maps"}}, "namespaces", id="one namespace without a list"),
    pytest.param({"watch": {"namespaces": ["maps", "maps"]}}, "namespaces", id="a namespace twice"),
    pytest.param({"watch": {"namespaces": ["Maps"]}}, "namespaces", id="no name of a namespace"),
    pytest.param({"crds": {"install": "yes"}}, "install", id="a word for a flag"),
    pytest.param({"migrations": {"enabled": 1}}, "enabled", id="a number for a flag"),
    pytest.param({"importer": {"memory": ""}}, "memory", id="no memory"),
]


@pytest.mark.parametrize("values", ACCEPTED)
def test_the_chart_passes_the_strict_linter_and_renders(values: dict[str, Any]) -> None:
    assert "0 chart(s) failed" in lint(values)
    assert Rendered(values).all("Deployment")


@pytest.mark.parametrize(("values", "named"), REFUSED)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ChartError, match=named):
        render(values)


def test_the_same_values_render_the_same_text() -> None:
    assert render() == render()


def test_every_object_says_whose_it_is() -> None:
    ours = [found for found in Rendered().objects if found["kind"] != "CustomResourceDefinition"]

    for found in ours:
        labels = found["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "geogenius", found["kind"]
        assert labels["app.kubernetes.io/instance"] == "geogenius", found["kind"]
        assert labels["helm.sh/chart"] == "geogenius-0.1.0", found["kind"]


def test_every_object_of_a_namespace_names_it() -> None:
    """Without the name, kubectl would put what `helm template` prints into whatever namespace is current."""
    rendered = Rendered({"watch": {"namespaces": ["maps"]}})
    wide = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    places = {
        found["kind"]: found["metadata"].get("namespace") for found in rendered.objects if found["kind"] not in wide
    }

    assert places == {
        "ServiceAccount": "geogenius-system",
        "Deployment": "geogenius-system",
        "Role": "maps",
        "RoleBinding": "maps",
    }


def test_no_secret_is_made() -> None:
    assert Rendered().all("Secret") == []
