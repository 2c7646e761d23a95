"""Reads the table of events of the harbour's wiki."""

from collections.abc import Iterator
from datetime import UTC, datetime

from pydantic import AwareDatetime, BaseModel, HttpUrl, model_validator

from pravda.parsing.page import Page

HEADINGS = ["Event", "Start (UTC)", "End (UTC)", "Place"]


class Event(BaseModel):
    """What every item must be."""

    title: str
    start: AwareDatetime
    end: AwareDatetime
    over: bool
    place: str | None
    url: HttpUrl | None

    @model_validator(mode="after")
    def ends_after_it_begins(self) -> "Event":
        """An event that ends before it begins was read from the wrong columns."""
        if self.end <= self.start:
            raise ValueError("it ends before it begins")
        return self


def can_parse(page: Page) -> bool:
    """The table is there, with the columns that `parse` reads."""
    rows = page.document.xpath("//table[contains(@class, 'wikitable')]//tr[th]")
    return bool(rows) and [cell.text_content().strip() for cell in rows[0].xpath("./th")] == HEADINGS


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item an event; the wiki keeps old ones for ever."""
    for row in page.document.xpath("//table[contains(@class, 'wikitable')]//tr[td]"):
        title, start, end, place = row.xpath("./td")
        yield {
            "title": title.text_content(),
            "start": moment(start.text_content()),
            "end": moment(end.text_content()),
            "over": moment(end.text_content()) < page.now,
            "place": place.text_content().strip() or None,
            "url": next(iter(title.xpath(".//a/@href")), None),
        }


def moment(text: str) -> datetime:
    """The wiki's way of writing a time; another one raises, which rejects the page."""
    return datetime.strptime(text.strip(), "%d %B %Y %H:%M").replace(tzinfo=UTC)
