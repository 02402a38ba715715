from uuid import UUID

import pytest

from geogenius.domain.errors import KubernetesUnavailable
from geogenius.kube.client import KubeClient
from geogenius.kube.requests import Requests
from tests.support import fault_server as server
from tests.support.kube_api import KubeApi

FOLDER = "/apis/geogenius.io/v1alpha1/namespaces/maps/importrequests"


def test_a_request_is_read_or_known_to_be_gone(api: KubeApi, client: KubeClient) -> None:
    api.put(f"{FOLDER}/world", spec={"publish": True})
    requests = Requests(client)

    found = requests.get("maps", "world")

    assert found is not None
    assert found["spec"] == {"publish": True}
    assert requests.get("maps", "gone") is None


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(server.reset, id="reset"),
        pytest.param(server.answer(404, b"404 page not found"), id="definition not installed"),
        pytest.param(server.status(403, "Forbidden", "no right"), id="no right"),
    ],
)
def test_a_request_that_cannot_be_read_is_not_taken_for_gone(
    api: KubeApi, client: KubeClient, behaviour: server.Behaviour
) -> None:
    api.queued.append(behaviour)

    with pytest.raises(KubernetesUnavailable, match="maps/world"):
        Requests(client).get("maps", "world")


def test_names_are_listed_everywhere_or_in_the_watched_namespaces(api: KubeApi, client: KubeClient) -> None:
    for namespace, name in (("maps", "a"), ("other", "b"), ("third", "c")):
        path = FOLDER.replace("maps", namespace)
        api.put(f"{path}/{name}", metadata={"namespace": namespace})

    assert set(Requests(client).names()) == {("maps", "a"), ("other", "b"), ("third", "c")}
    assert set(Requests(client, ["maps", "third"]).names()) == {("maps", "a"), ("third", "c")}


def test_a_status_is_applied_by_us_alone_and_by_force(api: KubeApi, client: KubeClient) -> None:
    stored = api.put(f"{FOLDER}/world")

    written = Requests(client).apply_status("maps", "world", {"state": "Running"})

    sent = api.received[-1]
    assert written
    assert stored["status"] == {"state": "Running"}
    assert sent.path == f"{FOLDER}/world/status?fieldManager=geogenius&force=true"
    assert sent.headers["content-type"] == "application/apply-patch+yaml"
    assert (sent.document()["apiVersion"], sent.document()["kind"]) == ("geogenius.io/v1alpha1", "ImportRequest")


def test_the_status_of_a_request_that_is_gone_or_was_made_anew_is_not_written(api: KubeApi, client: KubeClient) -> None:
    requests = Requests(client)
    gone = requests.apply_status("maps", "world", {"state": "Running"})
    stored = api.put(f"{FOLDER}/world")
    anew = requests.apply_status("maps", "world", {"state": "Running"}, uid=UUID(int=1))

    assert (gone, anew) == (False, False)
    assert "status" not in stored


def test_a_status_without_an_answer_is_not_taken_for_written(api: KubeApi, client: KubeClient) -> None:
    api.put(f"{FOLDER}/world")
    api.queued.append(server.silence)

    with pytest.raises(KubernetesUnavailable, match="maps/world"):
        Requests(client).apply_status("maps", "world", {"state": "Running"})
