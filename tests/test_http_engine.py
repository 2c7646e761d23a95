"""Pages from the wild, served byte for byte over a real socket and looked at with the real engine."""

import gzip
import json
import time
import zlib
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from pravda.core.evidence import Ending
from pravda.core.mistake import BadRequest
from pravda.core.rules import Previous
from pravda.core.states import Cause, FaultSide
from tests.certificates import authority
from tests.looking import Look, look, looks
from tests.origin import BODY, GZ, HT, C, Origin, R, Reset, Script, Sleep, header_of

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "classify.json").read_text("utf-8")
)


@pytest.fixture
def origin():
    with Origin() as made:
        yield made


def served(origin: Origin, *reply: Any, **fields: Any) -> Look:
    """The look at a page that answers like this."""
    origin.routes["/page"] = reply
    return look(origin.url("/page"), **fields)


# bodies


def test_a_short_body_is_partial_and_what_came_is_kept(origin):
    """W-A1: 13 of 5,000 declared bytes are truncated_body, both numbers recorded."""
    seen = served(origin, R(b"200 OK", b"%PDF-1.4 half", b"Content-Type: application/pdf", cl=5000))
    assert seen.outcome == ("partial", "truncated_body")
    assert seen.failure.cause is Cause.INCOMPLETE_CONTENT
    assert seen.body == b"%PDF-1.4 half"
    content = seen.evidence.content
    assert content is not None
    assert (content.bytes, content.declared_bytes, content.ending) == (13, 5000, Ending.CUT)


def test_a_gzip_body_without_its_end_is_truncated_encoding(origin):
    """W-A2: the length matches, the coding does not end: payload whole, decoded prefix kept, partial."""
    sent = gzip.compress(BODY)[:-20]
    seen = served(origin, R(b"200 OK", sent, HT, GZ))
    assert seen.outcome == ("partial", "truncated_encoding")
    assert seen.kept["payload"] == sent
    assert seen.body
    assert BODY.startswith(seen.body)


def test_x_gzip_is_gzip(origin):
    """W-A6: the old name of the coding is decoded as well."""
    seen = served(origin, R(b"200 OK", gzip.compress(BODY), HT, b"Content-Encoding: x-gzip"))
    assert (seen.outcome, seen.body) == (("live", None), BODY)


@pytest.mark.parametrize(
    ("coding", "sent", "notes"),
    [
        (b"none", BODY, ["content_encoding_none"]),
        (b"identity", BODY, []),
        (b"deflate", zlib.compress(BODY)[2:-4], []),
        (b"deflate", zlib.compress(BODY), []),
    ],
)
def test_codings_that_are_none_and_both_kinds_of_deflate_are_read(origin, coding, sent, notes):
    """W-A8: `none`, `identity`, raw and zlib deflate all give the page; only `none` is worth a note."""
    seen = served(origin, R(b"200 OK", sent, HT, b"Content-Encoding: " + coding))
    assert (seen.outcome, seen.body, seen.notes) == (("live", None), BODY, notes)


def test_all_members_of_a_gzip_body_are_read(origin):
    """W-A11: RFC 1952 allows several members in a row."""
    sent = gzip.compress(b"<html>first ") + gzip.compress(b"second</html>")
    seen = served(origin, R(b"200 OK", sent, HT, GZ))
    assert seen.outcome == ("live", None)
    assert seen.body == b"<html>first second</html>"
    assert seen.kept["payload"] == sent


def test_a_trickle_cannot_outlast_the_total_budget(origin):
    """W-A12: bytes that keep coming slowly end with the budget, and are kept."""
    steps = [b"x", Sleep(0.1)] * 100
    seen = served(origin, R(b"200 OK", b"", HT, cl=1000), *steps, timeouts={"total": 0.8, "idle": 0.5})
    assert seen.outcome == ("partial", "body_timeout")
    assert "`total`" in (seen.evidence.trouble.detail if seen.evidence.trouble else "")
    assert 4 <= len(seen.body) <= 9
    assert seen.seconds < 1.5


def test_an_endless_stream_stops_at_the_size_limit(origin):
    """W-A13: exactly max_bytes are kept of a stream that would never end."""
    seen = served(
        origin,
        R(b"200 OK", b"", b"Content-Type: video/mp2t", cl=False),
        *[b"x" * 65536] * 1000,
        max_bytes=1024 * 1024,
    )
    assert seen.outcome == ("partial", "body_too_large")
    assert len(seen.body) == 1024 * 1024
    assert seen.evidence.content is not None
    assert seen.evidence.content.wire_bytes < 1024 * 1024 + 2 * 65536


def test_a_body_of_exactly_the_size_limit_is_whole(origin):
    """The limit itself is still allowed."""
    seen = served(origin, R(b"200 OK", BODY, HT), max_bytes=len(BODY))
    assert seen.outcome == ("live", None)


def test_many_headers_are_no_trouble(origin):
    """W-A15: 150 headers are all in the evidence."""
    seen = served(origin, R(b"200 OK", BODY, HT, *[b"X-H%d: v" % i for i in range(150)]))
    assert seen.outcome == ("live", None)
    assert sum(name.startswith("X-H") for name, _ in seen.response.headers) == 150


def test_a_huge_header_is_too_large(origin):
    """W-A15: one header of 200 KB is headers_too_large, said in words of our own where libcurl has none."""
    seen = served(origin, R(b"200 OK", BODY, HT, b"X: " + b"a" * 200_000))
    assert seen.outcome == ("down", "headers_too_large")
    assert seen.failure.cause is Cause.PROTOCOL_ERROR
    assert "libcurl" not in seen.failure.detail
    assert seen.kept["response"].startswith(b"HTTP/1.1 200 OK\r\n")


def test_conflicting_lengths_are_malformed_and_equal_ones_are_not(origin):
    """W-A18: no body is guessed from two different lengths; the same twice is one."""
    wrong = served(origin, R(b"200 OK", b"ok", b"Content-Length: 10"))
    assert wrong.outcome == ("down", "malformed_response")
    assert "body" not in wrong.kept
    right = served(origin, R(b"200 OK", b"ok", b"Content-Length: 2"))
    assert (right.outcome, right.body) == (("live", None), b"ok")


@pytest.mark.parametrize("length", [b"9" * 19, b"9" * 23, b"18446744073709551618"])
def test_a_length_beyond_all_numbers_never_makes_a_body_whole(origin, length):
    """W-A18: a length that no integer holds is not taken for absent."""
    seen = served(origin, R(b"200 OK", b"ok", HT, b"Content-Length: " + length, cl=False))
    assert seen.state.value in ("partial", "down")


def test_early_hints_are_interim(origin):
    """W-A22: 103 and then 200 is 200, and the interim block is kept."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n"
    seen = served(origin, hints + R(b"200 OK", BODY, HT))
    assert (seen.outcome, seen.response.status, seen.body) == (("live", None), 200, BODY)
    assert seen.kept["interim"] == hints


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "title"),
    [
        (
            "<meta charset=Shift_JIS><title>日本語</title>".encode("shift_jis"),
            b"text/html",
            "shift_jis",
            "日本語",
        ),
        (
            b"\xff\xfe" + "<title>café</title>".encode("utf-16-le"),
            b"text/html; charset=utf-8",
            "utf-16le",
            "café",
        ),
        ("<title>€ “x”</title>".encode("cp1252"), b"text/html; charset=ISO-8859-1", "windows-1252", "€ “x”"),
        ("<title>标题</title>".encode("gbk"), b"text/html; charset=GB2312", "gbk", "标题"),
    ],
)
def test_the_charset_is_that_of_the_encoding_standard(origin, body, content_type, charset, title):
    """W-A25: bytes stay as served; a byte order mark wins, labels mean what browsers take them for."""
    seen = served(origin, R(b"200 OK", body, b"Content-Type: " + content_type))
    assert seen.body == body
    assert seen.evidence.content is not None
    assert seen.evidence.content.charset in (charset, "gb18030")
    assert title in seen.body.decode(seen.evidence.content.charset or "")


# redirects


def test_a_circle_of_redirects_is_a_loop(origin):
    """W-B1: A, B, C, B is a redirect_loop with every hop recorded, not a missing page."""
    origin.routes.update(
        {
            "/b1": [R(b"302 Found", b"", b"Location: /b1b")],
            "/b1b": [R(b"302 Found", b"", b"Location: /b1c")],
            "/b1c": [R(b"302 Found", b"", b"Location: /b1b")],
        }
    )
    seen = look(origin.url("/b1"))
    assert seen.outcome == ("down", "redirect_loop")
    assert seen.failure.cause is Cause.REDIRECT_ERROR
    assert seen.hops == [("/b1", 302), ("/b1b", 302)]
    assert b"Location: /b1b" in seen.kept["hop-1-head"]
    assert b"Location: /b1c" in seen.kept["hop-2-head"]
    assert b"Location: /b1b" in seen.kept["response"]
    assert len(origin.log) <= 25


@pytest.mark.parametrize(
    ("headers", "outcome", "cause"),
    [
        ([b"Location: http://[bad"], ("down", "redirect_invalid"), Cause.REDIRECT_ERROR),
        ([], ("partial", "redirect_unresolved"), Cause.REDIRECT_ERROR),
        ([b"Location: "], ("partial", "redirect_unresolved"), Cause.REDIRECT_ERROR),
        ([b"Location: mailto:a@b"], ("down", "redirect_unsupported_scheme"), Cause.REDIRECT_ERROR),
    ],
)
def test_a_location_that_leads_nowhere_keeps_the_redirect(origin, headers, outcome, cause):
    """W-B2: the 302 and its body are the evidence, and each kind of bad target has its reason."""
    seen = served(origin, R(b"302 Found", b"moved", *headers))
    assert (seen.outcome, seen.failure.cause) == (outcome, cause)
    assert (seen.response.status, seen.body, seen.hops) == (302, b"moved", [])


def test_a_cookie_wall_opens_to_a_cookie_of_this_attempt_only(origin):
    """W-B4: the same URL twice is no loop while the cookies differ, and the next attempt starts without any."""
    origin.routes["/b4"] = [
        lambda request, _: (
            R(b"200 OK", BODY, HT)
            if b"seen=1" in request
            else R(b"302 Found", b"", b"Location: /b4", b"Set-Cookie: seen=1; Path=/")
        )
    ]
    for seen in looks(origin.url("/b4"), origin.url("/b4")):
        assert (seen.outcome, seen.body, seen.hops) == (("live", None), BODY, [("/b4", 302)])
    assert origin.targets() == ["/b4"] * 4


def test_a_403_that_sends_browsers_home_is_blocked(origin):
    """W-B5: the asked document decides; where its script leads is not asked for."""
    seen = served(origin, R(b"403 Forbidden", b'<script>location="/home"</script>denied', HT))
    assert seen.outcome == ("blocked", "access_denied")
    assert seen.body.endswith(b"denied")
    assert origin.targets() == ["/page"]


def test_meta_refresh_is_recorded_and_not_followed(origin):
    """W-B5: where a page would send a browser stands in the evidence."""
    seen = served(origin, R(b"200 OK", b'<meta http-equiv=refresh content="5; url=/home">' + BODY, HT))
    assert seen.evidence.client_redirects == (origin.url("/home"),)
    assert origin.targets() == ["/page"]


@pytest.mark.parametrize(
    ("location", "outcome", "fault"),
    [
        (b"file:///etc/passwd", ("down", "redirect_unsupported_scheme"), FaultSide.SOURCE),
        (b"http://169.254.169.254/", ("blocked", "unsafe_address"), FaultSide.LOCAL),
    ],
)
def test_a_redirect_to_a_file_or_the_inside_is_never_followed(origin, location, outcome, fault):
    """W-B10: the reason is named, the redirect kept, the target never contacted."""
    seen = served(origin, R(b"302 Found", b"", b"Location: " + location))
    assert (seen.outcome, seen.failure.fault) == (outcome, fault)
    assert seen.response.status == 302
    assert origin.targets() == ["/page"]


# outcomes


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (b"404 Not Found", ("gone", "not_found")),
        (b"410 Gone", ("gone", "gone")),
        (b"500 Oops", ("down", "server_error")),
        (b"451 Unavailable For Legal Reasons", ("blocked", "legal_block")),
    ],
)
def test_a_good_body_under_a_bad_status_is_not_live(origin, status, outcome):
    """W-C1: the status decides and the body is kept."""
    seen = served(origin, R(status, BODY, HT))
    assert (seen.outcome, seen.body) == (outcome, BODY)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (b"404 Not Found", ("gone", "not_found")),
        (b"500 Oops", ("down", "server_error")),
        (b"403 Forbidden", ("blocked", "access_denied")),
    ],
)
def test_an_empty_error_page_is_zero_bytes(origin, status, outcome):
    """W-C2: nothing is invented in place of an empty body."""
    seen = served(origin, R(status, b"", HT))
    assert (seen.outcome, seen.body) == (outcome, b"")
    assert seen.response.status == int(status[:3])


def test_204_is_an_answer_without_content(origin):
    """W-C3: it ends at once with the status recorded."""
    seen = served(origin, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    assert seen.outcome == ("partial", "empty_content")
    assert (seen.response.status, seen.body) == (204, b"")
    assert seen.seconds < 5


@pytest.mark.parametrize(
    ("status", "value", "outcome", "least", "most"),
    [
        (b"429 Too Many Requests", b"2", ("blocked", "rate_limited"), 2, 2),
        (b"503 Service Unavailable", b"date", ("down", "service_unavailable"), 1, 4),
        (b"503 Service Unavailable", b"999999999", ("down", "service_unavailable"), 7 * 86400, 7 * 86400),
        (b"503 Service Unavailable", b"-1", ("down", "service_unavailable"), None, None),
        (b"429 Too Many Requests", b"garbage", ("blocked", "rate_limited"), None, None),
    ],
)
def test_retry_after_is_told_in_seconds(origin, status, value, outcome, least, most):
    """W-C5: numbers and dates are read, absurd ones clamped to a week, unreadable ones ignored."""
    if value == b"date":
        value = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3)).encode()
    seen = served(origin, R(status, b"slow down", HT, b"Retry-After: " + value))
    assert seen.outcome == outcome
    wait = seen.failure.retry_after_seconds
    assert wait is None if least is None else wait is not None and least <= wait <= most


@pytest.mark.parametrize(
    "page",
    [
        b"<title>How we fixed our page not found errors</title><h1>Access denied: a history</h1>" + BODY,
        b"<title>Post</title>" + BODY + b'<script src="https://www.google.com/recaptcha/api.js"></script>',
    ],
)
def test_words_about_errors_are_no_errors(origin, page):
    """W-C7: an article on errors and a captcha in a comment form are live pages."""
    assert served(origin, R(b"200 OK", page, HT)).outcome == ("live", None)


def test_a_name_that_does_not_exist_has_no_status():
    """W-C15: no status is invented for a name without address."""
    seen = look("http://no-such-host.invalid/")
    assert seen.outcome == ("down", "dns_not_found")
    assert seen.failure.cause is Cause.DNS_FAILURE
    assert seen.evidence.response is None
    assert seen.kept == {}


def test_a_closed_port_refuses_the_connection(origin):
    """W-C15: a refused connection is a cause of its own."""
    origin.close()
    seen = look(origin.url("/"))
    assert seen.outcome == ("down", "connection_refused")
    assert seen.failure.cause is Cause.CONNECTION_FAILURE
    assert seen.evidence.response is None


PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


@pytest.mark.parametrize(
    ("headers", "warns"),
    [
        ([b"Content-Type: application/pdf"], False),
        ([b"Content-Type: application/octet-stream"], None),
        ([b"Content-Type: text/html"], True),
        ([b"Content-Type: application/pdf", b"Content-Disposition: attachment; filename=a.pdf"], False),
    ],
)
def test_a_pdf_is_a_pdf_whatever_its_header_says(origin, headers, warns):
    """W-E1: the bytes are those served, the type is what they show, a wrong header is worth a warning."""
    seen = served(origin, R(b"200 OK", PDF, *headers))
    assert (seen.outcome, seen.body) == (("live", None), PDF)
    assert seen.evidence.content is not None
    assert seen.evidence.content.media_type == "application/pdf"
    assert warns in (None, "media_type_mismatch" in seen.notes)


def test_a_page_is_asked_for_once(origin):
    """W-E4: one GET and no HEAD, so that links which work once are not burnt."""
    origin.routes["/e4"] = Script([R(b"200 OK", BODY, HT)], [R(b"410 Gone", b"", HT)])
    assert look(origin.url("/e4")).outcome == ("live", None)
    assert [request.split(b" ")[0] for request in origin.log] == [b"GET"]


# requests


@pytest.mark.parametrize(
    "target",
    [
        "/g?b=2&a=1&a=%2520&c=%E3%81%82&d=a+b&e=",
        "/a%2fb%2Fc?%zz&x=%9a",
        "/?",
        "/a//b/.%2e/;p=1?a?b",
        "/[x]|^?q='()*,",
    ],
)
def test_the_target_goes_out_as_it_stands_in_the_url(origin, target):
    """W-G1: order, escapes and their letter case are never touched on the way to the server."""
    seen = look(origin.url(target))
    assert origin.targets() == [seen.evidence.final_url.removeprefix(origin.url(""))]
    if "^" not in target and ".%2e" not in target:  # which the URL standard itself rewrites
        assert origin.targets() == [target]


def test_a_fragment_is_never_sent(origin):
    """W-G3: it stays with the URL as asked and goes nowhere else."""
    origin.routes["/home"] = [R(b"200 OK", BODY, HT)]
    seen = looks(origin.url("/home#a"), origin.url("/home#b"))
    assert origin.targets() == ["/home", "/home"]
    assert [each.evidence.final_url for each in seen] == [origin.url("/home")] * 2
    assert all(b"#" not in each.kept["request"] for each in seen)


@pytest.mark.parametrize(
    ("host", "sent"),
    [
        ("faß.de", b"xn--fa-hia.de"),
        ("xn--fx-3s9cx68e-jpnet.check-xserver.jp", b"xn--fx-3s9cx68e-jpnet.check-xserver.jp"),
        ("a_b.example", b"a_b.example"),
        ("BÜCHER.example.", b"xn--bcher-kva.example."),
    ],
)
def test_odd_host_names_are_asked_for(origin, host, sent):
    """W-G5: international, underscored and final-dotted names reach the server under the name of the URL standard."""
    origin.routes["/"] = [R(b"200 OK", BODY, HT)]
    name = sent.decode()
    seen = look(origin.url("/", host), using={"names": (f"{name}:{origin.port}:127.0.0.1",)})
    assert seen.outcome == ("live", None)
    assert header_of(origin.log[0], b"host") == sent + b":%d" % origin.port


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a+b", "xn--photosuite-4r6e", "-a-.invalid"])
def test_names_that_cannot_exist_are_not_found(host):
    """W-G5: names that no resolver takes are dns_not_found, never an exception."""
    assert look(f"http://{host}/").outcome == ("down", "dns_not_found")


def test_a_name_against_the_url_standard_is_a_mistake():
    """W-G5: what no browser takes for a host is refused at the door, naming the field."""
    with pytest.raises(BadRequest, match="url"):
        look("http://a b/")


def test_credentials_of_the_url_travel_as_a_header_and_are_kept_nowhere(origin):
    """W-G7: Basic credentials go out decoded; the password is in no artifact, evidence, trouble or repr."""
    origin.routes["/c10"] = [R(b"200 OK", BODY, HT)]
    seen = look(origin.url("/c10", "user:pa%40ss@127.0.0.1"))
    assert header_of(origin.log[0], b"authorization") == b"Basic dXNlcjpwYUBzcw=="
    assert b"Authorization: REDACTED" in seen.kept["request"]
    everything = repr(seen)
    for secret in ("pa%40ss", "pa@ss", "dXNlcjpwYUBzcw"):
        assert secret not in everything


# all cases of the classification table


def _reply(case: dict[str, Any]) -> bytes:
    try:
        phrase = HTTPStatus(case["status"]).phrase
    except ValueError:
        phrase = "Unknown"
    headers = [f"{name}: {value}".encode() for name, value in case["headers"].items()]
    return R(f"{case['status']} {phrase}".encode(), case["body"].encode(), *headers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_case_of_the_table_over_a_socket(case):
    """Served as given, under its own host name and scheme, each case gets its state and reason."""
    scheme, _, host, path = case["final_url"].split("/", 3)
    tls = authority().server(host) if scheme == "https:" else None
    rules = dict(case["rules"])
    previous = Previous(bytes=rules.pop("previous_bytes", 0), matches=rules.pop("previous_matches", None))
    with Origin(tls=tls) as origin:
        origin.routes[f"/{path}"] = [_reply(case)]
        seen = look(
            origin.url(f"/{path}", host),
            using={"names": (f"{host}:{origin.port}:127.0.0.1",), "ca_file": authority().file},
            expect=rules,
            previous=previous if previous.bytes else None,
        )
    assert seen.outcome == (case["expect"]["state"], case["expect"]["reason"])


# broken connections


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ([Reset()], "connection_reset"),
        ([b""], "empty_response"),
        ([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"], "empty_response"),
        ([b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"], "malformed_response"),
        ([b"hello world\r\n\r\n"], "malformed_response"),
        ([R(b"99 Low", b"x")], "malformed_response"),
    ],
)
def test_an_answer_that_never_became_one_is_down(origin, reply, reason):
    """Without complete headers there is no response, whatever had begun to come."""
    seen = served(origin, *reply)
    assert seen.outcome == ("down", reason)
    assert seen.evidence.response is None
    assert "request" in seen.kept


def test_a_reset_inside_the_body_keeps_what_came(origin):
    """The bytes before a reset are evidence."""
    seen = served(origin, R(b"200 OK", b"abc", HT, cl=100), Sleep(0.1), Reset())
    assert (seen.outcome, seen.body) == (("partial", "truncated_body"), b"abc")


def test_a_404_whose_body_is_cut_is_gone(origin):
    """Complete headers have said all that matters."""
    seen = served(origin, R(b"404 Not Found", b"abc", HT, cl=100))
    assert (seen.outcome, seen.body) == (("gone", "not_found"), b"abc")


def test_a_chunked_body_without_its_last_chunk_is_cut(origin):
    """The last chunk says that all has come."""
    head = b"HTTP/1.1 200 OK\r\n" + HT + b"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert served(origin, head + C(BODY)).outcome == ("live", None)
    seen = served(origin, head + C(BODY, end=False))
    assert (seen.outcome, seen.body) == (("partial", "truncated_body"), BODY)
