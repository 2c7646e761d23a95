"""The command line, against a scripted origin."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click import Command, Context
from click.testing import CliRunner, Result

from pravda import open_blocking
from pravda.cli import main as cli_main
from pravda.cli.bytes import is_plain
from pravda.cli.main import cli
from pravda.cli.options import body, pairs, read_file, rules
from pravda.cli.table import COMMANDS, overview
from pravda.cli.words import ago, badge, program, safe, size, span
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer, Snapshot
from pravda.core.ports import Query
from pravda.core.request import _PARSERS
from pravda.core.states import Exit, Reason, State
from pravda.core.wire import answer_from_json, snapshot_from_json
from tests.factories import NOON
from tests.origin import BODY, HT, Origin, R, Script, Sleep, header_of

LIVE = [R(b"200 OK", BODY, HT)]
BROKEN = [R(b"503 Service Unavailable", b"<h1>oops</h1>", HT, b"Retry-After: 20")]


@pytest.fixture
def home(tmp_path):
    """The folder of an archive that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def origin():
    """A site that works once and then breaks at /page, and has other paths."""
    with Origin() as site:
        site.routes.update(
            {"/page": Script(LIVE, BROKEN), "/live": LIVE, "/broken": BROKEN, "/gone": [R(b"410 Gone")]}
        )
        yield site


def pravda(home: Path, *arguments: str, stdin: bytes | None = None) -> Result:
    """One command in this process."""
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)], input=stdin)


def in_a_shell(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pravda", *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def environment(home: Path, **more: str) -> Mapping[str, str]:
    """This process's environment with an archive of the test's own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    return kept | {"PRAVDA_HOME": str(home), "TERM": "xterm"} | more


def on_a_terminal(home: Path, *arguments: str, **more: str) -> tuple[int, str]:
    """One command whose output and errors go to a terminal: exit code and what was written."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pravda", *arguments],
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says EIO once the other end is closed
                break
            if not piece:
                break
            written += piece
        code = process.wait(timeout=30)
    os.close(ours)
    return code, written.decode()


def capture_json(home: Path, *arguments: str) -> tuple[int, Answer]:
    """Exit code and answer of a capture."""
    result = pravda(home, "capture", *arguments, "--json")
    return result.exit_code, answer_from_json(json.loads(result.stdout))


def used_in(answer: Answer) -> Snapshot:
    """The snapshot that an answer gives."""
    assert answer.snapshot is not None
    return answer.snapshot


def attempt_in(answer: Answer) -> Snapshot:
    """The attempt that an answer names."""
    assert answer.attempt is not None
    return answer.attempt


def reason_of(snapshot: Snapshot) -> Reason | None:
    """Why a snapshot is not live."""
    failure = snapshot.verdict.failure
    return failure.reason if failure else None


def command(name: str) -> Command:
    """A command by name."""
    found = cli.get_command(Context(cli), name)
    assert found is not None
    return found


# capture


def test_a_fresh_answer(home, origin):
    """A usable page is answered as fresh, with exit code 0 and where its evidence is."""
    result = pravda(home, "capture", origin.url("/live"))
    assert result.exit_code == Exit.OK
    assert result.stdout.startswith("[LIVE] fresh")
    assert "status      200, HTTP/1.1, from 127.0.0.1" in result.stdout
    assert "text/html, utf-8 (from header)" in result.stdout
    assert "show " in result.stdout
    assert result.stderr == ""


def test_a_stale_answer_names_both_snapshots(home, origin):
    """When the refresh fails, id, time and age of the snapshot used are told, and the failed attempt."""
    _, fresh = capture_json(home, origin.url("/page"))
    result = pravda(home, "capture", origin.url("/page"), "--max-stale-age", "7d")
    assert result.exit_code == Exit.OK
    used = used_in(fresh)
    assert used.id in result.stdout
    assert "age         under 1 s, at most 7 d allowed" in result.stdout
    assert "[DOWN] the attempt that failed" in result.stdout
    assert "service_unavailable: " in result.stdout
    assert "retry after 20 s" in result.stdout
    assert result.stderr.startswith("pravda: warning: stale: ")


def test_fail_on_stale(home, origin):
    """With --fail-on-stale a stale answer exits 3, a fresh one 0."""
    options = ("--max-stale-age", "7d", "--fail-on-stale")
    assert pravda(home, "capture", origin.url("/page"), *options).exit_code == Exit.OK
    assert pravda(home, "capture", origin.url("/page"), *options).exit_code == Exit.STALE


def test_no_fallback_without_max_stale_age(home, origin):
    """Without --max-stale-age, or with 0, the kept snapshot is named and not used."""
    pravda(home, "capture", origin.url("/page"))
    for options in ((), ("--max-stale-age", "0")):
        result = pravda(home, "capture", origin.url("/page"), *options)
        assert result.exit_code == Exit.DOWN
        assert "[DOWN] failed" in result.stdout
        assert "is usable but not asked for" in result.stdout


def test_expired_fallback_and_forbidden_state(home, origin):
    """A snapshot that is too old, or a failure that --stale-if leaves out, gives no fallback and says why."""
    pravda(home, "capture", origin.url("/page"))
    too_old = pravda(home, "capture", origin.url("/page"), "--max-stale-age", "0.001")
    assert (too_old.exit_code, "older than" in too_old.stdout) == (Exit.DOWN, True)
    forbidden = pravda(
        home, "capture", origin.url("/page"), "--max-stale-age", "1d", "--stale-if", "blocked,gone"
    )
    assert (forbidden.exit_code, "not allowed for this state" in forbidden.stdout) == (Exit.DOWN, True)


def test_no_usable_history(home, origin):
    """A failure with nothing kept says so and exits with its state's code."""
    result = pravda(home, "capture", origin.url("/gone"), "--max-stale-age", "7d")
    assert result.exit_code == Exit.GONE
    assert "no usable snapshot is kept" in result.stdout


def test_reused(home, origin):
    """With --max-age a young snapshot is the answer and nothing is fetched."""
    pravda(home, "capture", origin.url("/live"))
    result = pravda(home, "capture", origin.url("/live"), "--max-age", "1h")
    assert result.stdout.startswith("[LIVE] reused")
    assert len(origin.log) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ([R(b"403 Forbidden", b"no", HT)], Exit.BLOCKED),
        ([R(b"404 Not Found", b"no", HT)], Exit.GONE),
        ([R(b"500 Oops", b"no", HT)], Exit.DOWN),
        ([R(b"200 OK", BODY, HT, cl=len(BODY) + 9)], Exit.PARTIAL),
        ([R(b"302 Found", b"", b"Location: http://127.0.0.2/")], Exit.LOCAL_FAULT),
    ],
)
def test_exit_codes(home, origin, reply, code):
    """Each state has its exit code, our own fault one of its own, and --allow-failure makes it 0."""
    origin.routes["/it"] = reply
    assert pravda(home, "capture", origin.url("/it")).exit_code == code
    assert pravda(home, "capture", origin.url("/it"), "--allow-failure").exit_code == Exit.OK


def test_json_is_the_one_form(home, origin):
    """--json prints the answer's one JSON form, fresh, stale and failed alike, and nothing else on stdout."""
    for options, expected in (
        ((), "fresh"),
        (("--max-stale-age", "7d"), "stale"),
        ((), "failed"),
    ):
        printed = json.loads(pravda(home, "capture", origin.url("/page"), *options, "--json").stdout)
        assert answer_from_json(printed).result == expected
    assert printed["type"] == "urn:pravda:problem:no-usable-snapshot"


def test_json_tells_failure_on_stderr(home, origin):
    """With --json the sentence about a failure goes to stderr, and --quiet leaves it out."""
    assert "No earlier snapshot is kept" in pravda(home, "capture", origin.url("/broken"), "--json").stderr
    quiet = pravda(home, "capture", origin.url("/broken"), "--json", "--quiet")
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["result"] == "failed"


def test_quiet(home, origin):
    """--quiet prints nothing; the exit code tells."""
    result = pravda(home, "capture", origin.url("/broken"), "--quiet")
    assert (result.exit_code, result.output) == (Exit.DOWN, "")


def test_every_field_of_a_request_is_an_option():
    """Each field of a request has an option that carries its name, in the singular where it repeats."""
    options = {option for parameter in command("capture").params for option in parameter.opts}
    renamed = {"body": "--data", "on_failure": "--allow-failure"}
    for field in _PARSERS:
        dashed = f"--{field.replace('_', '-')}"
        assert options & {dashed, dashed.removesuffix("s"), renamed.get(field, dashed)}, field


def test_fields_reach_the_origin(home, origin, tmp_path):
    """Method, headers, cookies and body go out as given."""
    data = tmp_path / "data"
    data.write_bytes(b"\x00\xff=1")
    result = pravda(
        home, "capture", origin.url("/live"), "--data", f"@{data}", "--header", "X-One: 1",
        "--cookie", "a=b", "--cookie", "c=d=e", "--key", "k", "--timeout", "total=9", "--max-bytes", "99999",
        "--tls", "verify", "--robots", "ignore", "--engine", "http", "--artifact", "body",
    )  # fmt: skip
    assert result.exit_code == Exit.OK, result.output
    request = origin.log[0]
    assert request.startswith(b"POST /live ")
    assert request.endswith(b"\r\n\r\n\x00\xff=1")
    assert header_of(request, b"X-One") == b"1"
    assert sorted((header_of(request, b"Cookie") or b"").split(b"; ")) == [b"a=b", b"c=d=e"]


def test_data_from_stdin_and_method(home, origin):
    """--data @- sends stdin, and --method says how."""
    options = ("--data", "@-", "--method", "PUT")
    assert pravda(home, "capture", origin.url("/live"), *options, stdin=b"text").exit_code == Exit.OK
    assert origin.log[0].startswith(b"PUT ")
    assert origin.log[0].endswith(b"text")


def test_conditional(home, origin):
    """--conditional asks for what changed, and a 304 is told as a confirmation that points at the bytes."""
    origin.routes["/tagged"] = [
        lambda request, method: (
            R(b"304 Not Modified", b"", b'ETag: "v"', cl=False)
            if header_of(request, b"If-None-Match")
            else R(b"200 OK", BODY, HT, b'ETag: "v"')
        )
    ]
    _, first = capture_json(home, origin.url("/tagged"))
    result = pravda(home, "capture", origin.url("/tagged"), "--conditional")
    assert result.exit_code == Exit.OK
    first_id = used_in(first).id
    assert f"confirmed by a 304; the bytes are those of {first_id}" in result.stdout
    _, again = capture_json(home, origin.url("/tagged"), "--conditional")
    read = pravda(home, "cat", used_in(again).id)
    assert read.stdout_bytes == BODY


def test_rules(home, origin, tmp_path):
    """Rules come from options and a file; a failed one makes the page partial and is shown with the others."""
    file = tmp_path / "rules.json"
    file.write_text('{"selector": ["h1"], "media_type": "text/html"}')
    options = ("--expect-file", str(file), "--expect", "selector=p", "--expect", "min_matches=2")
    result = pravda(home, "capture", origin.url("/live"), *options)
    assert result.exit_code == Exit.PARTIAL
    assert "passed selector = h1" in result.stdout
    assert "passed selector = p" in result.stdout
    assert "FAILED min_matches = 2 (found: 1)" in result.stdout


def test_a_weak_capture_never_satisfies_a_strict_caller(home, origin):
    """A page kept under no rules does not stand in for a caller whose rules it fails, and hides no older good one."""
    origin.routes["/list"] = Script(
        [R(b"200 OK", b"<title>x</title><table id=list><tr><td>the good one</table>", HT)],
        [R(b"200 OK", b"<title>x</title><p>nothing of interest here today</p>", HT)],
        BROKEN,
    )
    _, good = capture_json(home, origin.url("/list"))
    code, _ = capture_json(home, origin.url("/list"))
    assert code == Exit.OK
    _, answer = capture_json(
        home, origin.url("/list"), "--max-stale-age", "1h", "--expect", "selector=table#list"
    )
    assert answer.stale
    assert used_in(answer).id == used_in(good).id


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["example.org"], "url: this is not a URL that a browser would accept; write https:// in front"),
        (["https://"], "url: "),
        (["ftp://example.org/"], "url: only http and https"),
        (["javascript:1"], "url: only http and https"),
        (["http://a/", "--expect", "selector=a["], "expect.selector: "),
        (["http://a/", "--expect", "selector"], "expect: "),
        (["http://a/", "--expect", "min_matches=many"], "expect.min_matches: 'many' is no number"),
        (["http://a/", "--expect", "max_drop=nan"], "expect.max_drop: "),
        (["http://a/", "--expect", "colour=red"], "expect.colour: "),
        (["http://a/", "--expect-file", "/nowhere/rules.json"], "expect_file: "),
        (["http://a/", "--max-stale-age", "-1"], "max_stale_age: "),
        (["http://a/", "--max-age", "soon"], "max_age: "),
        (["http://a/", "--stale-if", "live"], "stale_if: "),
        (["http://a/", "--header", "X"], "headers: "),
        (["http://a/", "--header", "X: \r\nY: 1"], "headers.X: "),
        (["http://a/", "--cookie", "a"], "cookies: "),
        (["http://a/", "--data", "@/nowhere/at/all"], "data: "),
        (["http://a/", "--data", "x", "--method", "GET"], "body: "),
        (["http://a/", "--method", "BREW"], "method: "),
        (["http://a/", "--engine", "magic"], "engine: "),
        (["http://a/", "--timeout", "total=0"], "timeouts.total: "),
        (["http://a/", "--timeout", "nap=1"], "timeouts.nap: "),
        (["http://a/", "--tls", "maybe"], "tls: "),
        (["http://a/", "--robots", "perhaps"], "robots: "),
        (["http://a/", "--artifact", "soul"], "artifacts: "),
        (["http://a/", "--key", ""], "key: "),
        (["http://a/", "--max-bytes", "0"], "max_bytes: "),
        (["http://a/", "--max-bytes", "x"], "Invalid value for '--max-bytes'"),
        (["http://a/", "--output", "-", "--json"], "output: "),
        (["http://a/", "--output", "/nowhere/at/all"], "output: "),
        (["http://a/", "--nonsense"], "No such option"),
        (["http://a/", "--home", ""], "Invalid value for '--home': must not be empty"),
        ([], "url: is missing"),
    ],
)
def test_bad_input(home, arguments, says, capsys, monkeypatch):
    """A mistake is one line that names the field, exit code 2; nothing is fetched, nothing is stored."""
    monkeypatch.setenv("PRAVDA_HOME", str(home))
    assert cli_main.run(["capture", *arguments]) == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.out == "" or "--json" in arguments
    assert captured.err.startswith(f"pravda: {says}")
    assert captured.err.count("\n") == 1
    assert not home.exists()


def test_an_address_that_is_refused(home):
    """A port that browsers refuse is a bad request, exit code 2, and nothing is kept of it."""
    assert pravda(home, "capture", "https://example.org:22/").exit_code == Exit.USAGE
    assert pravda(home, "history", "--all").exit_code == Exit.NOT_FOUND


def test_output_to_a_file_and_to_stdout(home, origin, tmp_path):
    """--output writes the page byte for byte: to a file, or to stdout with the report on stderr."""
    target = tmp_path / "page.html"
    assert pravda(home, "capture", origin.url("/live"), "--output", str(target)).exit_code == Exit.OK
    assert target.read_bytes() == BODY
    result = pravda(home, "capture", origin.url("/live"), "--output", "-")
    assert result.stdout_bytes == BODY
    assert "[LIVE] fresh" in result.stderr


def test_output_of_a_failure(home, origin, tmp_path):
    """A failed answer has no page to write, so the file is left alone."""
    target = tmp_path / "page.html"
    target.write_text("old")
    assert pravda(home, "capture", origin.url("/broken"), "--output", str(target)).exit_code == Exit.DOWN
    assert target.read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's device that is always full")
def test_output_that_cannot_be_written(home, origin):
    """A page that cannot be written out is told in one line."""
    result = pravda(home, "capture", origin.url("/live"), "--output", "/dev/full")
    assert result.exit_code == Exit.USAGE
    assert "cannot be written: No space left" in result.stderr


def test_several_attempts_are_named(home, origin):
    """When a second try was made, both attempts are named."""
    origin.routes["/early"] = Script([R(b"425 Too Early")], LIVE)
    result = pravda(home, "capture", origin.url("/early"))
    assert result.exit_code == Exit.OK
    assert "attempts    " in result.stdout


def test_only_the_typed_host_may_be_private(home, origin):
    """The typed host may be private; where it redirects to may not."""
    origin.routes["/away"] = [R(b"302 Found", b"", b"Location: %b" % origin.url("/live").encode())]
    code, answer = capture_json(home, origin.url("/away", host="localhost"))
    attempt = attempt_in(answer)
    assert code == Exit.LOCAL_FAULT
    assert reason_of(attempt) is Reason.UNSAFE_ADDRESS
    assert origin.targets() == ["/away"]


def test_hostile_text_is_escaped(home, origin):
    """Escape sequences and bidi controls from a page never reach the terminal as such."""
    origin.routes["/evil"] = [
        R(b"403 \x1b[31mNo", b"x", HT, b"X-Evil: \x1b]0;owned\x07 \x9b31m", "X-Bidi: \u202e".encode())
    ]
    _, answer = capture_json(home, origin.url("/evil?\u202ea"))
    attempt = attempt_in(answer)
    shown = pravda(home, "show", attempt.id).stdout
    assert "X-Evil" in shown
    assert not set(shown) & {"\x1b", "\x9b", "\x07", "\u202e"}


def test_an_archive_that_cannot_be_used(tmp_path, origin):
    """An archive that cannot be opened is exit code 20 with what to do, before anything is fetched."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = pravda(blocked / "home", "capture", origin.url("/live"))
    assert result.exit_code == Exit.ARCHIVE
    assert "PRAVDA_HOME" in result.stderr
    assert origin.log == []


def test_a_read_only_archive(home, origin, monkeypatch):
    """An archive that takes no row acknowledges nothing and names the newest usable snapshot."""
    _, kept = capture_json(home, origin.url("/live"))
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    result = pravda(home, "capture", origin.url("/live"))
    assert result.exit_code == Exit.ARCHIVE
    assert f"The newest usable snapshot is {used_in(kept).id}" in result.stderr


def test_a_bad_setting_is_named(home, origin, monkeypatch):
    """A setting that cannot be taken is named, exit code 2."""
    monkeypatch.setenv("PRAVDA_TIMEOUT_TOTAL", "-3")
    result = pravda(home, "capture", origin.url("/live"))
    assert (result.exit_code, "PRAVDA_TIMEOUT_TOTAL" in result.stderr) == (Exit.USAGE, True)


# history


def test_history(home, origin):
    """History lists good and bad attempts, newest first, one line each."""
    for _ in range(2):
        pravda(home, "capture", origin.url("/page"))
    result = pravda(home, "history", origin.url("/page"))
    assert result.exit_code == Exit.OK
    down, live = result.stdout.splitlines()
    assert "[DOWN]" in down
    assert "service_unavailable" in down
    assert "[LIVE]" in live
    assert "just now" in live
    assert " 200  ok " in live


def test_history_pages_through_with_a_cursor(home, origin):
    """The cursor of one list goes on where it ended, until there is none."""
    for _ in range(3):
        pravda(home, "capture", origin.url("/live"), "--key", "k")
    seen: list[str] = []
    cursor: tuple[str, ...] = ()
    while True:
        listed = json.loads(pravda(home, "history", "--key", "k", "--limit", "2", "--json", *cursor).stdout)
        seen += [snapshot_from_json(item).id for item in listed["items"]]
        if listed["next"] is None:
            break
        cursor = ("--cursor", listed["next"])
    assert len(seen) == 3
    assert seen == sorted(seen, reverse=True)
    assert "there is more: --cursor" in pravda(home, "history", "--all", "--limit", "1").stderr


def test_history_filters(home, origin):
    """State, since and until narrow the list; --all shows the URLs."""
    for path in ("/live", "/broken"):
        pravda(home, "capture", origin.url(path))
    assert pravda(home, "history", "--all", "--state", "down").stdout.count("\n") == 1
    assert origin.url("/broken") in pravda(home, "history", "--all", "--since", "1h").stdout
    assert pravda(home, "history", "--all", "--since", "2001-01-01").exit_code == Exit.OK
    for option in (("--since", "2100-01-01T00:00:00+02:00"), ("--until", "2001-01-01"), ("--until", "1h")):
        result = pravda(home, "history", "--all", *option)
        assert (result.exit_code, result.stderr) == (
            Exit.NOT_FOUND,
            "pravda: nothing is kept that fits\n",
        ) or (result.stderr == "Error: nothing is kept that fits\n")


def test_history_of_nothing_as_json(home):
    """Nothing found is an empty list and exit code 4."""
    open_blocking(home=home).close()
    result = pravda(home, "history", "http://a.example/", "--json")
    assert result.exit_code == Exit.NOT_FOUND
    assert json.loads(result.stdout) == {"items": [], "next": None}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("http://a/", "--all"),
        ("nonsense",),
        ("--all", "--since", "yesterday-ish"),
        ("--all", "--cursor", "nonsense"),
        ("--all", "--cursor", "2026-03-01T12:00:00_x"),
        ("--all", "--cursor", "0001-01-01T00:00:00+14:00_01a22ca4-19d1-73f2-b418-f94f1bd7b22e"),
        ("--all", "--limit", "0"),
        ("--all", "--state", "odd"),
    ],
)
def test_bad_history(home, arguments):
    """A list that cannot be made is exit code 2."""
    assert pravda(home, "history", *arguments).exit_code == Exit.USAGE


# show and cat


def test_a_failed_attempt_can_be_inspected_by_id(home, origin):
    """The failed attempt behind a stale answer is shown with its facts, and its body can be read."""
    for _ in range(2):
        _, answer = capture_json(
            home, origin.url("/page"), "--max-stale-age", "7d", "--expect", "text_present=Notice 42"
        )
    attempt = attempt_in(answer)
    shown = pravda(home, "show", attempt.id)
    assert shown.exit_code == Exit.OK
    assert shown.stdout.startswith("[DOWN]")
    assert "Retry-After: 20" in shown.stdout
    assert "expected    text_present = Notice 42" in shown.stdout
    assert "artifact    body: text/html" in shown.stdout
    assert snapshot_from_json(json.loads(pravda(home, "show", attempt.id, "--json").stdout)) == attempt
    assert pravda(home, "cat", attempt.id).stdout_bytes == b"<h1>oops</h1>"
    assert pravda(home, "cat", attempt.id, "response").stdout_bytes.startswith(b"HTTP/1.1 503 ")


def test_show_the_latest(home, origin):
    """latest:URL shows the newest usable snapshot; without one it is exit code 4."""
    pravda(home, "capture", origin.url("/page"), "--key", "other")
    assert pravda(home, "show", f"latest:{origin.url('/page')}").exit_code == Exit.NOT_FOUND
    origin.routes["/page"] = [R(b"200 OK", BODY, HT, b'ETag: "v"')]
    _, answer = capture_json(home, origin.url("/page"))
    shown = pravda(home, "show", f"latest:{origin.url('/page')}").stdout
    assert used_in(answer).id in shown
    assert 'etag        "v"' in shown
    assert pravda(home, "show", "latest:nonsense").exit_code == Exit.USAGE


def test_show_a_key(home, origin):
    """A key that was given is shown."""
    _, answer = capture_json(home, origin.url("/live"), "--key", "k")
    assert "key         k" in pravda(home, "show", used_in(answer).id).stdout


def test_reclassify_shows_both_verdicts(home, origin):
    """--reclassify gives the stored verdict and today's, and the stored one stays."""
    _, answer = capture_json(home, origin.url("/broken"))
    attempt = attempt_in(answer)
    both = json.loads(pravda(home, "show", attempt.id, "--reclassify", "--json").stdout)
    assert both["stored"]["state"] == both["now"]["state"] == "down"
    assert both["stored"]["failure"] == both["now"]["failure"]
    lines = pravda(home, "show", attempt.id, "--reclassify").stdout
    assert "[DOWN] stored" in lines
    assert "[DOWN] now" in lines


@pytest.mark.parametrize("verb", ["show", "cat"])
def test_an_unknown_id(home, verb):
    """An id that is not in the archive is exit code 4, whatever it is made of."""
    for unknown in ("01a22ca4-19d1-73f2-b418-f94f1bd7b22e", "x", "\x1b[31m", "\ud800"):
        result = pravda(home, verb, unknown)
        assert result.exit_code == Exit.NOT_FOUND, result.output
        assert "\x1b" not in result.stderr


def test_an_unknown_artifact(home, origin):
    """An artifact that a snapshot lacks is exit code 4, with those it has."""
    _, answer = capture_json(home, origin.url("/live"))
    result = pravda(home, "cat", used_in(answer).id, "soul")
    assert result.exit_code == Exit.NOT_FOUND
    assert "it has: " in result.stderr
    assert "body" in result.stderr


def test_damaged_bytes_are_not_written(home, origin, tmp_path):
    """Bytes that are no longer what was kept are refused with exit code 20 and the name of the command to run."""
    origin.routes["/big"] = [R(b"200 OK", BODY * 200, HT)]
    _, answer = capture_json(home, origin.url("/big"))
    snapshot = used_in(answer)
    assert snapshot.evidence.content is not None
    digest = snapshot.evidence.content.sha256
    (blob,) = [path for path in home.rglob("*") if path.is_file() and digest[:20] in path.name]
    blob.chmod(0o600)
    blob.write_bytes(b"changed")
    target = tmp_path / "out"
    result = pravda(home, "cat", snapshot.id, "-o", str(target))
    assert result.exit_code == Exit.ARCHIVE
    assert "pravda verify" in result.stderr
    assert not target.exists()


# a process and a terminal


def test_on_a_terminal(home, origin):
    """On a terminal the badge is coloured and the progress line is gone at the end."""
    origin.routes["/slow"] = [Sleep(0.3), *LIVE]
    code, text = on_a_terminal(home, "capture", origin.url("/slow"))
    assert code == Exit.OK
    assert "Capturing http" in text
    assert "\x1b[32m\x1b[1m[LIVE]\x1b[0m fresh" in text.replace("\r", "")
    assert "Capturing" not in text[text.rindex("\x1b[2K") :]


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour(home, origin, variable):
    """NO_COLOR and a dumb terminal get the same words without colour."""
    code, text = on_a_terminal(home, "capture", origin.url("/live"), "--quiet", **variable)
    assert (code, text) == (Exit.OK, "")
    _, text = on_a_terminal(home, "history", "--all", **variable)
    assert "[LIVE]" in text
    assert "\x1b" not in text


def test_binary_is_kept_from_a_terminal(home, origin):
    """A terminal gets no bytes that could upset it, unless --force insists."""
    origin.routes["/evil"] = [
        R(b"200 OK", b"text \x1b[31m more of the same text", b"Content-Type: text/plain")
    ]
    for path, expected in (("/evil", Exit.USAGE), ("/live", Exit.OK)):
        _, answer = capture_json(home, origin.url(path))
        snapshot = used_in(answer)
        code, text = on_a_terminal(home, "cat", snapshot.id)
        assert (code, "--force" in text) == (expected, expected is Exit.USAGE)
        code, text = on_a_terminal(home, "cat", snapshot.id, "--force")
        assert (code, "\x1b" in text) == (Exit.OK, path == "/evil")


def test_interrupted(home, origin):
    """Ctrl-C ends with 130, and the attempt is kept as cancelled and named."""
    origin.routes["/slow"] = [R(b"200 OK", b"the beginning", HT, cl=5000), Sleep(15)]
    with subprocess.Popen(
        [sys.executable, "-m", "pravda", "capture", origin.url("/slow")],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 20
        while not origin.log and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (Exit.INTERRUPTED, "")
    assert "interrupted; the attempt is kept as cancelled" in err
    with open_blocking(home=home) as archive:
        (snapshot,) = archive.history(Query())
        assert snapshot.id in err
        assert reason_of(snapshot) is Reason.CANCELLED
        assert archive.read(snapshot) == b"the beginning"


def test_a_closed_pipe_is_quiet(home, origin):
    """A reader that goes away ends the command without a word."""
    origin.routes["/big"] = [R(b"200 OK", BODY * 500, HT)]
    _, answer = capture_json(home, origin.url("/big"))
    with subprocess.Popen(
        [sys.executable, "-m", "pravda", "cat", used_in(answer).id],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=20) == 141


def test_a_process_of_its_own(home, origin):
    """The command works as a program: results on stdout, errors on stderr, exit codes to the shell."""
    fresh = in_a_shell(home, "capture", origin.url("/live"), "--json")
    assert (fresh.returncode, fresh.stderr) == (0, "")
    assert json.loads(fresh.stdout)["result"] == "fresh"
    bad = in_a_shell(home, "capture", "nonsense")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert in_a_shell(home).returncode == 2
    assert in_a_shell(home, "--version").stdout.startswith("pravda ")
    assert in_a_shell(home, "nonsense").stderr.startswith("pravda: No such command")


def test_the_first_screen_imports_nothing_heavy(home):
    """`pravda --help` imports neither click nor anything of ours but the table of commands."""
    code = (
        "import sys; sys.argv = ['pravda', '--help']\n"
        "from pravda.cli.entry import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('pravda', 'click', 'rich'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(home), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "pravda pravda.cli pravda.cli.entry pravda.cli.table"


def test_the_first_screen_is_what_click_would_show():
    """The screen that is written without click is click's own, word for word."""
    assert CliRunner().invoke(cli, ["--help"], prog_name="pravda", terminal_width=100).output == overview()


def test_the_table_of_commands():
    """Each command's line in the table is its own short help, and its help names it."""
    for name, line in COMMANDS.items():
        assert command(name).name == name
        assert command(name).short_help == line
    assert cli.get_command(Context(cli), "nonsense") is None


def test_an_interrupt_outside_of_a_capture(home, capsys, monkeypatch):
    """Ctrl-C anywhere is 130 without a traceback."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_main.cli, "main", interrupt)
    assert cli_main.run([]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "pravda: interrupted\n"


# small parts


def test_safe():
    """Printable text stays; controls, bidi, separators and lone surrogates are escaped, long text is cut."""
    assert safe("Grüße, 世界") == "Grüße, 世界"
    assert safe("a\nb\x1b\x9b\u202e\u2028\ud800\x7f") == r"a\nb\x1b\x9b\u202e\u2028\ud800\x7f"
    assert safe("x" * 9, 3) == "xxx..."


def test_amounts():
    """Sizes and durations are told in the unit that suits them."""
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 4217: "4.2 kB", 10**6: "1.0 MB", 10**12: "1000.0 GB"}
    assert {count: size(count) for count in sizes} == sizes
    spans = {0: "under 1 s", 59.9: "59 s", 60: "1 min", 3600: "1 h", 86400: "1 d", 86400 * 400: "400 d"}
    assert {seconds: span(seconds) for seconds in spans} == spans
    assert ago(NOON, NOON) == "just now"


def test_program(monkeypatch):
    """Where `pravda` is not on the search path, what was typed is repeated."""
    assert program()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [".venv/bin/pravda"])
    assert program() == ".venv/bin/pravda"
    monkeypatch.setattr(sys, "argv", ["/x/pravda/__main__.py"])
    assert program() == "python -m pravda"


def test_plain_text():
    """UTF-8 without control characters is plain, also across pieces; anything else is not."""
    assert is_plain(iter(["tä\n\t".encode()[:2], "tä\n\t".encode()[2:]]))
    for harm in (b"\x1b", b"\x00", b"\xc2\x9b", b"\xff", b"\xc3"):
        assert not is_plain(iter([b"text ", harm]))


def test_reading_options(tmp_path):
    """What options carry is read as written, and mistakes name the field."""
    assert pairs("headers", ["A:  b: c "], ":", "") == [("A", "  b: c ")]
    assert body("text\udcff") == b"text\xff"
    assert body(None) is None
    assert rules(None, []) is None
    assert rules(None, ["min_bytes=3", "max_drop=0.5", "matches=a=b"]) == {
        "min_bytes": [3],
        "max_drop": [0.5],
        "matches": ["a=b"],
    }
    file = tmp_path / "rules.json"
    for text in ("[]", "{", "[" * 100_000, "x" * 1_100_000, "\udcff"):
        file.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(BadRequest, match="expect_file"):
            rules(str(file), [])
    with pytest.raises(BadRequest, match="data"):
        read_file("data", "nul\0byte")


def test_badges():
    """Every state has a badge that reads without its colour."""
    for state in State:
        assert f"[{state.upper()}]" in badge(state)
