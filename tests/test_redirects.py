"""What goes along when a redirect leads on: cookies, credentials, methods, bodies, validators."""

import asyncio

import pytest

from pravda.core.evidence import Phase, Trouble, Validators
from pravda.core.ports import Gate, Held, Order
from pravda.core.request import Request
from pravda.core.states import Reason
from pravda.core.urls import URL
from tests.certificates import authority
from tests.looking import Look, engine, laid_out, look, looks
from tests.origin import BODY, HT, Origin, R, header_of

SECRETS = {"Authorization": "Bearer hush-hush", "X-Api-Key": "hush-hush", "X-Session-Token": "hush-hush"}


@pytest.fixture
def origin():
    with Origin() as made:
        made.routes["/end"] = [R(b"200 OK", BODY, HT)]
        yield made


@pytest.fixture
def other():
    with Origin() as made:
        made.routes["/end"] = [R(b"200 OK", BODY, HT)]
        yield made


def to(location: str, *headers: bytes, status: bytes = b"302 Found") -> list[bytes]:
    """A redirect."""
    return [R(status, b"", b"Location: " + location.encode("latin-1"), *headers)]


def sent(origin: Origin, number: int, name: bytes) -> bytes | None:
    """A header of the request with that number."""
    return header_of(origin.log[number], name)


# cookies


def test_cookies_set_on_the_way_come_back_where_they_belong(origin):
    """Path and host decide, as in a browser."""
    origin.routes["/a"] = to("/deep/b", b"Set-Cookie: all=1; Path=/", b"Set-Cookie: deep=2; Path=/deep")
    origin.routes["/deep/b"] = to("/end")
    look(origin.url("/a"))
    assert sent(origin, 0, b"cookie") is None
    assert sorted((sent(origin, 1, b"cookie") or b"").split(b"; ")) == [b"all=1", b"deep=2"]
    assert sent(origin, 2, b"cookie") == b"all=1"


def test_cookies_of_one_host_are_not_sent_to_another(origin):
    """Neither those given nor those set on the way."""
    names = tuple(f"{host}.example:{origin.port}:127.0.0.1" for host in ("one", "two"))
    origin.routes["/a"] = to(origin.url("/end", "two.example"), b"Set-Cookie: way=1")
    look(origin.url("/a", "one.example"), using={"names": names}, cookies={"given": "x"})
    assert sent(origin, 0, b"cookie") == b"given=x"
    assert sent(origin, 1, b"cookie") is None


def test_a_cookie_for_the_whole_domain_reaches_its_hosts_but_not_a_public_suffix(origin):
    """Domain cookies go to sub-domains; one for `com` is refused."""
    names = tuple(f"{host}:{origin.port}:127.0.0.1" for host in ("www.site.com", "img.site.com"))
    origin.routes["/a"] = to(
        origin.url("/end", "img.site.com"),
        b"Set-Cookie: wide=1; Domain=site.com",
        b"Set-Cookie: all=1; Domain=com",
    )
    look(origin.url("/a", "www.site.com"), using={"names": names})
    assert sent(origin, 1, b"cookie") == b"wide=1"


def test_given_cookies_live_for_one_attempt(origin):
    """The next attempt on the same engine has none of them; an empty value is a value."""
    look(origin.url("/end"), cookies={"a": "1", "empty": ""})
    assert sorted((sent(origin, 0, b"cookie") or b"").split(b"; ")) == [b"a=1", b"empty="]
    origin.routes["/set"] = [R(b"200 OK", BODY, HT, b"Set-Cookie: kept=1")]
    looks(origin.url("/set"), origin.url("/end"))
    assert sent(origin, 2, b"cookie") is None


def test_a_cookie_header_is_a_cookie_like_any_other(origin, other):
    """It is not carried to another origin as a header would be."""
    names = (f"two.example:{other.port}:127.0.0.1",)
    origin.routes["/a"] = to(other.url("/end", "two.example"))
    look(origin.url("/a"), using={"names": names}, headers={"Cookie": "a=1; b=2"})
    assert sorted((sent(origin, 0, b"cookie") or b"").split(b"; ")) == [b"a=1", b"b=2"]
    assert sent(other, 0, b"cookie") is None


def test_cookies_given_to_a_secure_page_stay_on_secure_pages(origin):
    """A redirect to plain http on the same host takes none of them along."""
    host = "site.example"
    with Origin(tls=authority().server(host)) as secure:
        names = tuple(f"{host}:{each.port}:127.0.0.1" for each in (origin, secure))
        secure.routes["/a"] = to(origin.url("/end", host), b"Set-Cookie: way=1; Secure")
        using = {"ca_file": authority().file, "names": names}
        look(secure.url("/a", host), using=using, cookies={"given": "x"})
        assert sent(secure, 0, b"cookie") == b"given=x"
    assert sent(origin, 0, b"cookie") is None


# credentials


def test_secret_headers_do_not_cross_origins(origin, other):
    """Whatever names itself a secret stays with the asked origin; the rest goes along."""
    origin.routes["/a"] = to("/b")
    origin.routes["/b"] = to(other.url("/end"))
    seen = look(origin.url("/a"), headers={**SECRETS, "Accept-Language": "de"})
    for name in SECRETS:
        assert sent(origin, 1, name.lower().encode()) is not None
        assert sent(other, 0, name.lower().encode()) is None
    assert sent(other, 0, b"accept-language") == b"de"
    assert "hush-hush" not in repr(seen)


def test_credentials_of_the_url_do_not_cross_origins(origin, other):
    """They go to the asked origin alone, relative redirects included."""
    origin.routes["/a"] = to("/b")
    origin.routes["/b"] = to(other.url("/end"))
    seen = look(origin.url("/a", "user:hush-hush@127.0.0.1"))
    assert (
        sent(origin, 0, b"authorization")
        == sent(origin, 1, b"authorization")
        == b"Basic dXNlcjpodXNoLWh1c2g="
    )
    assert sent(other, 0, b"authorization") is None
    assert "hush-hush" not in repr(seen)
    assert "dXNlcjpodXNoLWh1c2g" not in repr(seen)


def test_credentials_in_a_location_are_used_and_never_kept(origin, other):
    """They are the server's, meant for that hop, and a secret all the same."""
    origin.routes["/a"] = to(other.url("/end", "user:hush-hush@127.0.0.1"))
    seen = look(origin.url("/a"))
    assert sent(other, 0, b"authorization") == b"Basic dXNlcjpodXNoLWh1c2g="
    assert seen.evidence.final_url == other.url("/end")
    assert "hush-hush" not in repr(seen)


def test_secrets_of_answers_are_taken_out_of_what_is_kept(origin):
    """Cookie values and credentials stand in no head and no header of the evidence."""
    origin.routes["/a"] = to("/b", b"Set-Cookie: id=hush-hush; Path=/", b"X: y")
    origin.routes["/b"] = [R(b"200 OK", BODY, HT, b"Set-Cookie: id2=hush-hush; HttpOnly")]
    seen = look(origin.url("/a"), cookies={"mine": "hush-hush"})
    assert "hush-hush" not in repr(seen)
    assert b"Set-Cookie: id=REDACTED; Path=/\r\nX: y\r\n" in seen.kept["hop-1-head"]
    assert ("Set-Cookie", "id2=REDACTED; HttpOnly") in seen.response.headers
    assert {artifact.name for artifact in seen.evidence.artifacts if artifact.redacted} == {
        "hop-1-request",
        "hop-1-head",
        "request",
        "response",
    }


def test_secrets_are_out_of_the_evidence_of_failures_too(origin):
    """Troubles repeat nothing of a URL's password, also where a target cannot be read."""
    for location in ("http://u:hush-hush@[bad", "ftp://u:hush-hush@host/", "http://u:hush-hush@10.0.0.1/"):
        origin.routes["/a"] = to(location)
        assert "hush-hush" not in repr(look(origin.url("/a", "me:hush-hush@127.0.0.1")))
    assert "hush-hush" not in repr(look("http://me:hush-hush@nowhere.invalid/"))


# methods and bodies


@pytest.mark.parametrize(
    ("status", "method", "then", "keeps_body"),
    [
        (b"301 Moved", "POST", b"GET", False),
        (b"302 Found", "POST", b"GET", False),
        (b"303 See Other", "POST", b"GET", False),
        (b"307 Temporary", "POST", b"POST", True),
        (b"308 Permanent", "POST", b"POST", True),
        (b"301 Moved", "PUT", b"PUT", True),
        (b"303 See Other", "PUT", b"GET", False),
        (b"302 Found", "QUERY", b"QUERY", True),
    ],
)
def test_a_redirect_changes_the_method_as_the_rfc_says(origin, status, method, then, keeps_body):
    """RFC 9110 §15.4: with the method goes the body, and with the body the headers that describe it."""
    origin.routes["/a"] = to("/end", status=status)
    seen = look(
        origin.url("/a"), method=method, body=b"\x00bin\xff", headers={"Content-Type": "application/x-own"}
    )
    assert seen.outcome == ("live", None)
    assert origin.log[0].startswith(method.encode() + b" /a ")
    assert origin.log[0].endswith(b"\r\n\r\n\x00bin\xff")
    assert origin.log[1].startswith(then + b" /end ")
    assert origin.log[1].endswith(b"\r\n\r\n\x00bin\xff") is keeps_body
    assert sent(origin, 1, b"content-type") == (b"application/x-own" if keeps_body else None)
    assert sent(origin, 1, b"content-length") == (b"5" if keeps_body else None)
    assert [seen.kept["hop-1-request"], seen.kept["request"]] == origin.log


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
def test_the_request_is_recorded_exactly_as_sent(origin, method):
    """Every method, with odd headers, byte for byte."""
    body = None if method == "GET" else "a=1&b=ü"
    headers = [["X-Odd", "é"], ["X-Empty", ""], ["X-Twice", "1"], ["X-Twice", "2"], ["Accept", "text/csv"]]
    seen = look(origin.url("/end"), method=method, body=body, headers=headers)
    assert seen.kept["request"] == origin.log[0]
    assert b"\r\nX-Odd: \xe9\r\n" in origin.log[0]
    assert b"\r\nX-Twice: 1\r\nX-Twice: 2\r\n" in origin.log[0]
    assert b"\r\nX-Empty:\r\n" in origin.log[0]
    assert origin.log[0].lower().count(b"\r\naccept:") == 1
    form = b"application/x-www-form-urlencoded" if method == "POST" else None
    assert sent(origin, 0, b"content-type") == form


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_method_may_come_without_a_body(origin, method):
    """A POST or PUT says that it has none."""
    look(origin.url("/end"), method=method)
    assert origin.log[0].endswith(b"\r\n\r\n")
    assert sent(origin, 0, b"content-length") == (None if method == "DELETE" else b"0")


# where a redirect leads


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("end", "/dir/end"),
        ("../end", "/end"),
        ("?q=1", "/dir/from?q=1"),
        ("//127.0.0.1:{port}/end", "/end"),
        ("/end#part", "/end"),
        ("/\xfc", "/%C3%BC"),
        ("/\xc3\xbc", "/%C3%BC"),
        ("/a%2fb", "/a%2fb"),
        ("  /end\t", "/end"),
        ("/e\tnd", "/end"),
        ("http:/end", "/end"),
        ("/a b", "/a%20b"),
    ],
)
def test_locations_are_resolved_as_browsers_do(origin, location, target):
    """Relative, without scheme, with fragment, in UTF-8 or latin-1, with stray white space."""
    origin.routes["/dir/from"] = to(location.format(port=origin.port))
    look(origin.url("/dir/from"))
    assert origin.targets()[1] == target


@pytest.mark.parametrize("status", [300, 304, 305, 306, 310])
def test_other_3xx_are_answers(origin, status):
    """Only 301, 302, 303, 307 and 308 are followed."""
    origin.routes["/a"] = to("/end", status=b"%d X" % status)
    seen = look(origin.url("/a"))
    assert seen.state.value == "partial"
    assert (seen.response.status, len(origin.log)) == (status, 1)


def test_two_different_locations_are_no_answer(origin):
    """Nobody can say which one is meant, and browsers refuse to choose as well."""
    origin.routes["/a"] = [R(b"302 Found", b"", b"Location: /end", b"Location: /other")]
    assert look(origin.url("/a")).outcome == ("down", "malformed_response")
    assert len(origin.log) == 1


def test_every_hop_is_kept(origin):
    """Heads, bodies and requests of all hops are evidence, coded payloads included."""
    origin.routes["/a"] = [R(b"301 Moved", b"<a>moved</a>", b"Location: /b", HT)]
    origin.routes["/b"] = [
        R(
            b"302 Found",
            b"\x78\x9c\x4b\x04\x00\x00\x62\x00\x62",
            b"Location: /end",
            b"Content-Encoding: deflate",
        )
    ]
    seen = look(origin.url("/a"))
    assert seen.hops == [("/a", 301), ("/b", 302)]
    assert seen.kept["hop-1-body"] == b"<a>moved</a>"
    assert (seen.kept["hop-2-body"], len(seen.kept["hop-2-payload"])) == (b"a", 9)
    assert seen.kept["hop-2-head"].startswith(b"HTTP/1.1 302 Found\r\n")
    assert seen.kept["hop-2-request"].startswith(b"GET /b ")
    assert seen.body == BODY


# validators


def conditional(origin: Origin, path: str, held_path: str, validators: Validators) -> Look:
    """The look at a page of which another one may be held."""
    return look(origin.url(path), held=Held(url=origin.url(held_path), validators=validators))


def test_validators_are_echoed_byte_for_byte_to_their_own_url(origin):
    """RFC 9110 §13.1: on the hop that asks for exactly the URL they came from."""
    origin.routes["/a"] = to("/end", b'ETag: "hop"')
    held = Validators(etag='W/"abc-gzip"', last_modified="Friday, 14-Aug-26 09:00:00 GMT")
    seen = conditional(origin, "/a", "/end", held)
    assert sent(origin, 0, b"if-none-match") is None
    assert sent(origin, 1, b"if-none-match") == b'W/"abc-gzip"'
    assert sent(origin, 1, b"if-modified-since") == b"Friday, 14-Aug-26 09:00:00 GMT"
    assert seen.evidence.sent == held


def test_validators_stay_at_home_when_the_redirect_leads_elsewhere(origin):
    """R-A22: another target is asked without conditions."""
    origin.routes["/a"] = to("/end")
    seen = conditional(origin, "/a", "/former", Validators(etag='"f"'))
    assert sent(origin, 1, b"if-none-match") is None
    assert not seen.evidence.sent


def test_absent_validators_are_not_invented(origin):
    """R-A11, R-A15: only what was received is sent."""
    conditional(origin, "/end", "/end", Validators(last_modified="x"))
    assert sent(origin, 0, b"if-none-match") is None
    assert sent(origin, 0, b"if-modified-since") == b"x"


def test_a_304_is_an_answer_to_our_validators_only(origin):
    """Asked for, it confirms; unasked, it confirms nothing."""
    origin.routes["/304"] = [b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"]
    assert look(origin.url("/304")).outcome == ("partial", "unexpected_not_modified")
    seen = conditional(origin, "/304", "/304", Validators(etag='"v1"'))
    assert seen.response.status == 304
    assert seen.evidence.sent == Validators(etag='"v1"')
    assert seen.outcome == ("live", None)


# the gate


def through_gate(origin: Origin, gate: Gate) -> Look:
    """The look at a page that redirects, with somebody at the gate."""

    async def run() -> Look:
        async with engine() as made:
            request = Request.parse(origin.url("/a"))
            order = Order(request=request, budget=10, gate=gate)
            return laid_out(await made.observe(order), request)

    origin.routes["/a"] = [R(b"302 Found", b"moved", b"Location: /end")]
    return asyncio.run(run())


def test_the_gate_is_asked_before_a_redirect_is_followed(origin):
    """R-C6: a target that is refused is never asked for, and the redirect is the evidence."""

    async def refuse(url: URL) -> Trouble:
        return Trouble(reason=Reason.ROBOTS_DISALLOWED, phase=Phase.REDIRECT, detail=f"not {url.target}")

    seen = through_gate(origin, refuse)
    assert seen.outcome == ("blocked", "robots_disallowed")
    assert (seen.failure.detail, seen.body, origin.targets()) == ("not /end", b"moved", ["/a"])


def test_a_gate_that_lets_through_changes_nothing(origin):
    """The redirect is followed as without it."""

    async def allow(url: URL) -> Trouble | None:
        return None

    assert through_gate(origin, allow).outcome == ("live", None)


def test_an_attempt_cancelled_at_the_gate_is_evidence(origin):
    """What was seen before is kept."""

    async def give_up(url: URL) -> None:
        raise asyncio.CancelledError

    seen = through_gate(origin, give_up)
    assert (seen.outcome, seen.body) == (("partial", "cancelled"), b"moved")


def test_a_gate_that_breaks_leaves_nothing_open(origin):
    """A fault in our own code is no evidence: it passes through, and the bodies are let go of."""

    async def fail(url: URL) -> None:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        through_gate(origin, fail)


def test_every_hop_says_when_and_from_where(origin):
    """Each redirect that was followed keeps the time of its headers and the address that answered."""
    origin.routes["/a"] = to("/b")
    origin.routes["/b"] = to("/end")
    evidence = look(origin.url("/a")).evidence
    assert [(hop.status, hop.remote_address) for hop in evidence.redirects] == [(302, "127.0.0.1")] * 2
    times = [hop.received_at for hop in evidence.redirects if hop.received_at]
    assert len(times) == 2
    assert evidence.requested_at <= times[0] <= times[1] <= evidence.captured_at
