"""The commands that parse: output, exit codes, and that nothing is ever asked for."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravda import open_blocking
from pravda.cli.main import cli
from tests.groves import ITEMS, LIST, grove, snapshot, source, write
from tests.origin import HT, Origin, R

AT = ("--now", "2026-03-05T06:00:00Z")


def pravda(*arguments: str, stdin: bytes | None = None) -> Result:
    """One command in this process."""
    return CliRunner().invoke(cli, arguments, input=stdin)


def in_a_shell(
    *arguments: str, prefix: tuple[str, ...] = (), cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """One command in a process of its own."""
    return subprocess.run(
        [*prefix, sys.executable, "-m", "pravda", *arguments], capture_output=True, check=False, cwd=cwd
    )


def titles(result: Result) -> list[str]:
    """The titles of the items on stdout."""
    return [item["title"] for item in json.loads(result.stdout)]


def test_parse_the_stored_page(tmp_path):
    """`parse ID` prints the items of the stored page as JSON."""
    root = str(grove(tmp_path))
    result = pravda("parse", "a", "--tree", root, *AT)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "[\n"
        '  {"now": "2026-03-05T06:00:00+00:00", "title": "one"},\n'
        '  {"now": "2026-03-05T06:00:00+00:00", "title": "two"}\n'
        "]\n"
    )


def test_parse_other_pages(tmp_path):
    """A fixture comes with its own present, a file and stdin with a charset found or given."""
    root = str(grove(tmp_path))
    write(tmp_path, "fixtures/a/2026-01-01.html", b"<ul><li>pinned</ul>")
    pinned = pravda("parse", "a", "--tree", root, "--fixture", "2026-01-01")
    assert json.loads(pinned.stdout) == [{"title": "pinned", "now": "2026-01-01T00:00:00+00:00"}]
    given = pravda("parse", "a", "--tree", root, "--fixture", "2026-01", *AT)
    assert json.loads(given.stdout)[0]["now"] == "2026-03-05T06:00:00+00:00"
    page = "<meta charset=shift_jis><ul><li>日本".encode("shift_jis")
    path = write(tmp_path, "x.html", page)
    assert titles(pravda("parse", "a", "--tree", root, "--file", str(path))) == ["日本"]
    page = "<ul><li>日本".encode("euc_jp")
    assert titles(pravda("parse", "a", "--tree", root, "--file", "-", "--charset", "EUC-JP", stdin=page)) == [
        "日本"
    ]


def test_parse_says_what_it_did(tmp_path):
    """Repairs, schema failures and prints go to stderr, escaped; `--json` holds them all."""
    parser = """
        from pydantic import BaseModel

        class Item(BaseModel):
            title: str

        def parse(page):
            print("\\x1b[31m::error::x")
            return [{"title": " a"}, {"title": 1}]
    """
    root = str(grove(tmp_path, source("a", 'schema = "parsers.items:Item"'), items=parser))
    result = pravda("parse", "a", "--tree", root)
    assert result.exit_code == 0
    assert "1 values repaired; --verbose names them" in result.stderr
    assert "items[1].title does not fit the schema and is left out" in result.stderr
    result = pravda("parse", "a", "--tree", root, "-v", "--json")
    assert "items[0].title repaired: white_space" in result.stderr
    assert "printed: \\x1b[31m::error::x" in result.stderr
    assert all(line.startswith("pravda: ") for line in result.stderr.splitlines())
    told = json.loads(result.stdout)
    assert told["items"] == [{"title": "a"}]
    assert told["repairs"] == [{"path": "items[0].title", "what": ["white_space"]}]
    assert told["schemaFailures"][0]["path"] == "items[1].title"
    assert told["problem"] is None


def test_parse_that_fails(tmp_path):
    """A parser that raises is exit 13 and one line; `--verbose` adds its traceback; no items are said to be none."""
    root = str(grove(tmp_path, items="def parse(page):\n    raise ValueError('no\\n::error::x')\n"))
    result = pravda("parse", "a", "--tree", root)
    assert (result.exit_code, result.stdout) == (13, "")
    assert result.stderr == "pravda: a: ValueError: no ::error::x\n"
    assert "Traceback" in pravda("parse", "a", "--tree", root, "--verbose").stderr
    assert json.loads(pravda("parse", "a", "--tree", root, "--json").stdout)["problem"]["trouble"] == "raised"
    write(tmp_path, "parsers/items.py", "def parse(page):\n    return []\n")
    result = pravda("parse", "a", "--tree", root)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "[]\n", "pravda: a: no items\n")
    write(tmp_path, "parsers/items.py", "def parse(page):\n    while True: pass\n")
    result = pravda("parse", "a", "--tree", root, "--deadline", "0.5")
    assert (result.exit_code, result.stderr) == (13, "pravda: a: It took longer than 0.5 seconds.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("parse", "b"), 2, "'b' is no source of this tree"),
        (("parse", "bare"), 2, "bare names no parser"),
        (("parse", "a", "--fixture", "2026"), 4, "a has no fixture '2026'"),
        (("parse", "a", "--file", "absent.html"), 2, "cannot be read"),
        (("parse", "a", "--file", "x", "--fixture", "y"), 2, "say only one of"),
        (("parse", "a", "--now", "soon"), 2, "'soon' is no time"),
        (("parse", "a", "--charset", "klingon"), 2, "'klingon' names no encoding"),
        (("parse", "a", "--deadline", "0"), 2, "must be more than 0"),
        (("parse", "empty"), 4, "empty has no whole snapshot"),
        (("build", "--watch"), 2, "--watch needs a file to write to"),
        (("build", "--now", "9999-12-31T23:59:59-12:00"), 2, "is no time"),
        (("fixture", "check", "empty"), 4, "there is no fixture"),
        (("fixture", "add", "empty"), 2, "no whole snapshot"),
        (("new-parser", "x"), 2, "'x' is no source"),
    ],
)
def test_mistakes(tmp_path, arguments, code, words):
    """A mistake is one line on stderr and an exit code that tells which kind."""
    text = source() + source("bare", parser=None) + source("empty")
    root = grove(tmp_path, text, {"a": LIST, "bare": LIST})
    result = pravda(*arguments, "--tree", str(root))
    assert result.exit_code == code
    assert words in result.output


def test_parse_a_damaged_fixture(tmp_path):
    """A fixture whose bytes have changed is not parsed: exit 5."""
    root = grove(tmp_path)
    write(root, "fixtures/a/2026-01-01.html", LIST)
    write(root, "fixtures/a/2026-01-01.meta.json", '{"contentHash": "00"}')
    assert pravda("parse", "a", "--tree", str(root), "--fixture", "2026-01-01").exit_code == 5


def test_parse_the_archive(tmp_path, monkeypatch):
    """A parser runs over one snapshot of the archive, and over a page's whole history, oldest first."""
    monkeypatch.setenv("PRAVDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRAVDA_ALLOW_ADDRESSES", "127.0.0.1")
    root = str(grove(tmp_path / "tree"))
    pages = [b"<ul><li>one" + b" x" * 300, b"<ul><li>one<li>two" + b" x" * 300, b"<p>moved" + b" x" * 300]
    with Origin() as site:
        with open_blocking() as opened:
            for page in pages:
                site.routes["/p"] = [R(b"200 OK", page, HT)]
                last = opened.capture(site.url("/p"))
        url, asked = site.url("/p"), len(site.log)
        result = pravda("parse", "a", "--tree", root, "--history", url)
        assert result.exit_code == 13
        counts = [line.split("  ", 2)[2] for line in result.stdout.splitlines()]
        assert counts == ["1 items  +1 -0", "2 items  +2 -1", "failed"]
        rows = json.loads(pravda("parse", "a", "--tree", root, "--history", url, "--json").stdout)["items"]
        assert [row["itemCount"] for row in rows] == [1, 2, None]
        one = pravda("parse", "a", "--tree", root, "--snapshot", rows[1]["snapshot"])
        assert [title.split()[0] for title in titles(one)] == ["one", "two"]
        assert last.snapshot is not None
        assert pravda("parse", "a", "--tree", root, "--snapshot", last.snapshot.id).exit_code == 13
        assert len(site.log) == asked
    assert pravda("parse", "a", "--tree", root, "--history", "https://example.org/").exit_code == 4
    assert pravda("parse", "a", "--tree", root, "--snapshot", "absent").exit_code == 4


def test_build_writes_where_it_is_told(tmp_path):
    """To stdout, to `--out`, else to `[build] out` of the tree; the same document is not written again."""
    root = grove(tmp_path / "tree")
    shown = pravda("build", "--tree", str(root), *AT)
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["now"] == "2026-03-05T06:00:00.000Z"
    out = tmp_path / "out.json"
    result = pravda("build", "--tree", str(root), "--out", str(out), *AT)
    assert out.read_text() == shown.stdout
    assert result.stderr == f"pravda: {out}: 1 source, 2 items\n"
    before = out.stat().st_mtime_ns
    assert "as before" in pravda("build", "--tree", str(root), "-o", str(out), *AT).stderr
    assert out.stat().st_mtime_ns == before
    write(root, "sources.toml", source() + '[build]\nout = "data/built.json"\n')
    assert pravda("build", "--tree", str(root), *AT).exit_code == 0
    assert (root / "data" / "built.json").read_text() == shown.stdout
    assert pravda("build", "--tree", str(root), "--out", "-", *AT).stdout == shown.stdout
    (tmp_path / "folder").mkdir()
    assert pravda("build", "--tree", str(root), "--out", str(tmp_path / "folder")).exit_code == 20


def test_build_tells_what_went_wrong(tmp_path):
    """One failing source costs exit 0 and a line; `--strict` makes it 1; a source with nothing is always 1."""
    root = grove(tmp_path, source() + source("bad", parser="parsers.bad:parse"), {"a": LIST, "bad": LIST})
    write(root, "parsers/bad.py", "def parse(page):\n    raise ValueError('no')\n")
    out = str(tmp_path / "out.json")
    result = pravda("build", "--tree", str(root), "--out", out)
    assert result.exit_code == 0
    assert "pravda: bad: ValueError: no" in result.stderr
    assert "2 sources, 2 items, 1 failed" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in pravda("build", "--tree", str(root), "--out", out, "--verbose").stderr
    result = pravda("build", "--tree", str(root), "--out", out, "--strict")
    assert (result.exit_code, "too few items: bad" in result.stderr) == (1, True)
    (root / "snapshots" / "bad.html").unlink()
    (root / "snapshots" / "bad.meta.json").unlink()
    result = pravda("build", "--tree", str(root), "--out", out)
    assert result.exit_code == 1
    assert "bad: there is neither a snapshot nor a fixture" in result.stderr
    assert json.loads(Path(out).read_text())["sources"]["a"]["itemCount"] == 2


def test_build_watches(tmp_path):
    """`--watch` builds again after each change, with parsers and sources read anew, until it is interrupted."""
    root, out = grove(tmp_path), tmp_path / "built" / "out.json"

    def wait_for(words: str) -> None:
        for _ in range(200):
            if out.exists() and words in out.read_text():
                return
            time.sleep(0.05)
        pytest.fail(f"{words} did not appear")

    arguments = ["build", "--tree", str(root), "--out", str(out), "--watch", *AT]
    with subprocess.Popen(
        [sys.executable, "-m", "pravda", *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for('"title": "two"')
            write(root, "parsers/items.py", ITEMS.replace("item.text_content()", "'edited'"))
            wait_for('"title": "edited"')
            write(root, "sources.toml", "nonsense = 1\n")
            assert process.stderr is not None
            while "sources.toml:1" not in process.stderr.readline():
                assert process.poll() is None
            write(root, "sources.toml", source() + source("b"))
            snapshot(root, "b", LIST)
            wait_for('"b": {')
            process.send_signal(2)
            process.communicate(timeout=20)
            assert process.returncode == 130
        finally:
            process.kill()


def test_fixtures_by_command(tmp_path):
    """Add, list, check and update; a difference is exit 1 and shown."""
    root = grove(tmp_path)
    added = pravda("fixture", "add", "a", "--tree", str(root), *AT)
    assert added.exit_code == 0
    assert added.stdout == f"{root}/fixtures/a/2026-03-02.html  2 items\n"
    assert "pinned already" in pravda("fixture", "add", "a", "--tree", str(root)).output
    assert pravda("fixture", "list", "--tree", str(root)).stdout.startswith("a  2026-03-02  ")
    listed = json.loads(pravda("fixture", "list", "a", "--tree", str(root), "--json").stdout)["items"]
    assert [(one["sourceId"], one["name"]) for one in listed] == [("a", "2026-03-02")]
    assert pravda("fixture", "check", "--tree", str(root)).stdout == "ok       a 2026-03-02\n"
    write(root, "parsers/items.py", "def parse(page):\n    print('hm')\n    return [{'title': '\\x1b'}]\n")
    result = pravda("fixture", "check", "a", "--tree", str(root), "-v")
    assert result.exit_code == 1
    assert "differs  a 2026-03-02" in result.stdout
    assert '    - item 1: {"now"' in result.stdout
    assert "printed: hm" in result.stderr
    told = json.loads(pravda("fixture", "check", "--tree", str(root), "--json").stdout)["items"]
    assert told[0]["problem"] == "The items are others than expected."
    assert pravda("fixture", "check", "--tree", str(root), "--update").stdout == "updated  a 2026-03-02\n"
    assert pravda("fixture", "check", "--tree", str(root)).exit_code == 0


def test_a_fixture_that_cannot_be_written(tmp_path):
    """Where a fixture cannot be written, that is exit 20."""
    root = grove(tmp_path)
    write(root, "fixtures", "a file in the way")
    assert pravda("fixture", "add", "a", "--tree", str(root)).exit_code == 20
    (root / "fixtures").unlink()
    write(root, "fixtures/a/2026-01-01.html", LIST)
    (root / "fixtures/a/2026-01-01.expected.json").mkdir()
    assert pravda("fixture", "check", "--tree", str(root), "--update").exit_code == 20


@pytest.mark.parametrize(
    ("source_id", "body", "items"),
    [
        (
            "a",
            b'<table><tr><td>small</table><table><tr><th>N\\{ame"""<th>Day<tr><td>x<td>1<tr><td>y<td>2</table>',
            [{"name": "x"}, {"name": "y"}],
        ),
        ("a", b"<p>no table", None),
        ("a", b"", None),
        ("a", b"[1, 2]", [{"entry": 1}, {"entry": 2}]),
        ("a", b'{"x": 1}', [{"name": "x", "value": 1}]),
        ("2.x-y", None, None),
    ],
)
def test_a_new_parser_runs_at_once(tmp_path, source_id, body, items):
    """What is written fits the stored page: it runs, or rejects a page without a table; an old file is left alone."""
    module = "source_2_x_y" if source_id == "2.x-y" else source_id
    text = source(source_id, parser=f"parsers.{module}:parse")
    root = grove(tmp_path, text, {} if body is None else {source_id: body})
    result = pravda("new-parser", source_id, "--tree", str(root))
    assert result.exit_code == 0
    assert f'parser = "parsers.{module}:parse"' in result.stdout
    assert pravda("new-parser", source_id, "--tree", str(root)).exit_code == 2
    parsed = pravda("parse", source_id, "--tree", str(root))
    if body is None:
        assert parsed.exit_code == 4
    elif items is None:
        assert parsed.exit_code == 13
    else:
        assert json.loads(parsed.stdout) == items


def test_a_new_parser_that_cannot_be_written(tmp_path):
    """Where the folder of parsers cannot be made, that is exit 20."""
    root = grove(tmp_path)
    for path in (root / "parsers").iterdir():
        path.unlink()
    (root / "parsers").rmdir()
    write(root, "parsers", "a file in the way")
    assert pravda("new-parser", "a", "--tree", str(root)).exit_code == 20


COMMANDS = [
    ("build", *AT),
    ("parse", "a", *AT),
    ("fixture", "check"),
    ("parse", "a", "--fixture", "2026-03-02"),
]


@pytest.fixture
def pinned(tmp_path):
    """A tree with a fixture and an external entity, an image and a link that a careless reader would follow."""
    page = (
        b'<!DOCTYPE html SYSTEM "http://127.0.0.1:9/x.dtd"><base href="http://127.0.0.1:9/">'
        b"<link rel=stylesheet href=x.css><script src=x.js></script><ul><li>one<img src=x.png></ul>"
    )
    root = grove(tmp_path, pages={"a": page})
    assert pravda("fixture", "add", "a", "--tree", str(root), *AT).exit_code == 0
    return root


def test_without_any_route_the_bytes_are_the_same(pinned):
    """In a network namespace without a route every command gives the same bytes as with network."""
    prefix = ("unshare", "--net", "--map-root-user") if os.getuid() else ("unshare", "--net")
    probe = (
        subprocess.run([*prefix, "true"], capture_output=True, check=False)
        if sys.platform == "linux"
        else None
    )
    if probe is None or probe.returncode != 0:
        pytest.skip("needs Linux and leave to make a network namespace")
    for arguments in COMMANDS:
        inside = in_a_shell(*arguments, "--tree", str(pinned), prefix=prefix)
        outside = in_a_shell(*arguments, "--tree", str(pinned))
        assert inside.returncode == outside.returncode == 0
        assert (inside.stdout, inside.stderr) == (outside.stdout, outside.stderr)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_socket_is_made(pinned, arguments):
    """No command opens a socket, nor asks for a name."""
    code = (
        "import sys\n"
        "from pravda.cli.main import run\n"
        "def refuse(event, _):\n"
        "    if event.startswith('socket.'):\n"
        "        print(event, file=sys.stderr)\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(refuse)\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--tree", str(pinned)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "socket" not in done.stderr
