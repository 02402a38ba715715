"""What is read from the API server: checked once, with the field named where it is wrong."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
import yaml

from geogenius.api.translate import (
    ClaimFiles,
    ConfigMapFiles,
    Resources,
    head_of,
    intent,
    translate,
)
from geogenius.domain.errors import InvalidRequest, ManifestInvalid
from geogenius.domain.intent import ImportIntent
from geogenius.domain.run import Deadlines, RequestRef, RunId, VerificationGates, Workload, workload_name
from tests.support.import_requests import UID, Refused, changed, refused, served, valid

RUN_ID = RunId(UUID("11111111-2222-3333-4444-555555555555"))
CLUSTER_ID = UUID("bbbbbbbb-cccc-dddd-eeee-ffffffffffff")
SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"


def minimal() -> dict[str, object]:
    return valid() | {"spec": {"manifest": valid()["spec"]["manifest"]}}


def test_a_request_is_read_with_everything_in_it() -> None:
    request = translate(served(valid(), generation=3))

    assert request.head.ref == RequestRef("maps", "parcels", UUID(UID))
    assert request.head.generation == 3
    assert not request.head.deleting
    assert request.manifest.collection == "parcels"
    assert request.publish
    assert request.owner == "land registry"
    assert request.stale_after == timedelta(minutes=1)
    assert request.deadlines == Deadlines(launch=timedelta(minutes=2), active=timedelta(hours=1))
    assert request.reject_limit == 5
    assert request.gates == VerificationGates({"parcel": 100, "district": 1}, ("parcel",), 20)
    assert request.ttl_after_finished == timedelta(minutes=10)
    assert request.files == (
        ConfigMapFiles("parcels-files", (("parcels", "parcels.geojson"),)),
        ConfigMapFiles("other-files", ()),
    )
    assert request.resources == Resources({"cpu": "500m", "memory": "128Mi"}, {"cpu": "2", "memory": "300Mi"})


def test_what_is_left_out_gets_its_defaults() -> None:
    request = translate(served(minimal()))

    assert not request.publish
    assert request.owner == "maps/parcels"
    assert request.stale_after == timedelta(minutes=15)
    assert request.deadlines == Deadlines()
    assert request.reject_limit == 0
    assert request.gates == VerificationGates()
    assert request.ttl_after_finished == timedelta(days=1)
    assert request.files == ()
    assert request.resources == Resources({}, {})


def test_files_may_lie_on_a_volume() -> None:
    document = changed(valid(), ["spec", "files"], [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}])

    assert translate(served(document)).files == (ClaimFiles("data"),)


def test_the_intent_is_what_the_request_says() -> None:
    assert intent(translate(served(valid())), RUN_ID, CLUSTER_ID, "kubernetes_job") == ImportIntent(
        run_id=RUN_ID,
        owner="land registry",
        runner="kubernetes_job",
        publish=True,
        stale_after=timedelta(minutes=1),
        deadlines=Deadlines(launch=timedelta(minutes=2), active=timedelta(hours=1)),
        reject_limit=5,
        gates=VerificationGates({"parcel": 100, "district": 1}, ("parcel",), 20),
        workload=Workload(CLUSTER_ID, "maps", workload_name(RUN_ID)),
        request=RequestRef("maps", "parcels", UUID(UID)),
        cluster_id=CLUSTER_ID,
    )


def test_a_run_that_is_queued_has_nothing_of_kubernetes_but_its_request() -> None:
    queued = intent(translate(served(minimal())), RUN_ID, CLUSTER_ID, "pgflow")

    assert (queued.runner, queued.workload, queued.cluster_id) == ("pgflow", None, CLUSTER_ID)
    assert queued.request == RequestRef("maps", "parcels", UUID(UID))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["spec", "files"], [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]),
        (["spec", "pod"], {"resources": {"limits": {"memory": "1Gi"}}}),
    ],
)
def test_what_only_a_pod_of_its_own_can_give_is_refused_where_runs_are_queued(path: list[str], value: object) -> None:
    request = translate(served(changed(minimal(), path, value)))

    with pytest.raises(InvalidRequest, match=rf"^{path[0]}\.{path[1]}.*imports are started by pgflow here") as refusal:
        intent(request, RUN_ID, CLUSTER_ID, "pgflow")

    assert refusal.value.reason == "NeedsJob"


@pytest.mark.parametrize("wrong", refused(), ids=lambda wrong: wrong.case)
def test_what_the_api_server_refuses_is_refused_here_too(wrong: Refused) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        translate(served(wrong.document))

    assert wrong.names in str(refusal.value)
    assert str(refusal.value).startswith("spec")
    assert refusal.value.reason == ("ManifestInvalid" if isinstance(refusal.value, ManifestInvalid) else "SpecInvalid")


@pytest.mark.parametrize(
    "quantity",
    ["0", "1", "1.5", ".5", "500m", "256Mi", "2e3", "1E6", 2, 0],
)
def test_quantities_of_kubernetes_are_accepted(quantity: str | int) -> None:
    document = changed(valid(), ["spec", "pod", "resources", "limits", "memory"], quantity)

    assert translate(served(document)).resources.limits["memory"] == str(quantity)


@pytest.mark.parametrize("quantity", ["", "Mi", "1 Gi", "1GB", "-1", "1" * 33, 1.5, True, None, ["1"]])
def test_what_is_no_quantity_is_refused_with_an_example(quantity: object) -> None:
    document = changed(valid(), ["spec", "pod", "resources", "limits", "memory"], quantity)

    with pytest.raises(InvalidRequest, match=r"pod\.resources\.limits\.memory: must be a quantity such as"):
        translate(served(document))


def test_a_request_being_deleted_says_so() -> None:
    assert head_of(served(valid(), deletionTimestamp="2030-06-01T12:00:00Z")).deleting


def test_the_head_is_readable_when_the_spec_is_not() -> None:
    head = head_of(served({"metadata": {}, "spec": 7, "status": {"finished": True}}))

    assert head == type(head)(RequestRef("maps", "parcels", UUID(UID)), 1, deleting=False, status={"finished": True})


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param({}, "metadata", id="nothing"),
        pytest.param({"metadata": {"uid": UID, "name": "x"}}, "metadata.namespace", id="no namespace"),
        pytest.param({"metadata": {"uid": "x", "name": "x", "namespace": "x"}}, "metadata.uid", id="uid that is none"),
        pytest.param(served({"metadata": {}}), "spec", id="no spec"),
    ],
)
def test_what_no_api_server_gives_is_refused(document: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^{field}: "):
        translate(document)


def test_the_request_in_the_guide_to_samples_is_valid() -> None:
    _, _, block = (SAMPLES / "README.md").read_text().partition("```yaml\n")
    document = yaml.safe_load(block.partition("```")[0])

    assert translate(served(document)).publish
