"""HTTP/2, against a server that really speaks it."""

import asyncio
from typing import Any

from h2.connection import H2Connection
from h2.errors import ErrorCodes

from tests.certificates import authority
from tests.h2_origin import Answer, H2Origin
from tests.looking import Look, engine, look_with

PAGE = b"<!doctype html><title>Two</title><h1>Two</h1>" + b"<p>evidence text</p>" * 50
HEADERS = [(":status", "200"), ("content-type", "text/html"), ("x-twice", "1"), ("x-twice", "2")]


def seen_from(answer: Answer, *paths: str, **fields: Any) -> tuple[H2Origin, list[Look]]:
    """The origin, and the looks at these paths one after the other."""
    with H2Origin(answer) as origin:

        async def run() -> list[Look]:
            names = (f"{origin.host}:{origin.port}:127.0.0.1",)
            async with engine(ca_file=authority().file, names=names) as made:
                return [await look_with(made, origin.url(path), **fields) for path in paths or ("/",)]

        return origin, asyncio.run(run())


def page(two: H2Connection, stream: int) -> None:
    """A good page."""
    two.send_headers(stream, HEADERS)
    two.send_data(stream, PAGE, end_stream=True)


def test_a_page_over_http_2_is_live():
    """The version, all headers in order and the request as it was written are kept."""
    origin, (seen,) = seen_from(page, "/a%2fb?q=%c3")
    assert (seen.outcome, seen.body) == (("live", None), PAGE)
    assert seen.response.version == "2"
    assert seen.response.headers == (("content-type", "text/html"), ("x-twice", "1"), ("x-twice", "2"))
    assert origin.requests[0][":path"] == "/a%2fb?q=%c3"
    assert seen.kept["request"].startswith(b"GET /a%2fb?q=%c3 HTTP/2\r\n")
    assert seen.kept["response"].startswith(b"HTTP/2 200")


def test_a_reused_connection_keeps_its_facts():
    """Many pages over one connection all know its TLS version, cipher and certificates."""
    origin, looks = seen_from(page, "/1", "/2", "/3")
    assert origin.connections == 1
    assert {seen.response.tls for seen in looks} == {looks[0].response.tls}
    assert looks[2].response.tls is not None
    assert looks[2].response.tls.version == "TLSv1.3"
    assert looks[2].response.tls.verified
    assert looks[2].kept["certificates"] == looks[0].kept["certificates"] != b""


def test_a_post_carries_its_body():
    """Methods and bodies work as over HTTP/1.1."""
    origin, (seen,) = seen_from(page, method="POST", body="a=1")
    assert seen.outcome == ("live", None)
    assert origin.requests[0][":method"] == "POST"
    assert seen.kept["request"].endswith(b"\r\n\r\na=1")


def test_a_stream_that_is_reset_inside_the_body_is_cut():
    """What came is kept, and it is truncated_body."""

    def answer(two: H2Connection, stream: int) -> None:
        two.send_headers(stream, HEADERS)
        two.send_data(stream, PAGE[:100])
        two.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)

    _, (seen,) = seen_from(answer)
    assert (seen.outcome, seen.body) == (("partial", "truncated_body"), PAGE[:100])


def test_a_stream_that_is_reset_before_headers_is_malformed():
    """There is no response to judge."""
    _, (seen,) = seen_from(lambda two, stream: two.reset_stream(stream, ErrorCodes.INTERNAL_ERROR))
    assert seen.state.value == "down"
    assert seen.reason in ("malformed_response", "connection_reset", "empty_response")
    assert seen.evidence.response is None


def test_a_body_shorter_than_declared_is_cut():
    """A stream that ends early is caught by its declared length."""

    def answer(two: H2Connection, stream: int) -> None:
        two.send_headers(stream, [*HEADERS, ("content-length", "5000")])
        two.send_data(stream, PAGE[:100], end_stream=True)

    _, (seen,) = seen_from(answer)
    assert seen.outcome in (("partial", "truncated_body"), ("down", "malformed_response"))


def test_interim_answers_and_trailers_are_told_apart():
    """103 is interim, what follows the body is trailers, and the page is live."""

    def answer(two: H2Connection, stream: int) -> None:
        two.send_headers(stream, [(":status", "103"), ("link", "</x>")])
        two.send_headers(stream, HEADERS)
        two.send_data(stream, PAGE)
        two.send_headers(stream, [("x-after", "y")], end_stream=True)

    _, (seen,) = seen_from(answer)
    assert (seen.outcome, seen.body) == (("live", None), PAGE)
    assert b"link: </x>" in seen.kept["interim"]
    assert seen.kept["trailers"] == b"x-after: y\r\n"
    assert seen.response.value("x-after") is None


def test_an_http_2_redirect_is_followed_on_the_same_connection():
    """Hops share the connection and each keeps its own head."""

    def answer(two: H2Connection, stream: int) -> None:
        if origin_requests(two) == 1:
            two.send_headers(stream, [(":status", "302"), ("location", "/next")], end_stream=True)
        else:
            page(two, stream)

    origin, (seen,) = seen_from(answer)
    assert (seen.outcome, seen.hops) == (("live", None), [("/", 302)])
    assert origin.connections == 1


def origin_requests(two: H2Connection) -> int:
    """How many streams a client has opened on this connection."""
    return (two.highest_inbound_stream_id + 1) // 2


def test_a_server_that_goes_away_is_down():
    """GOAWAY before an answer leaves no response."""
    _, (seen,) = seen_from(lambda two, _: two.close_connection(ErrorCodes.ENHANCE_YOUR_CALM))
    assert seen.state.value == "down"
    assert seen.evidence.response is None
