import re

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.urls import (
    MAX_URL_BYTES,
    REFUSED_PORTS,
    BadURL,
    UnsupportedScheme,
    join,
    parse,
    redact,
    whatwg_href,
)
from tests.conformance import cases

url_like = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="htps:/\\@?#[].%ab1 \t\n\ud800é", max_size=60),
    st.builds("http://{}:{}@{}/{}".format, *[st.text(alphabet="ab:/?#@%[]\\ é1", max_size=8)] * 4),
    st.builds("https://{}".format, st.text(max_size=40)),
)


def href_or_none(url, base):
    try:
        return whatwg_href(url, base)
    except BadURL:
        return None


def test_every_conformance_case_serialises_as_the_standard_says():
    """A URL is read exactly as a browser reads it, and refused where a browser refuses it."""
    wrong = [
        (case["id"], case["input"])
        for case in cases("url.json", "wpt-urltestdata", "wpt-toascii", "ada-extra", key="suite")
        if href_or_none(case["input"], case["base"]) != case["expect"]
    ]
    assert wrong == []


def test_query_order_and_escapes_are_kept():
    """Neither the order of a query nor a single escape of it is touched (case W-G1)."""
    asked = "http://127.0.0.1:8000/g?b=2&a=1&a=%2520&c=%E3%81%82&d=a+b&e="
    url = parse(asked)
    assert url.page == url.fetch_url == url.href == asked
    assert url.target == "/g?b=2&a=1&a=%2520&c=%E3%81%82&d=a+b&e="
    assert parse("http://a/?b=2&a=1").page != parse("http://a/?a=1&b=2").page


def test_a_fragment_is_not_part_of_the_page():
    """Two fragments of one page have one identity, and neither is sent to the server (case W-G3)."""
    a, b = parse("http://a/home#a"), parse("http://a/home#b")
    assert a.page == b.page == a.fetch_url == "http://a/home"
    assert (a.fragment, b.fragment, a.href) == ("a", "b", "http://a/home#a")
    assert parse("http://a/home#").fragment == ""
    assert parse("http://a/home").fragment is None


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        ("http://faß.de/", "xn--fa-hia.de"),
        ("http://xn--fx-3s9cx68e-jpnet.check-xserver.jp/", "xn--fx-3s9cx68e-jpnet.check-xserver.jp"),
        ("http://xn--photosuite-4r6e/", "xn--photosuite-4r6e"),
        ("http://a..b/", "a..b"),
        (f"http://{'a' * 64}.example/", f"{'a' * 64}.example"),
        ("http://a_b.example/", "a_b.example"),
        ("http://ⓔⓧⓐⓜⓟⓛⓔ.ⓒⓞⓜ", "example.com"),
    ],
)
def test_an_odd_host_name_is_the_one_a_browser_would_ask(asked, host):
    """International names, and names that break the rules of IDNA and still exist, are URLs (case W-G5)."""
    assert parse(asked).host == host


def test_credentials_leave_the_url():
    """User and password are decoded for the Authorization header and stand nowhere else (case W-G7)."""
    url = parse("http://user:pa%40ss@127.0.0.1:8000/c10#x")
    assert url.credentials == b"user:pa@ss"
    assert (url.username, url.password) == ("user", "pa@ss")
    assert url.page == url.fetch_url == "http://127.0.0.1:8000/c10"
    assert "pa" not in repr(url).replace("page", "")


@pytest.mark.parametrize(
    ("asked", "credentials"),
    [
        ("http://user@a/", b"user:"),
        ("http://:pw@a/", b":pw"),
        ("http://é:%FF@a/", "é:".encode() + b"\xff"),
        ("http://a/", None),
        ("http://:@a/", None),
    ],
)
def test_half_given_credentials_are_still_sent(asked, credentials):
    """A user alone, a password alone and bytes that are no UTF-8 all arrive as given."""
    assert parse(asked).credentials == credentials


@pytest.mark.parametrize(
    ("asked", "host", "hostname", "port", "origin", "target"),
    [
        ("HTTPS://EXAMPLE.com:443", "example.com", "example.com", 443, "https://example.com", "/"),
        ("http://a:8080?q", "a", "a", 8080, "http://a:8080", "/?q"),
        ("http://a/?", "a", "a", 80, "http://a", "/?"),
        ("http://[::1]/x", "[::1]", "::1", 80, "http://[::1]", "/x"),
        (
            "http://[::FFFF:1.2.3.4]:81/",
            "[::ffff:102:304]",
            "::ffff:102:304",
            81,
            "http://[::ffff:102:304]:81",
            "/",
        ),
        ("http://0x7f.1/", "127.0.0.1", "127.0.0.1", 80, "http://127.0.0.1", "/"),
        ("http://a/b@c:1/d?e@f", "a", "a", 80, "http://a", "/b@c:1/d?e@f"),
    ],
)
def test_the_parts_of_a_url(asked, host, hostname, port, origin, target):
    """Host, effective port, origin and request target are those of the serialised URL."""
    url = parse(asked)
    assert (url.host, url.hostname, url.port, url.origin, url.target) == (
        host,
        hostname,
        port,
        origin,
        target,
    )


def test_same_origin_is_scheme_host_and_port():
    """The scheme's own port is the same origin as none, another scheme or port is not."""
    url = parse("http://a/x")
    assert url.same_origin(parse("http://u:p@A:80/y#z"))
    assert not url.same_origin(parse("https://a/x"))
    assert not url.same_origin(parse("http://a:81/x"))


@pytest.mark.parametrize(
    "asked", ["mailto:a@b", "file:///etc/passwd", "ftp://a/", "javascript:alert(1)", "a:b"]
)
def test_another_scheme_is_told_apart_from_a_broken_url(asked):
    """A readable URL of a scheme that cannot be captured says so."""
    with pytest.raises(UnsupportedScheme):
        parse(asked)


@pytest.mark.parametrize(
    "asked", ["", "x", "//a/", "http://", "http://[bad", "http://a b/", "http://a:99999/", "http://\x00/"]
)
def test_a_broken_url_is_refused(asked):
    """What a browser could not read is BadURL, and not a matter of its scheme."""
    with pytest.raises(BadURL) as caught:
        parse(asked)
    assert not isinstance(caught.value, UnsupportedScheme)


def test_a_refusal_does_not_repeat_the_url():
    """The message and its causes hold nothing of the text, which may be a password."""
    with pytest.raises(BadURL) as caught:
        parse("http://user:secret@[bad/")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["x" * 1_000_000, "http://a/" + "é" * 40_000, "http://a/" + "é" * 20_000])
def test_a_very_long_url_is_refused(url):
    """The limit holds for the text, for its bytes, and for what percent-encoding makes of it."""
    with pytest.raises(BadURL, match="longer"):
        whatwg_href(url)


def test_a_long_url_within_the_limit_is_taken():
    """A URL of exactly the limit is a URL."""
    url = "http://a/".ljust(MAX_URL_BYTES, "x")
    assert parse(url).href == url


def test_lone_surrogates_become_replacement_characters():
    """A lone surrogate is percent-encoded as U+FFFD, a pair as its letter."""
    assert whatwg_href("http://a/\ud800x\ud83d\ude00") == "http://a/%EF%BF%BDx%F0%9F%98%80"


def test_ports_that_browsers_refuse():
    """Mail, terminal and chat ports are refused, those of the web are not."""
    assert {22, 25, 6000, 6667, 10080} <= REFUSED_PORTS
    assert not {80, 443, 8000, 8080, 8443} & REFUSED_PORTS
    assert parse("http://a:25/").port_is_refused
    assert not parse("http://a/").port_is_refused


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        (b"/b?c", "http://u:p@a/b?c#top"),
        (b"b", "http://u:p@a/x/b#top"),
        (b"//c/", "http://c/#top"),
        (b"https://c/#own", "https://c/#own"),
        (b"https://c/#", "https://c/#"),
        ("/é".encode(), "http://u:p@a/%C3%A9#top"),
        (b"/\xe9", "http://u:p@a/%C3%A9#top"),
        (b" \t/b ", "http://u:p@a/b#top"),
        ("/b", "http://u:p@a/b#top"),
        (b"", "http://u:p@a/x/y?z#top"),
    ],
)
def test_where_a_location_header_leads(location, leads_to):
    """Location is UTF-8 or Latin-1, relative or not, and inherits the fragment when it has none."""
    assert join(parse("http://u:p@a/x/y?z#top"), location).href == leads_to


def test_no_fragment_is_invented_for_a_redirect():
    """Where the first URL has no fragment the target has none."""
    assert join(parse("http://a/"), b"/b").fragment is None


def test_an_inherited_fragment_reads_back():
    """The joined URL is the one its own text means."""
    joined = join(parse("http://a/#x"), b"/b")
    assert joined == parse(joined.href)


@pytest.mark.parametrize(
    ("location", "error"),
    [
        (b"http://[bad", BadURL),
        (b"mailto:a@b", UnsupportedScheme),
        (b"file:///etc/passwd", UnsupportedScheme),
    ],
)
def test_a_location_that_leads_nowhere(location, error):
    """An unreadable Location and one of another scheme are told apart (cases W-B2 and W-B10)."""
    with pytest.raises(error):
        join(parse("http://a/"), location)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("http://user:pa%40ss@h:1/c?d@e#f@g", "http://h:1/c?d@e#f@g"),
        ("http://user@h/", "http://h/"),
        ("HTTP:\\\\u:p@h\\x", "HTTP:\\\\h\\x"),
        ("  ht\ntp:/\t/u:p@h", "  ht\ntp:/\t/h"),
        ("http:u:p@h/x", "http:h/x"),
        ("http://a@b@c/", "http://c/"),
        ("http://h/a@b", "http://h/a@b"),
        ("http://h?a@b", "http://h?a@b"),
        ("http://h", "http://h"),
        ("http://u:p/q@h/", "http://h/"),
        ("http://u:p?q@h/x@y", "http://y"),
        ("http://u:p@[bad", "http://[bad"),
        ("//u:p@h/x", "//h/x"),
        ("//u:p/q@h/x", "//h/x"),
        ("/login?mail=a@b", "/login?mail=a@b"),
        ("page?mail=a@b", "page?mail=a@b"),
        ("u:p@h/x", "h/x"),
        ("u:p/q@h/x", "h/x"),
        ("u p@h/x", "h/x"),
        ("\ufeffhttp://u:p@h/x", "\ufeffhttp://h/x"),
        ("\ufeffhttp:/u:p@h/x", "\ufeffhttp:/h/x"),
        ("foo://u\\:p@h/x", "foo://h/x"),
        ("mailto:a@b", "mailto:a@b"),
        ("", ""),
        ("nothing", "nothing"),
        ("http://u:p@" + "x" * 70_000, "http://" + "x" * 70_000),
    ],
)
def test_redaction_takes_user_info_and_nothing_else(text, redacted):
    """User info goes, the rest stays byte for byte; of a broken URL rather too much goes."""
    assert redact(text) == redacted


@given(url_like)
def test_any_text_is_read_or_refused(text):
    """No text makes anything but a URL or a BadURL, and a URL read again is itself."""
    try:
        url = parse(text)
    except BadURL:
        return
    assert parse(url.href) == url
    assert parse(url.page).href == url.page
    assert parse(url.page).page == url.page


@given(url_like)
def test_the_parts_are_those_the_library_reads(text):
    """Cutting the serialised text gives the parts that the URL library gives."""
    try:
        url = parse(text)
    except BadURL:
        return
    read = ada_url.URL(url.href)
    assert url.hostname == read.hostname.strip("[]")
    assert url.origin == read.origin
    assert url.target.rstrip("?") == (read.pathname + read.search).rstrip("?")
    assert (url.fragment or "") == read.hash.removeprefix("#")
    assert url.port == int(read.port or {"http": 80, "https": 443}[url.scheme])
    assert (url.credentials is not None) == bool(read.username or read.password)


@given(url_like)
def test_no_readable_url_keeps_user_info(text):
    """A redacted URL means the same page and carries no credentials."""
    try:
        url = parse(text)
    except BadURL:
        redact(text)
        return
    again = parse(redact(text))
    assert again.credentials is None
    assert (again.page, again.fragment) == (url.page, url.fragment)


@given(st.from_regex(re.compile(r"[a-z0-9/?#\\ ]{1,12}:[a-z0-9/?#\\ :]{1,12}"), fullmatch=True))
def test_a_password_with_raw_delimiters_is_not_leaked_when_it_breaks_the_url(userinfo):
    """User info with a raw slash or question mark goes whole, unless a browser would read it as host and path."""
    text = f"http://{userinfo}@[host/"
    try:
        parse(text)
    except BadURL:
        assert redact(text).lstrip("htp:/\\") == "[host/"


@given(url_like, st.binary(max_size=60))
def test_any_location_is_joined_or_refused(text, location):
    """No bytes of a Location header make anything but a URL or a BadURL."""
    try:
        join(parse(text), location)
    except BadURL:
        return
