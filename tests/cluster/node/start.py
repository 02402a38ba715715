"""The start of a node, step by step; each step waits for what the next one needs."""

import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.cluster.binaries import Binaries
from tests.cluster.contract import ClusterError
from tests.cluster.node import certificates
from tests.cluster.node.components import DNS_READY_PORT, FIRST, THEN, commands
from tests.cluster.node.containers import Containers
from tests.cluster.node.control_groups import ControlGroup
from tests.cluster.node.layout import Layout
from tests.cluster.node.network import Network
from tests.cluster.node.processes import Processes
from tests.cluster.steps import log_tail, succeeds, wait_for

PROGRAMS = (*FIRST, *THEN)
READY_SECONDS = 90


class Start:
    """One start of a cluster whose folder is empty."""

    def __init__(self, layout: Layout, programs: Binaries) -> None:
        self._layout = layout
        self._programs = programs
        self._processes = Processes(layout)
        self._containers = Containers(layout)

    def run(self, pause: Path) -> None:
        """Return when pods can run."""
        layout, processes = self._layout, self._processes
        layout.log.mkdir(parents=True)
        ControlGroup(layout.node_name).create()
        Network(layout).create()
        certificates.issue_all(layout)
        starts = {"containerd": self._containers.configure(), **commands(layout, self._programs)}
        for name in FIRST:
            processes.start(name, starts[name])
        self._wait("containerd", "containerd", self._containers.answer)
        self._containers.load(pause)
        self._wait("the API server", "kube-apiserver", lambda: succeeds(*self._kubectl("get", "--raw=/readyz")))
        for name in THEN:
            processes.start(name, starts[name])
        condition = ("node", layout.node_name, "--for=condition=Ready", "--timeout=1s")
        self._wait("the node", "kubelet", lambda: succeeds(*self._kubectl("wait", *condition)))
        self._wait("DNS", "coredns", self._dns_ready)
        account = ("get", "serviceaccount", "default", "--namespace=default")
        self._wait("the service account", "kube-controller-manager", lambda: succeeds(*self._kubectl(*account)))

    def _kubectl(self, *arguments: str) -> tuple[str, ...]:
        return (str(self._programs.kube), "kubectl", f"--kubeconfig={self._layout.kubeconfig()}", *arguments)

    def _dns_ready(self) -> bool:
        url = f"http://{self._layout.subnets.node_address}:{DNS_READY_PORT}/ready"
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=1):
                return True
        except OSError:
            return False

    def _wait(self, what: str, program: str, ready: Callable[[], bool]) -> None:
        """Wait for a program's readiness; the death of any program ends the wait at once."""

        def ready_or_dead() -> bool:
            for name in PROGRAMS:
                if self._processes.started(name) and not self._processes.alive(name):
                    raise ClusterError(f"{name} ended during the start; {log_tail(self._processes.log(name))}")
            return ready()

        wait_for(what, ready_or_dead, READY_SECONDS, self._processes.log(program))
