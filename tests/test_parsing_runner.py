"""Parsers: what they are given, what they may give, and that none takes anything else down."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pravda.parsing.frames import Nonsense, read_parsing
from pravda.parsing.runner import Runner
from pravda.parsing.values import Limits, Parsing, Trouble
from tests.groves import LIST, NOW, URL, grove, job, write

MISBEHAVED = """
    import enum, os, sys, time, uuid
    from dataclasses import dataclass
    from datetime import date, datetime, timezone
    from decimal import Decimal

    from pydantic import BaseModel

    def raises(page):
        raise ValueError("no\\n::error::forged")

    def raises_late(page):
        yield {"a": 1}
        raise RuntimeError("half way")

    def unprintable(page):
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError
        raise Odd

    def recurses(page):
        return recurses(page)

    def exits(page):
        sys.exit(3)

    def ends(page):
        os._exit(3)

    def is_killed(page):
        os.kill(os.getpid(), 11)

    def loops(page):
        while True:
            pass

    def sleeps(page):
        time.sleep(1000)

    def ever_more(page):
        while True:
            yield {"a": "b" * 1000}

    def too_large(page):
        return [{"a": "b" * 10_000_000}]

    def hoards(page):
        return [{"a": len(bytearray(10_000_000_000))}]

    def prints(page):
        print("on stdout")
        print("on stderr", file=sys.stderr)
        os.write(1, b"on the descriptor\\n")
        return []

    def prints_for_ever(page):
        while True:
            print("x" * 1000)

    def reads(page):
        return [{"read": sys.stdin.read()}]

    def closes(page):
        sys.stdout.close()
        os.closerange(3, 100)
        return []

    def forges(page):
        for descriptor in range(3, 20):
            try:
                os.write(descriptor, b"\\0" * 7 + b"\\x02[]")
            except OSError:
                pass
        return []

    def connects(page):
        import socket
        socket.create_connection(("127.0.0.1", 9))

    def resolves(page):
        import socket
        socket.getaddrinfo("example.org", 80)

    def nothing(page):
        return None

    def text(page):
        return "abc"

    def one(page):
        return {"a": 1}

    def texts(page):
        return ["abc"]

    def objects(page):
        return [{"a": [object()]}]

    def nan(page):
        return [{"a": float("nan")}]

    def number_keys(page):
        return [{1: "a"}]

    def long_number(page):
        return [{"a": 10**1001}]

    def deep(page):
        value = []
        value.append(value)
        return [{"a": value}]

    class Colour(enum.Enum):
        RED = "red"

    class Shade(enum.StrEnum):
        DARK = "dark"

    @dataclass
    class Event:
        title: str
        day: date

    class Model(BaseModel):
        title: str
        day: date

    def plain(page):
        return (
            Event("dataclass", date(2026, 3, 1)),
            Model(title="model", day=date(2026, 3, 1)),
            {
                "b": True, "i": 1, "f": 1.5, "n": None, "t": (1, 2), "e": Colour.RED, "s": Shade.DARK,
                "d": datetime(2026, 3, 1, 12, tzinfo=timezone.utc), "c": Decimal("1.10"),
                "u": uuid.UUID(int=1), Shade.DARK: [Event("x", date(2026, 3, 1))],
            },
        )

    def sees(page):
        yield {
            "bytes": len(page.bytes), "text": page.text, "charset": page.charset, "url": page.url,
            "captured": page.captured_at, "now": page.now, "source": page.source_id,
            "link": page.absolute("/x"),
        }

    def order(page):
        return [{"names": list({"ab", "cd", "ef", "gh", "ij"}), "zone": time.tzname[0]}]

    def xml(page):
        return [{"name": page.xml.findtext("name")}]

    def json(page):
        return page.json

    def empty(page):
        return [{"tag": page.document.tag}]

    def deep_page(page):
        return [{"found": page.document.xpath("//em/text()")}]

    def css(page):
        return [{"title": found.text_content()} for found in page.document.cssselect("ul > li")]

    def after(page):
        return [{"count": len(page.document.findall(".//li"))}]
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose parsers misbehave."""
    folder = tmp_path_factory.mktemp("grove")
    for name in ("json", "signal", "pravda"):
        write(folder, f"{name}.py", "raise RuntimeError")  # the worker has its own
    return grove(
        folder,
        misbehaved=MISBEHAVED,
        refuses="def can_parse(page):\n    return 0\n\ndef parse(page):\n    return [{}]\n",
        raises="def can_parse(page):\n    raise KeyError('table')\n\ndef parse(page):\n    return [{}]\n",
        broken="def parse(page:\n",
        leaves="raise SystemExit('no')\n",
    )


@pytest.fixture(scope="module")
def runner(root):
    """One runner for all."""
    with Runner(root, Limits(seconds=20, items=1000, output=1_000_000, memory=1 << 30)) as runner:
        yield runner


def run(runner: Runner, name: str, body: bytes = LIST, **fields: object) -> Parsing:
    """What a function of the misbehaved ones makes of a page."""
    return runner.run(job(f"parsers.misbehaved:{name}", body, **fields))


def trouble(parsing: Parsing) -> tuple[Trouble, str]:
    """Why there are no items."""
    assert parsing.items is None
    assert parsing.problem is not None
    return parsing.problem.trouble, parsing.problem.detail


def test_a_parser_gives_items(runner):
    """A generator of dicts gives items, in order; times are texts."""
    found = runner.run(job())
    assert found == Parsing(
        items=(
            {"title": "one", "now": "2026-03-05T06:00:00+00:00"},
            {"title": "two", "now": "2026-03-05T06:00:00+00:00"},
        )
    )


def test_what_a_parser_sees(runner):
    """A page gives bytes, text in the stored charset, the final URL, both times, and resolves links."""
    body = "<meta charset=utf-8>日本".encode("shift_jis")
    (item,) = run(runner, "sees", body, charset="shift_jis").items or ()
    assert item == {
        "bytes": len(body),
        "text": "日本",  # the left-over tag is cleaned away
        "charset": "shift_jis",
        "url": URL,
        "captured": NOW.isoformat(),
        "now": NOW.isoformat(),
        "source": "a",
        "link": "https://example.org/x",
    }


@pytest.mark.parametrize(
    ("name", "body", "item"),
    [
        ("xml", b"<?xml version='1.0'?><a><name>b</name></a>", {"name": "b"}),
        ("json", b'\xef\xbb\xbf[{"a": 1}]', {"a": 1}),
        ("css", b"<ul><li>x &amp; y</ul>", {"title": "x & y"}),
        ("deep_page", b"<div>" * 1000 + b"<em>x</em>", {"found": ["x"]}),
        ("after", b"<html><body><li>1</body></html><li>2", {"count": 2}),
    ],
)
def test_documents(runner, name, body, item):
    """HTML, XML and JSON are read, nested deep or going on behind their end."""
    assert run(runner, name, body).items == (item,)


def test_what_counts_as_an_item(runner):
    """Dataclasses, models and dicts of common values become JSON, dates as they are written."""
    first, second, third = run(runner, "plain").items or ()
    assert first == {"title": "dataclass", "day": "2026-03-01"}
    assert second == {"title": "model", "day": "2026-03-01"}
    assert third == {
        "b": True,
        "i": 1,
        "f": 1.5,
        "n": None,
        "t": [1, 2],
        "e": "red",
        "s": "dark",
        "d": "2026-03-01T12:00:00+00:00",
        "c": "1.10",
        "u": "00000000-0000-0000-0000-000000000001",
        "dark": [{"title": "x", "day": "2026-03-01"}],
    }


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("raises", Trouble.RAISED, "ValueError: no ::error::forged"),
        ("raises_late", Trouble.RAISED, "RuntimeError: half way"),
        ("unprintable", Trouble.RAISED, "Odd"),
        ("recurses", Trouble.RAISED, "RecursionError: maximum recursion depth exceeded"),
        ("exits", Trouble.RAISED, "it left the interpreter with 3"),
        ("ends", Trouble.DIED, "It ended its process with exit code 3."),
        ("is_killed", Trouble.DIED, "Its process was ended by SIGSEGV."),
        ("closes", Trouble.DIED, "It "),
        ("forges", Trouble.DIED, "It wrote among its process's own answers."),
        ("ever_more", Trouble.TOO_MUCH, "It"),
        ("too_large", Trouble.TOO_MUCH, "Its items are more than 1,000,000 bytes of JSON."),
        ("hoards", Trouble.RAISED, "MemoryError"),
        ("connects", Trouble.RAISED, "Offline: A parser reads what is stored and never asks the network."),
        ("resolves", Trouble.RAISED, "Offline: A parser reads what is stored and never asks the network."),
        ("nothing", Trouble.UNUSABLE, "It gave a value of type NoneType, not a list of items."),
        ("text", Trouble.UNUSABLE, "It gave a value of type str, not a list of items."),
        ("one", Trouble.UNUSABLE, "It gave a value of type dict, not a list of items."),
        ("texts", Trouble.UNUSABLE, "items[0] is a value of type str"),
        ("objects", Trouble.UNUSABLE, "items[0].a[0] is a value of type object, which JSON has no form for"),
        ("nan", Trouble.UNUSABLE, "items[0].a is nan, which JSON has no form for"),
        ("number_keys", Trouble.UNUSABLE, "items[0] has a value of type int for a key; keys are texts"),
        ("long_number", Trouble.UNUSABLE, "items[0].a is a number of more than a thousand digits"),
        ("deep", Trouble.UNUSABLE, "is nested too deep"),
        ("absent", Trouble.NOT_LOADED, "parsers.misbehaved has no function 'absent'"),
    ],
)
def test_failures_are_values(runner, name, kind, words):
    """Whatever a parser does is its source's failure, in one line, and the next parser runs."""
    found, detail = trouble(run(runner, name))
    assert found is kind
    assert words in detail
    assert "\n" not in detail
    assert len(runner.run(job()).items or ()) == 2


@pytest.mark.parametrize(
    ("parser", "kind", "words"),
    [
        ("parsers.refuses:parse", Trouble.REJECTED, "can_parse says that this is not the page it knows."),
        ("parsers.raises:parse", Trouble.RAISED, "KeyError: 'table'"),
        ("parsers.broken:parse", Trouble.NOT_LOADED, "SyntaxError"),
        ("parsers.leaves:parse", Trouble.NOT_LOADED, "parsers.leaves: it left the interpreter with 'no'"),
        ("parsers.absent:parse", Trouble.NOT_LOADED, "No module named 'parsers.absent'"),
        ("cmd: sh -c 'exit 3'", Trouble.REJECTED, "sh ended with exit code 3."),
        ("cmd: cat", Trouble.UNUSABLE, "What it wrote is no JSON."),
        ("cmd: echo {}", Trouble.UNUSABLE, "What it wrote is no JSON list."),
        ("cmd: yes", Trouble.TOO_MUCH, "It wrote more than 1,000,000 bytes."),
        ("cmd: no-such-program", Trouble.NOT_LOADED, "there is no program 'no-such-program'"),
        ("cmd: ./parsers/items.py", Trouble.NOT_LOADED, "there is no program './parsers/items.py'"),
        ("cmd: 'open", Trouble.NOT_LOADED, "No closing quotation"),
        ("cmd: ''", Trouble.NOT_LOADED, "there is no program ''"),
        ("cmd: ", Trouble.NOT_LOADED, "it names no program"),
    ],
)
def test_parsers_that_reject_or_cannot_run(runner, parser, kind, words):
    """A falsy `can_parse` and an exit code reject a page; what cannot be loaded says why."""
    found, detail = trouble(runner.run(job(parser)))
    assert found is kind
    assert words in detail


def test_a_traceback_is_of_the_parser(runner):
    """The traceback is kept and begins in the parser's own file."""
    problem = run(runner, "raises").problem
    assert problem is not None
    assert "misbehaved.py" in problem.traceback
    assert "pravda/parsing" not in problem.traceback


@pytest.mark.parametrize(
    "parser", ["parsers.misbehaved:loops", "parsers.misbehaved:prints_for_ever", "cmd: sleep 987"]
)
def test_a_deadline_holds(root, parser):
    """An endless parser is ended at its deadline, with the programs that it started, and the next one runs."""
    with Runner(root, Limits(seconds=1)) as runner:
        began = time.monotonic()
        kind, detail = trouble(runner.run(job(parser)))
        assert time.monotonic() - began < 10
        assert (kind, detail) == (Trouble.TIMED_OUT, "It took longer than 1 seconds.")
        assert len(runner.run(job()).items or ()) == 2
    assert (
        "sleep 987"
        not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    )


def test_a_program_is_told_of_the_page(runner, root):
    """A program gets the bytes on stdin, the rest in its environment, and runs in the tree's folder."""
    write(
        root,
        "programs/program.py",
        """
        import json, os, sys
        told = {name: value for name, value in os.environ.items() if name.startswith("PRAVDA_")}
        print(json.dumps([told | {"stdin": len(sys.stdin.buffer.read())}]))
        """,
    )
    big = b"x" * 3_000_000
    found = runner.run(job("cmd: python programs/program.py", big, charset="shift_jis", sanitize=False)).items
    assert found is not None
    assert found[0] == {
        "PRAVDA_SOURCE": "a",
        "PRAVDA_URL": URL,
        "PRAVDA_CHARSET": "shift_jis",
        "PRAVDA_CAPTURED_AT": "2026-03-05T06:00:00.000Z",
        "PRAVDA_NOW": "2026-03-05T06:00:00.000Z",
        "stdin": len(big),
    }
    assert runner.run(job("cmd: echo []", big)).items == ()


def test_prints_are_kept_apart(runner):
    """What a parser prints is handed over beside the items, and standard input is empty."""
    found = run(runner, "prints")
    assert found.items == ()
    assert sorted(found.said.splitlines()) == ["on stderr", "on stdout", "on the descriptor"]
    assert runner.run(job()).said == ""
    assert run(runner, "reads").items == ({"read": ""},)


def test_answers_do_not_depend_on_the_run(root):
    """Sets come in one order, and local time is UTC."""
    found = []
    for _ in range(2):
        with Runner(root) as runner:
            found.append(run(runner, "order").items)
    assert found[0] == found[1]
    assert (found[0] or ())[0]["zone"] == "UTC"


def test_nothing_is_written_into_the_tree(runner, root):
    """No cache of compiled parsers appears beside them."""
    assert runner.run(job()).items
    assert not list(root.rglob("__pycache__"))


def test_a_closed_runner_reads_parsers_anew(tmp_path):
    """After closing, an edited parser counts."""
    root = grove(tmp_path)
    runner = Runner(root)
    assert runner.run(job()).items != ()
    write(root, "parsers/items.py", "def parse(page):\n    return []\n")
    assert runner.run(job()).items != ()
    runner.close()
    assert runner.run(job()).items == ()
    runner.close()
    runner.close()


def test_closing_does_not_wait_for_a_parser(root):
    """A runner that is closed while another thread waits for an endless parser lets both go at once."""
    runner = Runner(root)
    assert runner.run(job()).items
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(run, runner, "loops")
        time.sleep(0.3)
        began = time.monotonic()
        runner.close()
        assert trouble(waiting.result(timeout=10)) == (Trouble.DIED, "Its process was ended by SIGKILL.")
    assert time.monotonic() - began < 10


def test_loading_is_asked_before_anything_else(runner):
    """A parser that cannot be loaded says why without a page."""
    assert runner.problem_of(job()) is None
    assert "No module named" in (runner.problem_of(job("parsers.absent:parse")) or "")
    assert "no program" in (runner.problem_of(job("cmd: no-such-program")) or "")


def test_an_interrupted_runner_starts_afresh(root, monkeypatch):
    """An interruption leaves no process that is a question behind."""
    with Runner(root) as runner:
        assert runner.run(job()).items

        def interrupt(*_: object) -> Parsing:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("pravda.parsing.runner.read_parsing", interrupt)
            with pytest.raises(KeyboardInterrupt):
                runner.run(job())
        assert len(runner.run(job()).items or ()) == 2


def test_an_orphan_ends_itself(root):
    """A worker whose starter was killed during an endless parser ends by itself."""
    code = (
        "import sys; from pathlib import Path; from pravda.parsing.runner import Runner;"
        "from pravda.parsing.values import Limits; from tests.groves import job;"
        "r = Runner(Path(sys.argv[1]), Limits(seconds=0.5)); r.run(job()); print(r._worker._process.pid, flush=True);"
        "r._limits = Limits(); r._worker._limits = Limits(); r.run(job('parsers.misbehaved:loops'))"
    )
    # the worker's own timer: half a second, and two of grace
    with subprocess.Popen(
        [sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        time.sleep(0.3)
        starter.kill()
    os.kill(pid, 0)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]:
            break  # ended, and nobody asks for its code
        time.sleep(0.1)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail("the worker is still there")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"problem": ["nonsense", "", ""]}',
        b'{"problem": 1}',
        b'{"problem": null, "items": [1], "repairs": [], "repaired": 0, "failures": [], "failed": 0}',
        b'{"problem": null, "items": [], "repairs": [[]], "repaired": 0, "failures": [], "failed": 0}',
        b'{"problem": null, "items": [], "repairs": [], "repaired": "", "failures": [], "failed": 0}',
        b"[" * 100_000,
    ],
)
def test_a_forged_answer_is_refused(answer):
    """An answer that the worker never gives is an error, whatever it is."""
    with pytest.raises(Nonsense):
        read_parsing(answer, "")
