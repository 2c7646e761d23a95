"""Where a page itself would send a browser; read and recorded, never followed by the HTTP engine."""

import re
from collections.abc import Iterator

from lxml import etree

from pravda.core.glance import compile_needles, haystack
from pravda.core.text import Page
from pravda.core.urls import BadURL, redact, whatwg_href

# HTML 7.4.6, "shared declarative refresh steps": a time, then nothing, or a separator and what it leads to
_TIME = re.compile(
    r"[\t\n\f\r ]*(?:[0-9]++|(?=\.))[0-9.]*+(?:\Z|(?=[;,\t\n\f\r ])[\t\n\f\r ]*[;,]?[\t\n\f\r ]*)"
)
_URL = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
_HTTP_EQUIV = compile_needles(("http-equiv",))
_NOT_FOR_BROWSERS = ("noscript", "template")


def client_redirects(page: Page, refresh_headers: tuple[str, ...]) -> tuple[str, ...]:
    """The absolute target of the first refresh that a browser obeys, credentials taken out; none for a mere reload."""
    here = page.final_url
    for wish, base in _wishes(page, refresh_headers):
        target = _target(wish, here, base)
        if target is not None:
            moves = target.partition("#")[0] != here.partition("#")[0]
            return (redact(target),) if moves else ()
    return ()


def _wishes(page: Page, refresh_headers: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What asks for a refresh, in a browser's order, and the URL that it is relative to."""
    for value in refresh_headers[:1]:
        yield value, page.final_url
    # a cheap look first: hardly any page has one, and parsing is the dearest thing done to a page
    if not page.is_html or not _HTTP_EQUIV.search(haystack(page)) or page.root is None:
        return
    base = _base(page.root, page.final_url)
    for element in page.root.iter("meta"):
        content = element.get("content")
        if content and element.get("http-equiv", "").lower() == "refresh" and _is_seen(element):
            yield content, base


def _is_seen(element: etree._Element) -> bool:
    return next(element.iterancestors(*_NOT_FOR_BROWSERS), None) is None


def _base(root: etree._Element, url: str) -> str:
    """The document base URL (HTML 2.4.3)."""
    href = next((href for element in root.iter("base") if (href := element.get("href")) is not None), "")
    try:
        return whatwg_href(href, url)
    except BadURL:
        return url


def _target(wish: str, here: str, base: str) -> str | None:
    """The URL that a refresh leads to, the page's own where it names none; None: browsers ignore it."""
    time = _TIME.match(wish)
    if time is None:
        return None
    rest = wish[time.end() :]
    if not rest:
        return here
    named = _URL.match(rest)
    if named:
        rest = rest[named.end() :]
    if rest.startswith(('"', "'")):
        rest = rest[1:].partition(rest[0])[0]
    try:
        target = whatwg_href(rest, base)
    except BadURL:
        return None
    return None if target.startswith("javascript:") else target
