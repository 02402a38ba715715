"""The generated CustomResourceDefinition on a real API server: structural, affordable, and refusing what it should."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from geogenius.api.crd import crd_yaml
from geogenius.api.status import status_of
from geogenius.api.view import RequestView
from geogenius.domain.run import RunError, RunState, workload_name
from tests.support.builders import NOON, RUN_ID, a_run
from tests.support.import_requests import Refused, changed, refused, valid

Kubectl = Callable[..., CompletedProcess[str]]

CRD = "customresourcedefinition/importrequests.geogenius.io"
COLUMNS = ["NAME", "STATE", "PHASE", "PROGRESS", "ROWS", "ATTEMPT", "AGE", "REASON", "RUN", "JOB", "MESSAGE"]
SAMPLES = Path(__file__).parents[2] / "manifests" / "samples"


@pytest.fixture(autouse=True)
def definition(kubectl: Kubectl) -> None:
    done(kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd_yaml()))
    done(kubectl("wait", CRD, "--for=condition=Established", "--timeout=30s"))


def done(process: CompletedProcess[str]) -> str:
    assert process.returncode == 0, process.stderr
    return process.stdout


def apply(kubectl: Kubectl, namespace: str, document: object, *options: str) -> CompletedProcess[str]:
    return kubectl("-n", namespace, "apply", *options, "-f", "-", stdin=yaml.safe_dump(document))


def stored(kubectl: Kubectl, namespace: str, document: object) -> dict[str, object]:
    """What the API server would store."""
    answer = json.loads(done(apply(kubectl, namespace, document, "--dry-run=server", "-o", "json")))
    assert isinstance(answer, dict)
    return answer


def test_the_definition_is_established_and_structural(kubectl: Kubectl) -> None:
    conditions = json.loads(done(kubectl("get", CRD, "-o", "json")))["status"]["conditions"]
    statuses = {condition["type"]: condition["status"] for condition in conditions}

    assert statuses["Established"] == "True"
    assert statuses["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in statuses


def test_applying_the_definition_again_changes_nothing(kubectl: Kubectl) -> None:
    def generation() -> str:
        return done(kubectl("get", CRD, "-o", "jsonpath={.metadata.generation}"))

    before = generation()
    done(kubectl("apply", "--server-side", "-f", "-", stdin=crd_yaml()))

    assert generation() == before


def test_a_valid_request_is_stored_as_written(kubectl: Kubectl, namespace: str) -> None:
    assert stored(kubectl, namespace, valid())["spec"] == valid()["spec"]


def test_the_options_of_a_provider_are_kept_whatever_they_hold(kubectl: Kubectl, namespace: str) -> None:
    document = changed(valid(), ["spec", "manifest", "options", "anything"], {"at": [{"all": [True]}], "1": 1.5})

    spec = stored(kubectl, namespace, document)["spec"]

    assert isinstance(spec, dict)
    assert spec["manifest"]["options"] == document["spec"]["manifest"]["options"]


def test_what_is_left_out_gets_its_defaults(kubectl: Kubectl, namespace: str) -> None:
    document = valid() | {"spec": {"manifest": valid()["spec"]["manifest"]}}

    spec = stored(kubectl, namespace, document)["spec"]

    assert isinstance(spec, dict)
    assert {key: value for key, value in spec.items() if key != "manifest"} == {
        "publish": False,
        "staleAfterSeconds": 900,
        "deadlines": {"launchSeconds": 600, "activeSeconds": 21600},
        "rejects": {"limit": 0},
        "verification": {"minimumAreas": [], "requiredTypes": []},
        "ttlSecondsAfterFinished": 86400,
        "pod": {"resources": {"requests": {}, "limits": {}}},
    }


@pytest.mark.parametrize("wrong", refused(), ids=lambda wrong: wrong.case)
def test_the_api_server_refuses_it_and_names_the_field(kubectl: Kubectl, namespace: str, wrong: Refused) -> None:
    answer = apply(kubectl, namespace, wrong.document, "--dry-run=server")

    assert answer.returncode != 0
    assert wrong.api in answer.stderr


def test_a_name_too_long_for_a_label_is_refused(kubectl: Kubectl, namespace: str) -> None:
    answer = apply(kubectl, namespace, changed(valid(), ["metadata", "name"], "x" * 64), "--dry-run=server")

    assert answer.returncode != 0
    assert "metadata.name" in answer.stderr


@pytest.mark.parametrize(
    ("at", "to"),
    [
        pytest.param(["spec", "publish"], False, id="a flag"),
        pytest.param(["spec", "manifest", "release"], "2026.2", id="a field of the manifest"),
        pytest.param(["spec", "manifest", "options", "nested", "kept"], [2], id="an option the schema does not know"),
        pytest.param(["spec", "files"], [], id="a field emptied"),
    ],
)
def test_the_spec_cannot_change(kubectl: Kubectl, namespace: str, at: list[str | int], to: object) -> None:
    done(apply(kubectl, namespace, valid()))

    answer = apply(kubectl, namespace, changed(valid(), at, to))

    assert answer.returncode != 0
    assert "spec cannot be changed after creation; create another ImportRequest instead" in answer.stderr


def test_applying_the_same_request_again_changes_nothing(kubectl: Kubectl, namespace: str) -> None:
    left_to_defaults = changed(
        valid(), ["spec", "manifest", "sources", 0, "artifacts", 1, "operatorSupplied"], remove=True
    )

    def version() -> str:
        return done(kubectl("-n", namespace, "get", "ireq", "parcels", "-o", "jsonpath={.metadata.resourceVersion}"))

    done(apply(kubectl, namespace, left_to_defaults))
    before = version()
    done(apply(kubectl, namespace, left_to_defaults))

    assert version() == before


def test_labels_may_change_while_the_spec_may_not(kubectl: Kubectl, namespace: str) -> None:
    done(apply(kubectl, namespace, valid()))

    assert "configured" in done(apply(kubectl, namespace, changed(valid(), ["metadata", "labels"], {"team": "maps"})))


def test_a_user_cannot_write_the_status_with_the_request(kubectl: Kubectl, namespace: str) -> None:
    status = {
        "observedGeneration": 1,
        "state": "Succeeded",
        "published": True,
        "finished": True,
        "conditions": [],
    }

    assert "status" not in stored(kubectl, namespace, valid() | {"status": status})


def test_a_status_of_ours_is_stored_and_shown(kubectl: Kubectl, namespace: str) -> None:
    error = RunError("staging", "DataRefused", "parcels.geojson: not JSON at byte 17")
    run = a_run(state=RunState.FAILED, error=error, completed_at=NOON, progress={"rows": 12, "percent": 42})
    status = status_of(RequestView(1, run), {}, NOON)
    done(apply(kubectl, namespace, valid()))

    patch = json.dumps({"status": status})
    done(kubectl("-n", namespace, "patch", "ireq", "parcels", "--subresource=status", "--type=merge", "-p", patch))

    assert json.loads(done(kubectl("-n", namespace, "get", "ireq", "parcels", "-o", "json")))["status"] == status
    heads, row = done(kubectl("-n", namespace, "get", "geogenius", "-o", "wide")).splitlines()
    assert heads.split() == COLUMNS
    assert row.split()[:6] == ["parcels", "Failed", "staging", "42", "12", "1"]
    assert row.split(maxsplit=10)[7:] == ["DataRefused", str(RUN_ID), workload_name(RUN_ID), error.message]
    failed = done(kubectl("-n", namespace, "get", "ireq", "--field-selector=status.state=Failed", "-o", "name"))
    assert failed == "importrequest.geogenius.io/parcels\n"
    done(kubectl("-n", namespace, "wait", "ireq/parcels", "--for=jsonpath={.status.finished}=true", "--timeout=5s"))


def test_every_sample_is_accepted(kubectl: Kubectl, namespace: str) -> None:
    for sample in sorted(SAMPLES.glob("*.yaml")):
        done(kubectl("-n", namespace, "apply", "--dry-run=server", "-f", "-", stdin=sample.read_text()))
