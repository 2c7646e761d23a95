"""Hashes: the one byte form of JSON, and what makes two requests the same."""

import hashlib

import pytest

from pravda.core.digest import canonical, identity, keyed, sha256
from pravda.core.request import Request

URL = "https://example.org/g?b=2&a=1&a=%2520&c=%E3%81%82&d=a+b&e="
KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def of(url=URL, secret=KEY, **fields):
    return identity(Request.parse(url, **fields), secret)


def test_sha256():
    """A hash of bytes is SHA-256 in hex."""
    assert sha256(b"abc") == hashlib.sha256(b"abc").hexdigest()


def test_canonical():
    """Equal JSON has equal bytes: sorted keys, no white space, ASCII even for lone surrogates."""
    assert (
        canonical({"b": [1, 2.5, None, True], "a": "é\ud800"})
        == b'{"a":"\\u00e9\\ud800","b":[1,2.5,null,true]}'
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": float("nan")})


def test_keyed():
    """A keyed hash depends on key and text, and takes any text."""
    assert keyed(KEY, "a") != keyed(OTHER_KEY, "a") != keyed(OTHER_KEY, "b")
    assert len(keyed(KEY, "\ud800")) == 64


SAME: dict[str, tuple[str, dict[str, object]]] = {
    "fragment (W-G3)": (URL, {"url": f"{URL}#a"}),
    "host case and default port": (URL, {"url": URL.replace("example.org", "EXAMPLE.org:443")}),
    "engine and judgement": (URL, {"expect": {"selector": "p"}, "engine": "http", "tls": "insecure"}),
    "freshness": (URL, {"max_age": 1, "max_stale_age": 2, "stale_if": "down", "conditional": True}),
    "budgets": (URL, {"timeouts": {"total": 5}, "max_bytes": 5, "artifacts": "body", "on_failure": "return"}),
    "an empty body": (URL, {"body": ""}),
}


@pytest.mark.parametrize(("url", "fields"), SAME.values(), ids=SAME)
def test_what_does_not_change_it(url, fields):
    """Judgement, freshness, budgets and fragments are no part of a request's identity."""
    assert of(**fields) == of(url)


DIFFERENT: dict[str, dict[str, object]] = {
    "query order (W-G1)": {"url": URL.replace("b=2&a=1", "a=1&b=2")},
    "escapes (W-G1)": {"url": URL.replace("%2520", "%20")},
    "slash": {"url": URL.replace("/g?", "/g/?")},
    "scheme": {"url": URL.replace("https", "http")},
    "method": {"method": "POST"},
    "body": {"method": "POST", "body": "x"},
    "header": {"headers": {"Accept": "text/csv"}},
    "secret header": {"headers": {"Authorization": "Bearer x"}},
    "cookie": {"cookies": {"a": "1"}},
    "credentials": {"url": URL.replace("//", "//user:pw@")},
    "key": {"key": "list"},
}


@pytest.mark.parametrize("fields", DIFFERENT.values(), ids=DIFFERENT)
def test_what_changes_it(fields):
    """Everything that can change the answer changes the identity."""
    others = [of(**other) for name, other in DIFFERENT.items() if other is not fields]
    assert of(**fields) not in (of(), *others)


def test_header_names_and_order():
    """Header names have no case and no order among each other; values of one name keep theirs."""
    first = of(headers=[("A", "1"), ("b", "2"), ("A", "3")])
    assert first == of(headers=[("B", "2"), ("a", "1"), ("a", "3")])
    assert first != of(headers=[("b", "2"), ("A", "3"), ("A", "1")])


def test_a_cookie_header_is_the_cookies():
    """A Cookie header and the same cookies are one request, whatever their order."""
    assert of(headers={"Cookie": "a=1; b=2"}) == of(cookies={"b": "2", "a": "1"})


def test_key_replaces_url_and_body():
    """Under a key neither URL nor body count, everything else does."""
    keyed_ = of(key="k", method="POST", body="1")
    assert keyed_ == of("https://example.org/other?cb=5", key="k", method="POST", body="2")
    assert keyed_ != of(key="k", method="PUT", body="1")
    assert keyed_ != of(key="l", method="POST", body="1")


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"X-Api-Key": "x"}},
        {"cookies": {"a": "x"}},
        {"url": URL.replace("//", "//user:pw@")},
    ],
)
def test_secrets_count_by_a_keyed_hash(fields):
    """Secrets cannot be tried out without the catalog's key; without secrets the key does not matter."""
    assert of(**fields) != of(**fields, secret=OTHER_KEY)
    assert of() == of(secret=OTHER_KEY)
