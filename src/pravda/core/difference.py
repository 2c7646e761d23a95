"""What differs between two snapshots, for people and programs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pravda.core.digest import Json
from pravda.core.lines import MOST_LINES, LineDiff, compare
from pravda.core.outcome import Snapshot
from pravda.core.text import NotJSON, Page

PASSING_HEADERS = frozenset(
    {
        "age", "alt-svc", "cf-ray", "connection", "date", "expires", "keep-alive", "nel", "report-to",
        "server-timing", "set-cookie", "x-amz-cf-id", "x-amz-id-2", "x-amz-request-id", "x-cache",
        "x-cache-hits", "x-correlation-id", "x-request-id", "x-runtime", "x-served-by", "x-timer", "x-trace-id",
    }
)  # fmt: skip
"""Headers that describe the exchange instead of the page; they are shown, but make no difference."""


class Kind(StrEnum):
    """How the contents were compared."""

    TEXT = "text"
    """The text that a reader of an HTML page sees."""
    JSON = "json"
    """A line for each value, names in order."""
    LINES = "lines"
    """The lines as they stand."""
    BINARY = "binary"
    """Only sizes and hashes."""
    NONE = "none"
    """One of the two has no content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact that is not the same."""

    name: str
    before: str | int | None
    after: str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChange:
    """A response header that is not the same."""

    name: str
    """In lower case."""
    before: tuple[str, ...]
    """Its values in order; empty: it was not there."""
    after: tuple[str, ...]
    passing: bool
    """Whether it is one that changes with every exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between an earlier and a later snapshot."""

    before: str
    """The snapshot's id."""
    after: str
    facts: tuple[Fact, ...]
    headers: tuple[HeaderChange, ...]
    kind: Kind
    text: LineDiff

    @property
    def same(self) -> bool:
        """Whether nothing differs but passing headers."""
        return not self.facts and all(change.passing for change in self.headers)


def difference(before: Snapshot, after: Snapshot, page: Page | None, later_page: Page | None) -> Difference:
    """Compare two snapshots; the pages are their contents, None where nothing was kept."""
    kind, lines, later_lines = _comparable(page, later_page)
    return Difference(
        before=before.id,
        after=after.id,
        facts=tuple(_facts(before, after)),
        headers=tuple(_headers(before, after)),
        kind=kind,
        text=compare(lines, later_lines),
    )


def difference_to_json(found: Difference) -> dict[str, Json]:
    """The JSON form."""
    return {
        "before": found.before,
        "after": found.after,
        "same": found.same,
        "facts": [{"name": fact.name, "before": fact.before, "after": fact.after} for fact in found.facts],
        "headers": [
            {
                "name": change.name,
                "before": list(change.before),
                "after": list(change.after),
                "passing": change.passing,
            }
            for change in found.headers
        ],
        "text": {
            "kind": found.kind.value,
            "added": found.text.added,
            "removed": found.text.removed,
            "cut": found.text.cut,
            "hunks": [
                {
                    "before": hunk.before,
                    "after": hunk.after,
                    "lines": [[line.change.value, line.text] for line in hunk.lines],
                }
                for hunk in found.text.hunks
            ],
        },
    }


def _facts(before: Snapshot, after: Snapshot) -> Iterator[Fact]:
    earlier, later = _facts_of(before), _facts_of(after)
    for name, value in earlier.items():
        if value != later[name]:
            yield Fact(name=name, before=value, after=later[name])


def _facts_of(snapshot: Snapshot) -> dict[str, str | int | None]:
    seen, failure = snapshot.evidence, snapshot.verdict.failure
    content, response = seen.content, seen.response
    # a 304 confirms the page that came with a 200 (RFC 9110 §15.4.5)
    status = 200 if snapshot.not_modified else response.status if response else None
    return {
        "url": seen.url,
        "state": snapshot.state.value,
        "reason": failure.reason.value if failure else None,
        "status": status,
        "final_url": seen.final_url,
        "media_type": content.media_type if content else None,
        "charset": content.charset if content else None,
        "bytes": content.bytes if content else None,
        "sha256": content.sha256 if content else None,
    }


def _headers(before: Snapshot, after: Snapshot) -> Iterator[HeaderChange]:
    earlier, later = _headers_of(before), _headers_of(after)
    for name in sorted(earlier.keys() | later.keys()):
        values, later_values = earlier.get(name, ()), later.get(name, ())
        # a 304 leaves out what has not changed (RFC 9110 §15.4.5)
        left_out = (before.not_modified and not values) or (after.not_modified and not later_values)
        if values != later_values and not left_out:
            yield HeaderChange(name=name, before=values, after=later_values, passing=name in PASSING_HEADERS)


def _headers_of(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    response = snapshot.evidence.response
    for name, value in response.headers if response else ():
        found[name.lower()] = (*found.get(name.lower(), ()), value)
    return found


def _comparable(page: Page | None, later: Page | None) -> tuple[Kind, tuple[str, ...], tuple[str, ...]]:
    if page is None or later is None:
        return Kind.NONE, (), ()
    if page.is_json and later.is_json and page.whole and later.whole:
        try:
            return Kind.JSON, _values(page), _values(later)
        except NotJSON:
            pass
    if not (page.is_text or page.is_html) or not (later.is_text or later.is_html):
        return Kind.BINARY, (), ()
    kind = Kind.TEXT if page.is_html and later.is_html else Kind.LINES
    return kind, page.lines, later.lines


def _values(page: Page) -> tuple[str, ...]:
    """A line for each value; without indentation, which would let deep nesting grow without bounds."""
    try:
        text = json.dumps(page.json, indent=0, sort_keys=True, ensure_ascii=False)
    except RecursionError:
        raise NotJSON("it is nested too deep to write") from None
    return tuple(text.split("\n", MOST_LINES))
