"""Which network addresses a download may reach. The address that was checked is the address that is connected to."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from geogenius.domain.errors import InvalidRequest, SourceUnavailable

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Sequence[Address]]
NAT64 = IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> list[Address]:
    """The addresses of a host, in the order of the system; SourceUnavailable if it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(f"the name {host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def checked_addresses(host: str, port: int, *, allow_private: bool, lookup: Resolve = resolve) -> Sequence[Address]:
    """The addresses of a host that may be connected to.

    Raises InvalidRequest (AddressRefused) if any of them is not public: a name that also means an inner address
    is not to be trusted. Raises SourceUnavailable if the name has no address.
    """
    addresses = lookup(host, port)
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise InvalidRequest(
                    f"{host} has the address {address}, which is not public; downloads from it are not allowed",
                    reason="AddressRefused",
                )
    return addresses


def is_public(address: Address) -> bool:
    """Whether an address belongs to the open internet, also when it wraps another one."""
    inner = embedded_address(address)
    if inner is not None:
        return is_public(inner)
    return address.is_global and not address.is_multicast


def embedded_address(address: Address) -> IPv4Address | None:
    """The IPv4 address inside a mapped, 6to4 or NAT64 address."""
    if isinstance(address, IPv4Address):
        return None
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
