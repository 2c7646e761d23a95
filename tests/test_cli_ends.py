"""How commands end: by signals, without a reader, without an archive; and what is said then."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravda import open_blocking
from pravda.archive.local import LocalArchive
from pravda.cli import interrupts
from pravda.cli import main as cli_main
from pravda.cli.main import cli
from pravda.cli.output import writing
from pravda.cli.words import exactly
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import Exit, Reason
from pravda.errors import ArchiveUnavailable
from tests.factories import PAGE, a_snapshot
from tests.origin import BODY, HT, Origin, R, Sleep

LIVE = [R(b"200 OK", BODY, HT)]
UNKNOWN = "01a22ca4-19d1-73f2-b418-f94f1bd7b22e"


@pytest.fixture
def home(tmp_path):
    """The folder of an archive that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def origin():
    """A site with a page that is there, and one that never ends."""
    with Origin() as site:
        site.routes.update({"/live": LIVE, "/slow": [R(b"200 OK", b"the beginning", HT, cl=5000), Sleep(15)]})
        yield site


def pravda(home: Path, *arguments: str) -> Result:
    """One command in this process."""
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)])


def environment(home: Path) -> dict[str, str]:
    """This process's, with an archive of the test's own."""
    return os.environ | {"PRAVDA_HOME": str(home), "PRAVDA_ALLOW_ADDRESSES": "127.0.0.1"}


def in_a_shell(home: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    """A shell's command line in which `pravda` is this one."""
    script = f'pravda() {{ "{sys.executable}" -m pravda "$@"; }}; pravda {arguments}'
    return subprocess.run(
        ["/bin/sh", "-c", script],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def capturing(
    home: Path, origin: Origin, *arguments: str, before: str = ":"
) -> Iterator["subprocess.Popen[str]"]:
    """`pravda capture`, which waits for the page that is slow; a shell does something before."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f'{before}; exec "$0" -m pravda capture "$@"', sys.executable, *arguments],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 20
        while not any("/slow" in repr(request) for request in origin.log):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        yield process


def kept_in(home: Path) -> tuple[Snapshot, ...]:
    """All snapshots."""
    with open_blocking(home=home) as archive:
        return archive.history(Query(limit=100))


def reasons(home: Path) -> list[Reason]:
    """Of all attempts that failed."""
    return [one.verdict.failure.reason for one in kept_in(home) if one.verdict.failure]


# signals


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),
        ([signal.SIGINT, signal.SIGINT], 130),
        ([signal.SIGINT, signal.SIGTERM, signal.SIGINT], 130),
    ],
)
def test_a_signal_ends_a_capture_in_order(home, origin, numbers, code):
    """However it is told to end, the attempt is kept as cancelled and named, also when it is told so at once again."""
    with capturing(home, origin, origin.url("/slow")) as process:
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.01)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.count("\n")) == (code, "", 1)
    assert "interrupted; the attempt is kept as cancelled, see: " in err
    (snapshot,) = kept_in(home)
    assert snapshot.id in err
    assert reasons(home) == [Reason.CANCELLED]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_batch_in_order(home, origin, tmp_path, number, code):
    """A batch keeps what its attempts saw and says with which line to go on."""
    listed = tmp_path / "list"
    listed.write_text(f"{origin.url('/live')}\n{origin.url('/slow')}\n{origin.url('/live')}?2\n")
    with capturing(home, origin, "--from", str(listed), "--concurrency", "1") as process:
        process.send_signal(number)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert err.count("\n") == 1
    assert "interrupted; every line before 2 has its answer" in err
    assert "go on with --from-line 2" in err
    assert reasons(home) == [Reason.CANCELLED]


def test_nohup_stays_nohup(home, origin):
    """A signal that is ignored when the program starts stays ignored."""
    origin.routes["/slow"] = [Sleep(1), *LIVE]
    with capturing(home, origin, "--quiet", origin.url("/slow"), before="trap '' HUP") as process:
        process.send_signal(signal.SIGHUP)
        assert process.communicate(timeout=20) == ("", "")
        assert process.returncode == Exit.OK


def test_signals_that_come_early_or_late(monkeypatch):
    """One before the work begins keeps it from beginning; a third one, later, ends the program at once."""
    killed: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    monkeypatch.setattr(interrupts, "_TOGETHER", -1.0)
    monkeypatch.setattr(os, "kill", lambda _, number: killed.append(number))
    began: list[bool] = []

    async def work() -> None:
        began.append(True)

    watch = interrupts._Watch()
    monkeypatch.setattr(interrupts, "_Watch", lambda: watch)
    try:
        for expected in ([], [], [signal.SIGTERM]):
            watch._take(signal.SIGTERM, None)
            assert killed == expected
        with pytest.raises(interrupts.Interrupted, match="interrupted; nothing had begun") as raised:
            interrupts.run(work())
        assert raised.value.exit_code == 143
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not began


def test_signals_are_given_back():
    """After work that nothing disturbed, signals go where they went before."""

    async def work() -> int:
        return 7

    before = signal.getsignal(signal.SIGTERM)
    assert interrupts.run(work()) == 7
    assert signal.getsignal(signal.SIGTERM) is before


# output that nobody takes

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@FULL
@pytest.mark.parametrize("option", ["", "--json", "-o -"])
def test_a_full_disk_behind_stdout(home, origin, option):
    """Output that cannot be written is one sentence that names the kept attempt, and exit code 74."""
    done = in_a_shell(home, f"capture {origin.url('/live')} {option} >/dev/full")
    (snapshot,) = kept_in(home)
    if option == "-o -":
        done.stderr = done.stderr.splitlines(keepends=True)[-1]  # the report goes there
    said = f"pravda: the output cannot be written: No space left on device; the attempt is kept as {snapshot.id}\n"
    assert (done.returncode, done.stderr) == (74, said)


@FULL
@pytest.mark.parametrize("arguments", ["--help", "--version", "history --help", "du"])
def test_a_full_disk_behind_other_commands(home, arguments):
    """Each command says so."""
    open_blocking(home=home).close()
    done = in_a_shell(home, f"{arguments} >/dev/full")
    said = "pravda: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (74, said)


@pytest.mark.parametrize("arguments", ["capture http://127.0.0.1:9/", "--help", "history --all"])
def test_a_closed_stdout(home, arguments):
    """Without a stdout nothing is done, and that is said."""
    done = in_a_shell(home, f"{arguments} >&-")
    assert (done.returncode, done.stderr) == (
        74,
        "pravda: the output cannot be written: it is closed; nothing was done\n",
    )
    assert not home.exists()


def test_a_closed_stderr(home, origin):
    """Without a stderr, what would be said there is not said."""
    done = in_a_shell(home, f"capture {origin.url('/live')} --json 2>&-")
    assert done.returncode == Exit.OK
    assert json.loads(done.stdout)["result"] == "fresh"


def test_other_trouble_is_not_taken_for_that_of_stdout(monkeypatch):
    """An error of a file by name is none of the output's."""

    def fail(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file", "name")

    with pytest.raises(FileNotFoundError), writing("x"):
        fail()
    monkeypatch.setattr(cli_main.cli, "main", fail)
    with pytest.raises(FileNotFoundError):
        cli_main.run([])


# archives that are not there, or may not be read

READING = [
    ("history", "--all"),
    ("show", UNKNOWN),
    ("show", "latest:http://a.example/"),
    ("cat", UNKNOWN),
    ("diff", UNKNOWN, UNKNOWN),
    ("verify",),
    ("verify", "--json"),
    ("du",),
]


@pytest.mark.parametrize("arguments", READING)
def test_reading_makes_no_archive(home, arguments):
    """Where there is no archive, reading says so with exit code 4 and makes none."""
    for folder in (home, home / "below"):
        result = pravda(folder, *arguments)
        assert result.exit_code == Exit.NOT_FOUND
        assert f"there is no archive in {folder}" in result.stderr
    assert not home.exists()
    home.write_text("no folder")
    assert pravda(home, *arguments).exit_code in (Exit.NOT_FOUND, Exit.USAGE)


@pytest.mark.parametrize("arguments", READING)
def test_an_archive_of_somebody_else(home, arguments, monkeypatch):
    """A folder that this user may not look into is one sentence and exit code 20."""
    open_blocking(home=home).close()

    def refuse(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    stat = Path.stat
    monkeypatch.setattr(
        Path, "stat", lambda path, **how: (refuse if path.parent == home else stat)(path, **how)
    )
    result = pravda(home, *arguments)
    assert result.exit_code == Exit.ARCHIVE
    assert "cannot be used: Permission denied" in result.stderr
    assert "Traceback" not in result.output


def test_a_closed_archive(home):
    """After its end, a blocking Pravda says that it is closed, whatever is asked of it."""
    with open_blocking(home=home) as archive:
        assert archive.history(Query()) == ()
    archive.close()
    with pytest.raises(ArchiveUnavailable, match="This archive is closed"):
        archive.history(Query())
    with pytest.raises(ArchiveUnavailable, match="This archive is closed"):
        archive.capture("http://a.example/")


# names, words


def test_latest_stands_for_an_id_everywhere(home, origin):
    """latest:URL names the newest usable snapshot for show, cat and diff alike."""
    name = f"latest:{origin.url('/live')}"
    for verb in (("show", name), ("cat", name), ("diff", name, name)):
        pravda(home, "capture", origin.url("/other"))
        assert pravda(home, *verb).exit_code == Exit.NOT_FOUND
    pravda(home, "capture", origin.url("/live"))
    (snapshot,) = (one for one in kept_in(home) if one.usable)
    assert snapshot.id in pravda(home, "show", name).stdout
    assert pravda(home, "cat", name).stdout_bytes == BODY
    assert pravda(home, "diff", name, snapshot.id).exit_code == Exit.OK


def test_the_beginning_of_an_id(home):
    """Where only one id begins so it is named by that, where several do, more of it is asked for."""
    first, second = f"{UNKNOWN[:9]}1{UNKNOWN[10:]}", f"{UNKNOWN[:9]}2{UNKNOWN[10:]}"

    async def keep() -> None:
        archive = LocalArchive.open(home)
        for snapshot_id in (first, second):
            snapshot, contents = a_snapshot()
            await archive.keep(replace(snapshot, id=snapshot_id), contents)
        await archive.close()

    asyncio.run(keep())
    assert pravda(home, "cat", first[:10]).stdout_bytes == PAGE
    assert pravda(home, "diff", first[:-1], second[:-1]).exit_code == Exit.OK
    several = pravda(home, "show", first[:9])
    assert several.exit_code == Exit.USAGE
    assert "id: more than one snapshot begins with 01a22ca4-" in several.stderr
    assert pravda(home, "show", "ffffffff").exit_code == Exit.NOT_FOUND
    assert pravda(home, "show", first[:7]).exit_code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    ("arguments", "kind", "status", "field"),
    [
        (("show", UNKNOWN), "not-found", 404, None),
        (("diff", UNKNOWN, UNKNOWN), "not-found", 404, None),
        (("show", "latest:ftp://a/"), "bad-request", 422, "url"),
        (("capture", "nonsense"), "bad-request", 422, "url"),
        (("capture", "http://a.example/", "--max-bytes", "x"), "bad-request", 422, "max_bytes"),
        (("capture", "http://a.example/", "--nonsense"), "bad-request", 422, None),
    ],
)
def test_a_problem_as_json(home, capsys, arguments, kind, status, field):
    """With --json a mistake and an unknown name are a problem object on stdout, and a line on stderr as ever."""
    open_blocking(home=home).close()
    code = cli_main.run([*arguments, "--json", "--home", str(home)])
    said = capsys.readouterr()
    problem = json.loads(said.out)
    assert code == (Exit.USAGE if status == 422 else Exit.NOT_FOUND)
    assert (problem["type"], problem["status"]) == (f"urn:pravda:problem:{kind}", status)
    assert problem["title"]
    assert problem.get("field") == field
    assert said.err == f"pravda: {problem['detail']}\n"


def test_why_nothing_stands_in(home, origin):
    """Where rules are given, a failure does not claim that there is no usable snapshot."""
    pravda(home, "capture", origin.url("/live"))
    result = pravda(home, "capture", origin.url("/live"), "--expect", "text_present=nowhere to be found")
    assert "failed, and no earlier snapshot may stand in" in result.stdout
    assert "none, no usable snapshot is kept that fulfils these demands" in result.stdout


@pytest.mark.parametrize("url", ["http://nothing.invalid/", "http://127.0.0.1:{port}/"])
def test_a_failure_is_told_once(home, url):
    """Where no byte came there is no first one, and nothing is said twice or is None."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        text = pravda(home, "capture", url.format(port=nobody.getsockname()[1])).stdout
    assert "[DOWN] failed" in text
    assert "first byte" not in text
    assert "None" not in text
    values = [line[14:] for line in text.splitlines() if line.startswith("  ")]
    assert len(values) == len(set(values))


@pytest.mark.parametrize("wrong", ["1 parsec", "-1", ""])
def test_no_size(home, wrong):
    """What is no size is a mistake."""
    assert pravda(home, "capture", "http://a.example/", "--max-bytes", wrong).exit_code == Exit.USAGE


def test_sizes_of_pages(home, origin):
    """--max-bytes takes sizes as settings do."""
    for size in ("1GB", "1MiB", "1000000"):
        assert pravda(home, "capture", origin.url("/live"), "--max-bytes", size).exit_code == Exit.OK
    assert pravda(home, "capture", origin.url("/live"), "--max-bytes", "1kB").exit_code in tuple(Exit)


def test_durations_in_words():
    """A duration that was asked for is told exactly, in its largest unit without a rest."""
    assert [exactly(seconds) for seconds in (604800, 129600, 3600, 90, 1, 0.5, 0)] == [
        "7 d", "36 h", "1 h", "90 s", "1 s", "0.5 s", "0 s",
    ]  # fmt: skip
