"""The address guard, held at the socket: what is refused is never connected to."""

import asyncio
import socket

import pycurl
import pytest

from pravda.core.addresses import AddressPolicy
from pravda.core.evidence import Ending
from pravda.core.mistake import BadRequest
from pravda.core.ports import Order
from pravda.core.request import Request, Timeouts
from pravda.core.states import FaultSide
from pravda.core.urls import BadURL, parse
from pravda.engines.exchange import Exchange
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.engines.multi import Multi
from pravda.engines.spool import Spool
from pravda.engines.transfer import Terms, Transfer
from tests.conformance import cases
from tests.looking import Clock, Look, look, looks
from tests.origin import BODY, HT, K, Origin, R

NOBODY = AddressPolicy()


@pytest.fixture
def origin():
    with Origin() as made:
        made.routes["/"] = [R(b"200 OK", BODY, HT)]
        yield made


def redirected(origin: Origin, location: str, **using: object) -> Look:
    """The look at a page of the origin that redirects there."""
    origin.routes["/from"] = [R(b"302 Found", b"moved", b"Location: " + location.encode())]
    return look(origin.url("/from"), using=using)


def test_every_conformance_url_that_leads_inside_is_refused_without_a_socket(monkeypatch):
    """Whatever the spelling or the names' answers, the request is refused and no socket is asked for."""
    opened: list[object] = []

    async def run() -> list[str]:
        judged: list[str] = []
        for case in cases("ssrf.json", "block", "dns", "whatwg-invalid"):
            if case["kind"] != "url":
                continue
            try:
                url = parse(case["url"])
            except BadURL:
                continue
            names = tuple(
                f"{name}:{url.port}:{','.join(found)}" for name, found in case.get("resolve", {}).items()
            )
            engine = HttpEngine(HttpOptions(user_agent="x", names=names), Clock())
            try:
                with pytest.raises(BadRequest, match="url"):
                    await engine.observe(order(case["url"]))
                judged.append(case["url"])
            finally:
                await engine.close()
        return judged

    monkeypatch.setattr("pravda.engines.transfer._Socket", lambda *given: opened.append(given))
    assert len(asyncio.run(run())) >= 40
    assert opened == []


def order(url: str) -> Order:
    """A short order for a page."""
    return Order(request=Request.parse(url, timeouts={"connect": 1}), budget=2)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"]
)
def test_loopback_is_refused_by_default(origin, host):
    """However it is written, this machine is not captured unless its owner says so."""
    with pytest.raises(BadRequest):
        look(origin.url("/", host), using={"policy": NOBODY})
    assert origin.connections == 0


def test_a_name_that_leads_inside_is_refused(origin):
    """The address decides, not the name."""
    names = (f"harmless.example:{origin.port}:127.0.0.1",)
    with pytest.raises(BadRequest, match=r"127\.0\.0\.1"):
        look(origin.url("/", "harmless.example"), using={"policy": NOBODY, "names": names})
    assert origin.connections == 0


def test_an_ipv6_form_of_an_inside_address_is_refused_at_the_socket(origin):
    """A name may also answer with an address that embeds a private one."""
    for address in ("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[::1]", "[fe80::1]", "[fd00::1]"):
        names = (f"harmless.example:{origin.port}:{address}",)
        with pytest.raises(BadRequest):
            look(origin.url("/", "harmless.example"), using={"policy": NOBODY, "names": names})
    assert origin.connections == 0


def test_of_several_addresses_only_the_allowed_are_tried(origin):
    """A name with a refused and an allowed address is captured from the allowed one."""
    with Origin(address="127.0.0.2", port=origin.port) as inside:
        names = (f"mixed.example:{origin.port}:127.0.0.2,127.0.0.1",)
        using = {"policy": AddressPolicy.parse("127.0.0.1"), "names": names}
        seen = look(origin.url("/", "mixed.example"), using=using)
        assert seen.outcome == ("live", None)
        assert (origin.connections, inside.connections) == (1, 0)


def test_when_the_allowed_address_does_not_answer_that_is_the_fault(origin):
    """A refused address beside it neither is tried nor hides what happened."""
    with Origin(address="127.0.0.2", port=origin.port) as inside:
        origin.close()
        names = (f"mixed.example:{origin.port}:127.0.0.2,127.0.0.1",)
        using = {"policy": AddressPolicy.parse("127.0.0.1"), "names": names}
        seen = look(origin.url("/", "mixed.example"), using=using)
        assert seen.outcome == ("down", "connection_refused")
        assert inside.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.2", "[::ffff:127.0.0.2]", "inside.example", "0x7f000002"])
def test_a_redirect_inside_is_blocked_and_the_target_never_contacted(origin, host):
    """By literal or by name, it is unsafe_address, our own refusal, and the redirect is kept."""
    with Origin(address="127.0.0.2") as inside:
        seen = redirected(
            origin,
            inside.url("/", host),
            policy=AddressPolicy.parse("127.0.0.1"),
            names=(f"inside.example:{inside.port}:127.0.0.2",),
        )
        assert seen.outcome == ("blocked", "unsafe_address")
        assert seen.failure.fault is FaultSide.LOCAL
        assert inside.connections == 0
    assert b"Location: http://" in seen.kept.get("hop-1-head", b"") + seen.kept.get("response", b"")


def test_a_name_that_turns_inside_between_hops_is_refused_again(origin):
    """Each hop's address is judged anew: a rebound name gets nowhere."""
    with Origin(address="127.0.0.2") as inside:
        names = (f"rebind.example:{origin.port}:127.0.0.1", f"rebind.example:{inside.port}:127.0.0.2")
        origin.routes["/from"] = [
            R(b"302 Found", b"", b"Location: " + inside.url("/", "rebind.example").encode())
        ]
        using = {"policy": AddressPolicy.parse("127.0.0.1"), "names": names}
        seen = look(origin.url("/from", "rebind.example"), using=using)
        assert seen.outcome == ("blocked", "unsafe_address")
        assert inside.connections == 0


@pytest.mark.parametrize("port", [22, 25, 6000])
def test_a_redirect_to_a_refused_port_is_blocked(origin, port):
    """Ports that belong to other protocols are never spoken to."""
    seen = redirected(origin, f"http://127.0.0.1:{port}/")
    assert seen.outcome == ("blocked", "unsafe_port")
    assert seen.failure.fault is FaultSide.LOCAL
    assert seen.response.status == 302


def test_an_asked_port_of_another_protocol_is_a_mistake():
    """Asked for directly it is refused as a bad request."""
    with pytest.raises(BadRequest):
        look("http://127.0.0.1:25/")


def test_networks_and_names_can_be_allowed(origin):
    """The owner of the machine may let networks, addresses and host names through."""
    for policy in ("127.0.0.0/8", "127.0.0.1"):
        assert look(origin.url("/"), using={"policy": AddressPolicy.parse(policy)}).outcome == ("live", None)
    using = {
        "policy": AddressPolicy.parse("inside.example"),
        "names": (f"inside.example:{origin.port}:127.0.0.1",),
    }
    assert look(origin.url("/", "inside.example"), using=using).outcome == ("live", None)


def test_ipv6_loopback_can_be_allowed():
    """The brackets of the URL are no part of the address."""
    if not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    with Origin(address="::1") as origin:
        origin.routes["/"] = [R(b"200 OK", BODY, HT)]
        seen = look(origin.url("/"), using={"policy": AddressPolicy.parse("::1")}, cookies={"a": "b"})
        assert seen.outcome == ("live", None)
        assert seen.response.remote_address == "::1"
        assert b"Cookie: a=b" in origin.log[0]


def test_a_typed_host_is_allowed_and_nothing_it_redirects_to(origin):
    """What a person typed is let through by that very name; another name for the same address is not."""
    policy = NOBODY.with_host("127.0.0.1")
    assert look(origin.url("/"), using={"policy": policy}).outcome == ("live", None)
    names = (f"other.example:{origin.port}:127.0.0.1",)
    seen = redirected(origin, origin.url("/", "other.example"), policy=policy, names=names)
    assert seen.outcome == ("blocked", "unsafe_address")
    assert origin.targets() == ["/", "/from"]


def test_an_open_connection_is_judged_again_under_another_permission():
    """A connection kept for reuse is not used where its address is refused."""
    with Origin(keep_alive=True) as origin:
        origin.routes["/"] = [K(BODY, HT)]

        async def run() -> list[Exchange]:
            multi, handle = Multi(10), pycurl.Curl()
            exchanges = []
            for policy in (AddressPolicy.parse("127.0.0.1"), NOBODY):
                exchange = Exchange(url=origin.url("/"))
                handle.setopt(pycurl.URL, exchange.url)
                terms = Terms(
                    host="127.0.0.1",
                    policy=policy,
                    timeouts=Timeouts(),
                    deadline=multi.loop.time() + 5,
                    max_bytes=100_000,
                    spool=Spool,
                    now=Clock().now,
                )
                await Transfer(multi, handle, exchange, terms).run()
                exchanges.append(exchange)
            await multi.close()
            return exchanges

        first, second = asyncio.run(run())
        assert first.trouble is None
        assert (second.head, second.refused, second.ending) == (None, ("127.0.0.1",), Ending.CUT)
        assert second.trouble is not None
        assert second.trouble.reason == "unsafe_address"
        assert (origin.connections, len(origin.log)) == (1, 1)


def test_the_environment_cannot_lead_around_the_guard(origin, monkeypatch):
    """Proxies of the environment are not asked, for they would connect to what is refused here."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert [seen.outcome for seen in looks(origin.url("/"))] == [("live", None)]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
