"""`pravda capture --from`: a list of pages."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from pravda import open_blocking
from pravda.capture import Pravda
from pravda.cli import batch, listing
from pravda.cli.listing import LONGEST_LINE, Listing, Text
from pravda.cli.main import cli
from pravda.cli.pace import LONGEST_WAIT, Entry, Pace
from pravda.core.mistake import BadRequest
from pravda.core.ports import Query
from pravda.core.request import Request
from pravda.core.states import Exit, State
from pravda.core.wire import answer_from_json
from tests.disks import fill, small_disk
from tests.origin import BODY, HT, Origin, R, Sleep

LIVE = [R(b"200 OK", BODY, HT)]


def lines_of(path: Path, data: bytes) -> list[Text]:
    """What a list says."""
    path.write_bytes(data)

    async def read() -> list[Text]:
        return [line async for line in Listing(str(path)).lines()]

    return asyncio.run(read())


def test_a_list_is_read(tmp_path):
    """A byte order mark, blanks, comments, any line end and white space around URLs are no trouble; numbers count all."""
    data = b"\xef\xbb\xbfhttps://a.example/\r\n\n  # note\r\n\t https://b.example/#x \nhttps://c.example/"
    assert lines_of(tmp_path / "list", data) == [
        Text(number=1, text="https://a.example/"),
        Text(number=4, text="https://b.example/#x"),
        Text(number=5, text="https://c.example/"),
    ]
    assert lines_of(tmp_path / "list", b"") == []
    assert lines_of(tmp_path / "list", b"a\n\xef\xbb\xbf# c\n\xef\xbb\xbfb\n") == [
        Text(number=1, text="a"),
        Text(number=3, text="b"),
    ]


def test_lines_that_are_no_text(tmp_path):
    """A line in another encoding or of absurd length is named by its number, and the next one is read."""
    long = b"x" * (LONGEST_LINE + 1)
    data = b"\n".join([b"\xff\xfea"[1:], long, b"a", long * 5, b"b"])
    assert [(line.number, line.text, line.problem) for line in lines_of(tmp_path / "list", data)] == [
        (1, "", "is no UTF-8"),
        (2, "", "is longer than 65,536 bytes"),
        (3, "a", ""),
        (4, "", "is longer than 65,536 bytes"),
        (5, "b", ""),
    ]


@pytest.mark.parametrize("piece", [1, 2, 7])
def test_pieces_end_anywhere(tmp_path, monkeypatch, piece):
    """Wherever the pieces end in which a list is read, its lines are the same."""
    monkeypatch.setattr(listing, "_PIECE", piece)
    data = "\ufeffä\r\n\nö\n".encode()
    assert [(line.number, line.text) for line in lines_of(tmp_path / "list", data)] == [(1, "ä"), (3, "ö")]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_list_in_utf_16(tmp_path, mark):
    """UTF-16 is refused with advice, instead of a complaint about each line."""
    with pytest.raises(BadRequest, match="is UTF-16; save it as UTF-8"):
        lines_of(tmp_path / "list", mark + b"h\0t\0")


def test_a_list_that_cannot_be_read(tmp_path):
    """A missing file, a folder and a closed stdin are refused by name."""

    async def read(name: Path) -> None:
        async for _ in Listing(str(name)).lines():
            pass

    for name in (tmp_path / "none", tmp_path):
        with pytest.raises(BadRequest, match=r"from: .* cannot be read: (No such file|Is a directory)"):
            asyncio.run(read(name))


def test_the_length_of_a_list(tmp_path):
    """A file tells how many lines it has at most, a pipe does not."""
    (tmp_path / "list").write_bytes(b"a\nb\nc")
    assert Listing(str(tmp_path / "list")).length() == 3
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDWR)
    assert Listing(str(tmp_path / "pipe")).length() is None
    os.close(end)


def test_a_reader_that_is_left(tmp_path):
    """A loop that ends while a pipe says nothing waits for nothing."""
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDWR)

    async def read() -> None:
        async for _ in Listing(str(tmp_path / "pipe")).lines():
            pass

    async def leave() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read(), 0.1)

    asyncio.run(leave())
    os.write(end, b"late\n")
    time.sleep(0.05)
    os.close(end)


def test_an_answer_that_nobody_waits_for():
    """A piece that comes after its reader was cancelled is dropped."""

    async def run() -> None:
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiter.cancel()
        listing._settle(waiter, b"x", None)

    asyncio.run(run())


# pace


def an_entry(host: str, number: int = 1) -> Entry:
    return Entry(number=number, request=Request.parse(f"https://{host}/{number}"))


def take_all(pace: Pace, now: float) -> list[int]:
    found = []
    while entry := pace.take(now):
        found.append(entry.number)
    return found


def test_hosts_take_turns():
    """So many of one host at once, and hosts in turn, each in the order of the list."""
    pace = Pace(2)
    for number in range(1, 6):
        assert pace.add(an_entry("a.example", number), 0)
    for number in range(6, 9):
        pace.add(an_entry("b.example", number), 0)
    assert take_all(pace, 0) == [1, 6, 2, 7]
    assert pace.take(0) is None
    pace.give_back("a.example", 0)
    assert take_all(pace, 0) == [3]
    for host in ("a.example", "a.example", "b.example", "b.example"):
        pace.give_back(host, 0)
    assert take_all(pace, 0) == [4, 8, 5]
    assert not pace


def test_a_host_rests():
    """A host that asked for time is not asked before; others are, and a longer wish counts over a shorter one."""
    pace = Pace(2)
    for number in range(1, 5):
        pace.add(an_entry("a.example", number), 0)
    assert take_all(pace, 0) == [1, 2]
    assert pace.wakes_in(0) is None
    assert pace.give_back("a.example", 0, 30) == []
    assert pace.give_back("a.example", 1, 9) == []
    pace.add(an_entry("b.example", 9), 1)
    assert take_all(pace, 29.9) == [9]
    assert pace.wakes_in(10) == 20
    assert take_all(pace, 30) == [3, 4]
    assert pace.give_back("a.example", 30, 5) == []
    assert pace.give_back("a.example", 31, 20) == []
    pace.add(an_entry("a.example", 5), 31)
    assert take_all(pace, 36) == []
    assert take_all(pace, 51) == [5]


def test_a_host_that_rests_for_long():
    """Entries of a host that wants more time than a batch waits are given back, waiting ones and later ones."""
    pace = Pace(1)
    for number in range(1, 4):
        pace.add(an_entry("a.example", number), 0)
    assert take_all(pace, 0) == [1]
    assert [entry.number for entry in pace.give_back("a.example", 0, LONGEST_WAIT + 1)] == [2, 3]
    assert not pace
    assert not pace.add(an_entry("a.example", 4), 0)
    assert pace.add(an_entry("a.example", 5), 2)


@given(
    hosts=st.lists(st.sampled_from("abc"), max_size=30),
    rests=st.lists(st.floats(0, 50), min_size=30, max_size=30),
    per_host=st.integers(1, 3),
)
def test_every_entry_gets_its_turn(hosts, rests, per_host):
    """Whatever the pauses, each entry is taken once, never too many of a host, and never one of a resting host."""
    pace, now = Pace(per_host), 0.0
    taken: list[int] = []
    busy: list[str] = []
    until: dict[str, float] = {}
    for number, host in enumerate(hosts):
        pace.add(an_entry(f"{host}.example", number), now)
    while pace or busy:
        while entry := pace.take(now):
            assert until.get(entry.host, 0.0) <= now
            busy.append(entry.host)
            taken.append(entry.number)
            assert busy.count(entry.host) <= per_host
        if busy:
            host = busy.pop(0)
            rest = rests[len(taken) % 30]
            until[host] = max(until.get(host, 0.0), now + rest)
            assert pace.give_back(host, now, rest) == []
        else:
            now += pace.wakes_in(now) or 0.0
    assert sorted(taken) == list(range(len(hosts)))


# the command


@pytest.fixture
def home(tmp_path):
    """The folder of an archive that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def origin(monkeypatch):
    """A site on loopback, which the settings allow."""
    monkeypatch.setenv("PRAVDA_ALLOW_ADDRESSES", "127.0.0.1")
    with Origin() as site:
        site.routes["/live"] = LIVE
        yield site


def a_list(home: Path, *lines: str) -> str:
    path = home.parent / "list.txt"
    path.write_text("\n".join(lines))
    return str(path)


def pravda(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["capture", *arguments, "--home", str(home)])


def rows(home: Path) -> int:
    with open_blocking(home=home) as archive:
        return len(archive.history(Query(limit=100_000)))


def test_a_batch(home, origin):
    """Each page gives a line with its state as soon as it is done, bad lines are named, equal ones are captured once."""
    origin.routes["/gone"] = [R(b"410 Gone", b"gone", HT)]
    live = origin.url("/live")
    listed = a_list(home, "# pages", live, "", "not a url", f"{live}#again", origin.url("/gone"), f"{live}?b")
    result = pravda(home, "--from", listed)
    assert result.exit_code == Exit.GONE
    out = sorted(result.stdout.splitlines())
    assert [line.split()[:3] for line in out] == [
        ["[GONE]", "failed", "gone"],
        ["[LIVE]", "fresh", "4.1"],
        ["[LIVE]", "fresh", "4.1"],
    ]
    assert {line.split()[-2] for line in out} == {live, f"{live}?b", origin.url("/gone")}
    assert "pravda: line 4: this is not a URL" in result.stderr
    assert result.stderr.splitlines()[-1] == "pravda: 2 fresh, 1 bad, 1 duplicate, 1 gone"
    assert rows(home) == 3


@pytest.mark.parametrize(
    ("paths", "options", "code"),
    [
        (["/live"], [], Exit.OK),
        (["/live", "bad"], [], Exit.USAGE),
        (["/live", "/503"], [], Exit.DOWN),
        (["/503", "/404", "/403"], [], Exit.DOWN),
        (["/503"], ["--allow-failure"], Exit.OK),
        ([], [], Exit.OK),
    ],
)
def test_the_exit_code_is_the_highest(home, origin, paths, options, code):
    """0 when all pages are usable, else the highest code that any line would have had alone."""
    for status in (b"503", b"404", b"403"):
        origin.routes[f"/{status.decode()}"] = [R(status + b" x", b"text", HT)]
    listed = a_list(home, *(origin.url(path) if path.startswith("/") else path for path in paths))
    assert pravda(home, "--from", listed, *options).exit_code == code


def test_fallback_and_reuse(home, origin):
    """The options of a single capture hold for each line."""
    listed = a_list(home, origin.url("/live"))
    pravda(home, "--from", listed)
    assert "1 reused" in pravda(home, "--from", listed, "--max-age", "1h").stderr
    origin.routes["/live"] = [R(b"500 x", b"", HT)]
    result = pravda(home, "--from", listed, "--max-stale-age", "1h")
    assert (result.exit_code, "stale   server_error" in result.stdout) == (Exit.OK, True)
    result = pravda(home, "--from", listed, "--max-stale-age", "1h", "--fail-on-stale", "--quiet")
    assert (result.exit_code, result.output) == (Exit.STALE, "")


def test_json_lines(home, origin):
    """With --json each line on stdout is an answer."""
    result = pravda(home, "--json", "--from", a_list(home, origin.url("/live"), "bad", origin.url("/none")))
    answers = [answer_from_json(json.loads(line)) for line in result.stdout.splitlines()]
    assert {answer.attempt.state for answer in answers if answer.attempt} == {State.LIVE, State.GONE}


def test_credentials_make_another_page(home, origin):
    """Two lines that differ in credentials only are two pages."""
    url = origin.url("/live")
    result = pravda(
        home, "--from", a_list(home, url.replace("://", "://a:b@"), url, url.replace("://", "://a:b@"))
    )
    assert "2 fresh, 1 duplicate" in result.stderr


def test_private_hosts_are_refused(home):
    """A host of a list is no typed one: a private address is a bad line, and nothing is asked."""
    with Origin() as origin:
        result = pravda(home, "--from", a_list(home, origin.url("/live")))
        assert result.exit_code == Exit.USAGE
        assert "line 1: 127.0.0.1 is inside a private network" in result.stderr
        assert origin.log == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["https://a.example/", "--from", "LIST"], "from"),
        (["--from", "LIST", "-o", "x"], "output"),
        (["--from", "LIST", "--key", "k"], "key"),
        (["--from", "-", "--data", "@-"], "from"),
        (["--from", "-", "--expect-file", "-"], "from"),
        (["--from", "LIST", "--expect", "selector=["], "expect.selector"),
        (["--from", "none"], "from"),
        ([], "url"),
    ],
)
def test_mistakes(home, arguments, field):
    """What makes no sense with a list, or in each of its lines, is refused before anything is captured."""
    listed = a_list(home, "https://a.example/")
    result = pravda(home, *(listed if word == "LIST" else word for word in arguments))
    assert (result.exit_code, f" {field}: " in result.stderr) == (Exit.USAGE, True)
    assert not home.exists()


class Crowd:
    """Counts how many requests a site has at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, request: bytes, method: str) -> bytes:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        with self._lock:
            self.now -= 1
        return R(b"200 OK", BODY, HT)


def test_limits(home, origin):
    """No more requests at once than --concurrency allows, nor more to one host than --per-host."""
    crowd = Crowd()
    origin.routes["/crowd"] = [crowd]
    listed = a_list(home, *(f"{origin.url('/crowd')}?{number}" for number in range(24)))
    for options, most in (([], 2), (["--per-host", "20", "--concurrency", "3"], 3), (["--per-host", "8"], 8)):
        crowd.most = 0
        assert pravda(home, "--from", listed, *options).exit_code == Exit.OK
        assert crowd.most == most


def test_one_slow_host_holds_up_nobody(home, origin, monkeypatch):
    """While a host is slow, later lines of other hosts are captured."""
    monkeypatch.setenv("PRAVDA_ALLOW_ADDRESSES", "127.0.0.1, 127.0.0.2")
    origin.routes["/slow"] = [Sleep(0.6), *LIVE]
    with Origin(address="127.0.0.2") as other:
        other.routes["/live"] = LIVE
        slow = [f"{origin.url('/slow')}?{number}" for number in range(6)]
        result = pravda(home, "--from", a_list(home, *slow, other.url("/live")))
    assert "127.0.0.2" in result.stdout.splitlines()[0]


def test_retry_after_holds_for_the_host(home, origin):
    """After a 429 with Retry-After no line of that host is asked before that time."""
    asked: list[float] = []

    def note(request: bytes, method: str) -> bytes:
        asked.append(time.monotonic())
        return (
            R(b"429 Too Many Requests", b"slow down", HT, b"Retry-After: 1") if len(asked) == 1 else LIVE[0]
        )

    origin.routes["/page"] = [note]
    listed = a_list(home, *(f"{origin.url('/page')}?{number}" for number in range(3)))
    result = pravda(home, "--from", listed, "--per-host", "1")
    assert result.exit_code == Exit.BLOCKED
    assert asked[1] - asked[0] >= 0.9
    assert "2 fresh, 1 blocked" in result.stderr


def test_a_host_that_asks_for_too_long(home, origin):
    """Lines of a host that wants more time than a batch waits are not asked, and named."""
    origin.routes["/page"] = [R(b"503 x", b"later", HT, b"Retry-After: 86400")]
    listed = a_list(home, *(f"{origin.url('/page')}?{number}" for number in range(4)))
    result = pravda(home, "--from", listed, "--per-host", "1")
    assert result.exit_code == Exit.DOWN
    assert len(origin.log) == 1
    assert "line 4: not asked: 127.0.0.1 wants a longer pause" in result.stderr
    assert "3 postponed" in result.stderr


def test_later_lines_of_such_a_host(home, origin, monkeypatch):
    """So are lines that are read only afterwards."""
    monkeypatch.setattr(batch, "_AHEAD", 2)
    origin.routes["/page"] = [R(b"503 x", b"later", HT, b"Retry-After: 86400")]
    listed = a_list(home, *(f"{origin.url('/page')}?{number}" for number in range(30)))
    result = pravda(home, "--from", listed, "--per-host", "1", "--concurrency", "1")
    assert len(origin.log) == 1
    assert "29 postponed" in result.stderr


def test_a_fault_of_ours_sinks_one_line(home, origin, monkeypatch):
    """An error nobody foresaw is the trouble of one line, and counts as our own fault."""
    run = Pravda.run

    async def breaking(self, request):
        if request.url.page.endswith("?1"):
            raise LookupError("unforeseen")
        return await run(self, request)

    monkeypatch.setattr(Pravda, "run", breaking)
    listed = a_list(home, *(f"{origin.url('/live')}?{number}" for number in range(3)))
    result = pravda(home, "--from", listed)
    assert result.exit_code == Exit.LOCAL_FAULT
    assert "line 2: broke inside Pravda: LookupError('unforeseen')" in result.stderr
    assert "2 fresh, 1 broken" in result.stderr


def test_an_archive_that_takes_nothing_more(tmp_path, origin):
    """When nothing can be kept any more a batch ends with 20 and says where to go on."""
    with small_disk(tmp_path) as home, open_blocking(home=home):
        fill(home, spare=40_000)
        listed = a_list(tmp_path / "x", *(f"{origin.url('/live')}?{number}" for number in range(500)))
        result = pravda(home, "--from", listed)
    assert result.exit_code == Exit.ARCHIVE
    assert "cannot be used" in result.stderr
    assert "go on with --from-line" in result.stderr
    assert len(origin.log) < 500


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"PRAVDA_HOME": str(home), "PRAVDA_ALLOW_ADDRESSES": "127.0.0.1"}


def test_interrupted(home, origin):
    """Ctrl-C keeps what was acknowledged and what the running attempts saw, and says which line to go on with."""
    origin.routes["/slow"] = [R(b"200 OK", b"the beginning", HT, cl=5000), Sleep(20)]
    fast = [f"{origin.url('/live')}?{number}" for number in range(10)]
    listed = a_list(home, *fast, origin.url("/slow"), origin.url("/live"))
    command = [sys.executable, "-m", "pravda", "capture", "--from", listed, "--concurrency", "1"]
    with subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 20
        while len(origin.log) < 11 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == Exit.INTERRUPTED
    assert "interrupted; every line before 11 has its answer" in err
    assert "go on with --from-line 11" in err
    printed = {line.split()[-1] for line in out.splitlines()}
    assert len(printed) == 10
    with open_blocking(home=home) as archive:
        found = archive.history(Query(limit=100))
    assert printed < {one.id for one in found}
    assert len(found) == 11
    origin.routes["/slow"] = LIVE
    result = pravda(home, "--from", listed, "--from-line", "11")
    assert "2 fresh" in result.stderr


def test_a_pipe_that_goes_on(home, origin):
    """A list on stdin is captured line by line while the pipe is still open."""
    command = [sys.executable, "-m", "pravda", "capture", "--from", "-"]
    with subprocess.Popen(
        command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        for number in range(3):
            process.stdin.write(f"{origin.url('/live')}?{number}\n".encode())
            process.stdin.flush()
            assert f"?{number} ".encode() in process.stdout.readline()
        process.stdin.close()
        assert process.wait(20) == Exit.OK


def test_a_reader_that_goes_away(home, origin):
    """When nobody reads the lines any more, the batch ends as other programs do."""
    listed = a_list(home, *(f"{origin.url('/live')}?{number}" for number in range(50)))
    command = [sys.executable, "-m", "pravda", "capture", "--from", listed]
    with subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(30) == 141
    assert 1 <= len(origin.log) < 50


def on_a_terminal(home: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and screen of a command whose stdout and stderr are one terminal."""
    main, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pravda", *arguments], env=environment(home), stdout=side, stderr=side
    ) as process:
        os.close(side)
        screen = b"".join(_read(main))
        code = process.wait(30)
    os.close(main)
    return code, screen.decode()


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 65_536)
        except OSError:  # Linux says EIO at the end of a terminal
            return
        if not data:
            return
        yield data


def test_on_a_terminal(home, origin):
    """A terminal shows a bar that vanishes, and every line whole; the same for `verify`."""
    listed = a_list(home, *(f"{origin.url('/live')}?{number}" for number in range(5)))
    code, screen = on_a_terminal(home, "capture", "--from", listed)
    assert code == Exit.OK
    assert "Capturing" in screen
    assert "5/5" in screen or "4/5" in screen
    for number in range(5):
        assert f"{origin.url('/live')}?{number} " in screen
    code, screen = on_a_terminal(home, "verify")
    assert (code, "Verifying" in screen) == (Exit.OK, True)
    assert "No damage in 5 snapshots" in screen


def test_a_bar_keeps_stdout_clean(home, origin):
    """With stderr on a terminal and stdout in a pipe, the pipe gets the lines and nothing else."""
    listed = a_list(home, *(f"{origin.url('/live')}?{number}" for number in range(3)))
    main, side = pty.openpty()
    command = [sys.executable, "-m", "pravda", "capture", "--json", "--from", listed]
    with subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, stderr=side) as process:
        os.close(side)
        assert process.stdout
        out = process.stdout.read()
        list(_read(main))
    os.close(main)
    assert [json.loads(line)["result"] for line in out.splitlines()] == ["fresh"] * 3


def test_memory_stays_flat(home, origin):
    """A list of very many lines takes no more memory than a short one."""

    def peak(count: int) -> int:
        bad = "\n".join(f"http://:{number}" for number in range(count))
        listed = a_list(home, origin.url("/live"), bad, *[origin.url("/live")] * count)
        tracemalloc.start()
        pravda_quiet(home, listed)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(4000) < peak(100) + 1_500_000


def pravda_quiet(home: Path, listed: str) -> None:
    """Without keeping what is printed, which a real command does not keep either."""
    plan = batch.Plan(
        concurrency=20, per_host=2, first_line=1, as_json=False, quiet=True, exit_code=lambda answer: Exit.OK
    )
    with open(os.devnull, "w") as nothing:
        before, sys.stderr = sys.stderr, nothing
        try:
            asyncio.run(batch.capture_list(listed, {"on_failure": "return"}, plan, home))
        finally:
            sys.stderr = before


def test_a_wait_is_told_once(home, origin):
    """When lines wait because their host asked for it, that is said once, and not with --quiet."""
    origin.routes["/page"] = [R(b"429 Too Many Requests", b"slow down", HT, b"Retry-After: 1")]
    listed = a_list(home, *(f"{origin.url('/page')}?{number}" for number in range(3)))
    result = pravda(home, "--from", listed, "--per-host", "1")
    assert result.stderr.count("which asked for it") == 1
    assert "for 127.0.0.1, which asked for it\n" in result.stderr
    assert pravda(home, "--from", listed, "--per-host", "1", "--quiet").stderr == ""


def test_fragments_make_no_other_page(home, origin):
    """A page that is named with and without a fragment is asked for once."""
    result = pravda(home, "--from", a_list(home, origin.url("/live"), f"{origin.url('/live')}#a"))
    assert len(origin.log) == 1
    assert "1 duplicate, 1 fresh" in result.stderr


def test_a_line_behind_the_end(home, origin):
    """To go on behind the end of a list is a mistake that tells its length; on its last line it is none."""
    listed = a_list(home, origin.url("/live"), "# the last line")
    result = pravda(home, "--from", listed, "--from-line", "3")
    assert result.exit_code == Exit.USAGE
    assert "from_line: the list has only 2 lines" in result.stderr
    result = pravda(home, "--from", listed, "--from-line", "2")
    assert (result.exit_code, origin.log) == (Exit.OK, [])
    assert "there is no URL in the list from that line on" in result.stderr
