"""Addresses of a cluster, all derived from one small number that no other cluster of the machine has."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network

from tests.cluster.contract import ClusterError
from tests.cluster.steps import run

NUMBERS = range(1, 255)


@dataclass(frozen=True)
class Subnets:
    """The ranges of one cluster; those of two numbers never overlap."""

    number: int

    @property
    def link(self) -> IPv4Network:
        """Between host and node."""
        return IPv4Network(f"10.90.{self.number}.0/24")

    @property
    def host_address(self) -> str:
        """The host's end of the link; pods reach servers of the host here."""
        return str(self.link[1])

    @property
    def node_address(self) -> str:
        """The node's end of the link: API server, DNS, kubelet."""
        return str(self.link[2])

    @property
    def pods(self) -> IPv4Network:
        """Addresses of pods."""
        return IPv4Network(f"10.244.{self.number}.0/24")

    @property
    def services(self) -> IPv4Network:
        """Addresses of services; the first one is the API server's."""
        return IPv4Network(f"10.96.{self.number}.0/24")

    @property
    def all(self) -> tuple[IPv4Network, ...]:
        """Every range."""
        return (self.link, self.pods, self.services)


def free_number(taken: Collection[int], routes: Collection[IPv4Network]) -> int:
    """The lowest number that no cluster has and whose ranges the host routes nowhere yet."""
    for number in NUMBERS:
        ranges = Subnets(number).all
        if number not in taken and not any(ours.overlaps(route) for ours in ranges for route in routes):
            return number
    raise ClusterError("no free address range is left for another cluster")


def host_routes() -> list[IPv4Network]:
    """What the host routes, but for its default route, which gives way to any other."""
    routes = json.loads(run("ip", "-4", "-json", "route", "show", "table", "all"))
    ranges = (ip_network(route["dst"]) for route in routes if route["dst"] != "default")
    return [found for found in ranges if isinstance(found, IPv4Network)]
