"""`pravda diff`: what changed between two snapshots."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import click

from pravda.capture import Pravda
from pravda.cli import options
from pravda.cli.reading import find, open_kept
from pravda.cli.report import line
from pravda.cli.trouble import told
from pravda.cli.words import safe, size
from pravda.core.classify import subject_of
from pravda.core.difference import Difference, Fact, Kind, difference, difference_to_json
from pravda.core.lines import Change
from pravda.core.outcome import Snapshot
from pravda.core.states import Exit
from pravda.core.text import Page
from pravda.errors import NotFound

_MOST_BYTES = 8 * 1024 * 1024
"""Of each page; longer ones are compared as far as that."""

_COLOURS = {Change.ADDED: "green", Change.REMOVED: "red"}

_HELP = """Show what changed from snapshot A to snapshot B: facts, response headers, and the text that a reader sees.

latest:URL stands for the newest usable snapshot of a page.

JSON is compared value by value, other text line by line, anything else by size and hash. Headers that change with every
exchange, as Date, are shown and make no difference.

Exit codes: 0 the same; 1 different; 4 there is no such snapshot; 20 the kept bytes are damaged."""


@click.command("diff", help=_HELP, short_help="Show what changed between two snapshots.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@options.as_json
@options.home
def command(before: str, after: str, *, as_json: bool, home: Path | None) -> None:
    """Find both, compare, print."""
    with told():
        found = asyncio.run(_compared(home, before, after))
    if as_json:
        click.echo(json.dumps(difference_to_json(found)))
    else:
        for text in _lines(found):
            click.echo(text)
    click.get_current_context().exit(Exit.OK if found.same else Exit.DIFFERENT)


async def _compared(home: Path | None, before: str, after: str) -> Difference:
    async with open_kept(home) as pravda:
        earlier, later = await find(pravda, home, before), await find(pravda, home, after)
        return difference(earlier, later, await _page(pravda, earlier), await _page(pravda, later))


async def _page(pravda: Pravda, snapshot: Snapshot) -> Page | None:
    try:
        body = await pravda.read(snapshot, "body", _MOST_BYTES)
    except NotFound:
        return None
    holder = await pravda.get(snapshot.content_from) if snapshot.content_from else snapshot
    return subject_of(holder.evidence, body).page


def _lines(found: Difference) -> Iterator[str]:
    yield click.style(f"--- {safe(found.before)}", bold=True)
    yield click.style(f"+++ {safe(found.after)}", bold=True)
    if found.same:
        yield "no difference"
    for fact in found.facts:
        yield line(fact.name, f"{_value(fact, fact.before)} -> {_value(fact, fact.after)}")
    for change in found.headers:
        passing = "  (changes with every exchange)" if change.passing else ""
        for word, values in ((Change.REMOVED, change.before), (Change.ADDED, change.after)):
            for value in values:
                yield _coloured(word, f"{word}{change.name}: {value}") + passing
    yield from _text(found)


def _value(fact: Fact, value: str | int | None) -> str:
    if value is None:
        return "none"
    return f"{size(value)} ({value})" if fact.name == "bytes" and isinstance(value, int) else str(value)


def _text(found: Difference) -> Iterator[str]:
    text = found.text
    for hunk in text.hunks:
        removed = sum(one.change is not Change.ADDED for one in hunk.lines)
        added = sum(one.change is not Change.REMOVED for one in hunk.lines)
        yield click.style(f"@@ -{hunk.before},{removed} +{hunk.after},{added} @@", fg="cyan")
        for one in hunk.lines:
            yield _coloured(one.change, f"{one.change}{one.text}")
    if text.cut:
        yield "the pages are too long to compare or to show whole"
    changed = any(fact.name == "sha256" for fact in found.facts)
    if changed and not text.hunks:
        yield {
            Kind.TEXT: "a reader sees the same text; what is behind it changed",
            Kind.JSON: "the values are the same; how they are written changed",
            Kind.LINES: "the text is the same; its bytes changed",
            Kind.BINARY: "the contents are no text",
            Kind.NONE: "one of the two has no content",
        }[found.kind]


def _coloured(change: Change, text: str) -> str:
    shown = safe(text)
    return click.style(shown, fg=_COLOURS[change]) if change in _COLOURS else shown
