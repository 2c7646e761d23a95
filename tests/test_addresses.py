from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pravda.core.addresses import AddressPolicy, is_public, url_problem
from pravda.core.mistake import BadRequest
from pravda.core.urls import BadURL, parse
from tests.conformance import cases

NOTHING = AddressPolicy()


def would_fetch(url, names, policy=NOTHING):
    """Whether a URL is fetched when names resolve as given: every address of a name must be allowed."""
    try:
        parsed = parse(url)
    except BadURL:
        return False
    if url_problem(parsed, policy) is not None:
        return False
    try:
        addresses = [str(ip_address(parsed.hostname))]
    except ValueError:
        addresses = names.get(parsed.hostname, [])
    return bool(addresses) and all(policy.allows(address, parsed.hostname) for address in addresses)


def test_every_conformance_address_is_judged_right():
    """Addresses inside, in whatever form, are refused; public ones are allowed."""
    wrong = [
        case["addr"]
        for case in cases("ssrf.json", "block", "block-embed", "allow")
        if case["kind"] == "ip" and is_public(case["addr"]) != case["allowed"]
    ]
    assert wrong == []


def test_every_conformance_url_is_judged_right():
    """URLs that reach inside by any spelling, name or mixed answer are refused; public ones are allowed."""
    wrong = [
        case["url"]
        for case in cases("ssrf.json")
        if case["kind"] == "url" and would_fetch(case["url"], case.get("resolve", {})) != case["allowed"]
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.88.99.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::7f00:1",
        "::ffff:0:7f00:1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::808:808",
        "2001:0:808:808::80ff:fffe",
        "2001:0:a00:1::f7f7:f7f7",
        "2001:2::1",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "4000::1",
        "127.1",
        "0177.0.0.1",
        "localhost",
        "",
        "%",
        "1" * 100_000,
    ],
)
def test_addresses_that_are_not_plainly_public(address):
    """Private, local, reserved and embedded forms of them, and everything that is no address, are refused."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "2606:4700:4700::1111",
        "2606:4700:4700::1111%eth0",
        "::ffff:8.8.8.8",
        "::808:808",
        "2002:808:808::1",
        "64:ff9b::808:808",
        "2001:0:808:808::f7f7:f7f7",
        "2001:200::1",
    ],
)
def test_addresses_that_are_public(address):
    """Public addresses and the forms that carry a public IPv4 address are allowed."""
    assert is_public(address)


@given(st.one_of(st.ip_addresses(), st.integers(0, 2**32 - 1).map(IPv4Address)))
@example(IPv4Address("192.0.0.9"))
@example(IPv6Address("2001:20::1"))
def test_nothing_is_public_that_the_standard_library_calls_private(address):
    """An ordinary address is never allowed where the interpreter's own registry says it is not global."""
    carries_ipv4 = address.version == 6 and (address.sixtofour or address.teredo or int(address) >> 32 == 0)
    if is_public(str(address)) and not carries_ipv4:
        assert address.is_global
        assert not address.is_multicast


def test_a_setting_allows_networks_addresses_and_names():
    """The setting's three kinds of items each open what they name and nothing else."""
    policy = AddressPolicy.parse("127.0.0.0/8, 10.1.2.3 [fd00::1]\nfd01::/16,,Intranet.Example. ")
    assert policy.networks == tuple(map(ip_network, ("127.0.0.0/8", "10.1.2.3", "fd00::1", "fd01::/16")))
    assert policy.hosts == {"intranet.example"}
    assert policy.allows("127.9.9.9", "x")
    assert policy.allows("::ffff:127.0.0.1", "x")
    assert policy.allows("10.1.2.3", "x")
    assert policy.allows("fd01::5", "x")
    assert policy.allows("10.0.0.1", "INTRANET.example.")
    assert policy.allows("8.8.8.8", "x")
    assert not policy.allows("10.1.2.4", "x")
    assert not policy.allows("10.0.0.1", "sub.intranet.example")
    assert not policy.allows("not an address", "x")


def test_an_empty_setting_allows_the_public_internet_only():
    """No items, no exception."""
    assert AddressPolicy.parse(" , ") == NOTHING
    assert NOTHING.allows("8.8.8.8", "x")
    assert not NOTHING.allows("10.0.0.1", "x")


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "::1::",
        "localhost:8080",
        "*.example",
        "user@example",
        "a?b",
        "0x7f.1",
        "http://a/",
        "[bad",
        "é%",
        "x" * 100_000,
    ],
)
def test_a_mistake_in_the_setting_is_told(text):
    """An item that is neither network, address nor host name is the operator's mistake, in short words."""
    with pytest.raises(BadRequest) as caught:
        AddressPolicy.parse(f"127.0.0.1 {text}")
    assert caught.value.field == "allow_addresses"
    assert len(str(caught.value)) < 200


def test_an_international_name_is_compared_as_urls_write_it():
    """A name in the setting may be written in its own letters."""
    policy = AddressPolicy.parse("bücher.example")
    assert policy.allows("10.0.0.1", parse("http://BÜCHER.example/").hostname)


def test_a_host_that_the_user_typed_is_allowed():
    """The host given on a command line is allowed by name or address, and the first policy is unchanged."""
    policy = NOTHING.with_host("[::1]").with_host("Dev.Local.")
    assert policy.hosts == {"::1", "dev.local"}
    assert NOTHING.hosts == frozenset()
    assert url_problem(parse("http://[::1]:8000/"), policy) is None
    assert policy.allows("10.0.0.1", "dev.local")


@pytest.mark.parametrize(
    ("url", "allowed", "problem"),
    [
        ("http://example.com/", "", None),
        ("http://8.8.8.8/", "", None),
        ("http://[2606:4700:4700::1111]/", "", None),
        ("http://127.0.0.1/", "", "unsafe_address"),
        ("http://0/", "", "unsafe_address"),
        ("http://0x7f.1/", "", "unsafe_address"),
        ("http://[::ffff:127.0.0.1]/", "", "unsafe_address"),
        ("http://localhost/", "", "unsafe_address"),
        ("http://LOCALHOST./", "", "unsafe_address"),
        ("http://a.localhost/", "", "unsafe_address"),
        ("http://notlocalhost/", "", None),
        ("http://127.0.0.1/", "127.0.0.0/8", None),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.0/8", None),
        ("http://localhost/", "127.0.0.0/8", None),
        ("http://localhost/", "::1", None),
        ("http://localhost/", "localhost", None),
        ("http://a.localhost/", "localhost", "unsafe_address"),
        ("http://10.0.0.1/", "127.0.0.0/8", "unsafe_address"),
        ("http://example.com:25/", "", "unsafe_port"),
        ("http://127.0.0.1:22/", "127.0.0.1", "unsafe_port"),
    ],
)
def test_what_a_url_shows_by_itself(url, allowed, problem):
    """An address, a loopback name or a refused port in a URL is judged before anything is resolved."""
    assert url_problem(parse(url), AddressPolicy.parse(allowed)) == problem


@given(st.text(max_size=60))
def test_any_text_is_judged(text):
    """No text raises anything but BadRequest."""
    is_public(text)
    try:
        AddressPolicy.parse(text)
    except BadRequest:
        return
