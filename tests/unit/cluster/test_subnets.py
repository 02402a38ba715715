from ipaddress import IPv4Network
from itertools import pairwise

import pytest

from tests.cluster.contract import ClusterError
from tests.cluster.node.subnets import NUMBERS, Subnets, free_number


def test_no_two_ranges_of_any_clusters_overlap() -> None:
    ranges = [found for number in NUMBERS for found in Subnets(number).all]
    ranges.sort()
    assert not any(left.overlaps(right) for left, right in pairwise(ranges))


def test_addresses_lie_in_the_link_between_host_and_node() -> None:
    subnets = Subnets(7)
    assert (subnets.host_address, subnets.node_address) == ("10.90.7.1", "10.90.7.2")
    assert len({subnets.link, subnets.pods, subnets.services}) == 3


@pytest.mark.parametrize(
    ("taken", "routes", "number"),
    [
        pytest.param(set(), [], 1, id="the first cluster"),
        pytest.param({1, 3}, [], 2, id="the lowest free number"),
        pytest.param(set(), ["10.244.1.0/24"], 2, id="pods elsewhere"),
        pytest.param(set(), ["10.96.0.0/15"], None, id="services inside a larger range"),
        pytest.param(set(), ["10.90.1.2/32", "192.0.2.0/24"], 2, id="one address"),
        pytest.param(set(NUMBERS), [], None, id="none is left"),
    ],
)
def test_a_number_is_free_when_nobody_has_it_and_the_host_routes_its_ranges_nowhere(
    taken: set[int], routes: list[str], number: int | None
) -> None:
    networks = [IPv4Network(route) for route in routes]
    if number is None:
        with pytest.raises(ClusterError, match="no free address range"):
            free_number(taken, networks)
    else:
        assert free_number(taken, networks) == number


def test_clusters_that_come_one_after_the_other_get_different_numbers() -> None:
    taken: list[int] = []
    for _ in range(20):
        routes = [found for number in taken for found in Subnets(number).all]
        assert free_number([], routes) == free_number(taken, []) == len(taken) + 1
        taken.append(len(taken) + 1)
