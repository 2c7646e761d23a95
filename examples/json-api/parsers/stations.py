"""Reads the stations of a weather service."""

from collections.abc import Iterator

from pravda.parsing.page import Page


def can_parse(page: Page) -> bool:
    """The answer is of the version that `parse` knows."""
    return isinstance(page.json, dict) and page.json.get("version") == 2


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item a station that is in service."""
    assert isinstance(page.json, dict)
    for station in page.json["stations"]:
        if station["closed"] is None:
            yield {
                "id": station["id"],
                "name": station["name"],
                "height": station["elevation_m"],
                "url": station["link"],
            }
