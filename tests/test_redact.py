"""Secrets leave heads and headers before these are kept, in both directions."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.redact import is_secret_header, request_head, response_head, response_value

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name",
    ["Authorization", "authorization", "Proxy-Authorization", "X-Authorization", "Cookie", "Cookie2", "Set-Cookie",
     "X-Api-Key", "X-ApiKey", "x-goog-api-key", "X-Auth-Token", "X-Auth", "Private-Token", "X-CSRF-Token",
     "X-Amz-Security-Token", "X-Access-Key", "Ocp-Apim-Subscription-Key", "X-Functions-Key", "CF-Access-Client-Secret",
     "X-Session-Id", "X-Password", "X-Pwd", "X-JWT", "DPoP", "Authentication-Info", "X-Amz-Credential", "X-SID"],
)  # fmt: skip
def test_secret_names(name):
    """Headers that carry a secret are known by their names, whatever their case."""
    assert is_secret_header(name)


@pytest.mark.parametrize(
    "name",
    ["Accept", "User-Agent", "Referer", "Author", "X-Cache-Key", "Surrogate-Key", "WWW-Authenticate", "Host",
     "Access-Control-Allow-Credentials", "CF-Mitigated", "X-Amzn-Waf-Action", "X-DataDome", "CF-Ray", "ETag",
     "X-Robots-Tag", "Retry-After", "Sec-WebSocket-Key", "Inside"],
)  # fmt: skip
def test_plain_names(name):
    """Headers that are evidence stay."""
    assert not is_secret_header(name)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("Set-Cookie", f"a={SECRET}; Path=/; HttpOnly", "a=REDACTED; Path=/; HttpOnly"),
        ("set-cookie", f"a={SECRET}", "a=REDACTED"),
        ("set-cookie", SECRET, "REDACTED"),
        ("set-cookie", f"a=b={SECRET}", "a=REDACTED"),
        ("set-cookie", f'a="x;{SECRET}"; Secure', 'a=REDACTED; REDACTED; Secure'),
        ("set-cookie", f"a=1, b={SECRET}; path=/", "a=REDACTED; path=/"),
        ("set-cookie", f"a=1; path=/, b={SECRET}; secure", "a=REDACTED; REDACTED; secure"),
        ("set-cookie", f"a=1; expires=Wed, 21 Oct 2026 07:28:00 GMT, b={SECRET}", "a=REDACTED; REDACTED"),
        (
            "set-cookie",
            "a=1; Expires=Wed, 21-Oct-2026 07:28:00 GMT; Max-Age=5;domain=x.y; SameSite=Lax;Partitioned;",
            "a=REDACTED; Expires=Wed, 21-Oct-2026 07:28:00 GMT; Max-Age=5;domain=x.y; SameSite=Lax;Partitioned;",
        ),
        ("set-cookie", "a=; Max-Age=0", "a=; Max-Age=0"),
        ("set-cookie", "", ""),
        ("set-cookie2", f"a={SECRET}", "a=REDACTED"),
        ("X-Auth-Token", SECRET, "REDACTED"),
        ("X-Auth-Token", "", ""),
        ("Location", f"https://user:{SECRET}@example.org/a?b#c", "https://example.org/a?b#c"),
        ("Location", f"//user:{SECRET}@example.org/", "//example.org/"),
        ("location", f"https:\\\\user:{SECRET}@example.org", "https:\\\\example.org"),
        ("Location", "/@user/post", "/@user/post"),
        ("Content-Location", f"http://{SECRET}@example.org/", "http://example.org/"),
        ("Refresh", f"5; url=http://user:{SECRET}@example.org/", "5; url=http://REDACTED@example.org/"),
        ("Link", f"<https://u:{SECRET}@h/>; rel=next, <https://h/a@b>", "<https://REDACTED@h/>; rel=next, <https://h/a@b>"),
        ("X-Report", f"see https://{SECRET}@h/", "see https://REDACTED@h/"),
        ("Content-Type", "text/html; charset=utf-8", "text/html; charset=utf-8"),
        ("X-Contact", "mail@example.org", "mail@example.org"),
        ("X-Odd", "\u20ac\ud800", "\u20ac\ud800"),
    ],
)  # fmt: skip
def test_response_value(name, value, kept):
    """Cookie values, tokens and credentials in URLs go; names, attributes and everything else stay."""
    assert response_value(name, value) == kept


def test_request_head():
    """A request head keeps its form, without what is secret in it."""
    head = (
        b"GET /a?b=c:d HTTP/1.1\r\nHost: example.org\r\nAuthorization: Basic aHVudGVyMg==\r\ncookie:a=hunter2\r\n"
        b"X-Api-Key :  hunter2 \r\nReferer: http://u:hunter2@h/\r\nX-Empty:\r\nAccept: */*\r\n\r\n"
    )
    cleaned = (
        b"GET /a?b=c:d HTTP/1.1\r\nHost: example.org\r\nAuthorization: REDACTED\r\ncookie:REDACTED\r\n"
        b"X-Api-Key :  REDACTED \r\nReferer: http://h/\r\nX-Empty:\r\nAccept: */*\r\n\r\n"
    )
    assert request_head(head) == (cleaned, True)


def test_response_head():
    """A response head keeps its form, also one without carriage returns and of several blocks."""
    head = b"HTTP/1.1 103 Early\nLink: <https://u:hunter2@h/>\n\nHTTP/1.1 200 OK\nset-cookie: a=hunter2\n\n"
    assert response_head(head) == (
        b"HTTP/1.1 103 Early\nLink: <https://REDACTED@h/>\n\nHTTP/1.1 200 OK\nset-cookie: a=REDACTED\n\n",
        True,
    )


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nServer: x\r\n y\r\n\r\n",
        b" x\r\n",
        b"\xff\xfe:\xff",
    ],
)
def test_nothing_secret(head):
    """A head without secrets is kept byte for byte and is not called redacted."""
    assert request_head(head) == response_head(head) == (head, False)


@pytest.mark.parametrize(
    "head",
    [
        b"Set-Cookie: a=hunter2\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie:\r\n a=hunter2; path=/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=hun\r\n\thunter2\r\n hunter2; secure\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Auth-Token:\r\n\thunter2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nset-cookie: a=hunter2",
        b"HTTP/1.1 302 http://u:hunter2@h/\r\n\r\n",
        b"HTTP/1.1 302 x\r\nLocation: http:\r\n //u:hunter2@h/\r\n\r\n",
    ],
    ids=["trailer", "empty first line", "folds", "tab", "cut", "status line", "folded URL"],
)
def test_odd_heads(head):
    """No trailer, obsolete fold or cut head lets a secret through."""
    cleaned, redacted = response_head(head)
    assert b"hunter2" not in cleaned
    assert redacted


@given(st.binary(max_size=300))
def test_any_bytes(head):
    """Any bytes are a head that can be cleaned, and cleaning twice changes nothing more."""
    for clean in (request_head, response_head):
        once, redacted = clean(head)
        assert redacted == (once != head)
        assert clean(once)[0] == once


@given(st.text(max_size=100), st.text(max_size=200))
def test_any_value(name, value):
    """Any text is a header that can be cleaned."""
    assert isinstance(response_value(name, value), str)


@pytest.mark.parametrize(
    "part",
    [
        b"Set-Cookie: a=1;" + b" " * 250_000 + b"x\r\n",
        b"X: " + b"://" * 80_000,
        b"\r\n " * 80_000,
        b":" * 250_000,
    ],
)
def test_time_is_linear(part):
    """A head at the limit of what is taken costs no more than its length."""
    started = time.process_time()
    response_head(b"HTTP/1.1 200 OK\r\n" + part)
    assert time.process_time() - started < 1
