"""The order of a keep as the operating system sees it, and disks that are full or take no writes."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravda.archive.local import LocalArchive
from pravda.archive.quota import Limits
from pravda.cli.main import cli
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import Exit
from pravda.errors import ArchiveUnavailable
from tests.disks import fill, read_only, small_disk
from tests.factories import PAGE, a_snapshot
from tests.origin import BODY, HT, Origin, R

ROOT = Path(__file__).resolve().parent.parent
CALLS = "write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat"

BROKEN = (
    "sync of the file",
    "sync of the folder",
    "sync of a new folder",
    "sync before rename",
    "sync of the commit",
    "commit before acknowledgement",
    "bytes before row",
)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One system call that succeeded."""

    name: str
    text: str
    """Arguments as strace writes them, descriptors with their paths."""
    start: int
    """Number of the line on which it began."""
    end: int
    """And on which it had ended."""

    @property
    def paths(self) -> list[str]:
        """Those of descriptors, and those in quotes."""
        return [one or other for one, other in re.findall(r'\d<([^>]*)>|"(/[^"]*)"', self.text)]

    def is_on(self, path: Path | str) -> bool:
        """Whether it acts on that path."""
        return str(path) in self.paths

    @property
    def acknowledged(self) -> str | None:
        """The hash whose keep this tells the caller of; None: it is no acknowledgement."""
        found = re.match(r'1<[^>]*>, "[0-9a-f-]{36} ([0-9a-f]{64})', self.text)
        return found[1] if found and self.name == "write" else None


def trace(home: Path, load: str, broken: str) -> list[Call]:
    """What a process that keeps snapshots asks of the system."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (apt-get install strace)")
    log = home.parent / "trace"
    command = ("strace", "-f", "-y", "-s", "300", "-o", str(log), "-e", f"trace={CALLS}")
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.keeping", str(home), load, broken],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("processes may not be traced here")
    assert (done.returncode, done.stderr) == (0, "")
    return list(calls(log.read_text(errors="replace")))


def calls(text: str) -> Iterator[Call]:
    """Whole calls out of strace's lines, where those of several threads are interleaved."""
    begun: dict[str, tuple[int, str, str]] = {}
    for number, line in enumerate(text.splitlines()):
        thread, _, said = line.partition(" ")
        said = said.strip()
        if whole := re.match(r"(\w+)\((.*)\) += (-?\d+)", said):
            start, name, arguments = number, whole[1], whole[2]
        elif unfinished := re.match(r"(\w+)\((.*) <unfinished \.\.\.>", said):
            begun[thread] = (number, unfinished[1], unfinished[2])
            continue
        elif (resumed := re.match(r"<\.\.\. \w+ resumed>(.*)\) += (-?\d+)", said)) and thread in begun:
            start, name, arguments = begun.pop(thread)
            arguments, whole = arguments + resumed[1], resumed
        else:
            continue
        if not whole.group(whole.lastindex or 0).startswith("-"):
            yield Call(name=name, text=arguments, start=start, end=number)


def faults(home: Path, found: list[Call]) -> list[str]:
    """What is wrong with the order: for each acknowledged keep nothing, or the step that is not at its place."""
    return [wrong for said in found if said.acknowledged for wrong in faults_of(home, found, said)]


def faults_of(home: Path, found: list[Call], said: Call) -> Iterator[str]:
    """The steps of one keep that are not at their place."""
    sha256, log = said.acknowledged or "", home / "catalog.sqlite3-wal"
    folder = home / "blobs" / sha256[:2]
    syncs = [call for call in found if call.name in ("fsync", "fdatasync")]
    named = next(
        (one for one in found if one.name.startswith("rename") and one.is_on(folder / f"{sha256}.zst")), None
    )
    if named is None or named.end > said.start:
        yield "bytes before row"
        return
    aside = named.paths[0]
    written = [one for one in found if one.name == "write" and one.is_on(aside)][-1]
    if not any(written.end < one.start and one.end < named.start and one.is_on(aside) for one in syncs):
        late = any(named.end < one.start and f"{sha256}.zst" in one.text for one in syncs)
        yield "sync before rename" if late else "sync of the file"
    ready = [one.end for one in syncs if named.end < one.start and one.end < said.start and one.is_on(folder)]
    if not ready:
        yield "sync of the folder"
        return
    made = next(one for one in found if one.name.startswith("mkdir") and one.is_on(folder))
    outer = [
        one.end for one in syncs if made.end < one.start and one.end < said.start and one.is_on(folder.parent)
    ]
    if not outer:
        yield "sync of a new folder"
        return
    durable = max(ready[0], outer[0])
    rows = [
        one for one in found if one.name == "pwrite64" and one.is_on(log) and durable < one.start < said.start
    ]
    if not rows:
        yield "commit before acknowledgement"
    elif not any(rows[0].end < one.start and one.end < said.start and one.is_on(log) for one in syncs):
        yield "sync of the commit"


@pytest.mark.parametrize(("load", "count"), [("single", 3), ("grouped", 12)])
def test_the_order_of_a_keep(tmp_path, load, count):
    """Write < fsync < rename < fsync of the folder < commit and its fsync < acknowledgement, alone and in groups."""
    home = tmp_path / "home"
    found = trace(home, load, "nothing")
    assert faults(home, found) == []
    assert sum(call.acknowledged is not None for call in found) == count
    commits = [
        one for one in found if one.name in ("fsync", "fdatasync") and one.is_on(home / "catalog.sqlite3-wal")
    ]
    assert len(commits) < count or load == "single"


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("load", ["single", "grouped"])
def test_a_step_left_out_is_noticed(tmp_path, load, broken):
    """The trace tells when any step is left out or moved, so that the test above can fail."""
    home = tmp_path / "home"
    assert broken in faults(home, trace(home, load, broken))


async def keep_one(archive: LocalArchive) -> Snapshot:
    snapshot, contents = a_snapshot()
    await archive.keep(snapshot, contents)
    return snapshot


def a_kept_snapshot(home: Path) -> Snapshot:
    """What another process kept, which has ended since."""

    async def run() -> Snapshot:
        archive = LocalArchive.open(home)
        try:
            return await keep_one(archive)
        finally:
            await archive.close()

    return asyncio.run(run())


async def read_but_do_not_keep(home: Path, kept: Snapshot, why: str) -> None:
    archive = LocalArchive.open(home)
    try:
        assert await archive.find(Query()) == (kept,)
        assert await archive.get(kept.id) == kept
        assert await archive.read(kept, "body") == PAGE
        with pytest.raises(ArchiveUnavailable, match=why):
            await keep_one(archive)
    finally:
        await archive.close()


def test_a_new_process_on_a_full_disk_reads(tmp_path):
    """Where not even SQLite's own files fit any more, an archive is opened for reading, and says why it keeps nothing."""
    with small_disk(tmp_path) as home:
        kept = a_kept_snapshot(home)
        ballast = fill(home)
        asyncio.run(read_but_do_not_keep(home, kept, "a disk that is full"))
        ballast.unlink()
        a_kept_snapshot(home)


def test_a_new_process_on_a_full_disk_after_a_crash(tmp_path):
    """Rows that a dead process left in the write-ahead log are read on a full disk too."""
    with small_disk(tmp_path) as disk:
        home = disk / "home"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.keeping", str(home), "endless", "nothing"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout
            name = process.stdout.readline().split()[0]
            process.kill()
        fill(disk)

        async def run() -> None:
            archive = LocalArchive.open(home, Limits(spare=0))
            assert await archive.get(name)
            with pytest.raises(Exception, match="full"):  # noqa: PT012  # of the bytes or of the row, as it fits
                for _ in range(200):
                    await keep_one(archive)
            assert await archive.get(name)
            await archive.close()

        asyncio.run(run())


def test_rows_in_a_log_that_cannot_be_read(tmp_path):
    """A full disk with a log but without its index is refused as what it is, since rows would be missing."""
    with small_disk(tmp_path) as home:

        async def run() -> None:
            archive = LocalArchive.open(home)
            await keep_one(archive)
            shutil.copytree(home, home / "copy")
            await archive.close()

        asyncio.run(run())
        (home / "copy" / "catalog.sqlite3-shm").unlink()
        fill(home)
        with pytest.raises(ArchiveUnavailable, match=r"the space that is left|disk is full"):
            LocalArchive.open(home / "copy")


def test_a_new_process_on_a_read_only_disk_reads(tmp_path):
    """In a folder that takes no writes an archive is opened for reading, and says why it keeps nothing."""
    home = tmp_path / "home"
    kept = a_kept_snapshot(home)
    with read_only(home):
        asyncio.run(read_but_do_not_keep(home, kept, "read-only"))


@pytest.fixture
def site():
    """A site with one page."""
    with Origin() as origin:
        origin.routes["/page"] = [R(b"200 OK", BODY, HT)]
        yield origin


def pravda(home: Path, *arguments: str) -> Result:
    """One command, with an archive opened for it alone."""
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)])


def test_commands_on_a_full_disk(tmp_path, site):
    """On a full disk reading commands work, and a capture exits 20 naming the newest usable snapshot."""
    with small_disk(tmp_path) as home:
        url = site.url("/page")
        first = json.loads(pravda(home, "capture", "--json", url).stdout)["snapshot"]["id"]
        fill(home)
        assert pravda(home, "cat", first).stdout_bytes == BODY
        assert first in pravda(home, "history", url).stdout
        assert first in pravda(home, "show", f"latest:{url}").stdout
        assert pravda(home, "verify").exit_code == Exit.OK
        done = pravda(home, "capture", "--max-stale-age", "7d", url)
        assert (done.exit_code, done.stdout) == (Exit.ARCHIVE, "")
        assert f"newest usable snapshot is {first}" in done.stderr


def test_commands_on_a_read_only_disk(tmp_path, site):
    """The same where nothing may be written."""
    home, url = tmp_path / "home", site.url("/page")
    first = json.loads(pravda(home, "capture", "--json", url).stdout)["snapshot"]["id"]
    with read_only(home):
        assert pravda(home, "cat", first).stdout_bytes == BODY
        assert first in pravda(home, "history", url).stdout
        done = pravda(home, "capture", url)
        assert done.exit_code == Exit.ARCHIVE
        assert "read-only" in done.stderr
        assert f"newest usable snapshot is {first}" in done.stderr


def test_a_damaged_page_does_not_stand_in(tmp_path, site):
    """One flipped byte, or a missing blob: verify names it, the page is not served, and the next older usable one is."""
    home, url = tmp_path / "home", site.url("/page")
    ids = []
    for step in range(3):
        site.routes["/page"] = [R(b"200 OK", BODY + b"<!-- %d -->" % step, HT)]
        ids.append(json.loads(pravda(home, "capture", "--json", url).stdout)["snapshot"])
    site.routes["/page"] = [R(b"503 Service Unavailable", b"", HT)]
    blobs = [home / "blobs" / one["content"]["sha256"][:2] / f"{one['content']['sha256']}.zst" for one in ids]
    data = bytearray(blobs[2].read_bytes())
    data[len(data) // 2] ^= 1
    blobs[2].write_bytes(data)
    blobs[1].unlink()
    found = json.loads(pravda(home, "verify", "--json").stdout)["findings"]
    assert {(one["harm"], one["snapshot"]) for one in found} == {
        ("changed", ids[2]["id"]),
        ("missing", ids[1]["id"]),
    }
    for one in ids[1:]:
        assert pravda(home, "cat", one["id"]).exit_code == Exit.ARCHIVE
    done = pravda(home, "capture", "--json", "--max-stale-age", "7d", url)
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["result"], answer["snapshot"]["id"]) == (Exit.OK, "stale", ids[0]["id"])
    assert ids[0]["id"] in pravda(home, "show", f"latest:{url}").stdout
