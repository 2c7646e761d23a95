"""Reads the events of the NIKKE wiki, whose API gives a page as HTML within JSON."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from lxml import html

from pravda.parsing.page import Page

SEOUL = timezone(timedelta(hours=9))
HEADINGS = ["Event", "Start(UTC+9)", "End(UTC+9)", "Archived(?)"]
MOMENT = re.compile(r"(\d{1,2} [A-Z][a-z]+ \d{4})(\d{2}:\d{2}:\d{2})?")


def tables(page: Page) -> list[html.HtmlElement]:
    """The tables of story events, one a year."""
    answer = page.json
    if not isinstance(answer, dict) or "parse" not in answer:
        return []
    root = html.document_fromstring(answer["parse"]["text"])
    return [
        table
        for table in root.xpath("//table[contains(@class, 'wikitable')]")
        if [cell.text_content().strip() for cell in table.xpath(".//tr[1]/th")] == HEADINGS
    ]


def can_parse(page: Page) -> bool:
    """There is at least one year."""
    return bool(tables(page))


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item an event that is not over."""
    for table in tables(page):
        for row in table.xpath(".//tr[count(td) >= 3]"):
            name, start, end = row.xpath("./td")[:3]
            until = moment(end.text_content())
            if until is not None and until >= page.now:
                titles = [*name.xpath(".//a/@title"), *name.xpath(".//img/@alt"), name.text_content()]
                yield {
                    "title": plain(next(title for title in titles if title.strip())),
                    "start": moment(start.text_content()),
                    "end": until,
                }


def plain(title: str) -> str:
    """A title; some are only told by the name of a logo's file."""
    return title.removeprefix("File:").removesuffix(".png").removesuffix(" logo")


def moment(text: str) -> datetime | None:
    """A time of the wiki, whose line break between date and hour is lost; None: it is not known yet."""
    found = MOMENT.search(text)
    if found is None:
        return None
    return datetime.strptime(f"{found[1]} {found[2] or '00:00:00'}", "%d %B %Y %H:%M:%S").replace(
        tzinfo=SEOUL
    )
