"""A parser to begin with, written for the page that is stored."""

import re
from dataclasses import dataclass
from typing import Final

from lxml import html

from pravda.parsing.bench import Recipe, Stored
from pravda.parsing.page import NoDocument, Page

FOLDER: Final = "parsers"

_MOST_TOLD: Final = 5  # tables that are described
_LONGEST: Final = 60  # characters of one heading

_HEAD: Final = '''"""Reads {url}"""

from collections.abc import Iterator

from pravda.parsing.page import Page
'''

_HTML: Final = '''{head}
{found}

def can_parse(page: Page) -> bool:
    """Whether this is the page that `parse` knows; a page without it is rejected, and the stored one stays."""
    return bool(page.document.xpath("{rows}"))


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item a row."""
    for row in page.document.xpath("{rows}"):
        cells = [cell.text_content() for cell in row.xpath("./td")]
        if cells:
            yield {{"name": cells[0]}}
'''

_JSON: Final = '''{head}

def can_parse(page: Page) -> bool:
    """Whether this is the answer that `parse` knows; one without it is rejected, and the stored one stays."""
    return isinstance(page.json, {kind})


def parse(page: Page) -> Iterator[dict[str, object]]:
    """One item an entry."""
    found = page.json
    assert isinstance(found, {kind})
    for {entry} in {over}:
        yield {item}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A parser to begin with."""

    file: str
    """Its name in the folder of parsers."""
    text: str
    parser: str
    """How the sources file names it."""


def begin(recipe: Recipe, page: Stored | None) -> Begun:
    """A parser for a source's page, or for a table if nothing is stored yet."""
    module = re.sub(r"[^a-z0-9]+", "_", recipe.source_id).strip("_")
    module = module if module[:1].isalpha() else f"source_{module}"
    return Begun(file=f"{module}.py", text=_text(recipe, page), parser=f"{FOLDER}.{module}:parse")


def _text(recipe: Recipe, stored: Stored | None) -> str:
    head = _HEAD.format(url=_quiet(recipe.url, 200))
    if stored is None:
        return _HTML.format(head=head, found="", rows="//table//tr")
    page = Page(
        stored.body,
        url=stored.url,
        charset=stored.charset,
        captured_at=stored.captured_at,
        now=stored.captured_at,
    )
    value = _json(page)
    if isinstance(value, list):
        return _JSON.format(head=head, kind="list", entry="entry", over="found", item='{"entry": entry}')
    if isinstance(value, dict):
        item = '{"name": name, "value": value}'
        return _JSON.format(head=head, kind="dict", entry="name, value", over="found.items()", item=item)
    tables = _tables(page)
    if not tables:
        return _HTML.format(
            head=head, found="# The page that is stored holds no table.\n", rows="//table//tr"
        )
    found = "\n".join(
        ["# Tables of the page that is stored:", *(line for _, line in tables[:_MOST_TOLD]), ""]
    )
    largest = max(range(len(tables)), key=lambda place: tables[place][0])
    return _HTML.format(head=head, found=found, rows=f"(//table)[{largest + 1}]//tr")


def _json(page: Page) -> object:
    try:
        return page.json
    except ValueError:
        return None


def _tables(page: Page) -> list[tuple[int, str]]:
    """Rows and a line about each table."""
    try:
        found: list[html.HtmlElement] = list(page.document.iter("table"))
    except NoDocument:
        return []
    return [_told(place, table) for place, table in enumerate(found, 1)]


def _told(place: int, table: html.HtmlElement) -> tuple[int, str]:
    rows = list(table.iter("tr"))
    headings = [_quiet(cell.text_content(), _LONGEST) for cell in table.iter("th")][:8]
    return len(rows), f"# {place}: {len(rows)} rows" + (f"; {', '.join(headings)}" if headings else "")


def _quiet(text: str, limit: int) -> str:
    """A page's text as it may stand in a comment of code."""
    line = " ".join(text[: 4 * limit].split())[:limit]
    return "".join(letter for letter in line if letter.isprintable() and letter not in '"\\{}')
