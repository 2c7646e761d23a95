"""Reads the banners on the main page of the Stella Sora wiki."""

import re
from collections.abc import Iterator

from pravda.parsing.page import Page

BANNER = "//div[@class='stellasora-home-banner']"
TITLE = re.compile(r"(?:File:Tab Banner )?(.*?)[ /]\d{4}-\d\d-\d\d(?:\.png)?")


def can_parse(page: Page) -> bool:
    """The page has banners."""
    return bool(page.document.xpath(BANNER))


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item a banner; the wiki itself shows only those that run."""
    for banner in page.document.xpath(BANNER):
        link = banner.xpath(".//a[@title]")[0]
        start, end = banner.xpath(".//time/@datetime")[:2]
        found = TITLE.fullmatch(link.get("title"))
        title = found[1] if found else link.get("title")
        yield {"title": title, "start": start, "end": end, "url": link.get("href")}
