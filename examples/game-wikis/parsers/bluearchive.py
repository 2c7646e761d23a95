"""Reads the tables of events of the Blue Archive wiki: one per region, told apart by its columns."""

from collections.abc import Iterator
from datetime import date

from lxml import html

from pravda.parsing.page import Page

REGIONS = {
    ("Name (EN)", "Name (JP)", "Start date", "End date", "Notes"): "jp",
    ("Name (EN)", "Start date", "End date", "Notes"): "global",
}


def tables(page: Page) -> list[tuple[str, html.HtmlElement]]:
    """The tables of events, with their regions."""
    found = []
    for table in page.document.xpath("//table[contains(@class, 'wikitable')]"):
        headings = tuple(cell.text_content().strip() for cell in table.xpath(".//tr[1]/th"))
        if headings in REGIONS:
            found.append((REGIONS[headings], table))
    return found


def can_parse(page: Page) -> bool:
    """Both regions are there."""
    return {region for region, _ in tables(page)} == set(REGIONS.values())


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item an event that is not over."""
    today = page.now.date()
    for region, table in tables(page):
        for row in table.xpath(".//tr[td]"):
            cells = [cell.text_content().strip() for cell in row.xpath("./td")]
            start, end = (date.fromisoformat(cell) for cell in cells[-3:-1])
            if end >= today:
                link = next(iter(row.xpath("./td[1]//a/@href")), None)
                yield {"region": region, "title": cells[0], "start": start, "end": end, "url": link}
