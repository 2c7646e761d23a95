"""Fixtures: pages pinned to a date for ever, with what their parser makes of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final

from pravda.core.charset import detect, label_to_name
from pravda.core.mistake import BadRequest
from pravda.parsing import files
from pravda.parsing.bench import Bench, Recipe, Stored
from pravda.parsing.diff import item_diff
from pravda.parsing.files import Unreadable
from pravda.parsing.values import Item, Json, Parsing

FOLDER: Final = "fixtures"
META: Final = ".meta.json"
EXPECTED: Final = ".expected.json"

_NAME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[A-Za-z0-9._-]{0,60}", re.ASCII)
_DATE: Final = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)", re.ASCII)
_HEAD: Final = 65_536  # bytes in which a declaration is looked for
_MOST: Final = 10_000  # files that a pattern may name
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_MOMENTS: Final = ("capturedAt", "contentChangedAt", "fetchedAt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A pinned page by its files."""

    source_id: str
    name: str
    """Its date, with what sets it apart from others of the day."""
    body: Path
    meta: Path
    expected: Path
    date: datetime | None
    """Midnight of the date in its name, in UTC; None: the name tells none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A fixture's content."""

    page: Stored
    now: datetime
    """What its parser is to take for the present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What holding a parser to a fixture came to."""

    fixture: Fixture
    parsing: Parsing | None
    """None: the fixture could not be read."""
    problem: str | None = None
    """What is wrong, one sentence; None: nothing."""
    diff: tuple[str, ...] = ()
    """From the expected to the found items, a line each."""
    updated: bool = False
    """Whether what is expected was written anew."""


def find(bench: Bench, recipe: Recipe) -> tuple[Fixture, ...]:
    """A source's fixtures, oldest first."""
    found = (_fixture(recipe, path) for path in sorted(_bodies(bench.root, recipe)))
    return tuple(sorted(found, key=lambda fixture: (fixture.date or _BEGINNING, fixture.name)))


def pinned(fixture: Fixture, recipe: Recipe) -> Pinned:
    """A fixture's page and its `now`; raises Unreadable."""
    body, told = files.read(fixture.body), files.read_json(fixture.meta)
    if body is None:
        raise Unreadable(f"{fixture.body.name} is not there")
    if told is None:
        told = {}
    if not isinstance(told, dict):
        raise Unreadable(f"{fixture.meta.name} is no JSON object")
    content_hash = told.get("contentHash")
    if isinstance(content_hash, str) and content_hash != sha256(body).hexdigest():
        raise Unreadable(f"{fixture.body.name} is not what was pinned: the hash differs")
    named = told.get("charset")
    charset = label_to_name(named) if isinstance(named, str) else None
    url = told.get("url")
    moments = (_moment(told.get(name)) for name in _MOMENTS)
    captured_at = next((moment for moment in moments if moment), fixture.date or _BEGINNING)
    page = Stored(
        body=body,
        charset=charset or detect(body[:_HEAD], ()).name,
        url=url if isinstance(url, str) and url else recipe.url,
        captured_at=captured_at,
        item_count=_expected_count(fixture),
    )
    return Pinned(page=page, now=_moment(told.get("now")) or captured_at)


def check(bench: Bench, recipe: Recipe, fixture: Fixture, *, update: bool = False) -> Checked:
    """Hold a source's parser to a fixture; with `update`, write what it makes of it now. Raises OSError then."""
    try:
        content = pinned(fixture, recipe)
        parsing = bench.parse(recipe, content.page, content.now)
        expected = None if update else _expected(fixture)
    except Unreadable as broken:
        return Checked(fixture=fixture, parsing=None, problem=f"{broken}.")
    if update:
        written = files.write(fixture.expected, _expectation(parsing))
        return Checked(fixture=fixture, parsing=parsing, updated=written)
    problem, diff = _compared(expected, parsing)
    return Checked(fixture=fixture, parsing=parsing, problem=problem, diff=diff)


def add(
    bench: Bench, recipe: Recipe, now: datetime, *, allow_failure: bool = False
) -> tuple[Fixture, Parsing]:
    """Pin the page that is stored now; raises BadRequest and OSError."""
    page = bench.held(recipe).page
    if page is None:
        raise BadRequest("id", f"{recipe.source_id} has no whole snapshot that could be pinned")
    parsing = bench.parse(recipe, page, now)
    if parsing.problem and not allow_failure:
        detail = f"{parsing.problem.detail} Use --rejected to pin a page that must be rejected"
        raise BadRequest("id", f"the parser of {recipe.source_id} fails on its snapshot: {detail}")
    fixture = _free(bench.root, recipe, page)
    meta: dict[str, Json] = {
        "sourceId": recipe.source_id,
        "url": page.url,
        "contentHash": sha256(page.body).hexdigest(),
        "bytes": len(page.body),
        "charset": page.charset,
        "capturedAt": time_text(page.captured_at),
        "now": time_text(now),
    }
    files.write(fixture.body, page.body)
    files.write(fixture.meta, files.encoded(files.pretty(meta)))
    files.write(fixture.expected, _expectation(parsing))
    return fixture, parsing


def time_text(when: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _bodies(root: Path, recipe: Recipe) -> Iterator[Path]:
    """The files that are pinned pages."""
    pattern = recipe.fixtures
    if pattern is None:
        folder = root / FOLDER / recipe.source_id
        found = [path for path in _entries(folder) if _NAME.fullmatch(path.name.partition(".")[0])]
    else:
        try:
            found = list(islice(root.glob(pattern.replace("{id}", recipe.source_id)), _MOST + 1))
        except (ValueError, NotImplementedError) as problem:
            raise BadRequest("fixtures", f"{pattern!r:.120} is no pattern: {problem}") from None
    if len(found) > _MOST:
        raise BadRequest("fixtures", f"{recipe.source_id} has more than {_MOST:,} files of fixtures")
    for path in found:
        if not path.name.endswith((META, EXPECTED)) and ".tmp-" not in path.name and path.is_file():
            yield path


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _fixture(recipe: Recipe, body: Path) -> Fixture:
    name = body.name.removesuffix(body.suffix)
    return Fixture(
        source_id=recipe.source_id,
        name=name,
        body=body,
        meta=body.with_name(name + META),
        expected=body.with_name(name + EXPECTED),
        date=_date(name),
    )


def _date(name: str) -> datetime | None:
    for year, month, day in _DATE.findall(name):
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None


def _free(root: Path, recipe: Recipe, page: Stored) -> Fixture:
    """Where a page is to be pinned: under its day, under its second where the day is taken by another page."""
    folder, at = root / FOLDER / recipe.source_id, page.captured_at.astimezone(UTC)
    for name in (f"{at:%Y-%m-%d}", f"{at:%Y-%m-%dT%H-%M-%SZ}"):
        body = folder / f"{name}.{recipe.extension}"
        standing = files.read(body)
        if standing is None:
            return _fixture(recipe, body)
        if standing == page.body:
            raise BadRequest("id", f"this page is pinned already, as {body.relative_to(root)}")
    raise BadRequest("id", f"{body.relative_to(root)} holds another page")


def _expectation(parsing: Parsing) -> bytes:
    if parsing.items is None:
        return files.encoded(files.pretty({"rejected": True}))
    return files.encoded(files.lines(parsing.items))


def _expected(fixture: Fixture) -> list[Item] | bool | None:
    """The expected items; True: the page is to be rejected; None: nothing is expected yet. Raises Unreadable."""
    value = files.read_json(fixture.expected)
    if value is None:
        return None
    if value == {"rejected": True}:
        return True
    items = value.get("items") if isinstance(value, dict) else value
    if isinstance(items, list):
        objects = [item for item in items if isinstance(item, dict)]
        if len(objects) == len(items):
            return objects
    raise Unreadable(f"{fixture.expected.name} is no list of items")


def _expected_count(fixture: Fixture) -> int | None:
    try:
        expected = _expected(fixture)
    except Unreadable:
        return None
    return len(expected) if isinstance(expected, list) else None


def _compared(expected: list[Item] | bool | None, parsing: Parsing) -> tuple[str | None, tuple[str, ...]]:
    if expected is None:
        return "It has no .expected.json; look at what the parser gives, then write it with --update.", ()
    if parsing.items is None:
        assert parsing.problem is not None
        return (None, ()) if expected is True else (f"The parser fails: {parsing.problem.detail}", ())
    if isinstance(expected, bool):
        return f"The parser takes it, with {len(parsing.items)} items, and should reject it.", ()
    diff = item_diff(expected, parsing.items)
    return ("The items are others than expected." if diff else None), diff


def _moment(value: Json) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
