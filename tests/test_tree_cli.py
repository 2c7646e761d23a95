"""The commands on a tree, against a site on loopback and real git."""

import asyncio
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from pravda.archive.local import LocalArchive
from pravda.cli.rebuild import rebuild
from pravda.cli.words import now
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import State
from pravda.tree.files import Tree
from tests.commands import LOOPBACK, pravda, started
from tests.origin import HT, Origin, R, Sleep, header_of
from tests.repositories import clone, commit, forge, git, shown, status, touched, write
from tests.test_cli import on_a_terminal

ONE, TWO = b"<title>1</title><li>one<li>two", b"<title>2</title><li>three"
DOWN = [R(b"503 Service Unavailable", b"", b"Server: a%0Ab")]
PARSER = b"def parse(page):\n    return [{'title': item.text} for item in page.document.cssselect('li')]\n"
LISTS = {
    ".gitignore": b"/snapshots/*.state.json\n/snapshots/*.lock\n*.tmp-*\n",
    ".gitattributes": b"snapshots/** -text\n",
}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def tagged(data: bytes, tag: bytes = b'"v1"') -> list[Any]:
    """A page that is not sent again to who has it."""
    found, same = R(b"200 OK", data, HT, b"ETag: " + tag), R(b"304 Not Modified", b"", b"ETag: " + tag)
    return [lambda request, _: same if header_of(request, b"If-None-Match") == tag else found]


@pytest.fixture
def site() -> Iterator[Origin]:
    """A site with the pages /a and /b."""
    with Origin() as origin:
        origin.routes |= {"/a": tagged(ONE), "/b": tagged(ONE)}
        yield origin


def sources(site: Origin, *ids: str, more: str = "", defaults: str = "") -> str:
    """A sources file with a page of the site per id; nothing waits."""
    blocks = [f'[[source]]\nid = "{name}"\nurl = "{site.url("/" + name)}"\n{more}' for name in ids]
    head = '[defaults]\nhost_gap = "0s"\ncontact = "https://example.org/me"\n'
    return head + defaults + "".join(blocks)


@pytest.fixture
def root(tmp_path: Path, site: Origin) -> Path:
    """A tree with the sources a and b."""
    write(tmp_path / "tree", {"sources.toml": sources(site, "a", "b").encode()})
    return tmp_path / "tree"


@pytest.fixture
def bare(tmp_path: Path, site: Origin) -> Path:
    """A forge with a tree whose sources a and b are always due."""
    text = sources(site, "a", "b", defaults='interval = "0s"\n')
    return forge(tmp_path, {"sources.toml": text.encode(), "notes.txt": b"x\n", **LISTS})


def refresh(root: Path, *options: object, **variables: str) -> Result:
    """One refresh."""
    return pravda("refresh", "--tree", root, *options, **variables)


def told(result: Result) -> dict[str, Any]:
    """The JSON that a command printed."""
    return dict(json.loads(result.stdout))


def outcomes(result: Result) -> dict[str, str]:
    """What became of each source."""
    return {source["sourceId"]: source["result"] for source in told(result)["results"]}


def files(root: Path) -> dict[str, bytes]:
    """Every file of a folder, but for what git keeps."""
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


# refresh


def test_a_refresh_stores_pages_and_tells_each(root, site):
    """One line per source and one for the run; the second time nothing is due."""
    first = refresh(root)
    assert (first.exit_code, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert [re.split(r"\s{2,}", line)[:2] for line in lines[:2]] == [["a", "fetched"], ["b", "fetched"]]
    assert lines[2] == "2 sources: 2 changed"
    assert (root / "snapshots/a.html").read_bytes() == ONE
    asked = len(site.log)
    second = refresh(root)
    assert second.stdout.splitlines()[-1] == "2 sources: 2 not due"
    assert len(site.log) == asked


def test_the_user_agent_names_who_asks(root, site):
    """The contact of the tree stands in it; an option stands for all; without any a person is warned."""
    refresh(root)
    assert b"(+https://example.org/me)\r\n" in site.log[-1]
    refresh(root, "--force", "--user-agent", "mine/1")
    assert header_of(site.log[-1], b"User-Agent") == b"mine/1"
    text = (root / "sources.toml").read_text().replace("contact", "# contact")
    (root / "sources.toml").write_text(text)
    assert "set contact in sources.toml" in refresh(root).stderr
    assert refresh(root, PRAVDA_USER_AGENT="mine/1 (+https://example.org/)").stderr == ""
    assert refresh(root, "--user-agent", "mine\r\n").exit_code == 2


def test_json_is_one_object(root):
    """With --json stdout is the report of the specification and nothing else."""
    result = refresh(root, "--json")
    report = told(result)
    assert list(report) == [
        "results",
        "changed",
        "attempted",
        "confirmed",
        "dirty",
        "broken",
        "refused",
        "forced",
        "assumedRobots",
        "warnings",
        "hardFailure",
    ]
    assert (report["changed"], report["attempted"], report["dirty"]) == (2, 2, True)
    assert list(report["results"][0]) == [
        "sourceId",
        "result",
        "state",
        "cause",
        "reason",
        "status",
        "items",
        "note",
    ]


def test_exit_codes_of_failures(root, site):
    """A broken source beside a good one is 0, told by name; nothing but failures is 1."""
    site.routes["/b"] = DOWN
    for _ in range(3):
        result = refresh(root, "--force")
        assert result.exit_code == 0
    assert "Broken: b" in result.stdout
    only = refresh(root, "--force", "--only", "b", "--json")
    assert (only.exit_code, told(only)["hardFailure"], told(only)["broken"]) == (1, True, ["b"])
    skipped = refresh(root, "--json")
    assert (skipped.exit_code, told(skipped)["broken"]) == (0, ["b"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["a"], "unexpected extra argument"),
        (["--only"], "requires an argument"),
        (["--only", ""], "is no source"),
        (["--only", "c"], "'c' is no source"),
        (["--only", "a", "--only", "--force"], "'--force' is no source"),
        (["--push"], "needs --commit"),
        (["--commit"], "in no working copy of git"),
        (["--nonsense"], "No such option"),
    ],
)
def test_mistakes_end_before_anything_is_asked(root, site, options, words):
    """A positional argument, an unknown id and a missing value are errors, never everything."""
    result = refresh(root, *options)
    assert (result.exit_code, site.log) == (2, [])
    assert words in result.stderr
    assert not (root / "snapshots").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[source]]\nid = 'x'\n", "sources.toml:1: source.url"),
        (
            "[[source]]\nid = 'x'\nurl = 'https://x.example'\nparser = 'no.such:thing'\n",
            "sources.toml:4: source.parser",
        ),
        (
            "[[source]]\nid = 'x'\nurl = 'https://x.example'\nparser = 'parsers:nothing'\n",
            "no function 'nothing'",
        ),
    ],
)
def test_mistakes_in_the_sources_end_before_anything_is_asked(root, text, words):
    """File, line and key are named, also of a parser that is not there."""
    write(root, {"sources.toml": text.encode(), "parsers.py": PARSER})
    result = refresh(root)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_tree_without_sources_is_a_mistake(tmp_path):
    """A folder that is no tree, and one that is not there."""
    assert "cannot be read" in refresh(tmp_path).stderr
    assert refresh(tmp_path).exit_code == refresh(tmp_path / "nowhere").exit_code == 2


def test_a_dry_run_asks_and_writes_nothing(root, site, tmp_path):
    """It says what would be asked with which validators, and what is not due, and reports nowhere."""
    refresh(root, "--only", "a")
    before, asked = files(root), len(site.log)
    result = refresh(root, "--dry-run", "--force", "--commit", "--archive", "--home", tmp_path / "home")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert re.match(r"a  planned .*/a with If-None-Match: \"v1\"$", lines[0])
    assert re.match(r"b  planned .*/b without validators$", lines[1])
    assert "planned" not in refresh(root, "--dry-run", "--only", "a").stdout
    ci = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(tmp_path / "outputs")}
    refresh(root, "--dry-run", **ci)
    assert (files(root), len(site.log)) == (before, asked)
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "outputs").exists()


def test_force_is_for_sources_that_are_not_due(root):
    """What was due anyway does not count as forced."""
    refresh(root, "--only", "a")
    assert told(refresh(root, "--force", "--json"))["forced"] == ["a"]


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"CI": "true"}, 2),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "schedule"}, 2),
        ({"GITEA_ACTIONS": "true", "GITHUB_EVENT_NAME": "push"}, 2),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "workflow_dispatch"}, 0),
    ],
)
def test_force_needs_a_person(root, site, variables, code):
    """In a workflow that nobody started by hand it is refused before anything is asked."""
    result = refresh(root, "--force", **variables)
    assert result.exit_code == code
    assert bool(site.log) == (code == 0)


def test_two_at_once_make_one_request_per_source(root, site):
    """R-C22: the second process says who holds the tree, and asks nothing."""
    site.routes["/a"] = [Sleep(1.0), R(b"200 OK", ONE, HT)]
    first = started("refresh", "--tree", root, "--only", "a")
    while "/a" not in site.targets():
        assert first.poll() is None
    second = refresh(root)
    assert second.exit_code == 1
    assert f"by process {first.pid} " in second.stderr
    assert first.wait() == 0
    first.communicate()
    assert site.targets().count("/a") == 1
    assert "/b" not in site.targets()


def test_a_parser_is_run_and_may_reject(root, site):
    """Items are counted; what a parser raises rejects the page, and its words forge no line."""
    text = sources(site, "a", "b", more='parser = "parsers:parse"\n')
    write(root, {"sources.toml": text.encode(), "parsers.py": PARSER})
    site.routes["/b"] = [R(b"200 OK", b"<p>nothing here, and quite some words about that</p>", HT)]
    result = refresh(root, "--json")
    assert [(source["result"], source["items"]) for source in told(result)["results"]] == [
        ("fetched", 2),
        ("rejected", 0),
    ]
    assert not (root / "snapshots/b.html").exists()
    evil = b"def parse(page):\n    raise ValueError('\\r\\n::error::x|y ##[error]z')\n"
    write(root, {"parsers.py": evil})
    site.routes["/a"] = [R(b"200 OK", TWO, HT)]
    ci = refresh(root, "--force", "--only", "a", GITHUB_ACTIONS="true", GITHUB_EVENT_NAME="workflow_dispatch")
    commands = [line for line in ci.stdout.splitlines() if line.startswith("::")]
    assert all(line.startswith(("::error title=", "::warning title=")) for line in commands)
    others = [line for line in ci.stdout.splitlines() if not line.startswith("::")]
    assert any("x|y" in line for line in others)
    assert not any("##[" in line for line in others)
    shown_json = refresh(root, "--only", "a", "--force", "--json")
    assert "##[" not in shown_json.stdout
    assert "##[error]z" in told(shown_json)["results"][0]["note"]


def test_robots_are_asked_unless_a_source_says_otherwise(root, site):
    """One question per origin, none for a source that ignores them; a refusal is its own fate."""
    site.routes["/robots.txt"] = [R(b"200 OK", b"User-agent: *\nDisallow: /b\n", b"Content-Type: text/plain")]
    assert outcomes(refresh(root, "--json")) == {"a": "fetched", "b": "skipped_robots"}
    assert site.targets().count("/robots.txt") == 1
    write(root, {"sources.toml": sources(site, "b", more='robots = "ignore"\n').encode()})
    (root / "snapshots/_hosts.state.json").unlink()
    assert outcomes(refresh(root, "--json", "--force")) == {"b": "fetched"}
    assert site.targets().count("/robots.txt") == 1


def test_a_host_may_have_a_proxy_of_its_own(root, site):
    """Only the requests to that host go through it, and the summary names the sources."""
    with Origin() as proxy:
        proxy.routes |= {site.url("/a"): tagged(TWO), site.url("/robots.txt"): [R(b"404 Not Found")]}
        host = f'[[host]]\nname = "127.0.0.1"\nproxy = "{proxy.url("")}"\n'
        write(root, {"sources.toml": (sources(site, "a") + host).encode()})
        result = refresh(root)
    assert result.exit_code == 0, result.stdout
    assert "Asked through a proxy of their host: a" in result.stdout
    assert site.log == []
    assert (root / "snapshots/a.html").read_bytes() == TWO


def test_on_a_terminal_a_bar_stands_below_the_table(root, tmp_path):
    """A person sees the lines and the progress; nothing of the bar stays behind."""
    code, written = on_a_terminal(tmp_path / "home", "refresh", "--tree", str(root), **LOOPBACK)
    assert code == 0
    assert "Refreshing" in written
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in written.splitlines()]
    assert "2 sources: 2 changed" in lines


# the archive


def kept(home: Path, state: State | None = None) -> tuple[Snapshot, ...]:
    """What an archive holds, newest first."""

    async def found() -> tuple[Snapshot, ...]:
        archive = LocalArchive.open(home)
        try:
            return await archive.find(Query(state=state))
        finally:
            await archive.close()

    return asyncio.run(found())


def test_every_attempt_is_kept_where_that_is_wished(root, site, tmp_path):
    """Good and bad attempts are snapshots; a 304 points at the bytes, which the archive asks for first."""
    home = tmp_path / "home"
    archive = ("--only", "a", "--force", "--archive", "--home", home)
    refresh(root, "--only", "a")
    assert not home.exists()
    first = refresh(root, *archive, "--json")
    assert told(first)["warnings"] == []
    assert header_of(site.log[-1], b"If-None-Match") is None
    refresh(root, *archive)
    refresh(root, *archive)
    assert header_of(site.log[-1], b"If-None-Match") == b'"v1"'
    site.routes["/a"] = DOWN
    refresh(root, *archive)
    down, again, confirmed, page = kept(home)
    assert (down.state, again.state, confirmed.state, page.state) == (State.DOWN, *[State.LIVE] * 3)
    assert again.not_modified
    assert again.content_from == confirmed.content_from == page.id
    assert again.content_captured_at == page.captured_at
    shown_again = pravda("cat", again.id, "--home", home)
    assert shown_again.stdout_bytes == ONE
    stale = pravda("capture", site.url("/a"), "--max-stale-age", "1h", "--home", home, "--json")
    assert told(stale)["snapshot"]["id"] == again.id


def test_a_damaged_archive_is_asked_for_anew(root, site, tmp_path):
    """Where the archive's bytes are gone no validator is sent, so that the page is kept again."""
    home = tmp_path / "home"
    archive = ("--only", "a", "--force", "--archive", "--home", home)
    site.routes["/a"] = tagged(ONE + random.Random(0).randbytes(200_000).hex().encode())
    refresh(root, *archive)
    (blob,) = [path for path in home.rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    blob.chmod(0o600)
    blob.write_bytes(b"x")
    result = refresh(root, *archive, "--json")
    assert header_of(site.log[-1], b"If-None-Match") is None
    assert outcomes(result) == {"a": "unchanged"}


def test_an_archive_that_cannot_be_opened_ends_the_run(root, site, tmp_path):
    """The tree is not refreshed past an archive that was asked for and is not there."""
    (tmp_path / "home").write_text("a file")
    assert refresh(root, "--archive", "--home", tmp_path / "home").exit_code in (2, 20)
    assert site.log == []


# reports of a workflow


def in_actions(tmp_path: Path, **more: str) -> dict[str, str]:
    """The environment of a step."""
    paths = {"GITHUB_OUTPUT": "outputs", "GITHUB_STEP_SUMMARY": "summary"}
    return {"GITHUB_ACTIONS": "true", **{name: str(tmp_path / path) for name, path in paths.items()}, **more}


def test_a_step_leaves_summary_outputs_and_annotations(root, site, tmp_path):
    """R-F9: the server's header comes through each of them as text."""
    site.routes["/b"] = DOWN
    result = refresh(root, **in_actions(tmp_path))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert (
        "::warning title=b%3A failed::503 Service Unavailable; Server: a%250Ab" in result.stdout.splitlines()
    )
    summary = (tmp_path / "summary").read_text()
    assert "| b | failed | down | 503 |  | 503 Service Unavailable; Server: a%0Ab |" in summary
    assert (tmp_path / "outputs").read_text() == (
        "changed=1\nattempted=2\nconfirmed=0\nbroken=\nrefused=\ndirty=true\ncommitted=false\n"
    )


def test_with_json_annotations_go_to_stderr(root, site, tmp_path):
    """A runner reads both, and stdout stays JSON."""
    site.routes["/b"] = DOWN
    result = refresh(root, "--json", **in_actions(tmp_path))
    assert told(result)["changed"] == 1
    assert result.stderr.startswith("::warning title=b%3A failed::")


def test_a_report_that_cannot_be_written_is_a_warning(root, tmp_path):
    """The run counts as it went."""
    result = refresh(root, "--json", GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(tmp_path))
    assert result.exit_code == 0
    assert "::warning title=report::" in result.stderr
    assert told(result)["warnings"][0]["code"] == "report"


# git


@needs_git
def test_a_commit_holds_the_files_of_the_tree(bare):
    """What else is staged, changed or new stays as it is."""
    tree = clone(bare, "tree")
    write(
        tree, {"notes.txt": b"staged\n", "sources.toml": (tree / "sources.toml").read_bytes() + b"# mine\n"}
    )
    git(tree, "add", "notes.txt")
    result = refresh(tree, "--commit")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^committed [0-9a-f]{10}: Refresh 2 sources: a, b$", result.stdout, re.MULTILINE)
    assert touched(tree) == {
        f"snapshots/{name}" for name in ("a.html", "a.meta.json", "b.html", "b.meta.json")
    }
    assert status(tree) == {"M  notes.txt", " M sources.toml"}


@needs_git
def test_a_confirmation_is_committed_as_one_and_reaches_a_clone(bare):
    """R-F11: the message says that no content changed, and a clone knows the freshness from git alone."""
    tree = clone(bare, "tree")
    refresh(tree, "--commit")
    result = refresh(tree, "--commit", "--push")
    assert result.exit_code == 0, result.stderr
    assert git(tree, "log", "-1", "--format=%s") == "Confirm 2 sources, no content changed: a, b"
    assert touched(tree) == {"snapshots/a.meta.json", "snapshots/b.meta.json"}
    assert git(tree, "diff", "-I", '"lastConfirmedAt"', "HEAD^", "HEAD", "--", "snapshots") == ""
    other = clone(bare, "other")
    ours, theirs = (told(pravda("status", "--tree", where, "--json"))["sources"] for where in (tree, other))
    assert (
        ours[0]["freshAt"]
        == theirs[0]["freshAt"]
        == ours[0]["lastConfirmedAt"]
        != ours[0]["contentChangedAt"]
    )
    assert theirs[0]["intact"]


@needs_git
def test_nothing_new_makes_no_commit(bare, tmp_path):
    """R-F8: a run that wrote nothing ends well, with changed=0 and without a commit."""
    tree = clone(bare, "tree")
    text = (
        (tree / "sources.toml")
        .read_text()
        .replace("0s", "1h", 2)
        .replace('host_gap = "1h"', 'host_gap = "0s"')
    )
    write(tree, {"sources.toml": text.encode()})
    refresh(tree, "--commit", "--push")
    before = git(tree, "rev-parse", "HEAD")
    result = refresh(tree, "--commit", "--push", **in_actions(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert "changed=0\n" in (tmp_path / "outputs").read_text()
    assert "committed=false\n" in (tmp_path / "outputs").read_text()
    assert git(tree, "rev-parse", "HEAD") == git(bare, "rev-parse", "main") == before


def reads_clean(tree: Path, *ids: str) -> None:
    """A fresh clone of the last commit has these pages, each as its metadata says, and no other metadata."""
    other = tree.parent / f"clone-{git(tree, 'rev-parse', '--short', 'HEAD')}"
    git(tree.parent, "clone", "-q", tree.as_uri(), other.name)
    report = told(pravda("status", "--tree", other, "--json"))
    assert report["damaged"] == []
    assert [source["sourceId"] for source in report["sources"] if source["intact"]] == list(ids)
    for name in ids:
        parsed = pravda("parse", name, "--tree", other)
        assert parsed.exit_code == 0, parsed.stderr
    assert {path.name for path in (other / "snapshots").glob("*.meta.json")} == {
        f"{name}.meta.json" for name in ids
    }


def with_parser(bare: Path) -> Path:
    """A clone with parsers that are committed."""
    tree = clone(bare, "tree")
    text = (tree / "sources.toml").read_text().replace("id =", 'parser = "parsers:parse"\nid =')
    commit(tree, {"sources.toml": text.encode(), "parsers.py": PARSER})
    return tree


@needs_git
def test_a_page_of_an_earlier_run_is_committed_with_its_metadata(bare, site):
    """What a run without --commit stored goes into the next commit, and the message says that content changed."""
    tree = with_parser(bare)
    refresh(tree, "--commit")
    site.routes["/a"] = tagged(TWO, b'"v2"')
    refresh(tree)
    result = refresh(tree, "--commit")
    assert result.exit_code == 0, result.stderr
    assert git(tree, "log", "-1", "--format=%s") == "Refresh 1 source: a"
    assert touched(tree) == {"snapshots/a.html", "snapshots/a.meta.json", "snapshots/b.meta.json"}
    assert shown(tree, "snapshots/a.html", "HEAD") == TWO
    assert status(tree) == set()
    reads_clean(tree, "a", "b")


@needs_git
def test_a_new_source_of_an_earlier_run_is_committed_whole(bare):
    """A page that git does not know yet goes with its metadata, also where this run only confirmed it."""
    tree = with_parser(bare)
    refresh(tree)
    assert refresh(tree, "--commit", "--push").exit_code == 0
    assert git(tree, "log", "-1", "--format=%s") == "Refresh 2 sources: a, b"
    assert status(tree) == set()
    assert shown(bare, "snapshots/a.html") == ONE
    reads_clean(tree, "a", "b")


@needs_git
def test_leftovers_are_committed_and_pushed_although_nothing_is_due(bare, site, tmp_path):
    """So is a commit whose push failed."""
    tree = with_parser(bare)
    text = (tree / "sources.toml").read_text().replace('interval = "0s"', 'interval = "1h"')
    commit(tree, {"sources.toml": text.encode()})
    refresh(tree)
    asked = len(site.log)
    result = refresh(tree, "--commit", **in_actions(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert "dirty=false\ncommitted=true\n" in (tmp_path / "outputs").read_text()
    reads_clean(tree, "a", "b")
    again = refresh(tree, "--commit", "--push")
    assert "pushed" in again.stdout
    assert git(tree, "rev-parse", "HEAD") == git(bare, "rev-parse", "main")
    assert "pushed" not in refresh(tree, "--commit", "--push").stdout
    assert len(site.log) == asked


@needs_git
def test_only_commits_the_chosen_sources_and_no_others(bare):
    """Leftovers of the others wait, whole, for a run that chooses them."""
    tree = with_parser(bare)
    refresh(tree)
    refresh(tree, "--only", "a", "--commit")
    assert touched(tree) == {"snapshots/a.html", "snapshots/a.meta.json"}
    assert status(tree) == {"?? snapshots/b.html", "?? snapshots/b.meta.json"}
    reads_clean(tree, "a")


@needs_git
def test_a_page_that_is_not_whole_is_left_out_with_a_warning(bare, site):
    """A page changed or removed by hand, and metadata without a page, are nobody's to commit."""
    tree = with_parser(bare)
    refresh(tree, "--commit")
    site.routes["/a"] = DOWN
    write(tree, {"snapshots/a.html": b"by hand"})
    result = refresh(tree, "--commit")
    assert (result.exit_code, "left out of the commit" in result.stderr) == (0, True)
    assert result.stderr.count("(see `pravda status`): a\n") == 1
    assert touched(tree) == {"snapshots/b.meta.json"}
    assert status(tree) == {" M snapshots/a.html"}
    reads_clean(tree, "a", "b")
    (tree / "snapshots/a.html").unlink()
    assert "left out of the commit" in refresh(tree, "--commit").stderr
    (tree / "snapshots/a.meta.json").write_text("{")
    assert "left out of the commit" in refresh(tree, "--commit").stderr
    pravda("forget", "a", "--force", "--tree", tree)
    (tree / "snapshots/a.meta.json").unlink(missing_ok=True)
    assert "left out of the commit" not in refresh(tree, "--commit").stderr
    assert " D snapshots/a.html" in status(tree)


@needs_git
def test_damage_that_was_committed_is_mended_by_the_next_commit(bare):
    """A commit that an older version made of metadata alone gets its page."""
    tree = with_parser(bare)
    refresh(tree)
    commit(tree, {"snapshots/a.meta.json": (tree / "snapshots/a.meta.json").read_bytes()})
    refresh(tree, "--commit")
    reads_clean(tree, "a", "b")


@needs_git
def test_what_differs_in_more_than_the_time_is_no_confirmation(bare):
    """The last commit is compared, whatever this run alone did."""
    tree = with_parser(bare)
    refresh(tree, "--commit")
    meta = tree / "snapshots/a.meta.json"
    meta.write_text(meta.read_text().replace("{", '{\n  "mine": 1,', 1))
    refresh(tree, "--commit")
    assert git(tree, "log", "-1", "--format=%s") == "Update metadata of 2 sources, no content changed: a, b"


@needs_git
def test_a_push_ends_right_behind_another_clone(bare, tmp_path):
    """Somebody pushed in between: both are there, in one line, and the outputs say that it is committed."""
    tree, other = clone(bare, "tree", "--depth=1"), clone(bare, "other")
    write(other, {"notes.txt": b"theirs\n"})
    git(other, "commit", "-q", "-a", "-m", "theirs")
    git(other, "push", "-q")
    write(tree, {"mine.txt": b"mine\n"})
    result = refresh(tree, "--commit", "--push", **in_actions(tmp_path))
    assert result.exit_code == 0, result.stdout
    assert git(bare, "log", "--format=%s", "main").splitlines() == [
        "Refresh 2 sources: a, b",
        "theirs",
        "begin",
    ]
    assert shown(bare, "snapshots/a.html") == ONE
    assert status(tree) == {"?? mine.txt"}
    assert "committed=true\n" in (tmp_path / "outputs").read_text()


@needs_git
def test_a_conflict_is_an_error_and_ends_clean(bare, tmp_path):
    """Two clones that fetched the same page apart: the second keeps its commit and says what is in the way."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    assert refresh(other, "--commit", "--push").exit_code == 0
    result = refresh(tree, "--commit", "--push", **in_actions(tmp_path))
    assert result.exit_code == 1
    assert re.search(
        r"^::error title=Refresh::others have pushed other changes to snapshots/a",
        result.stdout,
        re.MULTILINE,
    )
    assert "**Error:** others have pushed" in (tmp_path / "summary").read_text()
    assert git(tree, "log", "-1", "--format=%s") == "Refresh 2 sources: a, b"
    assert status(tree) == set()


@needs_git
def test_files_in_the_way_of_others_changes_are_a_warning(bare):
    """The push stands; what could not be brought up to date is told."""
    tree, other = clone(bare, "tree"), clone(bare, "other")
    write(other, {"notes.txt": b"theirs\n"})
    git(other, "commit", "-q", "-a", "-m", "theirs")
    git(other, "push", "-q")
    write(tree, {"notes.txt": b"mine\n"})
    result = refresh(tree, "--commit", "--push")
    assert result.exit_code == 0
    assert "warning: pushed as" in result.stderr


@needs_git
def test_a_tree_without_attributes_is_warned_of(bare):
    """Where git may change line ends on a clone the commit is made, and the missing line is told."""
    tree = clone(bare, "tree")
    write(tree, {".gitattributes": b""})
    assert ".gitattributes needs `snapshots/** -text`" in refresh(tree, "--commit").stderr


@needs_git
def test_a_detached_clone_pushes_to_the_branch_of_its_workflow(bare, tmp_path):
    """Outside a workflow a missing branch ends the run before anything is asked."""
    tree = clone(bare, "tree")
    git(tree, "checkout", "-q", "--detach")
    assert refresh(tree, "--commit", "--push").exit_code == 2
    result = refresh(tree, "--commit", "--push", **in_actions(tmp_path, GITHUB_REF="refs/heads/main"))
    assert result.exit_code == 0, result.stdout
    assert shown(bare, "snapshots/a.html") == ONE


# the build


def buildable(tree: Path, out: str = "public/items.json") -> None:
    """Give the tree a parser and a document to build."""
    text = (tree / "sources.toml").read_text().replace("id =", 'parser = "parsers:parse"\nid =')
    write(tree, {"sources.toml": f'{text}[build]\nout = "{out}"\n'.encode(), "parsers.py": PARSER})


@needs_git
def test_the_document_is_built_and_committed(bare):
    """A refresh that changed something builds anew, and the document goes into the same commit."""
    tree = clone(bare, "tree")
    buildable(tree)
    result = refresh(tree, "--commit")
    assert result.exit_code == 0, result.stderr
    assert "public/items.json" in touched(tree)
    built = json.loads((tree / "public/items.json").read_text())
    assert [item["title"] for item in built["sources"]["a"]["items"]] == ["one", "two"]
    assert "\nBuilt: public/items.json\n" in git(tree, "log", "-1", "--format=%B") + "\n"


@needs_git
def test_a_document_that_git_ignores_is_not_committed(bare, tmp_path):
    """Nor is one outside the tree; both are built."""
    tree = clone(bare, "tree")
    buildable(tree)
    write(tree, {".gitignore": LISTS[".gitignore"] + b"/public/\n"})
    assert refresh(tree, "--commit").exit_code == 0
    assert (tree / "public/items.json").exists()
    assert all(name.startswith("snapshots/") for name in touched(tree))
    text = (tree / "sources.toml").read_text().replace("public/items.json", "../outside.json")
    write(tree, {"sources.toml": text.encode()})
    assert refresh(tree, "--commit").exit_code == 0
    assert (bare.parent / "outside.json").exists()
    assert all(name.startswith("snapshots/") for name in touched(tree))


@needs_git
@pytest.mark.parametrize("refused", [False, True])
def test_a_source_that_never_had_a_page_stops_no_commit(bare, site, refused):
    """It has no items in the document, which is told; the good pages are committed with it."""
    tree = with_parser(bare)
    site.routes["/b"] = DOWN
    if refused:
        site.routes["/robots.txt"] = [
            R(b"200 OK", b"User-agent: *\nDisallow: /b\n", b"Content-Type: text/plain")
        ]
    text = (tree / "sources.toml").read_text()
    commit(tree, {"sources.toml": f'{text}[build]\nout = "items.json"\n'.encode()})
    result = refresh(tree, "--commit")
    assert result.exit_code == 0, result.stderr
    assert "without items in the document, having neither snapshot nor fixture: b" in result.stderr
    assert touched(tree) == {"snapshots/a.html", "snapshots/a.meta.json", "items.json"}
    built = json.loads(shown(tree, "items.json", "HEAD"))["sources"]
    assert (built["a"]["itemCount"], built["b"]["items"]) == (2, None)
    reads_clean(tree, "a")
    assert pravda("build", "--tree", tree).exit_code == 1


@needs_git
def test_a_failed_build_commits_nothing(bare):
    """The pages are stored, the old document stays, the exit code is 1; the next commit has what waited."""
    tree = clone(bare, "tree")
    buildable(tree)
    before = git(tree, "rev-parse", "HEAD")
    (tree / "public/items.json").mkdir(parents=True)
    result = refresh(tree, "--commit")
    assert result.exit_code == 1
    assert "the build failed, so nothing is committed: " in result.stderr
    assert git(tree, "rev-parse", "HEAD") == before
    assert (tree / "snapshots/a.html").read_bytes() == ONE
    (tree / "public/items.json").rmdir()
    text = (tree / "sources.toml").read_text().replace('interval = "0s"', 'interval = "1h"')
    write(tree, {"sources.toml": text.encode()})
    assert refresh(tree, "--commit").exit_code == 0
    assert git(tree, "log", "-1", "--format=%s") == "Refresh 2 sources: a, b"
    assert "public/items.json" in touched(tree)
    write(tree, {"public/items.json": b"by hand"})
    assert refresh(tree, "--commit", "--no-build").exit_code == 0
    assert status(tree) >= {" M public/items.json"}
    refresh(tree, "--commit")
    assert json.loads((tree / "public/items.json").read_text())["sources"]["a"]["itemCount"] == 2


@needs_git
def test_a_document_of_an_earlier_run_is_committed(bare):
    """Where the pages are in git already, the document goes alone, built anew."""
    tree = clone(bare, "tree")
    buildable(tree)
    text = (tree / "sources.toml").read_text().replace('interval = "0s"', 'interval = "1h"')
    write(tree, {"sources.toml": text.encode()})
    refresh(tree)
    git(tree, "add", "snapshots")
    git(tree, "commit", "-q", "-m", "by hand")
    assert refresh(tree, "--commit").exit_code == 0
    assert touched(tree) == {"public/items.json"}
    assert git(tree, "log", "-1", "--format=%s") == "Build public/items.json"


def test_a_build_that_gives_nothing_is_a_failed_build(root):
    """Where every parser fails the old document stays; of a commit only --commit speaks."""
    buildable(root)
    refresh(root)
    before = (root / "public/items.json").read_bytes()
    write(root, {"parsers.py": b"def parse(page):\n    raise ValueError('no')\n"})
    result = refresh(root, "--force")
    assert result.exit_code == 1
    assert "the build failed: no source gave anything\n" in result.stderr
    assert (root / "public/items.json").read_bytes() == before


def test_a_build_that_breaks_is_a_failed_build(tmp_path):
    """Whatever is raised is told, since the pages are stored by then and the run must report."""
    built = rebuild(tmp_path, tmp_path / "out.json", now())
    assert built.problem is not None
    assert built.problem.startswith("BadRequest: ")


def test_a_document_that_cannot_be_written_is_a_failed_build(root):
    """A folder in its place is told."""
    buildable(root)
    (root / "public/items.json").mkdir(parents=True)
    result = refresh(root)
    assert result.exit_code == 1
    assert "items.json cannot be written: Is a directory" in result.stderr


# status


def test_status_tells_how_sources_stand(root, site):
    """State, freshness, streak, next turn, damage and retired ids, asked of nobody."""
    site.routes["/b"] = DOWN
    for _ in range(3):
        refresh(root, "--force")
    write(root, {"snapshots/old.meta.json": b"{}", "snapshots/a.html": b"TRUNC"})
    asked, before = len(site.log), files(root)
    result = pravda("status", "--tree", root)
    assert result.exit_code == 0
    a, damage, b, retired, whole = result.stdout.splitlines()
    assert re.match(r"a  \[LIVE\] {7}no page stored; due in 5 h", a)
    assert damage == "  damaged: a.html is not what its metadata says: the hash differs"
    assert re.match(
        r"b  \[DOWN\] .*no page stored; due in \d+ h; service_unavailable; 3 failures in a row, broken", b
    )
    assert retired == "old: retired; no source is called so (pravda forget old)"
    assert whole == "2 sources: 0 due, 1 broken, 1 damaged; 1 retired"
    report = told(pravda("status", "--tree", root, "--json"))
    assert (report["broken"], report["damaged"], report["retired"]) == (["b"], ["a"], ["old"])
    first = report["sources"][0]
    assert (first["intact"], first["freshAt"], first["items"]) == (False, None, None)
    assert report["sources"][1]["consecutiveFailures"] == 3
    assert (len(site.log), files(root)) == (asked, before)


def test_status_of_a_new_tree(root, site):
    """Sources that were never asked are due; afterwards they are fresh."""
    assert "a  [never asked]  no page stored; due now" in pravda("status", "--tree", root).stdout
    site.routes["/robots.txt"] = [R(b"200 OK", b"User-agent: *\nDisallow: /b\n", b"Content-Type: text/plain")]
    refresh(root)
    lines = pravda("status", "--tree", root).stdout.splitlines()
    assert "fresh" in lines[0]
    assert lines[1].endswith("robots_disallowed; 1 refusal by robots.txt in a row")
    state = root / "snapshots/a.state.json"
    state.write_text(re.sub(r'"lastCheckedAt": "\d{4}', '"lastCheckedAt": "2999', state.read_text()))
    assert "  clock: the last attempt lies in the future" in pravda("status", "--tree", root).stdout


# forget


def test_forget_removes_a_retired_id_and_keeps_fixtures(root):
    """Page, metadata and state go; an id that is named, one that is none and one without files are refused."""
    refresh(root)
    write(root, {"fixtures/b/2026-01-01.html": b"x"})
    refused = pravda("forget", "b", "--tree", root)
    assert (refused.exit_code, "still named by sources.toml" in refused.stderr) == (2, True)
    assert pravda("forget", "../b", "--tree", root).exit_code == 2
    assert pravda("forget", "--tree", root).exit_code == 2
    assert pravda("forget", "c", "--tree", root).exit_code == 4
    text = (root / "sources.toml").read_text().split('[[source]]\nid = "b"')[0]
    write(root, {"sources.toml": text.encode()})
    done = pravda("forget", "b", "--tree", root)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"removed snapshots/b.{end}" for end in ("meta.json", "html", "state.json")
    ]
    assert not [name for name in files(root) if name.startswith("snapshots/b.")]
    assert (root / "fixtures/b/2026-01-01.html").exists()
    assert pravda("forget", "a", "--tree", root, "--force").exit_code == 0
    assert pravda("forget", "a", "--tree", root, "--force").exit_code == 4


def test_forget_without_snapshots(root):
    """A tree that has none has no files of anybody."""
    assert pravda("forget", "x", "--tree", root).exit_code == 4


def test_forget_waits_for_nobody(root):
    """While a refresh runs, and where a file cannot be removed, nothing is done and it is told."""
    refresh(root)
    (root / "snapshots/x.html").mkdir()
    blocked = pravda("forget", "x", "--tree", root)
    assert (blocked.exit_code, "cannot be removed" in blocked.stderr) == (1, True)
    tree = Tree(root)
    with tree.locked(now()):
        assert pravda("forget", "x", "--tree", root).exit_code == 1


# init


def test_init_tells_what_it_wrote(tmp_path):
    """The second time it keeps everything, and says which lines a list lacks."""
    result = pravda("init", tmp_path / "tree")
    assert result.exit_code == 0
    assert result.stdout.startswith("written  sources.toml\nwritten  .gitignore\n")
    assert "only at the top of a git repository" in result.stdout
    (tmp_path / "tree/.gitignore").write_text("/snapshots/*.lock\n")
    again = pravda("init", tmp_path / "tree")
    assert again.stdout.startswith("kept     sources.toml, which was there\n")
    assert ".gitignore should also hold the line: *.tmp-*\n" in again.stdout
    assert "written" not in again.stdout
    (tmp_path / "file").write_text("")
    assert pravda("init", tmp_path / "file").exit_code == 2


@needs_git
def test_init_knows_the_repository(tmp_path):
    """The schedule is for the repository that origin names."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", "git@forge.example:ann/tree.git")
    result = pravda("init", tmp_path)
    assert "top of a git repository" not in result.stdout
    assert "github.repository == 'ann/tree'" in (tmp_path / ".github/workflows/refresh.yml").read_text()


def test_init_without_git(tmp_path):
    """A machine without git begins a tree all the same."""
    assert pravda("init", tmp_path, PATH=str(tmp_path)).exit_code == 0


def test_adopt_writes_the_sources_and_nothing_else(root):
    """A taken over tree refreshes as it is; sources that are there are not overwritten."""
    refresh(root)
    named = (root / "sources.toml").read_bytes()
    assert pravda("init", root, "--adopt").exit_code == 2
    assert (root / "sources.toml").read_bytes() == named
    (root / "sources.toml").unlink()
    before = files(root)
    write(root, {"snapshots/bad.meta.json": b"{"})
    result = pravda("init", root, "--adopt")
    assert result.exit_code == 0
    assert (
        result.stdout == "written  sources.toml, with 2 sources\npassed over bad: bad.meta.json is damaged\n"
    )
    after = files(root)
    assert after.keys() - before.keys() == {"sources.toml", "snapshots/bad.meta.json"}
    assert "2 not due" in refresh(root).stdout


def test_adopt_of_nothing_is_a_mistake(tmp_path):
    """A folder without metadata is none that can be taken over."""
    result = pravda("init", tmp_path, "--adopt")
    assert (result.exit_code, "holds no metadata" in result.stderr) == (2, True)
