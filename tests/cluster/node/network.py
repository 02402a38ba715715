"""The network of a node: a namespace, one link to the host, and routes to pods and services."""

from pathlib import Path

from tests.cluster.node.layout import Layout
from tests.cluster.steps import run, succeeds


class Network:
    """Nothing of it reaches beyond the machine: the host neither forwards nor masquerades for it."""

    def __init__(self, layout: Layout) -> None:
        self._namespace = layout.node_name
        self._subnets = layout.subnets
        # The kernel allows 15 characters for the name of a link.
        self._host_link = f"gg-host-{layout.subnets.number}"
        self._node_link = f"gg-node-{layout.subnets.number}"

    def exists(self) -> bool:
        """Whether the namespace is there."""
        return Path("/run/netns", self._namespace).exists()

    def create(self) -> None:
        """Make it; what an earlier start left must be removed first."""
        subnets, inside = self._subnets, ("ip", "-n", self._namespace)
        length = subnets.link.prefixlen
        run("ip", "netns", "add", self._namespace)
        peer = ("peer", "name", self._node_link, "netns", self._namespace)
        run("ip", "link", "add", self._host_link, "type", "veth", *peer)
        run("ip", "addr", "add", f"{subnets.host_address}/{length}", "dev", self._host_link)
        run("ip", "link", "set", self._host_link, "up")
        run(*inside, "addr", "add", f"{subnets.node_address}/{length}", "dev", self._node_link)
        run(*inside, "link", "set", self._node_link, "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "route", "add", "default", "via", subnets.host_address)
        for destination in (subnets.pods, subnets.services):
            run("ip", "route", "add", str(destination), "via", subnets.node_address)
        run("nsenter", f"--net=/run/netns/{self._namespace}", "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def remove(self) -> None:
        """Remove what is there; routes go with the link."""
        succeeds("ip", "link", "del", self._host_link)
        succeeds("ip", "netns", "del", self._namespace)
