"""Fixtures: pinned for ever, told apart by date, compared readably."""

import json
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from pravda.core.mistake import BadRequest
from pravda.parsing import files
from pravda.parsing.bench import Stored
from pravda.parsing.diff import counts, item_diff
from pravda.parsing.files import Unreadable
from pravda.parsing.fixtures import Checked, add, check, find, pinned
from pravda.parsing.values import Item
from tests.groves import LIST, NOW, bench, grove, snapshot, source, write


def check_all(root: Path, *, update: bool = False) -> list[Checked]:
    """Every fixture of the first source, checked."""
    with bench(root) as opened:
        recipe = opened.recipes[0]
        return [check(opened, recipe, fixture, update=update) for fixture in find(opened, recipe)]


def test_a_fixture_is_pinned_and_holds(tmp_path):
    """Pinning writes page, metadata and items; the pinned present makes the check independent of the day."""
    root = grove(tmp_path)
    with bench(root) as opened:
        fixture, parsing = add(opened, opened.recipes[0], NOW)
        assert parsing.items is not None
    folder = root / "fixtures" / "a"
    assert fixture.body == folder / "2026-03-02.html"
    assert fixture.body.read_bytes() == LIST
    assert json.loads((folder / "2026-03-02.meta.json").read_text()) == {
        "sourceId": "a",
        "url": "https://example.org/list?page=1",
        "contentHash": sha256(LIST).hexdigest(),
        "bytes": len(LIST),
        "charset": "utf-8",
        "capturedAt": "2026-03-02T06:00:00.000Z",
        "now": "2026-03-05T06:00:00.000Z",
    }
    assert (folder / "2026-03-02.expected.json").read_text() == (
        "[\n"
        '  {"now": "2026-03-05T06:00:00+00:00", "title": "one"},\n'
        '  {"now": "2026-03-05T06:00:00+00:00", "title": "two"}\n'
        "]\n"
    )
    (checked,) = check_all(root)
    assert (checked.problem, checked.diff) == (None, ())


def test_two_pages_of_one_day(tmp_path):
    """Another page of the same day gets its second in its name; the same page is not pinned twice."""
    root = grove(tmp_path)
    with bench(root) as opened:
        recipe = opened.recipes[0]
        add(opened, recipe, NOW)
        with pytest.raises(BadRequest, match=r"pinned already, as fixtures/a/2026-03-02\.html"):
            add(opened, recipe, NOW)
        snapshot(root, "a", LIST + b"<p>")
        assert add(opened, recipe, NOW)[0].name == "2026-03-02T06-00-00Z"
        snapshot(root, "a", LIST + b"<p><p>")
        with pytest.raises(BadRequest, match="holds another page"):
            add(opened, recipe, NOW)
        assert [fixture.name for fixture in find(opened, recipe)] == ["2026-03-02", "2026-03-02T06-00-00Z"]


def test_a_page_that_must_be_rejected_may_be_pinned(tmp_path):
    """A page whose table vanished can be pinned as one that the parser is to reject."""
    root = grove(tmp_path, pages={"a": b"<p>moved"})
    with bench(root) as opened:
        with pytest.raises(BadRequest, match=r"can_parse says .* --rejected"):
            add(opened, opened.recipes[0], NOW)
        add(opened, opened.recipes[0], NOW, allow_failure=True)
    assert check_all(root)[0].problem is None
    write(root, "parsers/items.py", "def parse(page):\n    return [{}]\n")
    assert check_all(root)[0].problem == "The parser takes it, with 1 items, and should reject it."


def test_nothing_to_pin(tmp_path):
    """Without a whole snapshot, or without a parser, there is nothing to pin."""
    with (
        bench(grove(tmp_path / "one", pages={})) as opened,
        pytest.raises(BadRequest, match="no whole snapshot"),
    ):
        add(opened, opened.recipes[0], NOW)
    with (
        bench(grove(tmp_path / "two", source("a", parser=None))) as opened,
        pytest.raises(BadRequest, match="names no parser"),
    ):
        add(opened, opened.recipes[0], NOW)


def test_a_changed_parser_is_shown_and_may_be_accepted(tmp_path):
    """A difference is shown by item and key; an update accepts it, and a second one writes nothing."""
    root = grove(tmp_path)
    with bench(root) as opened:
        add(opened, opened.recipes[0], NOW)
    write(root, "parsers/items.py", "def parse(page):\n    return [{'title': 'one'}, {'title': 'three'}]\n")
    (checked,) = check_all(root)
    assert checked.problem == "The items are others than expected."
    assert checked.diff == (
        "  item 0:",
        '-   "now": "2026-03-05T06:00:00+00:00"',
        "  item 1:",
        '-   "now": "2026-03-05T06:00:00+00:00"',
        '-   "title": "two"',
        '+   "title": "three"',
    )
    assert check_all(root, update=True)[0].updated
    assert not check_all(root, update=True)[0].updated
    assert check_all(root)[0].problem is None


def test_a_failing_parser_fails_the_check(tmp_path):
    """A parser that raises on a pinned page is told with its own words."""
    root = grove(tmp_path)
    with bench(root) as opened:
        add(opened, opened.recipes[0], NOW)
    write(root, "parsers/items.py", "def parse(page):\n    return page.absent\n")
    assert "AttributeError" in (check_all(root)[0].problem or "")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("meta", "{", "2026-01-01.meta.json is no JSON."),
        ("meta", "[]", "2026-01-01.meta.json is no JSON object."),
        ("meta", '{"contentHash": "00"}', "2026-01-01.html is not what was pinned: the hash differs."),
        ("expected", "{", "2026-01-01.expected.json is no JSON."),
        ("expected", "[1]", "2026-01-01.expected.json is no list of items."),
        ("expected", '{"items": 1}', "2026-01-01.expected.json is no list of items."),
        ("expected", None, "It has no .expected.json; look at what the parser gives"),
    ],
)
def test_broken_fixtures_are_told(tmp_path, name, text, words):
    """A fixture that cannot be read, or expects nothing, fails its check and says why."""
    root = grove(tmp_path)
    write(root, "fixtures/a/2026-01-01.html", LIST)
    if text:
        write(root, f"fixtures/a/2026-01-01.{name}.json", text)
    (checked,) = check_all(root)
    assert words in (checked.problem or "")


def test_an_older_layout_is_read_by_its_pattern(tmp_path):
    """`fixtures` is a pattern in which {id} is the source; dates are found in names, and charsets in pages."""
    root = grove(tmp_path, source("a", 'fixtures = "test/data/{id}-*.html"'))
    write(root, "test/data/a-20260201.html", "<meta charset=shift_jis><ul><li>日本</ul>".encode("shift_jis"))
    write(
        root,
        "test/data/a-20260201.expected.json",
        '{"items": [{"title": "日本", "now": "2026-02-01T00:00:00+00:00"}]}',
    )
    write(root, "test/data/a-2025-12-31x.html", LIST)
    write(
        root,
        "test/data/a-2025-12-31x.meta.json",
        '{"fetchedAt": "2025-12-31T10:00:00", "url": "https://o.example/"}',
    )
    write(root, "test/data/a-undated-99999999.html", LIST)
    write(root, "test/data/b-2026-01-01.html", LIST)
    with bench(root) as opened:
        recipe = opened.recipes[0]
        found = find(opened, recipe)
        assert [fixture.name for fixture in found] == ["a-undated-99999999", "a-2025-12-31x", "a-20260201"]
        pages = [pinned(fixture, recipe) for fixture in found]
    assert pages[0].page.captured_at == datetime.min.replace(tzinfo=UTC)
    assert pages[1].page.captured_at == pages[1].now == datetime(2025, 12, 31, 10, tzinfo=UTC)
    assert pages[1].page.url == "https://o.example/"
    assert (pages[2].page.charset, pages[2].page.item_count) == ("shift_jis", 1)
    assert check_all(root)[2].problem is None


def test_a_fixture_that_went_away(tmp_path):
    """A page that is gone by the time it is read is told."""
    root = grove(tmp_path)
    path = write(root, "fixtures/a/2026-01-01.html", LIST)
    with bench(root) as opened:
        (fixture,) = find(opened, opened.recipes[0])
        path.unlink()
        with pytest.raises(Unreadable, match="is not there"):
            pinned(fixture, opened.recipes[0])


def test_too_many_fixtures_are_refused(tmp_path, monkeypatch):
    """A pattern that names a whole disk is a mistake, not a long run."""
    monkeypatch.setattr("pravda.parsing.fixtures._MOST", 3)
    root = grove(tmp_path, source("a", 'fixtures = "**/*"'))
    with bench(root) as opened, pytest.raises(BadRequest, match="more than 3 files"):
        find(opened, opened.recipes[0])


def test_files_are_written_whole_or_not_at_all(tmp_path):
    """The same bytes are not written again; nothing stays behind when writing fails."""
    path = tmp_path / "a" / "x.json"
    assert files.write(path, b"one")
    before = path.stat().st_mtime_ns
    assert not files.write(path, b"one")
    assert path.stat().st_mtime_ns == before
    assert files.write(path, b"two")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        files.write(tmp_path / "folder", b"x")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "folder"]
    assert files.read(tmp_path / "folder") is None
    with pytest.raises(Unreadable, match="longer than 2 bytes"):
        files.read(path, 2)
    with pytest.raises(Unreadable, match="cannot be read"):
        files.read(tmp_path / ("x" * 300))


def some(*names: str) -> list[Item]:
    """Items by name."""
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (some("a"), some("a"), ()),
        ([], some("a"), ('+ item 0: {"name": "a"}',)),
        (some("a", "b", "c"), some("a", "c"), ('- item 1: {"name": "b"}',)),
        (some("a", "c"), some("a", "b", "c"), ('+ item 1: {"name": "b"}',)),
        ([{"n": 1}], [{"n": 1.0}], ("  item 0:", '-   "n": 1', '+   "n": 1.0')),
        ([{"n": None}], [{}], ("  item 0:", '-   "n": null')),
    ],
)
def test_differences(before, after, lines):
    """Items that came, went or changed, each once; 1 is not 1.0, and null is not nothing."""
    assert item_diff(before, after) == lines


def test_long_differences_are_cut(tmp_path):
    """A difference of many or long items stays readable, and takes no time."""
    began = time.perf_counter()
    told = item_diff(some(*map(str, range(50_000))), some(*(f"{n} {'x' * 1000}" for n in range(50_000))))
    assert time.perf_counter() - began < 3
    assert told[-1] == "... and more"
    assert max(map(len, told)) < 600
    assert counts(some("a", "b"), some("b", "c", "d")) == (2, 1)


def test_freshness_of_a_page():
    """A page is as fresh as the later of its capture and its confirmation."""
    day, later = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
    page = Stored(body=b"", charset="utf-8", url="", captured_at=day)
    assert page.fresh_at == day
    assert Stored(body=b"", charset="", url="", captured_at=day, confirmed_at=later).fresh_at == later
    assert Stored(body=b"", charset="", url="", captured_at=later, confirmed_at=day).fresh_at == later
