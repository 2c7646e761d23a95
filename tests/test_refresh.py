"""Client redirects, as the HTML Standard reads them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.refresh import client_redirects
from pravda.core.text import Page

HERE = "https://example.org/dir/page?q=1"


def page(body="", content_type="text/html", charset="utf-8", encoding=None):
    data = body.encode(encoding or "utf-8")
    return Page(data, content_type=content_type, charset=charset, final_url=HERE, whole=False)


def meta(content):
    return f"""<!doctype html><meta http-equiv="Refresh" content='{content}'>"""


def by_header(value):
    return client_redirects(page(), (value,))


@pytest.mark.parametrize(
    ("wish", "target"),
    [
        ("0; url=/b", "https://example.org/b"),
        ("5;URL=b", "https://example.org/dir/b"),
        ("0,url=b", "https://example.org/dir/b"),
        ("0 url=b", "https://example.org/dir/b"),
        ("0 , b", "https://example.org/dir/b"),
        ("0; b", "https://example.org/dir/b"),
        ("0; 'b' c", "https://example.org/dir/b"),
        ('0; url="b"c', "https://example.org/dir/b"),
        ("0; url = 'b", "https://example.org/dir/b"),
        ("0; url='b\"'", "https://example.org/dir/b%22"),
        ("0;url=https://other.example/", "https://other.example/"),
        ("0;url=//other.example/x", "https://other.example/x"),
        ("0; url=?q=2", "https://example.org/dir/page?q=2"),
        ("\t\n 1.5.7 ;\n url=b", "https://example.org/dir/b"),
        (".5; url=b", "https://example.org/dir/b"),
        ("0; u", "https://example.org/dir/u"),
        ("0; urb", "https://example.org/dir/urb"),
        ("0; url b", "https://example.org/dir/url%20b"),
        ("0; url'b'", "https://example.org/dir/url'b'"),
        ("0; ;b", "https://example.org/dir/;b"),
        ("0; url=https://u:pw@other.example/", "https://other.example/"),
    ],
)
def test_targets(wish, target):
    """A time, a separator, perhaps `url=` and quotes, then a URL relative to the page."""
    assert by_header(wish) == (target,)


@pytest.mark.parametrize(
    "wish",
    ["", " ", "url=b", "; url=b", "x", "-1; url=b", "5x; url=b", "+5; url=b", "0/ url=b", "0; url=http://[bad",
     "0; url=javascript:alert(1)", "0; url=JavaScript:x"],
)  # fmt: skip
def test_ignored(wish):
    """A refresh without a time, behind a wrong separator or to nowhere is none; the next one counts."""
    assert by_header(wish) == ()
    assert client_redirects(page(meta("0; url=/next")), (wish,)) == ("https://example.org/next",)


@pytest.mark.parametrize(
    "wish", ["300", "300;", "300 ;  ", "0; url=", "0; url=''", "5; url=page?q=1", "0; url=#top"]
)
def test_reloads(wish):
    """A refresh of the page itself leads nowhere, and later ones are not obeyed."""
    assert by_header(wish) == ()
    assert client_redirects(page(meta("0; url=/next")), (wish,)) == ()


def test_order():
    """The header comes before the page, and only the first that is obeyed counts."""
    body = meta("0; url=/meta") + meta("0; url=/second")
    assert client_redirects(page(body), ("0; url=/header", "0; url=/other")) == (
        "https://example.org/header",
    )
    assert client_redirects(page(body), ()) == ("https://example.org/meta",)


def test_base_element():
    """A meta refresh is relative to the page's first base, a header to the page's URL."""
    body = "<base target=x><base href='/base/'><base href='/second/'>" + meta("0; url=b")
    assert client_redirects(page(body), ()) == ("https://example.org/base/b",)
    assert client_redirects(page(body), ("0; url=b",)) == ("https://example.org/dir/b",)
    assert client_redirects(page("<base href='http://[bad'>" + meta("0; url=b")), ()) == (
        "https://example.org/dir/b",
    )


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<p>http-equiv refresh</p>",
        "<meta name=refresh content='0; url=/b'>",
        "<meta http-equiv=refresh>",
        "<meta http-equiv=refresh content=''>",
        "<meta http-equiv=content-type content='0; url=/b'>",
        "<!-- <meta http-equiv=refresh content='0; url=/b'> -->",
        "<script>'<meta http-equiv=refresh content=\"0; url=/b\">'</script>",
        "<head><noscript><meta http-equiv=refresh content='0; url=/b'></noscript></head>",
        "<body><noscript><p><meta http-equiv=refresh content='0; url=/b'></p></noscript>",
        "<template><meta http-equiv=refresh content='0; url=/b'></template>",
    ],
)
def test_no_refresh(body):
    """Only a real meta refresh counts: not a quoted one, nor one for browsers without scripts."""
    assert client_redirects(page(body), ()) == ()


def test_only_html():
    """Only an HTML page has meta elements, in whatever encoding."""
    assert client_redirects(page(meta("0; url=/b"), "text/plain"), ()) == ()
    assert client_redirects(page(meta("0; url=/b"), charset="utf-16le", encoding="utf-16le"), ()) == (
        "https://example.org/b",
    )


@given(st.text(alphabet=" \t0123456789.;,urlURL='\"/ab#?\ud800", max_size=40))
def test_any_wish(wish):
    """Any text is a refresh or none; what comes out is an absolute URL."""
    assert all("://" in target for target in by_header(wish))


@pytest.mark.parametrize("part", ["1", ".", " ", ";", "u", "'", "0; url="])
def test_time_is_linear(part):
    """A long wish costs no more than its length."""
    started = time.process_time()
    by_header(part * (250_000 // len(part)))
    by_header("0" + part * (250_000 // len(part)) + "x")
    assert time.process_time() - started < 1
