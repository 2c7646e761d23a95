"""Secure connections: each fault of a certificate has its own reason, and the facts are kept."""

import asyncio
import ssl

import pytest

from pravda.core.request import TlsMode
from pravda.core.states import Cause
from pravda.engines.tls import Handshakes, Secured
from tests.certificates import authority
from tests.looking import Look, engine, look, look_with, looks
from tests.origin import BODY, HT, K, Origin, R

HOST = "secure.example"


def served(context: ssl.SSLContext, host: str = HOST, **fields: object) -> Look:
    """The look at a good page behind this TLS context, with our own authority trusted."""
    with Origin(tls=context) as origin:
        origin.routes["/"] = [R(b"200 OK", BODY, HT)]
        url = f"https://{host}:{origin.port}/"
        return look(url, using=using(origin, host), **fields)


def using(origin: Origin, *hosts: str) -> dict[str, object]:
    """Engine options that find the origin under these names and trust our authority."""
    names = tuple(f"{host}:{origin.port}:127.0.0.1" for host in hosts if not host[0].isdigit())
    return {"ca_file": authority().file, "names": names}


def test_a_good_certificate_is_live_and_its_facts_are_kept():
    """Version, cipher and the chain are part of the evidence."""
    seen = served(authority().server(HOST))
    assert (seen.outcome, seen.body) == (("live", None), BODY)
    tls = seen.response.tls
    assert tls is not None
    assert tls.version == "TLSv1.3"
    assert tls.cipher
    assert tls.cipher.startswith("TLS_")
    assert (tls.verified, tls.problem) == (True, None)
    assert seen.kept["certificates"].startswith(b"-----BEGIN CERTIFICATE-----")
    assert seen.evidence.timings.tls_ms is not None


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (lambda: authority().server(HOST, start=-3, end=-1), "tls_certificate_expired"),
        (lambda: authority().server(HOST, start=1, end=2), "tls_certificate_expired"),
        (lambda: authority().server(HOST, self_signed=True), "tls_certificate_untrusted"),
        (lambda: authority("stranger").server(HOST), "tls_certificate_untrusted"),
        (lambda: authority().server("other.example"), "tls_certificate_hostname_mismatch"),
    ],
    ids=["expired", "not yet valid", "self-signed", "unknown issuer", "wrong host"],
)
def test_each_fault_of_a_certificate_has_its_reason(context, reason):
    """W-H1: the page is down, with the fault named and nothing of the page kept."""
    seen = served(context())
    assert seen.outcome == ("down", reason)
    assert seen.failure.cause is Cause.TLS_FAILURE
    assert seen.failure.phase == "tls"
    assert seen.evidence.response is None


def test_a_certificate_for_another_address_is_a_mismatch():
    """An address in the URL must stand in the certificate."""
    assert served(authority().server("127.0.0.2"), "127.0.0.1").outcome == (
        "down",
        "tls_certificate_hostname_mismatch",
    )
    assert served(authority().server("127.0.0.1"), "127.0.0.1").outcome == ("live", None)


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        (lambda: authority().server(HOST, start=-3, end=-1), "expired"),
        (lambda: authority().server(HOST, start=1, end=2), "not yet valid"),
        (lambda: authority().server(HOST, self_signed=True), "self-signed"),
        (lambda: authority("stranger").server(HOST), "unable to get local issuer"),
        (lambda: authority().server("other.example"), HOST),
    ],
)
def test_insecure_keeps_the_page_and_says_what_is_wrong(context, problem):
    """W-H1: the page is kept, and marked with what verification says against the certificate."""
    seen = served(context(), tls="insecure")
    assert (seen.outcome, seen.body) == (("live", None), BODY)
    tls = seen.response.tls
    assert tls is not None
    assert not tls.verified
    assert problem in (tls.problem or "")
    assert "tls_not_verified" in seen.notes


def test_insecure_does_not_belittle_a_good_certificate():
    """A certificate against which nothing is to be said is verified, whatever was allowed."""
    seen = served(authority().server(HOST), tls="insecure")
    assert seen.response.tls is not None
    assert (seen.response.tls.verified, seen.response.tls.problem) == (True, None)
    assert seen.notes == []


def test_an_unverified_connection_is_never_reused_for_a_verified_capture():
    """Neither a pooled connection nor a resumed session carries trust over."""
    with Origin(tls=authority("stranger").server(HOST), keep_alive=True) as origin:
        origin.routes["/"] = [K(BODY, HT)]
        url = f"https://{HOST}:{origin.port}/"

        async def run() -> list[tuple[str, str | None]]:
            async with engine(**using(origin, HOST)) as made:
                modes = (TlsMode.INSECURE, TlsMode.VERIFY, TlsMode.INSECURE, TlsMode.VERIFY)
                return [(await look_with(made, url, tls=mode.value)).outcome for mode in modes]

        bad, good = ("down", "tls_certificate_untrusted"), ("live", None)
        assert asyncio.run(run()) == [good, bad, good, bad]


@pytest.mark.parametrize("mode", ["verify", "insecure"])
def test_a_reused_connection_has_its_facts_too(mode):
    """Version, cipher, chain and problem stand with every exchange of a connection, also redirected ones."""
    context = authority().server(HOST, self_signed=mode == "insecure")
    with Origin(tls=context, keep_alive=True) as origin:
        origin.routes["/"] = [K(b"", b"Location: /next", status=b"302 Found")]
        origin.routes["/next"] = [K(BODY, HT)]
        url = f"https://{HOST}:{origin.port}/"
        seen = looks(url, url, using=using(origin, HOST), tls=mode)
        assert len(origin.log) == 4
        assert origin.connections == (
            5 if mode == "insecure" else 1
        )  # a greeting of its own asks what is wrong
    assert seen[0].response.tls == seen[1].response.tls
    tls = seen[1].response.tls
    assert tls is not None
    assert tls.version == "TLSv1.3"
    assert ("self-signed" in (tls.problem or "")) is (mode == "insecure")
    assert {each.kept["certificates"] for each in seen} == {seen[0].kept["hop-1-certificates"]}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_client_certificate_blocks(version):
    """Whatever the TLS version words it as, it is client_certificate_required and not our fault to mend."""
    context = authority().server(HOST)
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority().file)
    seen = served(context)
    assert seen.outcome == ("blocked", "client_certificate_required")
    assert seen.evidence.response is None


def test_a_server_that_takes_a_client_certificate_or_none_is_live():
    """Being asked is not being refused."""
    context = authority().server(HOST)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(authority().file)
    assert served(context).outcome == ("live", None)


def test_a_plain_http_port_speaks_no_tls():
    """An answer in clear to a TLS greeting is tls_error."""
    with Origin(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as origin:
        seen = look(f"https://127.0.0.1:{origin.port}/")
    assert seen.outcome == ("down", "tls_error")


def test_a_tls_port_asked_in_clear_is_no_http():
    """A TLS alert is no HTTP answer."""
    with Origin(tls=authority().server(HOST)) as origin:
        seen = look(f"http://127.0.0.1:{origin.port}/")
    assert seen.state.value == "down"
    assert seen.reason in ("malformed_response", "empty_response", "connection_reset")


def test_protocols_without_a_common_version_are_a_tls_error():
    """A server that only speaks what this client no longer does."""
    context = authority().server(HOST)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("NULL:@SECLEVEL=0")
    assert served(context).outcome == ("down", "tls_error")


def test_only_so_many_connections_are_remembered():
    """The memory of handshakes is bounded, and forgets what was used longest ago."""
    facts = Secured(version="TLSv1.3", cipher="x", certificates=b"")
    known = Handshakes(2)
    known.remember(1, facts)
    known.remember(2, facts)
    assert known.of(1) is facts
    known.remember(3, facts)
    assert (known.of(1), known.of(2), known.of(3)) == (facts, None, facts)
