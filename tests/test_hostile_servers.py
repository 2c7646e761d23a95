"""Whatever bytes a server sends, an attempt ends in time, with evidence that agrees with itself."""

import gzip
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravda.core.evidence import Ending
from pravda.core.states import FACTS, FaultSide, State
from tests.looking import Look, look
from tests.origin import BODY, HT, C, Origin, R, Reset

CHUNKED = b"HTTP/1.1 200 OK\r\n" + HT + b"\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def origin():
    with Origin() as made:
        yield made


def seen_of(origin: Origin, *reply: bytes | Reset) -> Look:
    """The look at this answer, within small limits."""
    origin.routes["/"] = reply
    seen = look(origin.url("/"), max_bytes=20_000, timeouts={"first_byte": 3, "idle": 2, "total": 5})
    assert seen.seconds < 6
    return seen


def agrees(seen: Look) -> None:
    """The invariants of evidence and verdict."""
    evidence, response = seen.evidence, seen.evidence.response
    assert (seen.verdict.failure is None) is (seen.state is State.LIVE)
    for artifact in evidence.artifacts:
        data = seen.kept[artifact.name]
        assert (artifact.bytes, artifact.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    if response is None:
        assert seen.state is State.DOWN
        assert "body" not in seen.kept
        return
    content = evidence.content
    assert content is not None
    assert (content.bytes, content.sha256) == (len(seen.body), hashlib.sha256(seen.body).hexdigest())
    assert content.bytes <= 20_000
    if seen.state is State.LIVE:
        assert 200 <= response.status < 300
        assert content.ending is Ending.COMPLETE
        assert evidence.trouble is None
    if 200 <= response.status < 300:
        assert seen.state in (State.LIVE, State.BLOCKED, State.PARTIAL)
    if response.status in (404, 410):
        assert seen.state in (State.GONE, State.BLOCKED)
    if evidence.trouble:
        assert FACTS[evidence.trouble.reason].fault is FaultSide.SOURCE


ANSWERS = [
    R(b"200 OK", BODY[:300], HT, b'ETag: "x"', b"Set-Cookie: a=b"),
    R(b"200 OK", gzip.compress(BODY), HT, b"Content-Encoding: gzip"),
    R(b"404 Not Found", b"<h1>no</h1>", HT),
    R(b"503 Service Unavailable", b"later", HT, b"Retry-After: 3"),
    CHUNKED + C(BODY[:100], BODY[100:300]),
    CHUNKED + b"5;a=b\r\nhello\r\n0\r\nX-After: y\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + R(b"200 OK", b"ok", HT),
    b"HTTP/1.0 200 OK\r\n\r\nno length",
]
SCRAPS = [
    b"\r\n", b"\n", b"\0", b" ", b":", b"\xff", b"HTTP/1.1 ", b"HTTP/2 200\r\n", b"200", b"0\r\n\r\n", b"-1", b"ffffffff\r\n",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: br, gzip\r\n", b"Content-Type: \r\n",
    b"Content-Encoding: \r\n", b"\x1f\x8b\x08", b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"X" * 3000,
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good answer with pieces cut out, doubled or put in."""
    data = draw(st.sampled_from(ANSWERS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        data = data[:start] + draw(st.sampled_from([b"", data[start:end] * 2, *SCRAPS])) + data[end:]
    return data[: draw(st.integers(1, max(1, len(data))))] if draw(st.booleans()) else data


@settings(max_examples=250, deadline=None)
@given(reply=damaged(), reset=st.booleans())
def test_damaged_answers(origin, reply, reset):
    """A good answer with damage anywhere is judged without an exception and without contradiction."""
    agrees(seen_of(origin, reply, *([Reset()] if reset else [])))


@settings(max_examples=60, deadline=None)
@given(reply=st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(b"HTTP/1.1 200 ".__add__)))
def test_random_answers(origin, reply):
    """Arbitrary bytes are as harmless."""
    agrees(seen_of(origin, reply))


@pytest.mark.parametrize(
    ("reply", "outcome", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", ("live", None), b"until the end"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", ("live", None), b"ok"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", ("live", None), b"ok"),
        (b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"X Y: z", b"Spaced : v"), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"X: \xe9\xff"), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"X: a", b" b", b"\tc"), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"X: a\0b"), ("down", "malformed_response"), None),
        (R(b"200 OK", b"ok", b"no colon at all"), ("down", "malformed_response"), None),
        (R(b"200 OK", b"ok") + b"and more than was declared", ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"Content-Length: 2", cl=2), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"Content-Length: -2", cl=False), ("down", "malformed_response"), None),
        (CHUNKED + C(b"ok"), ("live", None), b"ok"),
        (CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + C(b"ok"), ("live", None), b"ok"),
        (CHUNKED[:-2] + b"Content-Length: 99\r\n\r\n" + C(b"ok"), ("live", None), b"ok"),
        (CHUNKED + b'2;ext="\r\n0"\r\nok\r\n0\r\n\r\n', None, None),
        (CHUNKED + b"2;ext=1\r\nok\r\n0\r\nX-After: y\r\n\r\n", ("live", None), b"ok"),
        (CHUNKED + b"2\r\nok\r\nzz\r\n", ("partial", "truncated_body"), b"ok"),
        (CHUNKED + b"ffffffffffffffffff\r\nok", ("partial", "truncated_body"), b""),
        (R(b"200 OK", b"ok", *[b"X-%d: v" % n for n in range(4000)]), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", *[b"X-%d: v" % n for n in range(10_000)]), ("down", "headers_too_large"), None),
        (R(b"200 OK", b"ok", b"X: " + b"x" * 1_000_000), ("down", "headers_too_large"), None),
        (R(b"200 OK", b"ok", b"Set-Cookie: a=" + b"x" * 90_000), ("live", None), b"ok"),
        (R(b"200 OK", b"ok", b"Content-Encoding: no-such"), ("live", None), b"ok"),
        (b"\r\n\r\n" + R(b"200 OK", b"ok"), ("down", "malformed_response"), None),
        (R(b"600 Odd", b"ok"), ("partial", "unexpected_status"), b"ok"),
        (R(b"101 Switching", b"", b"Upgrade: x"), ("down", "empty_response"), None),
        (b"HTTP/1.1 101 Switching\r\n\r\nother protocol", ("down", "empty_response"), None),
        (R(b"1000 Odd", b"ok"), ("partial", "unexpected_status"), None),
    ],
)  # fmt: skip
def test_odd_answers_are_read_as_browsers_read_them(origin, reply, outcome, body):
    """What browsers forgive is forgiven, what nobody can read is malformed."""
    seen = seen_of(origin, reply)
    agrees(seen)
    assert outcome in (None, seen.outcome)
    assert body is None or seen.body == body


def test_a_trailer_that_looks_like_a_head_changes_nothing(origin):
    """Once the final head is there, nothing that follows takes its place."""
    trailers = b"HTTP/1.1 404: Not Found\r\nX-After: y\r\n"
    seen = seen_of(origin, CHUNKED + b"2\r\nok\r\n0\r\n" + trailers + b"\r\n")
    assert (seen.outcome, seen.response.status) == (("live", None), 200)
    assert seen.kept["trailers"] == trailers


def test_folded_lines_are_one_value(origin):
    """RFC 9112 §5.2: a fold is read as a space."""
    seen = seen_of(origin, R(b"200 OK", b"ok", b"X: a", b" b", b"\tc"))
    assert seen.response.value("x") == "a b c"
