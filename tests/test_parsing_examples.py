"""The examples, and real pages read by example parsers."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pravda.core.states import State
from pravda.parsing.build import Origin, build
from pravda.parsing.fixtures import check, find
from pravda.tree.files import Tree
from tests.groves import bench

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
TREES = ["wiki-events", "sanctions-list", "json-api"]
PAGES = ROOT.parent / "shared" / "cases" / "pages"
NOW = datetime(2026, 3, 5, 6, tzinfo=UTC)


@pytest.fixture
def copy(tmp_path):
    """Gives a copy of an example."""

    def make(name: str) -> Path:
        return Path(shutil.copytree(EXAMPLES / name, tmp_path / name))

    return make


@pytest.mark.parametrize("name", TREES)
def test_an_example_builds_and_holds(copy, name):
    """Each example builds without a failure, is whole, and its parsers hold to their fixtures."""
    root = copy(name)
    with bench(root) as opened:
        result = build(opened, clock=NOW)
        assert result.problem(strict=True) is None
        assert all(one.origin is Origin.SNAPSHOT and one.state is State.LIVE for one in result.sources)
        for recipe in opened.recipes:
            found = find(opened, recipe)
            assert found
            assert [check(opened, recipe, fixture).problem for fixture in found] == [None] * len(found)
            assert Tree(root).page(recipe.source_id, recipe.extension).damage == ()


@pytest.mark.parametrize("name", TREES)
def test_an_example_without_snapshots_falls_back(copy, name):
    """In a clone without snapshots every example falls back to its fixtures and says so."""
    root = copy(name)
    shutil.rmtree(root / "snapshots")
    with bench(root) as opened:
        result = build(opened, clock=NOW)
    assert result.problem(strict=False) is None
    assert {one.origin for one in result.sources} == {Origin.FIXTURE}
    assert all(one.why and "There is no snapshot" in one.why for one in result.sources)


def test_an_example_in_another_charset_is_rejected(copy):
    """The sanctions list read in a wrong charset is rejected, not published as letters without sense."""
    root = copy("sanctions-list")
    path = root / "snapshots" / "designated-persons.meta.json"
    path.write_text(path.read_text().replace("shift_jis", "windows-1252"))
    with bench(root) as opened:
        (one,) = build(opened, clock=NOW).sources
    assert (one.items, one.state) == (None, State.PARTIAL)


def test_the_table_of_events_is_clean(copy):
    """Left-over markup, zero-width and bidi characters do not reach the items; links are absolute."""
    with bench(copy("wiki-events")) as opened:
        (one,) = build(opened, clock=NOW).sources
    assert one.items is not None
    assert [(item["title"], item["place"]) for item in one.items] == [
        ("Lantern Night", "Old Pier"),
        ("Regatta & Fair", "Bay"),
        ("Night of the Bells", None),
        ("Kite Day", "East Field"),
    ]
    assert one.items[0]["url"] == "https://wiki.harbour.example/wiki/Lantern_Night"
    assert one.parsing is not None
    assert one.parsing.repaired > 0


@pytest.mark.skipif(not PAGES.is_dir(), reason="the cases are not beside the project")
def test_real_pages(copy):
    """Three real pages are read by example parsers: every source has items, whose links are absolute."""
    root = copy("game-wikis")
    shutil.copytree(PAGES, root / "snapshots")
    with bench(root) as opened:
        result = build(opened, clock=NOW, now=datetime(2026, 8, 22, 5, 48, tzinfo=UTC))
        again = build(opened, clock=NOW, now=datetime(2026, 8, 22, 5, 48, tzinfo=UTC))
    assert result.document() == again.document()
    assert result.problem(strict=True) is None
    found = {source_id: one["items"] for source_id, one in json.loads(result.document())["sources"].items()}
    assert {source_id: len(items) for source_id, items in found.items()} == {
        "ba-bawiki-events": 3,
        "nikke-fandom-events": 1,
        "stellasora-stellasorawiki-events": 4,
    }
    assert found["nikke-fandom-events"] == [
        {
            "title": "Persona on Frontline",
            "start": "2026-08-12T00:00:00+09:00",
            "end": "2026-09-10T04:59:59+09:00",
        }
    ]
    assert [item["region"] for item in found["ba-bawiki-events"]] == ["jp", "global", "global"]
    urls = [item["url"] for items in found.values() for item in items if "url" in item]
    assert all(url.startswith("https://") for url in urls)
