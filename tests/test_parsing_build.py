"""A build: every source in one document, whatever single parsers do."""

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pravda.core.mistake import BadRequest
from pravda.core.states import State
from pravda.parsing import fixtures
from pravda.parsing.build import BuildResult, Code, Origin, build
from pravda.parsing.values import Trouble
from pravda.parsing.watch import Watch
from pravda.tree.sources_file import parse_sources
from tests.groves import LIST, NOW, bench, grove, snapshot, source, write


def built(root: Path, **limits: float) -> BuildResult:
    """The tree built, the present being known."""
    with bench(root, **limits) as opened:
        return build(opened, clock=NOW)


def warned(result: BuildResult) -> list[tuple[str, Code]]:
    """Who is warned of what."""
    return [(one.recipe.source_id, note.code) for one in result.sources for note in one.warnings]


def document(result: BuildResult) -> dict[str, dict[str, object]]:
    """The sources of the document."""
    sources = json.loads(result.document())["sources"]
    assert isinstance(sources, dict)
    return sources


def test_a_document(tmp_path):
    """A source has its items, where they come from, how fresh they are, and a state; keys are sorted."""
    result = built(grove(tmp_path))
    assert result.problem(strict=True) is None
    text = result.document().decode()
    assert text.endswith("}\n")
    read = json.loads(text)
    assert read["now"] is None
    assert list(read["sources"]["a"]) == sorted(read["sources"]["a"])
    found = read["sources"]["a"]
    assert found.pop("items") == [
        {"now": "2026-03-05T06:00:00+00:00", "title": "one"},
        {"now": "2026-03-05T06:00:00+00:00", "title": "two"},
    ]
    assert len(found.pop("contentHash")) == 64
    assert found == {
        "contentChangedAt": "2026-03-02T06:00:00.000Z",
        "failure": None,
        "freshAt": "2026-03-04T06:00:00.000Z",
        "itemCount": 2,
        "lastConfirmedAt": "2026-03-04T06:00:00.000Z",
        "origin": "snapshot",
        "originReason": None,
        "repaired": 0,
        "schemaFailures": [],
        "state": "live",
        "url": "https://example.org/list?page=1",
        "warnings": [],
    }


def test_the_same_bytes_again(tmp_path):
    """Two builds, of a copy elsewhere and with records of attempts, give the same bytes; sources come by id."""
    one = grove(tmp_path / "one", source("b") + source("a"), {"a": LIST, "b": LIST})
    two = grove(tmp_path / "two", source("a") + source("b"), {"a": LIST, "b": LIST})
    write(two, "snapshots/a.state.json", '{"sourceId": "a", "state": "down", "consecutiveFailures": 9}')
    first = built(one).document()
    assert first == built(two).document() == built(two).document()
    assert first.index(b'"a": {') < first.index(b'"b": {')


def test_the_present_may_be_given(tmp_path):
    """The present that is asked for reaches parsers and stands in the document."""
    with bench(grove(tmp_path)) as opened:
        result = build(opened, clock=NOW, now=datetime(2030, 1, 1, tzinfo=UTC))
    read = json.loads(result.document())
    assert read["now"] == "2030-01-01T00:00:00.000Z"
    assert read["sources"]["a"]["items"][0]["now"] == "2030-01-01T00:00:00+00:00"


BAD = """
    import os, sys
    def loops(page):
        while True: pass
    def raises(page):
        raise ValueError("no")
    def ends(page):
        os._exit(1)
    def floods(page):
        return [{"a": "b" * 5_000_000}]
"""


def test_one_parser_never_takes_the_build_down(tmp_path):
    """Endless, raising, dying and flooding parsers cost their own sources; those have null, not nothing."""
    names = ["loops", "raises", "ends", "floods", "absent"]
    text = source("good") + "".join(source(name, parser=f"parsers.bad:{name}") for name in names)
    result = built(
        grove(tmp_path, text, dict.fromkeys(["good", *names], LIST), bad=BAD), seconds=2, output=1_000_000
    )
    assert result.problem(strict=False) is None
    assert (result.problem(strict=True) or "").startswith("failed, or with too few items: absent, ends")
    assert set(result.failed) == set(names)
    found = document(result)
    assert found["good"]["itemCount"] == 2
    for name in names:
        assert (found[name]["items"], found[name]["itemCount"], found[name]["state"]) == (
            None,
            None,
            "partial",
        )
    troubles = {name: found[name]["failure"]["trouble"] for name in names}  # type: ignore[index]  # JSON
    assert troubles == {
        "loops": Trouble.TIMED_OUT,
        "raises": Trouble.RAISED,
        "ends": Trouble.DIED,
        "floods": Trouble.TOO_MUCH,
        "absent": Trouble.NOT_LOADED,
    }


def test_a_page_that_lost_its_items_is_told(tmp_path):
    """No items, fewer than demanded, far fewer than before: each is a warning, and never a silence."""
    text = source("zero") + source("few", "min_items = 5") + source("drop", "min_items = 0")
    root = grove(tmp_path, text, {})
    snapshot(root, "zero", b"<ul></ul>", itemCount=None)
    snapshot(root, "few", LIST)
    snapshot(root, "drop", b"<ul><li>1</ul>", itemCount=10)
    result = built(root)
    assert warned(result) == [("drop", Code.DROP), ("few", Code.FEW), ("zero", Code.ZERO)]
    assert [one.state for one in result.sources] == [State.LIVE, State.PARTIAL, State.PARTIAL]
    assert result.problem(strict=False) is None
    assert result.problem(strict=True) == "failed, or with too few items: few, zero"
    assert document(result)["zero"]["items"] == []


def test_items_out_of_schema_are_told(tmp_path):
    """Items that do not fit are left out, counted and named."""
    schema = "from pydantic import BaseModel\n\nclass Item(BaseModel):\n    title: int\n"
    root = grove(tmp_path, source("a", 'schema = "parsers.model:Item"'), model=schema)
    result = built(root)
    assert warned(result) == [("a", Code.SCHEMA), ("a", Code.ZERO), ("a", Code.DROP)]
    failures = document(result)["a"]["schemaFailures"]
    assert isinstance(failures, list)
    assert [failure["path"] for failure in failures] == ["items[0].title", "items[1].title"]


def test_without_a_snapshot_the_newest_fixture_stands_in(tmp_path):
    """In a clone without snapshots the newest fixture is parsed, and the document says so."""
    root = grove(tmp_path)
    for day, items in (("2026-01-01", 1), ("2026-02-01", 3)):
        write(root, f"fixtures/a/{day}.html", b"<ul>" + b"<li>x" * items)
        write(root, f"fixtures/a/{day}.expected.json", json.dumps([{"title": "x"}] * items))
    write(root, "fixtures/a/README.md", "not a page")
    (root / "snapshots" / "a.html").unlink()
    (root / "snapshots" / "a.meta.json").unlink()
    result = built(root)
    assert (result.sources[0].origin, warned(result)) == (Origin.FIXTURE, [("a", Code.FIXTURE)])
    found = document(result)["a"]
    assert found["itemCount"] == 3
    assert found["origin"] == "fixture"
    assert found["originReason"] == "There is no snapshot; these are the items of fixture 2026-02-01."
    assert (found["freshAt"], found["lastConfirmedAt"]) == ("2026-02-01T00:00:00.000Z", None)
    assert result.problem(strict=True) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda root: write(root, "snapshots/a.html", LIST.replace(b"<", b"\r\n<")),
        lambda root: write(root, "snapshots/a.meta.json", "{"),
        lambda root: (root / "snapshots" / "a.html").unlink(),
    ],
)
def test_damaged_bytes_are_never_parsed(tmp_path, damage):
    """A snapshot that is not what its metadata says is told, and a fixture stands in."""
    root = grove(tmp_path)
    write(root, "fixtures/a/2026-02-01.html", LIST)
    damage(root)
    result = built(root)
    assert warned(result) == [("a", Code.DAMAGED), ("a", Code.FIXTURE)]
    assert result.sources[0].why == "The snapshot is damaged; these are the items of fixture 2026-02-01."


def test_damaged_fixtures_are_passed_over(tmp_path):
    """A fixture whose bytes have changed is told and not used; an older one is."""
    root = grove(tmp_path, pages={})
    write(root, "fixtures/a/2026-01-01.html", LIST)
    write(root, "fixtures/a/2026-02-01.html", LIST)
    write(root, "fixtures/a/2026-02-01.meta.json", '{"contentHash": "00"}')
    result = built(root)
    assert warned(result) == [("a", Code.DAMAGED), ("a", Code.FIXTURE)]
    assert "fixture 2026-01-01" in (result.sources[0].why or "")


def test_a_source_with_nothing_is_an_error(tmp_path):
    """Neither snapshot nor fixture: the build fails, and the document is made all the same."""
    result = built(grove(tmp_path, source("a") + source("b")))
    assert result.problem(strict=False) == "neither snapshot nor fixture: b"
    found = document(result)["b"]
    assert (found["items"], found["origin"], found["state"]) == (None, None, None)
    assert found["failure"] == {
        "cause": None,
        "reason": None,
        "trouble": None,
        "detail": "There is neither a snapshot nor a fixture.",
    }
    assert document(result)["a"]["itemCount"] == 2


def test_when_every_source_fails_the_build_does(tmp_path):
    """A build in which nothing worked counts as failed."""
    result = built(grove(tmp_path, source("a", parser="parsers.absent:parse")))
    assert result.problem(strict=False) == "every source failed"


def test_a_source_without_a_parser(tmp_path):
    """A source that names no parser has no items and says so; that is no failure."""
    result = built(grove(tmp_path, source("a", parser=None)))
    assert warned(result) == [("a", Code.NO_PARSER)]
    assert (document(result)["a"]["items"], result.sources[0].state) == (None, State.LIVE)
    assert result.problem(strict=True) is None


def test_an_empty_tree(tmp_path):
    """A tree without sources builds to an empty document."""
    result = built(grove(tmp_path, "[defaults]\n"))
    assert json.loads(result.document()) == {"now": None, "sources": {}}
    assert result.problem(strict=True) is None


def test_a_bad_pattern_of_fixtures_is_told(tmp_path):
    """A pattern that cannot be one costs its own source."""
    result = built(grove(tmp_path, source("a", 'fixtures = "/absolute/*"'), {}))
    assert warned(result) == [("a", Code.DAMAGED)]
    assert result.missing == ("a",)


MOVED = """
    from datetime import date
    def can_parse(page):
        return "Titel" in (page.document.findtext(".//title") or "") and page.document.find(".//table") is not None
    def parse(page):
        for row in page.document.iter("tr"):
            yield {"day": date.fromisoformat(row.findtext("td"))}
"""
ROWS = b"<title>Titel</title><table><tr><td>2026-03-01</td></tr></table>"


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        (ROWS, None),
        (b"<title>Titel</title><div>2026-03-01</div>", Trouble.REJECTED),
        (ROWS.replace(b"2026-03-01", b"1 March 2026"), Trouble.RAISED),
        (ROWS.decode().encode("utf-16-le"), Trouble.REJECTED),
    ],
    ids=["as ever", "the table vanished", "dates changed form", "encoding changed"],
)
def test_a_page_that_changed_shape_is_never_silently_empty(tmp_path, body, trouble):
    """A vanished table, another form of dates, another encoding: rejected, with null for items."""
    root = grove(tmp_path, source("a", parser="parsers.moved:parse"), {}, moved=MOVED)
    snapshot(root, "a", body)
    (one,) = built(root).sources
    assert one.parsing is not None
    assert (one.parsing.problem.trouble if one.parsing.problem else None) is trouble
    assert (one.items is None) is (trouble is not None)


def test_keys_of_parsing_in_the_sources_file():
    """`schema` and `sanitize` are read, also from the defaults, and refused where they are no such thing."""
    text = '[defaults]\nsanitize = false\nschema = "s/x.json"\n' + source("a") + source("b", 'schema = "m:M"')
    first, second = parse_sources(text.encode()).sources
    assert (first.schema, first.sanitize, second.schema) == ("s/x.json", False, "m:M")
    for line in ('schema = "x"', "sanitize = 1"):
        with pytest.raises(BadRequest, match=r"sources\.toml:5"):
            parse_sources(source("a", line).encode())


def test_watching_sees_changes_that_matter(tmp_path):
    """Parsers, pages and sources count; records of attempts, temporary files, git and the document do not."""
    root = grove(tmp_path)
    seen = Watch(root, root / "out.json")
    assert not seen.changed()
    for name in ("snapshots/a.state.json", "a.html.tmp-1", ".git/x", "out.json", "snapshots/_refresh.lock"):
        write(root, name, "x")
    (root / "dangling").symlink_to("nowhere")
    assert not seen.changed()
    os.utime(root / "parsers" / "items.py", ns=(1, 1))
    assert seen.changed()
    write(root, "fixtures/a/2026-01-01.html", "x")
    assert seen.changed()
    assert not seen.changed()


def test_a_clone_builds_the_same(tmp_path):
    """A clone of the committed tree builds to the same bytes as the tree itself."""
    root = grove(tmp_path / "tree")
    write(root, ".gitattributes", "snapshots/** -text\n")
    write(root, "snapshots/a.state.json", '{"sourceId": "a", "state": "blocked"}')
    write(root, ".gitignore", "*.state.json\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=root, check=True)
    clone = tmp_path / "clone"
    subprocess.run([*git, "clone", "-q", str(root), str(clone)], check=True)
    assert built(root).document() == built(clone).document()


def test_fixtures_are_looked_for_only_where_they_are_needed(tmp_path, monkeypatch):
    """A build of whole snapshots never lists fixtures."""

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(fixtures, "find", never)
    assert built(grove(tmp_path)).failed == ()
