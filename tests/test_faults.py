"""The fault table, held against libcurl's own list, and its words against real failures."""

import asyncio
import errno
import socket

import pycurl
import pytest

from pravda.core.evidence import Phase
from pravda.core.states import FACTS, FaultSide, Reason
from pravda.engines import lookup
from pravda.engines.faults import CODES, Broken, resolver_trouble, storage_trouble, trouble_of
from tests.looking import look
from tests.origin import HT, C, Origin, R

NEVER = {
    "other protocols": (9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 25, 29, 30, 31, 32, 34, 37, 38, 39, 46, 49, 62, 64,
                        67, 68, 69, 70, 71, 72, 73, 74, 78, 79, 84, 85, 86, 87, 88),
    "options that are never set": (22, 24, 26, 33, 36, 41, 45, 47, 48, 53, 54, 63, 66, 82, 89, 90),
    "misuse of libcurl, or parts left out of it": (4, 40, 43, 44, 57, 75, 76),
    "never leaves libcurl": (50, 51, 80, 81),
}  # fmt: skip
"""libcurl's numbers that cannot end an http or https transfer of this engine, and why."""


def broken(code: int, message: str = "", **facts: object) -> Broken:
    """A failed transfer."""
    given: dict[str, object] = {"os_errno": 0, "verify_result": 0, "through_proxy": False, "connected": False}
    return Broken(code=code, message=message, **{**given, **facts})  # type: ignore[arg-type]  # a test's shorthand


def test_every_number_of_libcurl_is_in_the_table_or_explained():
    """A new libcurl number cannot slip in unseen."""
    numbers = {
        getattr(pycurl, name)
        for name in dir(pycurl)
        if name.startswith("E_") and not name.startswith(("E_MULTI_", "E_CALL_MULTI", "E_ALREADY"))
    }
    explained = {number for group in NEVER.values() for number in group}
    assert numbers - CODES.keys() - explained == {pycurl.E_OK}
    assert explained & CODES.keys() == set()


def test_a_number_nobody_knows_is_malformed():
    """It is told with its number and a sentence of ours, and blamed on nobody's network."""
    trouble = trouble_of(broken(1234))
    assert trouble.reason is Reason.MALFORMED_RESPONSE
    assert trouble.detail == FACTS[Reason.MALFORMED_RESPONSE].sentence
    assert trouble.raw == "curl 1234: "


@pytest.mark.parametrize(
    ("code", "number", "reason"),
    [
        (7, errno.ECONNREFUSED, "connection_refused"),
        (7, errno.ETIMEDOUT, "connect_timeout"),
        (7, errno.ENETUNREACH, "address_unreachable"),
        (7, errno.EHOSTUNREACH, "address_unreachable"),
        (7, 0, "address_unreachable"),
        (7, errno.EMFILE, "resource_exhausted"),
        (6, errno.EMFILE, "resource_exhausted"),
        (35, errno.ECONNRESET, "connection_reset"),
        (35, 0, "tls_error"),
        (55, errno.EPIPE, "connection_reset"),
        (56, errno.ECONNRESET, "connection_reset"),
        (56, 0, "connection_reset"),
        (52, 0, "empty_response"),
    ],
)
def test_the_systems_number_refines_libcurls(code, number, reason):
    """errno before everything, and then libcurl's own number."""
    trouble = trouble_of(broken(code, "words", os_errno=number))
    assert trouble.reason == reason
    assert trouble.errno == (number or None)
    assert trouble.detail == (f"words ({errno.errorcode[number]})" if number else "words")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (9, "tls_certificate_expired"),
        (10, "tls_certificate_expired"),
        (23, "tls_certificate_revoked"),
        (62, "tls_certificate_hostname_mismatch"),
        (64, "tls_certificate_hostname_mismatch"),
        (0, "tls_certificate_hostname_mismatch"),
        (18, "tls_certificate_untrusted"),
        (20, "tls_certificate_untrusted"),
    ],
)
def test_openssls_number_tells_what_is_wrong_with_a_certificate(result, reason):
    """The verification result decides."""
    assert trouble_of(broken(60, "words", verify_result=result)).reason == reason


MALFORMED = Reason.MALFORMED_RESPONSE
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("reply", "code", "words", "reason"),
    [
        (b"hello\r\n\r\n", 1, "HTTP/0.9", MALFORMED),
        (R(b"99 Low"), 1, "Unsupported HTTP/1 subversion", MALFORMED),
        (b"HTTP/1.1 xyz\r\n\r\n", 1, "", MALFORMED),
        (R(b"200 OK", b"", b"no colon"), 8, "Header without colon", MALFORMED),
        (R(b"200 OK", b"", b"X: a\0b"), 8, "NUL byte in header", MALFORMED),
        (R(b"200 OK", b"ok", b"Content-Length: 3"), 8, "Invalid Content-Length", MALFORMED),
        (R(b"200 OK", b"", *[b"X: y"] * 6000), 100, "Too many response headers", Reason.HEADERS_TOO_LARGE),
        (R(b"200 OK", b"", b"X: " + b"y" * 150_000), 100, "", Reason.HEADERS_TOO_LARGE),
        (R(b"200 OK", b"ok", HT, cl=9), 18, "bytes missing", Reason.EMPTY_RESPONSE),
        (CHUNKED + b"zz\r\n", 56, "chunk hex-length", MALFORMED),
        (CHUNKED + C(b"ok", end=False), 18, "transfer closed", Reason.EMPTY_RESPONSE),
        (b"", 52, "Empty reply", Reason.EMPTY_RESPONSE),
    ],
)
def test_real_failures_say_what_the_table_expects(reply, code, words, reason):
    """The texts and numbers the table reads are those that this libcurl produces."""
    with Origin() as origin:
        origin.routes["/"] = [reply]
        trouble = look(origin.url("/")).evidence.trouble
    assert trouble is not None
    assert trouble.raw.startswith(f"curl {code}: ")
    assert words.lower() in trouble.raw.lower()
    assert trouble.reason is reason
    assert trouble.detail


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EROFS, "storage_denied"),
        (errno.EACCES, "storage_denied"),
        (errno.EIO, "storage_unavailable"),
        (errno.EMFILE, "resource_exhausted"),
        (None, "storage_unavailable"),
    ],
)
def test_trouble_with_writing_is_our_own(number, reason):
    """What could not be written aside has the system's number and is never the source's fault."""
    problem = OSError(number, "words") if number else OSError("words")
    trouble = storage_trouble(problem)
    assert (trouble.reason, trouble.phase, trouble.errno) == (reason, Phase.STORE, number)
    assert FACTS[trouble.reason].fault is FaultSide.LOCAL


@pytest.mark.parametrize(
    ("host", "error", "routed", "reason"),
    [
        ("x.example", socket.gaierror(socket.EAI_NONAME, "words"), True, "dns_not_found"),
        ("x.example", socket.gaierror(-5, "words"), True, "dns_no_address"),
        ("x.example", socket.gaierror(socket.EAI_FAIL, "words"), True, "dns_server_failure"),
        ("x.example", socket.gaierror(socket.EAI_AGAIN, "words"), True, "dns_server_failure"),
        ("x.example", socket.gaierror(socket.EAI_AGAIN, "words"), False, "local_network"),
        ("x.example", OSError(errno.EMFILE, "words"), True, "resource_exhausted"),
        ("x.example", OSError(errno.EIO, "words"), True, "dns_server_failure"),
        ("x.example", None, True, "dns_server_failure"),
        ("x.INVALID", socket.gaierror(socket.EAI_AGAIN, "words"), False, "dns_not_found"),
        ("x.onion", None, True, "dns_not_found"),
    ],
)
def test_the_resolvers_error_tells_why_there_is_no_address(host, error, routed, reason):
    """Names that never exist, names without address, servers that fail, and a machine without network."""
    trouble = resolver_trouble(host, error, routed=routed)
    assert (trouble.reason, trouble.phase) == (reason, Phase.RESOLVE)
    assert trouble.detail.startswith(f"{host}: ")


def test_a_resolver_that_answers_the_second_time_was_at_fault_the_first():
    """A name that is found when asked again failed for a moment."""
    trouble = asyncio.run(lookup.ask_resolver("localhost", 5))
    assert trouble.reason is Reason.DNS_SERVER_FAILURE


def test_asking_again_has_its_own_patience(monkeypatch):
    """A resolver that says nothing is not waited for."""
    monkeypatch.setattr(lookup, "_look_up", lambda host: asyncio.sleep(5))
    trouble = asyncio.run(lookup.ask_resolver("slow.example", 0.05))
    assert trouble.reason in (Reason.DNS_SERVER_FAILURE, Reason.LOCAL_NETWORK)


def test_a_machine_without_routes_blames_itself(monkeypatch):
    """No address can be reached because there is no way anywhere."""
    monkeypatch.setattr("pravda.engines.http.has_default_route", lambda: False)
    monkeypatch.setattr(
        "pravda.engines.transfer._Socket", _refuse_with(OSError(errno.ENETUNREACH, "Network is unreachable"))
    )
    seen = look("http://127.0.0.1:9999/")
    assert seen.outcome == ("down", "local_network")
    monkeypatch.setattr("pravda.engines.http.has_default_route", lambda: True)
    assert look("http://127.0.0.1:9999/").outcome == ("down", "address_unreachable")


def _refuse_with(problem: OSError):
    def make(*_: int) -> None:
        raise problem

    return make


def test_a_route_is_looked_for_without_sending_anything():
    """The answer is yes or no on any machine."""
    assert lookup.has_default_route() in (True, False)
