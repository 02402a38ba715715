"""The programs of a node: their commands and configuration files."""

import json
from collections.abc import Iterator, Mapping

from tests.cluster.binaries import Binaries
from tests.cluster.node.layout import Layout

ETCD = "http://127.0.0.1:2379"
DNS_READY_PORT = 8181
FIRST = ("containerd", "etcd", "kube-apiserver")
THEN = ("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns")
"""Started when the API server is ready: some would look for it again only after seconds."""

COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready {address}:{ready_port}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    cache 5
}}
"""


def commands(layout: Layout, programs: Binaries) -> dict[str, list[str]]:
    """Write the configuration files; gives the command of each program."""
    layout.config.mkdir(parents=True, exist_ok=True)
    _write(layout, "kubelet.yaml", _kubelet_configuration(layout))
    _write(layout, "kube-proxy.yaml", _proxy_configuration(layout))
    (layout.config / "Corefile").write_text(
        COREFILE.format(
            address=layout.subnets.node_address,
            ready_port=DNS_READY_PORT,
            kubeconfig=layout.kubeconfig(),
        ),
    )
    kube = str(programs.kube)
    return {
        "etcd": [kube, "etcd", *_flags(_etcd(layout))],
        "kube-apiserver": [kube, "kube-apiserver", *_flags(_api_server(layout))],
        "kube-controller-manager": [kube, "kube-controller-manager", *_flags(_controller_manager(layout))],
        "kube-scheduler": [kube, "kube-scheduler", *_flags(_client(layout, "scheduler"))],
        "kubelet": [kube, "kubelet", *_flags(_kubelet(layout))],
        "kube-proxy": [kube, "kube-proxy", f"--config={layout.config / 'kube-proxy.yaml'}"],
        "coredns": [str(programs.coredns), "-conf", str(layout.config / "Corefile")],
    }


def _flags(flags: Mapping[str, object]) -> Iterator[str]:
    return (f"--{name}={value}" for name, value in flags.items())


def _write(layout: Layout, file: str, configuration: Mapping[str, object]) -> None:
    (layout.config / file).write_text(json.dumps(configuration, indent=2))


def _etcd(layout: Layout) -> dict[str, object]:
    return {
        "data-dir": layout.folder / "etcd",
        "listen-client-urls": ETCD,
        "advertise-client-urls": ETCD,
        "listen-peer-urls": "http://127.0.0.1:2380",
        "unsafe-no-fsync": "true",  # its data dies with the cluster
        "log-level": "warn",
    }


def _api_server(layout: Layout) -> dict[str, object]:
    pki = layout.pki
    return {
        "advertise-address": layout.subnets.node_address,
        "secure-port": 6443,
        "etcd-servers": ETCD,
        "authorization-mode": "Node,RBAC",
        "allow-privileged": "true",
        "service-cluster-ip-range": layout.subnets.services,
        "client-ca-file": pki / "ca.crt",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki / "service-accounts.pub",
        "service-account-signing-key-file": pki / "service-accounts.key",
    }


def _client(layout: Layout, name: str) -> dict[str, object]:
    return {"kubeconfig": layout.kubeconfig(name), "leader-elect": "false"}


def _controller_manager(layout: Layout) -> dict[str, object]:
    return {
        **_client(layout, "controller-manager"),
        "root-ca-file": layout.pki / "ca.crt",
        "service-account-private-key-file": layout.pki / "service-accounts.key",
        "use-service-account-credentials": "true",
        "kube-api-qps": 200,  # a client for each controller takes five seconds at the default rate
        "kube-api-burst": 400,
    }


def _kubelet(layout: Layout) -> dict[str, object]:
    return {
        "kubeconfig": layout.kubeconfig("kubelet"),
        "config": layout.config / "kubelet.yaml",
        "root-dir": layout.folder / "kubelet",
        "hostname-override": layout.node_name,
        "node-ip": layout.subnets.node_address,
        "v": 2,
    }


def _kubelet_configuration(layout: Layout) -> dict[str, object]:
    pki, address = layout.pki, layout.subnets.node_address
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "podLogsDir": str(layout.log / "pods"),
        "podCIDR": str(layout.subnets.pods),
        "clusterDNS": [address],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "maxPods": 200,
        # The machine may have control groups of version 1, and lack rights that a node of its own would have.
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.node_name}",
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        # A full disk of the machine must not evict pods of a test, nor remove images that no registry has.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "4s",
        "syncFrequency": "10s",
    }


def _proxy_configuration(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "nftables": {"masqueradeAll": True, "syncPeriod": "5s"},
        "clientConnection": {"kubeconfig": str(layout.kubeconfig("proxy"))},
        "clusterCIDR": str(layout.subnets.pods),
        "hostnameOverride": layout.node_name,
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
