"""The operator may do what its code does, where it does it, and nothing else."""

from typing import Any

from tests.support.chart import Rendered

IDENTITY = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}
WORK = [
    {"apiGroups": ["geogenius.io"], "resources": ["importrequests"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["geogenius.io"], "resources": ["importrequests/status"], "verbs": ["patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list"]},
]
"""Each verb has a caller in `geogenius.kube` or `geogenius.controller.watch`. Add one only together with the call."""

OPERATOR = {"kind": "ServiceAccount", "name": "geogenius-operator", "namespace": "geogenius-system"}
NAMESPACED: dict[str, Any] = {"watch": {"namespaces": ["maps", "123"]}}


def test_watching_all_namespaces_needs_exactly_these_rights() -> None:
    rendered = Rendered()

    assert rendered.one("ClusterRole")["rules"] == [IDENTITY, *WORK]
    assert rendered.all("Role") == []
    assert rendered.all("RoleBinding") == []


def test_watching_some_namespaces_needs_the_rights_only_there() -> None:
    roles = Rendered(NAMESPACED).all("Role")

    assert [role["metadata"]["namespace"] for role in roles] == ["maps", "123"]
    assert all(role["rules"] == WORK for role in roles)


def test_watching_some_namespaces_leaves_only_the_identity_of_the_cluster_to_be_read_beyond_them() -> None:
    assert Rendered(NAMESPACED).one("ClusterRole")["rules"] == [IDENTITY]


def test_every_right_is_given_to_the_operator_alone() -> None:
    rendered = Rendered(NAMESPACED)

    for kind in ("ClusterRole", "Role"):
        bindings, roles = rendered.all(f"{kind}Binding"), rendered.all(kind)
        assert len(bindings) == len(roles)
        for binding, role in zip(bindings, roles, strict=True):
            assert binding["subjects"] == [OPERATOR]
            assert binding["roleRef"]["kind"] == kind
            assert binding["roleRef"]["name"] == role["metadata"]["name"]
            assert binding["metadata"].get("namespace") == role["metadata"].get("namespace")


def test_no_right_is_given_by_a_wildcard_or_reads_secrets() -> None:
    for rule in [*Rendered().one("ClusterRole")["rules"], *Rendered(NAMESPACED).all("Role")[0]["rules"]]:
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        assert "secrets" not in rule["resources"]


def test_the_pod_runs_as_the_account_that_has_the_rights() -> None:
    rendered = Rendered()

    assert rendered.pod["serviceAccountName"] == rendered.one("ServiceAccount")["metadata"]["name"] == OPERATOR["name"]


def test_only_the_container_that_speaks_to_the_api_has_a_token() -> None:
    rendered = Rendered()
    pod = rendered.pod

    assert rendered.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    (token,) = [volume["name"] for volume in pod["volumes"] if "serviceAccountToken" in str(volume)]
    holders = [
        container["name"]
        for container in pod["containers"] + pod["initContainers"]
        if token in [mount["name"] for mount in container["volumeMounts"]]
    ]
    assert holders == ["operator"]
