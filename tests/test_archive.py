"""The embedded archive as a whole."""

import asyncio
import gc
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pravda.archive import catalog, local
from pravda.archive import keep as keeping
from pravda.archive.blobs import Blobs, Published
from pravda.archive.local import LocalArchive
from pravda.archive.quota import Limits
from pravda.core.evidence import Artifact
from pravda.core.outcome import Snapshot
from pravda.core.ports import Archive, Contents, Query
from pravda.core.states import Reason, State
from pravda.engines.spool import Bytes
from pravda.errors import ArchiveUnavailable, Damaged, StorageTrouble
from tests.disks import fill, read_only, small_disk
from tests.factories import NOON, PAGE, URL, a_snapshot, an_artifact

T = TypeVar("T")


def using(home: Path, act: Callable[[LocalArchive], Awaitable[T]], limits: Limits | None = None) -> T:
    """Do something with an archive, and close it."""

    async def run() -> T:
        archive = LocalArchive.open(home, limits)
        try:
            return await act(archive)
        finally:
            await archive.close()

    return asyncio.run(run())


async def keep_one(archive: Archive, **given: Any) -> Snapshot:
    snapshot, contents = a_snapshot(**given)
    await archive.keep(snapshot, contents)
    return snapshot


def blob_files(home: Path) -> list[Path]:
    return [path for path in (home / "blobs").rglob("*") if path.is_file()]


def leftovers(home: Path) -> list[Path]:
    return list((home / "tmp").iterdir())


def blob_of(home: Path, snapshot: Snapshot) -> Path:
    return Blobs(home).path(snapshot.evidence.artifacts[0].sha256)


def catalog_of(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "catalog.sqlite3", isolation_level=None)


def test_what_is_kept_can_be_had(tmp_path):
    """A snapshot and its artifacts come back as they were kept, also after closing."""

    async def first(archive: Archive) -> Snapshot:
        kept = await keep_one(archive)
        assert await archive.get(kept.id) == kept
        return kept

    kept = using(tmp_path, first)

    async def again(archive: LocalArchive) -> None:
        assert await archive.find(Query(identity=kept.asked.identity, state=State.LIVE, limit=1)) == (kept,)
        assert await archive.read(kept, "body") == PAGE
        assert await archive.read(kept, "body", 9) == PAGE[:9]
        assert await archive.read(kept, "body", -1) == b""
        assert await archive.read(kept, "response") == b"HTTP/1.1 200 x\r\n\r\n"
        assert await archive.read(kept, "payload") is None
        assert archive.stream(kept, "payload") is None
        assert b"".join(archive.stream(kept, "body") or ()) == PAGE

    using(tmp_path, again)


def test_heads_live_in_the_catalog(tmp_path):
    """Small protocol heads cost no file; bodies and payloads always, and large heads too, are files."""
    large = b"x" * (keeping.INLINE_BYTES + 1)
    heads = {"payload": b"", "request": large[1:], "response": large}

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive, heads=heads)
        assert len(blob_files(tmp_path)) == 3
        for name, data in heads.items():
            assert await archive.read(kept, name) == data

    using(tmp_path, run)


def test_the_folder_is_private(tmp_path):
    """Everything an archive makes is for this user alone."""
    home = tmp_path / "a" / "home"
    using(home, keep_one)
    for path in (home.parent, home, *home.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_one_instant_many_snapshots(tmp_path):
    """W-D3: twenty snapshots of one URL at one frozen instant are twenty rows in one stable order."""

    async def run(archive: LocalArchive) -> None:
        kept = await asyncio.gather(*(keep_one(archive, captured_at=NOON) for _ in range(20)))
        found = await archive.find(Query(page=kept[0].asked.page))
        assert [one.id for one in found] == sorted((one.id for one in kept), reverse=True)
        for _ in range(3):
            assert await archive.find(Query(page=kept[0].asked.page, limit=1)) == found[:1]

    using(tmp_path, run)


def test_many_writers_of_one_blob(tmp_path):
    """W-I2: sixteen threads keep the same 10 MB: one blob, the right digest, nothing left aside."""
    data = os.urandom(1_000_000) * 10
    sha256 = hashlib.sha256(data).hexdigest()
    archive = LocalArchive.open(tmp_path)

    def keep_it() -> None:
        asyncio.run(keep_one(archive, body=data))

    threads = [threading.Thread(target=keep_it) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in blob_files(tmp_path)] == [f"{sha256}.zst"]
    assert leftovers(tmp_path) == []
    found = asyncio.run(archive.find(Query()))
    assert len(found) == 16
    assert asyncio.run(archive.read(found[0], "body")) == data
    asyncio.run(archive.close())


_PROCESS = """
import asyncio, sys
from pathlib import Path
from pravda.archive.local import LocalArchive
from tests.factories import a_snapshot

async def main():
    archive = LocalArchive.open(Path(sys.argv[1]))
    for number in range(int(sys.argv[2])):
        snapshot, contents = a_snapshot(body=b"page %d" % number)
        await archive.keep(snapshot, contents)
        print(snapshot.id, flush=True)
    if sys.argv[3:] != ["forget"]:
        await archive.close()

asyncio.run(main())
"""


def a_process(home: Path, count: int, *words: str) -> "subprocess.Popen[str]":
    command = (sys.executable, "-W", "error", "-c", _PROCESS, str(home), str(count), *words)
    root = Path(__file__).resolve().parent.parent
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_many_processes_and_a_locked_catalog(tmp_path):
    """W-I1: four processes open a new home at once and keep 25 each while another holds the lock for 2 s; none fails."""
    processes = [a_process(tmp_path, 25) for _ in range(4)]
    while not (tmp_path / "catalog.sqlite3-wal").exists():
        time.sleep(0.01)
    with closing(catalog_of(tmp_path)) as holder:
        holder.execute("PRAGMA busy_timeout = 30000")
        holder.execute("BEGIN IMMEDIATE")
        time.sleep(2)
        holder.execute("COMMIT")
    said = [process.communicate(timeout=60) for process in processes]
    assert [problem for _, problem in said] == [""] * 4
    ids = {line for out, _ in said for line in out.split()}
    assert len(ids) == 100

    async def count(archive: LocalArchive) -> tuple[Snapshot, ...]:
        return await archive.find(Query(limit=1000))

    assert {one.id for one in using(tmp_path, count)} == ids
    assert len(blob_files(tmp_path)) == 25
    assert leftovers(tmp_path) == []


def test_a_forgotten_close_loses_nothing(tmp_path):
    """A process that ends without closing has kept everything it acknowledged, and ends without a complaint."""
    out, problem = a_process(tmp_path, 5, "forget").communicate(timeout=60)
    assert problem == ""

    async def find(archive: LocalArchive) -> None:
        assert {one.id for one in await archive.find(Query())} == set(out.split())

    using(tmp_path, find)


def test_a_forgotten_archive_lets_go(tmp_path):
    """An archive that is dropped instead of closed ends its threads and connections."""

    async def forget() -> None:
        archive = LocalArchive.open(tmp_path)
        kept = await keep_one(archive)
        assert await archive.read(kept, "body") == PAGE

    asyncio.run(forget())
    gc.collect()
    deadline = time.monotonic() + 10
    while any(thread.name == "pravda-keep" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_waiting_keeps_share_one_transaction(tmp_path, monkeypatch):
    """Keeps that wait while another is written are committed together."""
    sizes: list[int] = []
    insert = catalog.insert

    def counting(connection, rows, stored):
        sizes.append(len(rows))
        time.sleep(0.2)
        return insert(connection, rows, stored)

    monkeypatch.setattr(keeping, "insert", counting)
    monkeypatch.setattr(keeping, "MOST_AT_ONCE", 6)

    async def run(archive: LocalArchive) -> None:
        await asyncio.gather(*(keep_one(archive, body=b"%d" % number) for number in range(16)))

    using(tmp_path, run)
    assert sum(sizes) == 16
    assert len(sizes) <= 5
    assert max(sizes) == 6


@pytest.mark.parametrize(
    ("problem", "raised"),
    [(sqlite3.OperationalError("odd row"), ArchiveUnavailable), (OverflowError(), OverflowError)],
)
def test_one_failing_keep_sinks_no_neighbour(tmp_path, monkeypatch, problem, raised):
    """In one batch, a row that cannot be stored fails alone."""
    insert = catalog.insert

    def refusing(connection, rows, stored):
        time.sleep(0.1)
        if any(row.snapshot["key"] == "bad" for row in rows):
            raise problem
        return insert(connection, rows, stored)

    monkeypatch.setattr(keeping, "insert", refusing)

    async def run(archive: LocalArchive) -> None:
        keys = ["a", "bad", "b", "c", "bad", "d"]
        ends = await asyncio.gather(*(keep_one(archive, key=key) for key in keys), return_exceptions=True)
        assert [isinstance(end, raised) for end in ends] == [key == "bad" for key in keys]
        assert len(await archive.find(Query())) == 4

    using(tmp_path, run)


@pytest.mark.parametrize("place", [(Blobs, "publish"), (keeping, "insert")])
def test_an_unforeseen_error_reaches_the_waiter(tmp_path, monkeypatch, place):
    """Whatever breaks in the writer's thread is told, and the thread goes on."""

    def breaking(*arguments):
        monkeypatch.undo()
        raise LookupError("unforeseen")

    monkeypatch.setattr(*place, breaking)

    async def run(archive: LocalArchive) -> None:
        with pytest.raises(LookupError, match="unforeseen"):
            await keep_one(archive)
        await keep_one(archive)

    using(tmp_path, run)


def test_a_catalog_locked_for_too_long(tmp_path):
    """When another program does not let go in time, nothing is acknowledged, and reads go on."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        assert archive._keeper is not None
        archive._keeper._connection.execute("PRAGMA busy_timeout = 50")
        with closing(catalog_of(tmp_path)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            ends = await asyncio.gather(*(keep_one(archive) for _ in range(3)), return_exceptions=True)
            assert [str(end).count("locked") > 0 for end in ends] == [True] * 3
            assert await archive.find(Query()) == (kept,)
        await keep_one(archive)

    using(tmp_path, run)


def test_a_locked_catalog_does_not_hold_up_the_loop(tmp_path, monkeypatch):
    """A look-up that meets a lock moves to a thread and waits there, while the loop goes on."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        find = archive._near.find

        def locked(query: Query) -> tuple[Snapshot, ...]:
            monkeypatch.setattr(archive._near, "find", find)
            problem = sqlite3.OperationalError("database is locked")
            problem.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise ArchiveUnavailable("locked") from problem

        def broken(query: Query) -> tuple[Snapshot, ...]:
            raise ArchiveUnavailable("broken") from sqlite3.DatabaseError("broken")

        monkeypatch.setattr(archive._near, "find", locked)
        assert await archive.find(Query(limit=1)) == (kept,)
        monkeypatch.setattr(archive._near, "find", broken)
        with pytest.raises(ArchiveUnavailable, match="broken"):
            await archive.find(Query(limit=1))
        assert await archive.find(Query(limit=1000)) == (kept,)

    using(tmp_path, run)


def test_large_bodies_are_read_in_a_thread(tmp_path):
    """What takes long to read holds up nothing else."""
    body = os.urandom(local.NEAR_BYTES + 1)

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive, body=body)
        assert await archive.read(kept, "body") == body

    using(tmp_path, run)


def without(contents: dict[str, Contents], name: str) -> dict[str, Contents]:
    return {key: part for key, part in contents.items() if key != name}


@pytest.mark.parametrize(
    "change",
    [
        lambda contents: without(contents, "body"),
        lambda contents: contents | {"more": Bytes(b"x")},
        lambda contents: contents | {"body": Bytes(b"other")},
        lambda contents: contents | {"request": Bytes(b"other")},
    ],
)
def test_contents_must_be_the_snapshots(tmp_path, change):
    """Contents that are missing, unnamed or different from their record are refused, and nothing is stored."""

    async def run(archive: LocalArchive) -> None:
        snapshot, contents = a_snapshot()
        with pytest.raises(ValueError, match="contents"):
            await archive.keep(snapshot, change(contents))
        assert await archive.find(Query()) == ()
        assert blob_files(tmp_path) == leftovers(tmp_path) == []

    using(tmp_path, run)


def test_an_id_is_kept_once(tmp_path):
    """A snapshot whose id is kept already is refused; the first stays."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        with pytest.raises(ValueError, match="kept already"):
            await keep_one(archive, snapshot_id=kept.id, state=State.DOWN)
        assert await archive.get(kept.id) == kept

    using(tmp_path, run)


def test_a_cancelled_waiter_breaks_nothing(tmp_path):
    """Who stops waiting harms neither the archive nor, once its bytes were handed over, the keep."""

    async def run(archive: LocalArchive) -> None:
        task = asyncio.create_task(keep_one(archive))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await keep_one(archive)

    using(tmp_path, run)

    async def count(archive: LocalArchive) -> int:
        return len(await archive.find(Query()))

    assert using(tmp_path, count) == 2


def test_a_loop_that_ended_is_no_trouble(tmp_path):
    """When the loop of a waiter is closed before its answer comes, the keep is finished all the same."""
    archive = LocalArchive.open(tmp_path)
    with closing(catalog_of(tmp_path)) as holder:
        holder.execute("BEGIN IMMEDIATE")

        async def leave() -> None:
            task = asyncio.create_task(keep_one(archive))
            await asyncio.sleep(0.1)
            task.cancel()

        asyncio.run(leave())
        holder.execute("COMMIT")
    asyncio.run(archive.close())

    async def count(archive: LocalArchive) -> int:
        return len(await archive.find(Query()))

    assert using(tmp_path, count) == 1


def test_closing_drains_the_queue(tmp_path):
    """Close waits for what is being kept, empties the log, and may be repeated."""

    async def run() -> None:
        archive = LocalArchive.open(tmp_path)
        tasks = [asyncio.create_task(keep_one(archive)) for _ in range(10)]
        await asyncio.sleep(0)
        await archive.close()
        await archive.close()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "catalog.sqlite3", "tmp"]


def test_nothing_works_after_close(tmp_path):
    """Every use of a closed archive says that it is closed."""

    async def run() -> None:
        archive = LocalArchive.open(tmp_path)
        kept = await keep_one(archive)
        await archive.close()
        uses: list[Coroutine[Any, Any, object]] = [
            keep_one(archive),
            archive.get(kept.id),
            archive.find(Query()),
            archive.read(kept, "body"),
        ]
        for use in uses:
            with pytest.raises(ArchiveUnavailable, match="closed"):
                await use
        with pytest.raises(ArchiveUnavailable, match="closed"):
            archive.stream(kept, "body")

    asyncio.run(run())


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "word"), [(flip, "changed"), (Path.unlink, "missing"), (to_folder, "unreadable")]
)
def test_damaged_bytes_are_not_handed_out(tmp_path, damage, word):
    """W-I6: a changed, missing or unreadable blob raises, naming snapshot, artifact, harm and what to run."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        damage(blob_of(tmp_path, kept))
        for limit in (None, 5):
            with pytest.raises(Damaged, match=rf"body of snapshot {kept.id} is {word}.*pravda verify"):
                await archive.read(kept, "body", limit)
        with pytest.raises(Damaged, match=word):
            archive.stream(kept, "body")
        assert await archive.read(kept, "request")

    using(tmp_path, run)


def test_a_changed_head_is_not_handed_out(tmp_path):
    """Bytes that were changed in the catalog itself raise as well."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        with closing(catalog_of(tmp_path)) as other:
            other.execute("DROP TRIGGER artifacts_keep_values")
            other.execute("UPDATE artifacts SET inline = x'00' WHERE name = 'request'")
            other.execute("UPDATE artifacts SET inline = NULL WHERE name = 'response'")
        with pytest.raises(Damaged, match="changed"):
            await archive.read(kept, "request")
        with pytest.raises(Damaged, match="missing"):
            await archive.read(kept, "response")

    using(tmp_path, run)


def test_keeping_again_heals(tmp_path):
    """When a damaged page is captured again with equal content, both snapshots are readable."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        flip(blob_of(tmp_path, kept))
        again = await keep_one(archive)
        assert await archive.read(kept, "body") == await archive.read(again, "body") == PAGE

    using(tmp_path, run)


def test_a_row_without_artifacts(tmp_path):
    """When bytes could not be kept, the row alone still can."""

    async def run(archive: LocalArchive) -> None:
        snapshot, _ = a_snapshot()
        bare = replace(snapshot, evidence=replace(snapshot.evidence, artifacts=()))
        await archive.keep(bare, {})
        assert await archive.get(bare.id) == bare
        assert blob_files(tmp_path) == []

    using(tmp_path, run)


def test_any_artifact_name(tmp_path):
    """An artifact of any name, however odd, is kept and read."""
    name, contents = "hop-1-\ud800'; --", Bytes(b"x")

    async def run(archive: LocalArchive) -> None:
        snapshot, parts = a_snapshot()
        artifacts: tuple[Artifact, ...] = (*snapshot.evidence.artifacts, an_artifact(name, contents))
        odd = replace(snapshot, evidence=replace(snapshot.evidence, artifacts=artifacts))
        await archive.keep(odd, parts | {name: contents})
        assert await archive.read(odd, name) == b"x"

    using(tmp_path, run)


def test_a_full_disk(tmp_path):
    """On a full disk a keep fails and says what to do, nothing of it stays, reads go on, and space heals it."""
    with small_disk(tmp_path, megabytes=8) as home:

        async def run(archive: LocalArchive) -> None:
            kept = await keep_one(archive)
            ballast = fill(home)
            with pytest.raises(StorageTrouble, match="Free some space") as trouble:
                await keep_one(archive, body=os.urandom(100_000))
            assert trouble.value.reason is Reason.DISK_FULL
            snapshot, _ = a_snapshot()
            bare = replace(snapshot, evidence=replace(snapshot.evidence, artifacts=()))
            with pytest.raises(ArchiveUnavailable, match="disk is full: free some space"):  # noqa: PT012  # some may fit
                for number in range(200):
                    await archive.keep(replace(bare, id=f"{bare.id}-{number}"), {})
            assert len(blob_files(home)) == 1
            assert leftovers(home) == []
            assert await archive.read(kept, "body") == PAGE
            assert await archive.get(kept.id) == kept
            ballast.unlink()
            await keep_one(archive)

        using(home, run, Limits(spare=0))


def test_a_disk_that_fails_while_syncing(tmp_path, monkeypatch):
    """A blob whose sync fails stores no row, and its neighbour in the same batch is kept."""
    archive = LocalArchive.open(tmp_path)
    publish, broken = Blobs.publish, hashlib.sha256(b"bad").hexdigest()

    def failing(self: Blobs, batch: Any) -> Published:
        problem = OSError(5, "Input/output error")
        return replace(
            publish(self, batch), failed={one.sha256: problem for one in batch if one.sha256 == broken}
        )

    monkeypatch.setattr(Blobs, "publish", failing)

    async def run() -> None:
        ends = await asyncio.gather(
            keep_one(archive, body=b"good"), keep_one(archive, body=b"bad"), return_exceptions=True
        )
        assert isinstance(ends[1], StorageTrouble)
        assert ends[1].reason is Reason.STORAGE_UNAVAILABLE
        assert await archive.find(Query()) == (ends[0],)
        await archive.close()

    asyncio.run(run())


def test_a_blob_folder_that_takes_no_writes(tmp_path):
    """A running archive whose blobs cannot be written says so, still takes bare rows, and goes on reading."""

    async def run(archive: LocalArchive) -> None:
        kept = await keep_one(archive)
        with read_only(tmp_path / "blobs"), read_only(tmp_path / "tmp"):
            with pytest.raises(StorageTrouble, match="write access") as trouble:
                await keep_one(archive, body=b"more")
            assert trouble.value.reason is Reason.STORAGE_DENIED
            assert await archive.read(kept, "body") == PAGE

    using(tmp_path, run)


def test_a_read_only_archive(tmp_path):
    """In a read-only folder everything can be read, and a keep says why it fails."""
    home = tmp_path / "home"
    kept = using(home, keep_one)

    async def run(archive: LocalArchive) -> None:
        assert await archive.find(Query(limit=1)) == (kept,)
        assert await archive.read(kept, "body") == PAGE
        assert b"".join(archive.stream(kept, "body") or ()) == PAGE
        with pytest.raises(ArchiveUnavailable, match="read-only"):
            await keep_one(archive)

    with read_only(home):
        using(home, run)
        LocalArchive.open(home)  # forgotten, and let go of all the same
        gc.collect()
        for name in ("catalog.sqlite3-wal", "catalog.sqlite3-shm"):
            assert not (home / name).exists()


def test_a_read_only_archive_with_a_log(tmp_path):
    """A read-only folder with rows still in the write-ahead log is refused, and the reason is named."""
    home, copy = tmp_path / "home", tmp_path / "copy"

    async def run(archive: LocalArchive) -> None:
        await keep_one(archive)
        shutil.copytree(home, copy)

    using(home, run)
    assert (copy / "catalog.sqlite3-wal").stat().st_size
    with read_only(copy), pytest.raises(ArchiveUnavailable, match="write-ahead log catalog"):
        LocalArchive.open(copy)


def test_a_read_only_archive_with_an_older_catalog(tmp_path):
    """A catalog that would have to be brought up to date cannot be where nothing may be written."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "catalog.sqlite3").touch()
    with read_only(home), pytest.raises(ArchiveUnavailable, match="format 0 and must be brought to"):
        LocalArchive.open(home)


def test_no_archive_in_a_read_only_place(tmp_path):
    """A home that does not exist and cannot be made is unavailable, and so is a file in its place."""
    place = tmp_path / "place"
    place.mkdir()
    with read_only(place), pytest.raises(ArchiveUnavailable, match="PRAVDA_HOME"):
        LocalArchive.open(place / "home")
    (place / "file").touch()
    with pytest.raises(ArchiveUnavailable, match="PRAVDA_HOME"):
        LocalArchive.open(place / "file" / "home")


def test_a_home_whose_folders_cannot_be_made(tmp_path):
    """When blobs have no place the archive does not open, and lets go of its catalog."""
    (tmp_path / "blobs").touch()
    with pytest.raises(ArchiveUnavailable, match="PRAVDA_HOME"):
        LocalArchive.open(tmp_path)
    gc.collect()


def test_what_is_no_catalog_stays_untouched(tmp_path):
    """A file that is no database under the catalog's name is refused as it is."""
    (tmp_path / "catalog.sqlite3").write_bytes(b"notes" * 500)
    with pytest.raises(ArchiveUnavailable, match="no SQLite database"):
        LocalArchive.open(tmp_path)
    assert (tmp_path / "catalog.sqlite3").read_bytes() == b"notes" * 500


def test_a_relative_home(tmp_path, monkeypatch):
    """A relative path with odd characters is a home like any other."""
    monkeypatch.chdir(tmp_path)
    home = Path("odd name?#%20")
    kept = using(home, keep_one)
    assert kept.evidence.url == URL
    assert (tmp_path / home / "catalog.sqlite3").is_file()
