"""Where a page itself would send a browser; read and recorded, never followed by the HTTP engine."""

import re

from pravda.core.text import Page
from pravda.core.urls import BadURL, redact, whatwg_href

# https://html.spec.whatwg.org/#shared-declarative-refresh-steps, simplified to what names a target
_TARGET = re.compile(r"\s*[0-9.]*\s*[;,]?\s*(?:url\s*=\s*)?[\"']?([^\"'\s][^\"']{0,4096})", re.IGNORECASE)
_MOST = 5


def client_redirects(page: Page, refresh_headers: tuple[str, ...]) -> tuple[str, ...]:
    """Absolute targets of `Refresh` headers and meta refreshes, credentials taken out; reloads of itself left out."""
    wishes = [*refresh_headers, *_meta(page)][:_MOST]
    targets = (_target(wish, page.final_url) for wish in wishes)
    return tuple(dict.fromkeys(target for target in targets if target))


def _meta(page: Page) -> list[str]:
    # a cheap look first: hardly any page has one, and parsing is the dearest thing done to a page
    if not page.is_html or b"http-equiv" not in page.body[:65_536].lower() or page.root is None:
        return []
    return [
        str(element.get("content", ""))
        for element in page.root.iter("meta")
        if str(element.get("http-equiv", "")).strip().lower() == "refresh"
    ]


def _target(wish: str, base: str) -> str | None:
    after = re.sub(r"^\s*[0-9.]+\s*", "", wish[:5000])
    found = _TARGET.fullmatch(after) or _TARGET.match(after)
    if not found or not after.strip(" ;,"):
        return None
    try:
        return redact(whatwg_href(found[1].strip(), base))
    except BadURL:
        return None
