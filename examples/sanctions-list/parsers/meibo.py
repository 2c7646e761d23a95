"""Reads the ministry's list of designated persons."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from pravda.parsing.page import Page

ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}
DATE = re.compile(r"(令和|平成|昭和)(元|\d{1,2})年(\d{1,2})月(\d{1,2})日")


@dataclass(frozen=True)
class Person:
    """One entry."""

    number: int
    name: str
    latin: str
    listed: date
    note: str | None


def can_parse(page: Page) -> bool:
    """The title can be read: in a wrong charset it is letters without sense."""
    return "指定者名簿" in (page.document.findtext(".//title") or "")


def parse(page: Page) -> Iterator[Person]:
    """One item a row of the list."""
    for row in page.document.xpath("//table[@id='meibo']//tr[td]"):
        number, name, latin, listed, note = (cell.text_content().strip() for cell in row.xpath("./td"))
        yield Person(number=int(number), name=name, latin=latin, listed=day(listed), note=note or None)


def day(text: str) -> date:
    """A date by the era; another form raises, which rejects the page."""
    found = DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no date of an era")
    era, year, month, number = found.groups()
    return date(ERAS[era] + (1 if year == "元" else int(year)), int(month), int(number))
