from ipaddress import ip_address

import pytest

from geogenius.domain.errors import InvalidRequest, SourceUnavailable
from geogenius.importer.addresses import checked_addresses, is_public, resolve


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_addresses_of_the_open_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "0.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1",
        "2002:a00:1::", "64:ff9b::a00:1",
    ],
)  # fmt: skip
def test_inner_addresses_are_not_public_however_they_are_wrapped(address: str) -> None:
    assert not is_public(ip_address(address))


def test_a_name_that_also_means_an_inner_address_is_refused() -> None:
    found = [ip_address("1.1.1.1"), ip_address("10.0.0.1")]
    with pytest.raises(InvalidRequest, match=r"host\.example has the address 10\.0\.0\.1, which is not public"):
        checked_addresses("host.example", 443, allow_private=False, lookup=lambda *_: found)
    assert checked_addresses("host.example", 443, allow_private=True, lookup=lambda *_: found) == found


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 300, "a..b"])
def test_a_name_without_address_is_unavailable(host: str) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be resolved"):
        resolve(host, 443)


def test_an_address_resolves_to_itself() -> None:
    assert resolve("127.0.0.1", 443) == [ip_address("127.0.0.1")]
