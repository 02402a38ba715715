from pathlib import Path
from uuid import UUID

import pytest

import geogenius
from geogenius.domain.errors import KubernetesUnavailable, Misconfigured
from geogenius.kube.client import ClusterAccess, KubeClient, Request
from geogenius.kube.outcome import NotSent
from tests.support import fault_server as server
from tests.support.kube_api import KubeApi

KUBE_SYSTEM = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")


def test_a_cluster_is_known_by_the_uid_of_its_kube_system_namespace(api: KubeApi, client: KubeClient) -> None:
    api.put("/api/v1/namespaces/kube-system", metadata={"uid": str(KUBE_SYSTEM)})

    assert client.cluster_id() == KUBE_SYSTEM
    assert api.received[0].headers["user-agent"] == f"geogenius/{geogenius.__version__}"


def test_a_cluster_that_does_not_say_who_it_is_has_no_identity(api: KubeApi, client: KubeClient) -> None:
    api.queued.append(server.status(403, "Forbidden", "no right to read namespaces"))

    with pytest.raises(KubernetesUnavailable, match="no right to read namespaces"):
        client.cluster_id()


def test_outside_of_a_cluster_and_without_a_file_there_is_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(Misconfigured, match="Service host/port is not set"):
        KubeClient(ClusterAccess())


def test_a_file_that_is_missing_or_has_no_such_context_is_named(tmp_path: Path) -> None:
    access = server.access_to("https://127.0.0.1:1", tmp_path)

    with pytest.raises(Misconfigured, match="absent"):
        KubeClient(ClusterAccess(tmp_path / "absent"))
    with pytest.raises(Misconfigured, match="elsewhere"):
        KubeClient(ClusterAccess(access.kubeconfig, "elsewhere"))


def test_the_old_credentials_stay_where_no_new_ones_can_be_read(api: KubeApi, tmp_path: Path) -> None:
    access = api.access(tmp_path)
    with KubeClient(access) as client:
        (tmp_path / "kubeconfig").unlink()

        assert not client.refresh_credentials()
        api.put("/api/v1/namespaces/kube-system", metadata={"uid": str(KUBE_SYSTEM)})
        assert client.cluster_id() == KUBE_SYSTEM


def test_a_token_file_that_is_away_for_a_moment_is_temporary_and_nothing_is_sent(
    api: KubeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> None:
        raise FileNotFoundError("token")

    monkeypatch.setattr(client._api.configuration, "refresh_api_key_hook", away)

    assert client.exchange(Request("GET", "/version")) == NotSent("CredentialsUnreadable", "token", temporary=True)
    assert api.received == []
