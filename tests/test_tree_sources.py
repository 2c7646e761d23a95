"""The sources file, read and refused."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.mistake import BadRequest
from pravda.tree.layout import extension_problem, id_problem
from pravda.tree.lines import scan
from pravda.tree.meta import Confirmations
from pravda.tree.sources import RobotsMode
from pravda.tree.sources_file import LONGEST_FILE, load_sources, parse_sources
from tests.trees import ONE, sources

FULL = """\
[defaults]
contact = "https://example.org/me"
host_gap = "3s"
confirmations = "daily"
interval = "1h"
headers = { Accept-Language = "en" }

[[source]]
id = "events.one"
url = "https://example.org/a?x=1#top"
parser = "parsers.one:items"
min_items = 2
warn_drop = 0.25
extension = "json"
robots = "ignore"
fixtures = "old/one-*.html"
  [source.expect]
  selector = "table#list"
  min_matches = 2

[[source]]
id = "two"
url = "https://example.org/b"
interval = "0s"
parser = "cmd: jq length"
headers = { X-Own = "1" }

[[host]]
name = "Example.org"
gap = "10s"
robots_on_challenge = "assume-allowed"
note = "read by Ann on 2026-01-01"
proxy = "socks5h://user:secret@proxy.example:1080"

[build]
out = "public/events.json"
"""


def refusal(text: str) -> str:
    """What a file is refused with."""
    with pytest.raises(BadRequest) as caught:
        sources(text)
    return str(caught.value)


def with_source(line: str) -> str:
    """A file with one source and another line in it, the fourth."""
    return ONE + line + "\n"


def test_everything_is_read():
    """Every key of the file comes out as a typed value, defaults where a source says nothing."""
    read = sources(FULL)
    one, second = read.sources
    assert (one.id, one.url, one.request.url.page) == (
        "events.one",
        "https://example.org/a?x=1#top",
        "https://example.org/a?x=1",
    )
    assert (one.interval, second.interval) == (3600, 0)
    assert (one.parser, one.min_items, one.warn_drop, one.extension) == ("parsers.one:items", 2, 0.25, "json")
    assert (one.robots, second.robots) == (RobotsMode.IGNORE, RobotsMode.OBEY)
    assert one.fixtures == "old/one-*.html"
    assert one.request.expect.selector == ("table#list",)
    assert one.request.conditional
    assert one.request.headers == (("Accept-Language", "en"),)
    assert second.request.headers == (("X-Own", "1"),)
    assert read.confirmations is Confirmations.DAILY
    assert (read.host_gap, read.build_out) == (3.0, "public/events.json")
    host = read.host("example.org")
    assert host is not None
    assert (host.gap, host.assume_allowed, host.note) == (10, True, "read by Ann on 2026-01-01")
    assert "secret" not in repr(read)
    assert read.host("other.example") is None


def test_defaults_of_a_bare_source():
    """A source with nothing but id and URL is refreshed every six hours, obeys robots.txt and is stored as HTML."""
    read = sources()
    (one,) = read.sources
    assert (one.interval, one.robots, one.extension, one.min_items, one.warn_drop) == (
        21600,
        RobotsMode.OBEY,
        "html",
        1,
        0.5,
    )
    assert read.confirmations is Confirmations.ALWAYS
    assert sources("").sources == ()


@pytest.mark.parametrize(
    ("lines", "agent"),
    [
        ("", "pravda/1"),
        ('contact = "me@example.org"', "pravda/1 (+me@example.org)"),
        ('contact = "me@example.org"\nuser_agent = "mine/2 (+x)"', "mine/2 (+x)"),
    ],
)
def test_user_agent(lines: str, agent: str):
    """The User-Agent names the tool and the contact, unless the file says all of it."""
    assert sources("[defaults]\n" + lines).agent("pravda/1") == agent


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        (with_source('colour = "red"'), "sources.toml:4: source.colour", "is no key here"),
        ("[sauce]\n", "sources.toml:1: sauce", "is no key here"),
        ('\n[build]\nin = "x"', "sources.toml:3: build.in", "is no key here"),
        ('[defaults]\nurl = "x"', "sources.toml:2: defaults.url", "is no key here"),
        (with_source('[[host]]\nname = "a"\ncolour = 1'), "sources.toml:6: host.colour", "is no key here"),
        (with_source('expect = { selektor = "x" }'), "sources.toml:4: source.expect.selektor", "is no rule"),
        (with_source('[source.expect]\nselector = "p["'), "sources.toml:5: source.expect.selector", "p["),
        (with_source('expect.selector = "p["'), "sources.toml:4: source.expect.selector", "p["),
        (with_source("expect = 5"), "sources.toml:4: source.expect", "must map"),
        (ONE + '[[source]]\nid = "a"\nurl = "https://x.example/"', "sources.toml:5: source.id", "on line 2"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "A"', "sources.toml:4: host.name", "on line 2"),
        ('[[source]]\nurl = "https://x.example/"', "sources.toml:1: source.id", "is missing"),
        ('[[source]]\nid = "x"', "sources.toml:1: source.url", "is missing"),
        ('[[source]]\nid = "x"\nurl = "ftp://x"', "sources.toml:3: source.url", "http"),
        ('[[source]]\nid = "x"\nurl = 5', "sources.toml:3: source.url", "text"),
        ('[[source]]\nid = "X"\nurl = "https://x.example/"', "sources.toml:2: source.id", "a-z"),
        ('[[source]]\nid = "com1.x"\nurl = "https://x.example/"', "sources.toml:2: source.id", "device"),
        (with_source('interval = "soon"'), "sources.toml:4: source.interval", "no duration"),
        (with_source("interval = -1"), "sources.toml:4: source.interval", "-1"),
        (with_source('parser = "no parser"'), "sources.toml:4: source.parser", "neither"),
        (with_source('parser = "cmd:  "'), "sources.toml:4: source.parser", "neither"),
        (with_source("min_items = true"), "sources.toml:4: source.min_items", "whole number"),
        (with_source("warn_drop = 2"), "sources.toml:4: source.warn_drop", "0 to 1"),
        (with_source("warn_drop = nan"), "sources.toml:4: source.warn_drop", "0 to 1"),
        (with_source('extension = "tar.gz"'), "sources.toml:4: source.extension", "without a dot"),
        (with_source('engine = "lynx"'), "sources.toml:4: source.engine", "lynx"),
        (with_source('headers = { Host = "x" }'), "sources.toml:4: source.headers.Host", "engine"),
        (with_source('robots = "maybe"'), "sources.toml:4: source.robots", "obey"),
        (with_source("robots = 5"), "sources.toml:4: source.robots", "obey"),
        ('[defaults]\nconfirmations = "weekly"', "sources.toml:2: defaults.confirmations", "daily"),
        ('[defaults]\nuser_agent = "ü"', "sources.toml:2: defaults.user_agent", "ASCII"),
        ('[defaults]\nhost_gap = "x"', "sources.toml:2: defaults.host_gap", "no duration"),
        ('[defaults]\n[defaults.expect]\nselector = "p["', "sources.toml:3: defaults.expect.selector", "p["),
        ("[defaults]\nwarn_drop = 7\n" + ONE, "sources.toml:2: defaults.warn_drop", "0 to 1"),
        ('[[host]]\nname = "http://x/"', "sources.toml:2: host.name", "host name"),
        ("[[host]]\ngap = 1", "sources.toml:1: host.name", "is missing"),
        (
            '[[host]]\nname = "x"\nrobots_on_challenge = "assume-allowed"',
            "sources.toml:3: host.robots_on_challenge",
            "note",
        ),
        ('[[host]]\nname = "x"\nproxy = "gopher://x"', "sources.toml:3: host.proxy", "schemes"),
        ('[[host]]\nname = "x"\nproxy = "http://[x"', "sources.toml:3: host.proxy", "schemes"),
        ("source = 5", "sources.toml:1: source", "[[source]]"),
        ("source = [1]", "sources.toml:1: source", "[[source]]"),
        ("defaults = 5", "sources.toml:1: defaults", "[defaults]"),
        ("a = \nb = 1", "sources.toml: is no TOML", "line 1"),
    ],
)
def test_refusals_name_file_line_and_key(text: str, where: str, problem: str):
    """Whatever is wrong is refused before any request, with the file, the line and the key."""
    said = refusal(text)
    assert said.startswith(where)
    assert problem in said


def test_a_proxys_password_is_not_told():
    """A refused proxy is not repeated, since its URL may hold a password."""
    assert "secret" not in refusal('[[host]]\nname = "x"\nproxy = "gopher://u:secret@x"')


def test_a_value_from_the_defaults_is_refused_where_it_stands():
    """A rule of the defaults that a source cannot take is shown at the defaults."""
    text = "[defaults]\nexpect = { min_matches = 1 }\n" + ONE
    assert refusal(text).startswith("sources.toml:2: defaults.expect.min_matches")


def test_a_missing_parser_is_refused_once():
    """Every parser is looked for once, and one that is missing is an error at its line."""
    asked: list[str] = []

    def problem(name: str) -> str | None:
        asked.append(name)
        return "there is no module parsers" if name == "gone:items" else None

    text = "".join(
        f'[[source]]\nid = "{name}"\nurl = "https://x.example/"\nparser = "{parser}"\n'
        for name, parser in (("a", "here:items"), ("b", "here:items"), ("c", "gone:items"))
    )
    with pytest.raises(BadRequest, match=r"^sources.toml:12: source.parser: there is no module"):
        parse_sources(text.encode(), parser_problem=problem)
    assert asked == ["here:items", "gone:items"]


def test_unreadable_files(tmp_path: Path):
    """A file that is absent, too long, no UTF-8 or nested without end is refused by name."""
    with pytest.raises(BadRequest, match="cannot be read"):
        load_sources(tmp_path / "sources.toml")
    with pytest.raises(BadRequest, match="longer than"):
        parse_sources(b"#" * (LONGEST_FILE + 1))
    with pytest.raises(BadRequest, match=r"sources.toml:2: .*UTF-8"):
        parse_sources(b"\n\xff")
    with pytest.raises(BadRequest, match="no TOML"):
        parse_sources(b"a = " + b"[" * 100_000)


def test_files_are_loaded(tmp_path: Path):
    """A file on disk is read, and its path stands in refusals."""
    path = tmp_path / "sources.toml"
    path.write_text(ONE)
    assert load_sources(path).sources[0].id == "a"
    path.write_text("x = 1")
    with pytest.raises(BadRequest, match=str(path)):
        load_sources(path)


def test_chosen():
    """Sources are chosen by id; an unknown id is an error, never everything."""
    read = sources(FULL)
    assert [one.id for one in read.chosen()] == ["events.one", "two"]
    assert [one.id for one in read.chosen(("two",))] == ["two"]
    with pytest.raises(BadRequest, match="only: 'three' is no source"):
        read.chosen(("two", "three"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "-a",
        ".a",
        "a b",
        "a/b",
        "a\\b",
        "ä",
        "a..b",
        "a" * 101,
        "con",
        "nul.x",
        "lpt9",
        "a\n",
        "a.meta",
        "a.state",
        "a.tmp-1",
    ],
)
def test_bad_ids(text: str):
    """What could not be a file name everywhere, or would be another file of the tree, is no id."""
    assert id_problem(text)


@pytest.mark.parametrize("text", ["a", "0", "a-b_c.d", "console", "com10", "a" * 100, "ba-bawiki-events"])
def test_good_ids(text: str):
    """Ids are short lower-case names."""
    assert id_problem(text) is None


def test_extensions():
    """Extensions are short and have no dot."""
    assert extension_problem("html") is None
    assert extension_problem(".html")
    assert extension_problem("meta.json")


def test_lines_inside_texts_are_no_keys():
    """What stands inside a text of several lines is not taken for a key."""
    text = 'a = """\nb = 1\n[c]\n"""\nb = 2\n"quoted" . key = 3\n'
    lines = scan(text)
    assert lines.find("", 0, "b") == 5
    assert lines.find("", 0, "quoted.key") == 6
    assert lines.find("c", 0, "") == 1


@given(st.text(max_size=200))
def test_any_text_is_scanned(text: str):
    """No text breaks the search for lines."""
    assert scan(text).find("source", 0, "id") >= 1


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes):
    """No bytes do more than be refused."""
    with contextlib.suppress(BadRequest):
        parse_sources(data)
