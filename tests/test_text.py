"""A page's text and tree, whatever bytes it is made of."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.text import NotJSON, Page, fold


def html(body: str | bytes, charset: str = "utf-8", content_type: str | None = "text/html") -> Page:
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return Page(data, content_type=content_type, charset=charset)


def typed(content_type: str | None, body: str | bytes) -> Page:
    return html(body, content_type=content_type)


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html; charset=utf-8", "<p>x", "html"),
        ("application/xhtml+xml", "<p>x</p>", "html"),
        (None, "<!DOCTYPE html><p>x", "html"),
        ("application/rss+xml", "<!doctype html><title>Wait</title>", "html"),
        ("application/json", " \n<html><body>Oops", "html"),
        ("text/csv", "<HTML><body>Oops", "html"),
        ("text/plain", "<!doctype html><p>x", "text"),
        ("application/rss+xml", "<rss/>", "xml"),
        ("text/xml", "<a/>", "xml"),
        ("image/svg+xml", "<svg/>", "xml"),
        ("application/json", "{}", "json"),
        ("application/ld+json", "{}", "json"),
        ("text/csv", "a,b", "text"),
        ("application/yaml", "a: b", "text"),
        ("application/pdf", "%PDF-1.4 <!doctype html>", "binary"),
        ("image/png", b"\x89PNG\r\n\x1a\n\0\0", "binary"),
        (None, b"\x89PNG\r\n\x1a\n\0\0", "binary"),
    ],
)
def test_a_page_is_of_one_kind(content_type, body, kind):
    """The media type tells HTML, XML, JSON, other text and binary apart, and an HTML page is one under any text type."""
    page = typed(content_type, body)
    kinds = {"html": page.is_html, "xml": page.is_xml, "json": page.is_json}
    assert [name for name, holds in kinds.items() if holds] == ([kind] if kind in kinds else [])
    assert page.is_text is (kind != "binary")


@pytest.mark.parametrize(
    ("body", "visible"),
    [
        ("", ""),
        ("   ", ""),
        ("plain words", "plain words"),
        ("<p>a</p><p>b</p>", "a b"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("<ul><li>a<li>b</ul>c", "a b c"),
        ("one<br>two", "one two"),
        ("w<b>or</b>d <a href=x>li</a>nk", "word link"),
        ("a\u00a0 \n\t b", "a b"),
        ("a<script>x</script>b<style>y</style>c<template>z</template>d<noscript>n</noscript>e", "abcde"),
        ("a<!-- hidden -->b", "ab"),
        ("a<div hidden>x<p>y</p></div>b", "a b"),
        ("a<span hidden=until-found>x</span>b", "ab"),
        ("a<span style='color:red; DISPLAY : None !important'>x</span>b", "ab"),
        ("<p style='display:none;display:block'>x", "x"),
        ("<p style='color:red'>x", "x"),
        ("<p style='x-display:none'>x", "x"),
        ("<head><title>Title</title><meta name=a content=b></head><body>x", "x"),
        ("<svg><title>s</title><text>t</text></svg>x", "tx"),
        ("<p>&amp;&eacute;&#x20AC;", "&é€"),
        ("a\0b", "a\ufffdb"),
        ("<p>\ud800x", "\ufffd\ufffd\ufffdx"),
        ("<?xml version='1.0' encoding='shift_jis'?><p>é日</p>", "é日"),
        ("<meta charset=latin1><p>日本", "日本"),
        ("<frameset><frame src=x></frameset>", ""),
        ("<html><body></body></html>after", "after"),
        ("<html><body>a</body></html><p>after", "a after"),
        ("<body>a<script>'</html>'</script><p>b</body></html>\n<!-- </html> -->c", "a b c"),
        ("a</html >b<script>", "ab"),
        ("<!-- only a comment -->", ""),
    ],
)
def test_visible_is_what_a_reader_sees(body, visible):
    """Scripts, styles, comments and hidden parts are left out, blocks stand apart, white space is folded."""
    assert html(body).visible == visible


def test_visible_of_other_types():
    """Text of other types is folded as it stands, and a binary body shows nothing."""
    assert typed("text/csv", "a,b\n\n<c>").visible == "a,b <c>"
    assert typed("application/json", '{"a":\n 1}').visible == '{"a": 1}'
    assert typed("application/octet-stream", b"\0\1words").visible == ""


def test_the_given_charset_decides():
    """Neither a meta element nor an XML declaration overrules the charset that was given."""
    page = html("<meta charset=utf-8><title>日本語</title>".encode("shift_jis"), charset="shift_jis")
    assert page.title == "日本語"
    feed = Page(
        '<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("windows-1252"),
        content_type="text/xml",
        charset="windows-1252",
    )
    assert feed.root is not None
    assert feed.root.text == "é"


def test_title_headings_scripts_and_sources():
    """The parts that markers look at are read from the tree, in document order."""
    page = html(
        "<svg><title>drawing</title></svg><title> My \n page </title><title>second</title>"
        "<script> </script><script>var a = '<b>';</script><script src=' /a.js '></script><iframe src=/f></iframe>"
        "<script src=''></script><h2>Second</h2><h1>Fi<b>r</b>st<span hidden>no</span></h1> tail <h3>Third</h3>"
    )
    assert page.title == "My page"
    assert page.headings == ("Second", "First")
    assert page.scripts == ("var a = '<b>';",)
    assert page.sources == ("/a.js", "/f")


def test_scripts_keep_what_looks_like_an_end():
    """The end tag of html inside a script is text, also on a page that goes on after its own end."""
    page = html("<body><script>w('</html>')</script></body></html><script>late()</script>")
    assert page.scripts == ("w('</html>')", "late()")


def test_a_page_without_parts():
    """What is missing is empty, also for types which are no pages."""
    for page in (
        html(""),
        html("<p>x"),
        typed("text/xml", "<a><title>feed</title></a>"),
        typed("image/png", b"\x89PNG"),
    ):
        assert (page.title, page.headings, page.scripts, page.sources) == ("", (), (), ())


def test_only_trees_have_a_root():
    """HTML and XML have a tree; JSON, text and nothing have none."""
    assert html("<p>x").root is not None
    assert typed("application/xml", "<a/>").root is not None
    assert typed("application/json", "{}").root is None
    assert typed("text/plain", "<p>").root is None
    assert html("").root is None
    assert typed("text/xml", "no element").root is None


def test_broken_xml_is_read_as_far_as_it_goes():
    """An unclosed or NUL-ridden feed still has its elements."""
    root = typed("text/xml", "<rss><item>a\0</item><item>b").root
    assert root is not None
    assert [item.text for item in root.iter("item")] == ["a\ufffd", "b"]


def test_xml_entities_are_not_expanded(tmp_path):
    """No file is read, and entities that grow are not followed."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    page = typed("text/xml", f"<!DOCTYPE a [<!ENTITY x SYSTEM '{secret.as_uri()}'>]><a>&x;z</a>")
    assert page.root is not None
    assert "secret" not in "".join(str(text) for text in page.root.itertext())
    names = "abcdefghij"
    grown = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names))
    bomb = typed("text/xml", f'<!DOCTYPE l [<!ENTITY a "{"x" * 99}">{grown}]><l x="&j;">&j;</l>')
    assert bomb.root is None or len(bomb.root.get("x", "")) < 1_000_000
    assert bomb.cut


def test_deep_pages_are_walked():
    """A page nested deeper than libxml2 first allows is read again; one that is nested without end is cut."""
    deep = html("<div>" * 1_000 + "bottom")
    assert deep.visible == "bottom"
    assert not deep.cut
    endless = html("<div>" * 100_000 + "bottom")
    assert endless.cut
    assert endless.visible == ""
    assert typed("text/xml", "<a>" * 100_000).cut


def test_hostile_repetition_takes_linear_time():
    """Tags and comments that never end are read once, not once for each."""
    for part in (
        "<script",
        "<!--",
        "</html",
        "</body>x",
        "<title>",
        "<p style='display:none;",
        "&",
        "<![CDATA[",
    ):
        assert isinstance(html(part * 50_000 + "</html>x").visible, str)


def test_large_texts_are_kept():
    """A script of more than ten million characters does not empty the page."""
    page = html("<p>before<script>" + "x" * 10_500_000 + "</script><p>after")
    assert page.visible == "before after"


def test_json():
    """JSON is parsed once, and every way not to be JSON is NotJSON."""
    page = typed("application/json", '{"a": [1, 2.5, "x", null, true]}')
    assert page.json == {"a": [1, 2.5, "x", None, True]}
    assert page.json is page.json


@pytest.mark.parametrize(
    "body",
    ["", "{", "[NaN]", "[-Infinity]", "[Infinity]", "[" * 100_000, "9" * 5_000, "{'a': 1}", "[1,]", b"\xff"],
)
def test_not_json(body):
    """Bad syntax, constants which JSON lacks, endless nesting and numbers without end are refused alike."""
    page = typed("application/json", body)
    with pytest.raises(NotJSON):
        _ = page.json


def test_facts_are_kept():
    """A page knows what it was made of."""
    page = Page(b"x", content_type=None, charset="utf-8", final_url="http://a/", whole=False)
    assert (page.body, page.content_type, page.charset, page.final_url, page.whole) == (
        b"x",
        None,
        "utf-8",
        "http://a/",
        False,
    )
    assert html("<p>x").media_type == "text/html"
    assert html("é").text == "é"


@given(
    st.binary(max_size=300)
    | st.text(alphabet="<>/!-?&;#x ahdivp\0\u00e9'\"=[]{}", max_size=200).map(str.encode),
    st.sampled_from([None, "text/html", "text/xml", "application/json", "text/plain", "x", "image/png", ""]),
    st.sampled_from(
        ["utf-8", "windows-1252", "utf-16le", "shift_jis", "gb18030", "replacement", "x-user-defined"]
    ),
)
def test_no_bytes_raise(body, content_type, charset):
    """Whatever the bytes, reading them gives something of the right type."""
    page = Page(body, content_type=content_type, charset=charset)
    assert page.visible == fold(page.visible)
    assert isinstance(page.title, str)
    assert all(isinstance(text, str) for text in (*page.headings, *page.scripts, *page.sources))
    assert isinstance(page.cut, bool)


@pytest.mark.parametrize("body", [b"", b"\0"])
def test_xml_that_holds_nothing(body):
    """A body of an XML type in which a parser finds no document at all has no tree."""
    assert Page(body, content_type="application/xml", charset="utf-8").root is None
