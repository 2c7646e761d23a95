"""The address policy: which addresses a capture may connect to, judged without asking the network."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal, TypeAlias

from pravda.core.mistake import BadRequest
from pravda.core.urls import URL, BadURL, parse

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# IANA IPv4 Special-Purpose Address Registry (RFC 6890 and its updates): everything not plainly for the public
# internet. The standard library's own list has changed between patch releases, so it is not relied upon.
_REFUSED_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # "this network"; 0.0.0.0 reaches loopback
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers (RFC 6598)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # looks public, but is the host of an Azure machine answering its guest
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relay, deprecated by RFC 7526
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# IANA IPv6 Global Unicast Address Assignments: nothing outside of this block is plainly global.
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_REFUSED_V6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: benchmarks, ORCHID, AMT
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# Forms that carry an IPv4 address in their last 32 bits. The local-use NAT64 prefix 64:ff9b:1::/48 (RFC 8215)
# is not here: where it holds the IPv4 address is a local matter, so no address in it is plainly global.
_LOW_32_BITS: Final = tuple(
    IPv6Network(text)
    for text in (
        "::ffff:0:0/96",  # IPv4-mapped (RFC 4291 §2.5.5.2)
        "::/96",  # IPv4-compatible (RFC 4291 §2.5.5.1)
        "64:ff9b::/96",  # NAT64 (RFC 6052 §2.1)
    )
)
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")  # RFC 3056 §2
_TEREDO: Final = IPv6Network("2001::/32")  # RFC 4380 §4
_LOOPBACK: Final = ("127.0.0.1", "::1")

_HOST_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_SEPARATORS: Final = re.compile(r"[,\s]+")
_FIELD: Final = "allow_addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """What may be connected to besides the public internet."""

    networks: tuple[Network, ...] = ()  # allowed although not public
    hosts: frozenset[str] = (
        frozenset()
    )  # host names allowed whatever they resolve to, lower case, no final dot

    @classmethod
    def parse(cls, text: str) -> "AddressPolicy":
        """The policy of a setting: networks, addresses and host names, separated by commas or white space."""
        networks: list[Network] = []
        hosts: set[str] = set()
        for item in filter(None, _SEPARATORS.split(text)):
            network = _network(item)
            if network is None:
                hosts.add(_host_name(item))
            else:
                networks.append(network)
        return cls(networks=tuple(networks), hosts=frozenset(hosts))

    def with_host(self, host: str) -> "AddressPolicy":
        """The same policy with one more host, as a URL names it, allowed whatever it resolves to."""
        return replace(self, hosts=self.hosts | {_bare(host)})

    def allows(self, address: str, host: str) -> bool:
        """Whether `address`, which `host` resolved to, may be connected to."""
        if _bare(host) in self.hosts:
            return True
        parsed = _address(address)
        if parsed is None:
            return False
        return _is_public(parsed) or any(parsed in network for network in self.networks)


def is_public(address: str) -> bool:
    """Whether the text is an address of the public internet, looking into IPv6 forms that embed an IPv4 one."""
    parsed = _address(address)
    return parsed is not None and _is_public(parsed)


def url_problem(url: URL, policy: AddressPolicy) -> Literal["unsafe_address", "unsafe_port"] | None:
    """What is unsafe about a URL by itself, before any name is resolved."""
    if url.port_is_refused:
        return "unsafe_port"
    name = _bare(url.hostname)
    # RFC 6761 §6.3: these names are loopback, whatever a resolver says.
    is_loopback_name = name == "localhost" or name.endswith(".localhost")
    shown = _LOOPBACK if is_loopback_name else (name,)
    if not is_loopback_name and _address(name) is None:
        return None
    return None if any(policy.allows(address, name) for address in shown) else "unsafe_address"


@lru_cache(maxsize=4096)
def _is_public(address: Address) -> bool:
    """The verdict on one address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    embedded = _embedded(address)
    if embedded:
        return all(_is_public(inner) for inner in embedded)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def _embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that traffic to this IPv6 address ends at or passes through; none for an ordinary one."""
    bits = int(address)
    if any(address in network for network in _LOW_32_BITS):
        return (IPv4Address(bits & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(bits >> 80 & 0xFFFFFFFF),)
    if address in _TEREDO:
        return IPv4Address(bits >> 64 & 0xFFFFFFFF), IPv4Address(~bits & 0xFFFFFFFF)
    return ()


@lru_cache(maxsize=4096)
def _address(text: str) -> Address | None:
    """The address without its zone; an IPv4-mapped one as the IPv4 address it is. None when it is none."""
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(parsed, IPv6Address) and parsed.ipv4_mapped) or parsed


def _bare(host: str) -> str:
    """A host for comparison: lower case, without the root's dot and IPv6 brackets."""
    return host.lower().removesuffix(".").strip("[]")


def _network(item: str) -> Network | None:
    """The network or single address an item of the setting means; None when it looks like a name."""
    try:
        return ip_network(item.strip("[]"))
    except ValueError as error:
        if "/" in item or ":" in item:
            raise BadRequest(_FIELD, f"{item[:80]!r} is not a network, an address or a host name") from error
        return None


def _host_name(item: str) -> str:
    """The host name an item of the setting means, as URLs write it."""
    try:
        url = parse(f"http://{item}/")
    except BadURL as error:
        raise BadRequest(_FIELD, f"{item[:80]!r} is not a host name") from error
    host = _bare(url.hostname)
    if _address(host) is not None:
        raise BadRequest(_FIELD, f"{item[:80]!r} should be written as {host}")
    if url.href != f"http://{url.host}/" or not _HOST_NAME.fullmatch(host):
        raise BadRequest(
            _FIELD, f"{item[:80]!r} is more than a host name; ports and patterns are not supported"
        )
    return host
