"""Certificates and kubeconfigs of a cluster, signed by an authority of its own."""

import base64
import json
from pathlib import Path

from tests.cluster.node.layout import Layout
from tests.cluster.steps import run

VALID_DAYS = "30"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
MASTERS = "/O=system:masters"


def issue_all(layout: Layout) -> None:
    """Make the authority, a certificate for each program, the keys of service accounts, the kubeconfigs."""
    pki, subnets = layout.pki, layout.subnets
    pki.mkdir(parents=True)
    authority = ("-keyout", pki / "ca.key", "-out", pki / "ca.crt", "-days", VALID_DAYS, "-subj", "/CN=geogenius-test")
    run("openssl", "req", "-x509", *NEW_KEY, *authority)
    names = ["localhost", *(f"kubernetes{rest}" for rest in ("", ".default", ".default.svc"))]
    addresses = [subnets.node_address, str(subnets.services[1]), "127.0.0.1"]
    _issue(pki, "apiserver", "/CN=kube-apiserver", _alternative_names(names, addresses))
    _issue(pki, "apiserver-kubelet-client", f"{MASTERS}/CN=kube-apiserver-kubelet-client")
    kubelet = _alternative_names([layout.node_name], [subnets.node_address])
    _issue(pki, "kubelet", f"/O=system:nodes/CN=system:node:{layout.node_name}", kubelet)
    _issue(pki, "admin", f"{MASTERS}/CN=admin")
    for client in ("controller-manager", "scheduler", "proxy"):
        _issue(pki, client, f"/CN=system:kube-{client}")
    for client in ("admin", "kubelet", "controller-manager", "scheduler", "proxy"):
        layout.kubeconfig(client).write_text(json.dumps(_kubeconfig(layout, client)))
        layout.kubeconfig(client).chmod(0o600)
    run("openssl", "genrsa", "-out", pki / "service-accounts.key", "2048")
    run("openssl", "rsa", "-in", pki / "service-accounts.key", "-pubout", "-out", pki / "service-accounts.pub")


def _alternative_names(names: list[str], addresses: list[str]) -> str:
    listed = [*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses)]
    return f"subjectAltName={','.join(listed)}\n"


def _issue(pki: Path, name: str, subject: str, alternative_names: str = "") -> None:
    request, extensions = pki / f"{name}.csr", pki / f"{name}.ext"
    extensions.write_text(f"extendedKeyUsage=serverAuth,clientAuth\n{alternative_names}")
    run("openssl", "req", "-new", *NEW_KEY, "-keyout", pki / f"{name}.key", "-out", request, "-subj", subject)
    authority = ("-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial", "-days", VALID_DAYS)
    signed = ("-in", request, "-extfile", extensions, "-out", pki / f"{name}.crt")
    run("openssl", "x509", "-req", *authority, *signed)


def _kubeconfig(layout: Layout, client: str) -> dict[str, object]:
    def embedded(file: str) -> str:
        return base64.b64encode((layout.pki / file).read_bytes()).decode()

    server = f"https://{layout.subnets.node_address}:6443"
    cluster = {"server": server, "certificate-authority-data": embedded("ca.crt")}
    user = {"client-certificate-data": embedded(f"{client}.crt"), "client-key-data": embedded(f"{client}.key")}
    name = layout.node_name
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": client, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": client}}],
    }
