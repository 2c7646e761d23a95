"""A refresh over real sockets, with the real engines and real git."""

import asyncio
import json
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pravda.core.addresses import AddressPolicy
from pravda.core.charset import decode
from pravda.core.ports import Engine
from pravda.core.states import Reason
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.engines.polite import PoliteEngine, PoliteOptions
from pravda.testing import START, FrozenClock
from pravda.tree.book import TreeBook
from pravda.tree.files import Tree
from pravda.tree.layout import IGNORED, VERBATIM
from pravda.tree.refresh import refresh
from pravda.tree.results import Outcome, RunResult, SourceResult
from pravda.tree.run import Run
from pravda.tree.sources_file import parse_sources
from pravda.tree.standing import survey
from tests.origin import BODY, HT, Origin, R, Reply, Script, header_of

ETAG = b'ETag: "a"'
MODIFIED = b"Last-Modified: Friday, 14-Aug-26 09:00:00 GMT"
NOT_MODIFIED = [R(b"304 Not Modified", b"", cl=False)]
MISSING = [R(b"404 Not Found")]


class Site:
    """A tree with sources on one loopback origin, refreshed in still time."""

    def __init__(self, origin: Origin, root: Path, *paths: str, polite: bool = False) -> None:
        self.origin, self.tree, self.clock = origin, Tree(root), FrozenClock()
        self.polite, self.slept = polite, list[float]()
        self.paths = paths or ("/a",)
        text = "".join(f'[[source]]\nid = "{path[1:]}"\nurl = "{origin.url(path)}"\n' for path in self.paths)
        self.sources = parse_sources(text.encode())

    def serve(self, *replies: Reply, path: str = "/a") -> None:
        """What the origin answers from now on."""
        self.origin.routes[path] = Script(*replies)

    def run(self) -> RunResult:
        """A refresh, six hours after the last."""
        self.clock.advance(hours=6)
        return asyncio.run(self._refresh())

    def one(self, *replies: Reply) -> SourceResult:
        """The first source's result."""
        if replies:
            self.serve(*replies)
        return self.run().results[0]

    def sent(self, name: bytes) -> bytes | None:
        """A header of the last request."""
        return header_of(self.origin.log[-1], name)

    def body(self) -> bytes:
        """The stored bytes."""
        return (self.tree.folder / "a.html").read_bytes()

    def meta(self) -> dict[str, Any]:
        """The stored metadata."""
        return dict(json.loads((self.tree.folder / "a.meta.json").read_bytes()))

    async def _refresh(self) -> RunResult:
        options = HttpOptions(user_agent="pravda/0", policy=AddressPolicy.parse("127.0.0.1"))
        engine: Engine = HttpEngine(options, self.clock)
        book = TreeBook(self.tree, self.clock)
        if self.polite:
            engine = PoliteEngine(engine, book, self.clock, self._sleep, PoliteOptions(user_agent="pravda/0"))
        try:
            return await refresh(
                Run(
                    tree=self.tree,
                    sources=self.sources,
                    clock=self.clock,
                    engine_for=lambda _: engine,
                    book=book,
                )
            )
        finally:
            await engine.close()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds=seconds)


@pytest.fixture
def site(tmp_path: Path):
    """A site with one source."""
    with Origin() as origin:
        yield Site(origin, tmp_path)


def test_validators_on_the_wire(site: Site):
    """Validators go out byte for byte, and what never came is not invented (R-A1, R-A3, R-A11, R-A17)."""
    site.one([R(b"200 OK", BODY, HT, b'ETag: W/"abc-gzip"', MODIFIED)])
    assert site.sent(b"If-None-Match") is None
    for reply in (NOT_MODIFIED, [R(b"503 Busy", b"no")], NOT_MODIFIED):
        site.one(reply)
        assert site.sent(b"If-None-Match") == b'W/"abc-gzip"'
        assert site.sent(b"If-Modified-Since") == b"Friday, 14-Aug-26 09:00:00 GMT"
    site.one([R(b"200 OK", BODY, HT, b'ETag: "b"')])
    site.one([R(b"200 OK", BODY, HT, b"ETag:")])
    assert site.sent(b"If-None-Match") == b'"b"'
    assert site.sent(b"If-Modified-Since") is None
    site.one()
    assert site.sent(b"If-None-Match") is None


def test_alternating_etags_over_one_body(site: Site):
    """Two servers that name one body differently never make a change (R-A19)."""
    outcomes = [
        site.one([R(b"200 OK", BODY, HT, tag)]).outcome
        for tag in (b'ETag: "abc"', b'ETag: "abc-gzip"', b'ETag: "abc"')
    ]
    assert outcomes == [Outcome.FETCHED, Outcome.UNCHANGED, Outcome.UNCHANGED]


def test_a_304_behind_a_redirect(site: Site):
    """The ETag of a redirect is not the page's; the page's goes out on its own hop only (R-A22)."""
    site.serve([R(b"301 Moved", b"", b"Location: /q", b'ETag: "r"')])
    site.serve([R(b"200 OK", BODY, HT, b'ETag: "f"')], NOT_MODIFIED, path="/q")
    assert site.run().changed == 1
    assert site.meta()["etag"] == '"f"'
    assert site.run().results[0].outcome is Outcome.UNCHANGED
    assert [header_of(request, b"If-None-Match") for request in site.origin.log] == [None, None, None, b'"f"']
    site.serve([R(b"301 Moved", b"", b"Location: /r")])
    site.serve([R(b"200 OK", BODY + b"!", HT)], path="/r")
    assert site.run().changed == 1
    assert site.sent(b"If-None-Match") is None


@pytest.mark.parametrize(
    ("content_type", "body", "charset"),
    [
        (b"text/html", "<meta charset=Shift_JIS><p>イベント</p>".encode("shift_jis"), "shift_jis"),
        (b"text/html; charset=windows-1251", "<p>Привет, мир</p>".encode("windows-1251"), "windows-1251"),
        (b"text/html; charset=GB2312", "<p>活动列表</p>".encode("gbk"), "gbk"),
        (b"text/html; charset=latin1", "<p>Café déjà</p>".encode("latin-1"), "windows-1252"),
        (b"text/html; charset=cp1251", b"\xef\xbb\xbf" + "<p>Привет</p>".encode(), "utf-8"),
        (b"text/html", b"<meta charset=utf-16><p>plain words</p>", "utf-8"),
        (b"text/html; charset=none-such", "<meta charset=koi8-r><p>мир</p>".encode("koi8-r"), "koi8-r"),
        (b"text/html", b"<p>words without a word on it</p>", "utf-8"),
        (b"application/csv; charset=windows-1251", "мир;труд".encode("windows-1251"), "windows-1251"),
    ],
)
def test_bytes_are_kept_as_served(site: Site, content_type: bytes, body: bytes, charset: str):
    """File bytes equal served bytes; the charset is recorded, never applied (R-D1, R-D3, R-D6)."""
    assert site.one([R(b"200 OK", body, b"Content-Type: " + content_type)]).outcome is Outcome.FETCHED
    assert site.body() == body
    assert (site.meta()["charset"], site.meta()["bytes"]) == (charset, len(body))
    assert "\ufffd" not in decode(site.body(), site.meta()["charset"])


def test_a_server_that_fails_once(site: Site):
    """A failing server is asked once a run, never again at once; what it says is in the note."""
    result = site.one([R(b"503 Busy", b"no", b"Server: old", b"Retry-After: 36000")])
    assert (result.outcome, len(site.origin.log)) == (Outcome.FAILED, 1)
    assert result.note == "503 Service Unavailable; Server: old; Retry-After: 36000"
    assert site.run().results[0].outcome is Outcome.SKIPPED_INTERVAL
    assert site.run().attempted == 1


def test_a_dead_server(site: Site):
    """A server that is not there is down, and the next run asks again."""
    site.origin.close()
    result = site.one()
    assert (result.outcome, result.reason, result.status) == (Outcome.FAILED, Reason.CONNECTION_REFUSED, None)


# robots and spacing, through the polite engine


def test_a_polite_refresh(tmp_path: Path):
    """robots.txt is asked once for both sources and remembered for the next run; requests are spaced."""
    with Origin(
        routes={"/robots.txt": MISSING, "/a": [R(b"200 OK", BODY, HT)], "/b": [R(b"200 OK", BODY, HT)]}
    ) as origin:
        site = Site(origin, tmp_path, "/a", "/b", polite=True)
        assert site.run().changed == 2
        assert site.run().confirmed == 2
        assert origin.targets() == ["/robots.txt", "/a", "/b", "/a", "/b"]
        assert len(site.slept) == 3
        assert min(site.slept) > 1.5
        assert (site.tree.folder / "_hosts.state.json").is_file()


@pytest.mark.parametrize(("delay", "second"), [(b"86400", Outcome.SKIPPED_SPACING), (b"0", Outcome.FETCHED)])
def test_an_absurd_crawl_delay(tmp_path: Path, delay: bytes, second: Outcome):
    """A Crawl-delay of a day puts the second source off without a sleep; one of 0 is the default gap (R-C14)."""
    robots = [R(b"200 OK", b"User-agent: *\nCrawl-delay: " + delay, b"Content-Type: text/plain")]
    page = [R(b"200 OK", BODY, HT)]
    with Origin(routes={"/robots.txt": robots, "/a": page, "/b": page}) as origin:
        site = Site(origin, tmp_path, "/a", "/b", polite=True)
        assert [result.outcome for result in site.run().results] == [Outcome.FETCHED, second]
        assert max(site.slept) <= 60


def test_robots_refuse(tmp_path: Path):
    """A page that robots.txt forbids is never asked for, nor is one that a redirect leads to (R-C6)."""
    robots = [R(b"200 OK", b"User-agent: *\nDisallow: /b\n", b"Content-Type: text/plain")]
    with Origin(routes={"/robots.txt": robots, "/a": [R(b"302 Found", b"", b"Location: /b")]}) as origin:
        site = Site(origin, tmp_path, "/a", "/b", polite=True)
        run = site.run()
        assert [result.outcome for result in run.results] == [Outcome.SKIPPED_ROBOTS, Outcome.SKIPPED_ROBOTS]
        assert [result.asked for result in run.results] == [True, False]
        assert (run.refused, run.exit_code) == (("a", "b"), 1)
        assert origin.targets() == ["/robots.txt", "/a"]


# git


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A git command of nobody in particular."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False)


def test_a_tree_under_git(site: Site, tmp_path: Path):
    """Git sees no leftovers, tells a confirm-only change, and a clone has the bytes and the freshness (R-E7, R-F11)."""
    root = site.tree.root
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("\n".join(IGNORED) + "\n")
    (root / ".gitattributes").write_text("\n".join(VERBATIM) + "\n")
    body = b"<title>x</title>\r\n<p>two\nkinds of line ends, words enough</p>\r\n"
    site.one([R(b"200 OK", body, HT, ETAG)])
    git(root, "add", "-A")
    assert git(root, "ls-files").stdout.split() == [
        ".gitattributes",
        ".gitignore",
        "snapshots/a.html",
        "snapshots/a.meta.json",
    ]
    git(root, "commit", "-q", "-m", "first")
    (site.tree.folder / "x.html.tmp-1").write_bytes(b"half")
    assert git(root, "status", "--porcelain").stdout == ""
    assert site.one(NOT_MODIFIED).confirms
    assert git(root, "diff", "--quiet", "--", "snapshots").returncode == 1
    assert git(root, "diff", "--quiet", "-I", '"lastConfirmedAt"', "--", "snapshots").returncode == 0
    git(root, "commit", "-q", "-a", "-m", "confirmed")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-c", "core.autocrlf=true", str(root), str(clone))
    (standing,) = survey(Tree(clone), site.sources, site.clock.now()).sources
    assert (standing.intact, standing.fresh_at) == (True, START + timedelta(hours=12))
    assert (clone / "snapshots" / "a.html").read_bytes() == body
