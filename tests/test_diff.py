"""What differs between two texts and between two snapshots."""

import difflib
import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from pravda.cli.main import cli
from pravda.core import lines as module
from pravda.core.difference import Difference, Fact, Kind, difference, difference_to_json
from pravda.core.evidence import Content, Response
from pravda.core.lines import MOST_LINES, MOST_SHOWN, Change, Hunk, LineDiff, compare
from pravda.core.outcome import Snapshot
from pravda.core.states import Exit, State
from pravda.core.text import Page
from tests.factories import a_snapshot, new_id
from tests.origin import BODY, HT, Origin, R, Script

TEXTS = st.lists(st.sampled_from("abcdefgh"), max_size=40)


def unified(found: LineDiff) -> list[str]:
    """As `diff -u` writes it, without its head."""
    out = []
    for hunk in found.hunks:
        removed = sum(line.change is not Change.ADDED for line in hunk.lines)
        added = sum(line.change is not Change.REMOVED for line in hunk.lines)
        out.append(f"@@ -{hunk.before},{removed} +{hunk.after},{added} @@")
        out += [f"{line.change}{line.text}" for line in hunk.lines]
    return out


def applied(before: list[str], hunks: tuple[Hunk, ...]) -> list[str]:
    """The later text, made from the earlier one and the changes."""
    out, at = [], 0
    for hunk in hunks:
        out += before[at : hunk.before - 1]
        at = hunk.before - 1
        assert len(out) == hunk.after - 1
        for line in hunk.lines:
            if line.change is not Change.ADDED:
                assert before[at] == line.text
                at += 1
            if line.change is not Change.REMOVED:
                out.append(line.text)
    return out + before[at:]


@given(before=TEXTS, after=TEXTS)
def test_changes_lead_from_one_text_to_the_other(before, after):
    """Applied to the earlier text the changes give the later one, and the counts are theirs."""
    found = compare(before, after)
    assert applied(before, found.hunks) == after
    changed = [line.change for hunk in found.hunks for line in hunk.lines]
    assert (found.added, found.removed) == (changed.count(Change.ADDED), changed.count(Change.REMOVED))
    assert bool(found.hunks) == (before != after)
    assert not found.cut


def test_a_change_among_many_lines():
    """A change is shown with three lines around it, as `diff -u` does."""
    before = [str(number) for number in range(100)]
    after = [*before[:50], "new", *before[51:80], *before[81:]]
    expected = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    assert unified(compare(before, after)) == expected


def test_near_changes_share_a_hunk():
    """Changes whose surroundings touch stand together; farther ones apart."""
    before = [str(number) for number in range(40)]
    near = [line + "!" if line in ("10", "17") else line for line in before]
    far = [line + "!" if line in ("10", "18") else line for line in before]
    assert len(compare(before, near).hunks) == 1
    assert len(compare(before, far).hunks) == 2


def test_a_moved_block():
    """Lines that moved are found as one removal and one addition."""
    before = [f"line {number}" for number in range(60)]
    after = before[20:40] + before[:20] + before[40:]
    found = compare(before, after)
    assert (found.added, found.removed) == (20, 20)


def test_long_lines_are_broken():
    """A paragraph is compared sentence by sentence, and what has no sentences in pieces."""
    sentences = [f"This is sentence number {number}." for number in range(50)]
    before, after = " ".join(sentences), " ".join([*sentences[:25], "A new one.", *sentences[25:]])
    found = compare([before], [after])
    assert (found.added, found.removed) == (1, 0)
    assert compare(["x" * 1000], ["x" * 1000 + "y"]).added == 1
    assert compare(["." * 300 + " "], []).removed == 2


def test_texts_that_are_too_long():
    """Beyond a number of lines texts are not compared, and results not shown; both are said."""
    many = [str(number) for number in range(MOST_LINES)]
    assert not compare(many, many).cut
    assert compare([*many, "more"], [*many, "other"]).cut
    found = compare(many[: MOST_SHOWN + 10], [])
    assert found.cut
    assert found.removed == MOST_SHOWN + 10
    assert len(found.hunks[0].lines) == MOST_SHOWN


def hostile() -> dict[str, tuple[list[str], list[str]]]:
    chance = random.Random(1)
    size = 20_000
    stairs = [str(number // 2) for number in range(size)]
    return {
        "two letters": (
            [chance.choice("ab") for _ in range(size)],
            [chance.choice("ab") for _ in range(size)],
        ),
        "many letters": (
            [str(chance.randrange(200)) for _ in range(size)],
            [str(chance.randrange(200)) for _ in range(size)],
        ),
        "nothing in common": (
            [f"a{number}" for number in range(size)],
            [f"b{number}" for number in range(size)],
        ),
        "backwards": (
            [str(number) for number in range(size)],
            [str(number) for number in reversed(range(size))],
        ),
        "one unique line at a time": ([*stairs, "x", *stairs[1:]], [*stairs[1:], "x", *stairs]),
        "all the same": (["a"] * size, ["a"] * (size - 1)),
        "pairs": (["a", "b"] * size, ["b", "a"] * size),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_texts_take_bounded_time(name):
    """Texts made to be slow to compare are compared roughly instead."""
    before, after = hostile()[name]
    began = time.process_time()
    found = compare(before, after)
    assert time.process_time() - began < 8
    if not found.cut:
        assert applied(before, found.hunks) == after


def test_work_is_counted(monkeypatch):
    """When too much would have to be looked at, what is left counts as replaced."""
    monkeypatch.setattr(module, "_WORK", 10)
    before, after = list("abcdefghij"), list("xbcdefghiy")
    found = compare(before, after)
    assert (found.added, found.removed) == (10, 10)
    assert applied(before, found.hunks) == after


def a_page(body: bytes, kind: str = "text/html", *, whole: bool = True) -> Page:
    return Page(body, content_type=kind, charset="utf-8", whole=whole)


def between(before: Page | None, after: Page | None) -> Difference:
    """The difference of two snapshots that differ in nothing but what is handed in."""
    snapshot, _ = a_snapshot()
    return difference(snapshot, replace(snapshot, id=new_id()), before, after)


def test_equal_snapshots():
    """Snapshots of one page in one state with the same headers are the same."""
    found = between(a_page(b"<p>one"), a_page(b"<p>one"))
    assert found.same
    assert (found.facts, found.headers, found.text.hunks, found.kind) == ((), (), (), Kind.TEXT)


def test_the_text_that_a_reader_sees():
    """Of HTML the visible text is compared, a line for each block and each row of a table."""
    row = b"<tr><td>%s</td>\n<td>%s</td></tr>"
    table = b"<script>var a = %d</script><h1>List</h1><table>" + row + row + b"</table>"
    found = between(a_page(table % (1, b"A", b"1", b"B", b"2")), a_page(table % (2, b"A", b"1", b"B", b"3")))
    assert unified(found.text) == ["@@ -1,3 +1,3 @@", " List", " A 1", "-B 2", "+B 3"]


def test_json_is_compared_by_value():
    """JSON is compared value by value, whatever its layout and the order of its names."""
    before, after = b'{"a":1,"b":[1,2]}', b'{ "b": [1, 3],\n "a": 1 }'
    found = between(a_page(before, "application/json"), a_page(after, "application/json"))
    assert found.kind is Kind.JSON
    assert [line for line in unified(found.text) if line[0] in "+-"] == ["-2", "+3"]


@pytest.mark.parametrize(
    ("body", "kind", "whole"),
    [
        (b"{broken", "application/json", True),
        (b'{"a":1}', "application/json", False),
        (b"[" * 100_000, "application/json", True),
        (b"some text", "text/plain", True),
        (b"<a>x</a>", "application/xml", True),
    ],
)
def test_other_text_is_compared_by_line(body, kind, whole):
    """JSON that cannot be read, plain text and XML are compared as they stand."""
    found = between(a_page(body, kind, whole=whole), a_page(body + b"\nmore", kind, whole=whole))
    assert found.kind is Kind.LINES
    assert found.text.added == 1


def test_json_that_cannot_be_written(monkeypatch):
    """JSON that is read but nested too deep to be written again is compared by line."""

    def refuse(*arguments: object, **names: object) -> str:
        raise RecursionError

    monkeypatch.setattr(json, "dumps", refuse)
    found = between(a_page(b"[1]", "application/json"), a_page(b"[2]", "application/json"))
    assert found.kind is Kind.LINES


def test_binaries_and_missing_contents():
    """Of binaries only facts are compared, and where one has no content there is no text to compare."""
    image = a_page(b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png")
    assert between(image, a_page(b"<p>x")).kind is Kind.BINARY
    assert between(a_page(b"<p>x"), image).kind is Kind.BINARY
    assert between(image, None).kind is between(None, image).kind is Kind.NONE


def changed(snapshot: Snapshot, *headers: tuple[str, str], status: int = 200, **evidence: object) -> Snapshot:
    response = Response(status=status, version="1.1", headers=headers)
    return replace(
        snapshot,
        id=new_id(),
        evidence=replace(snapshot.evidence, response=response, **evidence),  # type: ignore[arg-type]  # whatever a test says
    )


def test_facts():
    """State, reason, status, final URL and content are named with both values."""
    before, _ = a_snapshot()
    after, _ = a_snapshot(state=State.DOWN, body=b"")
    after = replace(after, evidence=replace(after.evidence, content=None, final_url="https://example.org/x"))
    found = difference(before, after, None, None)
    assert not found.same
    content = before.evidence.content
    assert isinstance(content, Content)
    assert found.facts == (
        Fact(name="state", before="live", after="down"),
        Fact(name="reason", before=None, after="service_unavailable"),
        Fact(name="status", before=200, after=503),
        Fact(name="final_url", before=before.evidence.final_url, after="https://example.org/x"),
        Fact(name="media_type", before="text/html", after=None),
        Fact(name="charset", before="utf-8", after=None),
        Fact(name="bytes", before=content.bytes, after=None),
        Fact(name="sha256", before=content.sha256, after=None),
    )
    without = changed(before)
    silent = replace(without, evidence=replace(without.evidence, response=None))
    assert Fact(name="status", before=200, after=None) in difference(before, silent, None, None).facts


def test_headers():
    """Headers are compared by name in any letter case, with all values in order; passing ones make no difference."""
    snapshot, _ = a_snapshot()
    before = changed(snapshot, ("Server", "a"), ("Link", "1"), ("Link", "2"), ("Date", "x"), ("Gone", "g"))
    after = changed(snapshot, ("server", "a"), ("Link", "2"), ("Link", "1"), ("Date", "y"), ("New", "n"))
    found = difference(before, after, None, None)
    assert [(one.name, one.before, one.after, one.passing) for one in found.headers] == [
        ("date", ("x",), ("y",), True),
        ("gone", ("g",), (), False),
        ("link", ("1", "2"), ("2", "1"), False),
        ("new", (), ("n",), False),
    ]
    assert not found.same
    assert difference(changed(snapshot, ("Date", "x")), changed(snapshot, ("Date", "y")), None, None).same


def test_a_confirmation_is_the_same_page():
    """A 304 differs from the page it confirms neither in its status nor in the headers that it leaves out."""
    snapshot, _ = a_snapshot()
    before = changed(snapshot, ("Content-Type", "text/html"), ("ETag", '"a"'))
    after = replace(changed(snapshot, ("ETag", '"a"'), status=304), not_modified=True)
    assert difference(before, after, None, None).same
    assert difference(after, before, None, None).same
    renewed = replace(changed(snapshot, ("ETag", '"b"'), status=304), not_modified=True)
    assert [one.name for one in difference(before, renewed, None, None).headers] == ["etag"]


def test_the_json_form():
    """The JSON form holds everything, and is JSON."""
    found = between(a_page(b"<p>one"), a_page(b"<p>two"))
    wire = json.loads(json.dumps(difference_to_json(found)))
    assert wire["text"] == {
        "kind": "text", "added": 1, "removed": 1, "cut": False,
        "hunks": [{"before": 1, "after": 1, "lines": [["-", "one"], ["+", "two"]]}],
    }  # fmt: skip
    assert (wire["before"], wire["after"], wire["same"]) == (found.before, found.after, True)
    snapshot, _ = a_snapshot()
    wire = difference_to_json(difference(snapshot, changed(snapshot, ("A", "b"), status=201), None, None))
    assert wire["facts"] == [{"name": "status", "before": 200, "after": 201}]
    assert {"name": "a", "before": [], "after": ["b"], "passing": False} in wire["headers"]  # type: ignore[operator]  # a list


# on the command line


@pytest.fixture
def home(tmp_path):
    """The folder of an archive that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def origin():
    """A site."""
    with Origin() as site:
        yield site


def pravda(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)])


def captured(home: Path, origin: Origin, *replies: bytes) -> list[str]:
    """The ids of one page's snapshots, one for each reply."""
    origin.routes["/page"] = Script(*([reply] for reply in replies))
    ids = []
    for _ in replies:
        result = pravda(home, "capture", "--json", "--allow-failure", origin.url("/page"))
        ids.append(json.loads(result.stdout)["attempt"]["id"])
    return ids


def test_the_same_page_twice(home, origin):
    """Two captures of an unchanged page: exit 0, also with another Date."""
    first, second = captured(
        home, origin, R(b"200 OK", BODY, HT, b"Date: one"), R(b"200 OK", BODY, HT, b"Date: two")
    )
    result = pravda(home, "diff", first, second)
    assert result.exit_code == Exit.OK
    assert "no difference" in result.output
    assert "+date: two  (changes with every exchange)" in result.output


def test_a_changed_page(home, origin):
    """A changed page: exit 1, with facts, headers and text; nothing in it steers the terminal."""
    first, second = captured(
        home,
        origin,
        R(b"200 OK", b"<h1>Title</h1><p>one \x1b[31m red", HT, b"X-A: 1"),
        R(b"200 OK", b"<h1>Title</h1><p>two \x1b[31m red", HT, b"X-A: 2"),
    )
    result = pravda(home, "diff", first, second)
    assert result.exit_code == Exit.DIFFERENT
    for text in ("sha256", "-x-a: 1", "+x-a: 2", "@@ -1,2 +1,2 @@", " Title", "-one \\x1b[31m red", "+two"):
        assert text in result.output
    assert "\x1b" not in result.output
    wire = json.loads(pravda(home, "diff", "--json", first, second).output)
    assert wire["same"] is False


@pytest.mark.parametrize(
    ("kind", "before", "after", "said"),
    [
        (b"text/html", b"<script>1</script><p>x", b"<script>2</script><p>x", "a reader sees the same text"),
        (b"application/json", b"[1]", b"[ 1]", "the values are the same"),
        (b"text/plain", b"some text\r\n", b"some text\n", "the text is the same"),
        (
            b"image/png",
            b"\x89PNG\r\n\x1a\n" + b"a" * 50,
            b"\x89PNG\r\n\x1a\n" + b"b" * 60,
            "the contents are no text",
        ),
    ],
)
def test_changes_that_no_text_shows(home, origin, kind, before, after, said):
    """Where only bytes changed that is said, and sizes and hashes are shown."""
    header = b"Content-Type: " + kind
    first, second = captured(home, origin, R(b"200 OK", before, header), R(b"200 OK", after, header))
    result = pravda(home, "diff", first, second)
    assert result.exit_code == Exit.DIFFERENT
    assert said in result.output
    if len(before) != len(after):
        assert f"({len(before)}) -> " in result.output


def test_a_page_that_broke(home, origin):
    """A page and an attempt without content are compared by their facts."""
    origin.routes["/page"] = [R(b"200 OK", BODY, HT)]
    first = json.loads(pravda(home, "capture", "--json", origin.url("/page")).stdout)["attempt"]["id"]
    origin.close()
    result = pravda(home, "capture", "--json", "--allow-failure", origin.url("/page"))
    second = json.loads(result.stdout)["attempt"]["id"]
    result = pravda(home, "diff", first, second)
    assert result.exit_code == Exit.DIFFERENT
    assert "live -> down" in result.output
    assert "one of the two has no content" in result.output


def test_a_confirmed_page(home, origin):
    """The text of a 304 is that of the page it confirmed."""
    origin.routes["/page"] = Script(
        [R(b"200 OK", BODY, HT, b'ETag: "a"')], [R(b"304 Not Modified", b"", b'ETag: "a"', cl=False)]
    )
    ids = [
        json.loads(pravda(home, "capture", "--json", "--conditional", origin.url("/page")).stdout)["attempt"][
            "id"
        ]
        for _ in range(2)
    ]
    result = pravda(home, "diff", *ids)
    assert (result.exit_code, "no difference" in result.output) == (Exit.OK, True)


def test_a_long_page(home, origin):
    """A page with more changes than are shown says so."""
    body = b"".join(b"<p>line %d" % number for number in range(MOST_SHOWN + 100))
    first, second = captured(home, origin, R(b"200 OK", body, HT), R(b"200 OK", b"<p>short page", HT))
    assert "too long to compare or to show" in pravda(home, "diff", first, second).output


def test_what_is_not_there_or_damaged(home, origin):
    """An unknown id: exit 4; damaged bytes are not compared: exit 20."""
    (first,) = captured(home, origin, R(b"200 OK", BODY, HT))
    assert pravda(home, "diff", first, new_id()).exit_code == Exit.NOT_FOUND
    for path in (home / "blobs").rglob("*.zst"):
        path.write_bytes(b"")
    assert pravda(home, "diff", first, first).exit_code == Exit.ARCHIVE
