"""How much of its disk an archive may take."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from click.testing import CliRunner

from pravda import open_blocking
from pravda.archive.local import LocalArchive
from pravda.archive.quota import SPARE_BYTES, SPARE_SHARE, Limits, Quota
from pravda.archive.usage import usage
from pravda.archive.verify import verify
from pravda.assemble import new_id
from pravda.capture import Pravda
from pravda.cli.main import cli
from pravda.core.outcome import Result, Snapshot, Verdict
from pravda.core.ports import Query
from pravda.core.states import Cause, Exit, Reason, State
from pravda.errors import ArchiveUnavailable, BadRequest, StorageTrouble
from pravda.settings import load
from pravda.testing import FrozenClock, ScriptedEngine, page
from tests.disks import fill, small_disk
from tests.factories import PAGE, a_snapshot
from tests.origin import BODY, HT, Origin, R

T = TypeVar("T")


def using(home: Path, limits: Limits, act: Callable[[LocalArchive], Awaitable[T]]) -> T:
    """Do something with a limited archive, and close it."""

    async def run() -> T:
        archive = LocalArchive.open(home, limits)
        try:
            return await act(archive)
        finally:
            await archive.close()

    return asyncio.run(run())


async def keep_one(archive: LocalArchive, body: bytes = PAGE) -> Snapshot:
    snapshot, contents = a_snapshot(body=body)
    await archive.keep(snapshot, contents)
    return snapshot


def noise(size: int) -> bytes:
    return os.urandom(size)


def stored(home: Path) -> int:
    with closing(sqlite3.connect(home / "catalog.sqlite3")) as connection:
        found: int = connection.execute("SELECT value FROM meta WHERE name = 'stored_bytes'").fetchone()[0]
        return found


def on_disk(home: Path) -> int:
    return sum(path.stat().st_size for path in (home / "blobs").rglob("*.zst"))


def test_the_most_bytes_of_an_archive(tmp_path):
    """A keep that would pass PRAVDA_MAX_BYTES is refused before it is written, and says what to do."""

    async def run(archive: LocalArchive) -> None:
        await keep_one(archive, noise(300_000))
        with pytest.raises(
            StorageTrouble, match=r"may hold 1,000,000 \(PRAVDA_MAX_BYTES\).* raise that"
        ) as trouble:
            await keep_one(archive, noise(800_000))
        assert trouble.value.reason is Reason.DISK_FULL
        assert on_disk(tmp_path) < 310_000
        assert list((tmp_path / "tmp").iterdir()) == []
        await keep_one(archive, noise(100_000))

    using(tmp_path, Limits(most=1_000_000), run)


def test_content_that_is_there_needs_no_room(tmp_path):
    """A full archive still takes snapshots of pages whose bytes it has, since nothing is written for them."""
    body = noise(200_000)
    using(tmp_path, Limits(), lambda archive: keep_one(archive, body))
    using(tmp_path, Limits(most=1), lambda archive: keep_one(archive, body))
    with pytest.raises(StorageTrouble):
        using(tmp_path, Limits(most=1), lambda archive: keep_one(archive, noise(1)))


def test_a_catalog_file_that_is_not_there(tmp_path):
    """A write-ahead log that does not exist takes no room."""
    with Quota(tmp_path, Limits(most=1), catalog_files=(tmp_path / "none",)).room(1):
        pass


def test_several_processes_share_the_count(tmp_path, monkeypatch):
    """What another process stored counts too, at the latest after a second."""
    monkeypatch.setattr("pravda.archive.quota._AGE", 0.0)

    async def run(archive: LocalArchive) -> None:
        await keep_one(archive)
        other = LocalArchive.open(tmp_path)
        await keep_one(other, noise(600_000))
        with pytest.raises(StorageTrouble, match="PRAVDA_MAX_BYTES"):
            await keep_one(archive, noise(500_000))
        await other.close()

    using(tmp_path, Limits(most=1_000_000), run)


def test_keeps_at_the_same_time(tmp_path):
    """Keeps that run together cannot pass the limit together."""

    async def run(archive: LocalArchive) -> None:
        ends = await asyncio.gather(
            *(keep_one(archive, noise(200_000)) for _ in range(16)), return_exceptions=True
        )
        kept = sum(isinstance(end, Snapshot) for end in ends)
        assert 1 <= kept <= 4
        assert sum(isinstance(end, StorageTrouble) for end in ends) == 16 - kept
        assert await asyncio.to_thread(on_disk, tmp_path) < 1_000_000
        assert archive._keeper
        assert (archive._keeper._quota._writing, archive._keeper._quota._waiting) == (0, 0)

    using(tmp_path, Limits(most=1_000_000), run)


def test_the_count_is_that_of_the_files(tmp_path):
    """The count in the catalog is the size of all blobs, equal ones once; a repair puts right what crashes left wrong."""

    async def run(archive: LocalArchive) -> None:
        bodies = [noise(5000) for _ in range(5)]
        await asyncio.gather(*(keep_one(archive, body) for body in bodies * 2))

    using(tmp_path, Limits(), run)
    assert stored(tmp_path) == on_disk(tmp_path) == usage(tmp_path).blob_bytes
    (tmp_path / "blobs" / "ff").mkdir(exist_ok=True)
    (tmp_path / "blobs" / "ff" / "orphan").write_bytes(bytes(77))
    list(verify(tmp_path))
    assert stored(tmp_path) == on_disk(tmp_path)
    list(verify(tmp_path, repair=True))
    assert stored(tmp_path) == on_disk(tmp_path) + 77


def test_an_archive_older_than_the_count(tmp_path):
    """A catalog that nobody counted in is counted once, when it is opened."""
    using(tmp_path, Limits(), keep_one)
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite3", isolation_level=None)) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'stored_bytes'")

    async def run(archive: LocalArchive) -> None:
        assert archive._reader.stored() == on_disk(tmp_path)

    using(tmp_path, Limits(), run)


def test_a_count_that_is_gone(tmp_path):
    """Keeping goes on when the count vanishes under a running process."""

    async def run(archive: LocalArchive) -> None:
        with closing(sqlite3.connect(tmp_path / "catalog.sqlite3", isolation_level=None)) as connection:
            connection.execute("DELETE FROM meta WHERE name = 'stored_bytes'")
        await keep_one(archive)
        assert archive._reader.stored() is None

    using(tmp_path, Limits(most=10_000_000), run)


def test_what_must_stay_free(tmp_path):
    """A keep that would leave less of the disk than must stay free is refused, and says what to do."""
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    with pytest.raises(
        StorageTrouble, match=r"must stay free \(PRAVDA_MIN_FREE_BYTES\).*free some space"
    ) as trouble:
        using(tmp_path, Limits(spare=2 * free), keep_one)
    assert trouble.value.reason is Reason.DISK_FULL
    using(tmp_path, Limits(spare=0), keep_one)


@pytest.mark.parametrize(
    ("whole", "free", "refused"),
    [
        (10**12, SPARE_BYTES + 1000, False),
        (10**12, SPARE_BYTES + 999, True),
        (10**9, int(10**9 * SPARE_SHARE) + 1000, False),
        (10**9, int(10**9 * SPARE_SHARE) + 999, True),
        (0, 0, False),
    ],
)
def test_what_stays_free_by_default(tmp_path, monkeypatch, whole, free, refused):
    """By default 200 MB stay free, on small disks a twentieth; a file system that does not tell is no obstacle."""
    facts = (1, 1, whole, free, free, 0, 0, 0, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(facts))
    quota = Quota(tmp_path, Limits())
    if refused:
        with pytest.raises(StorageTrouble), quota.room(1000):
            raise AssertionError("there is no room")
    else:
        with quota.room(1000):
            pass


def a_capture(home: Path, clock: FrozenClock, body: bytes, limits: Limits) -> Pravda:
    return Pravda(
        engine=ScriptedEngine(page(body), clock=clock),
        archive=LocalArchive.open(home, limits),
        clock=clock,
        new_id=new_id,
    )


def test_a_refused_capture_falls_back(tmp_path):
    """Beyond the limit an attempt is stored as storage_error through our own fault, and an earlier page stands in."""
    clock, url = FrozenClock(), "https://example.org/"

    async def run() -> None:
        async with a_capture(tmp_path, clock, PAGE, Limits()) as pravda:
            first = (await pravda.capture(url)).snapshot
        clock.advance(hours=1)
        async with a_capture(tmp_path, clock, noise(500_000), Limits(most=200_000)) as pravda:
            answer = await pravda.capture(url, max_stale_age="1d", stale_if="gone")
            assert answer.result is Result.STALE
            assert answer.snapshot == first
            assert answer.attempt
            failure = answer.attempt.verdict.failure
            assert failure
            assert (failure.cause, failure.reason) == (Cause.STORAGE_ERROR, Reason.DISK_FULL)
            assert "PRAVDA_MAX_BYTES" in failure.detail
            assert await pravda.history(Query(limit=1)) == (answer.attempt,)

    asyncio.run(run())


def test_rows_and_large_heads_use_the_reserve(tmp_path):
    """The row that tells of the full disk is kept with its heads, however large, in what stays free for it."""
    snapshot, contents = a_snapshot(state=State.DOWN, heads={"response": noise(50_000)})
    assert snapshot.verdict.failure
    failed = snapshot.judged(_storage_failure(snapshot))

    async def run(archive: LocalArchive) -> None:
        await archive.keep(failed, contents)
        assert await archive.read(failed, "response")

    using(tmp_path, Limits(most=1), run)


def _storage_failure(snapshot: Snapshot) -> Verdict:
    assert snapshot.verdict.failure
    failure = replace(snapshot.verdict.failure, cause=Cause.STORAGE_ERROR, reason=Reason.DISK_FULL)
    return replace(snapshot.verdict, failure=failure)


def test_a_small_disk_never_gets_full(tmp_path):
    """On a small disk captures end as disk_full while there is still room for their rows; only then nothing is kept."""
    with small_disk(tmp_path, megabytes=8) as home:
        clock = FrozenClock()

        async def run() -> None:
            async with a_capture(home, clock, PAGE, Limits()) as pravda:
                first = (await pravda.capture("https://example.org/")).snapshot
                assert first
            async with a_capture(home, clock, noise(300_000), Limits()) as pravda:
                ballast = fill(home, spare=600_000)
                answer = await pravda.capture("https://example.org/", max_stale_age="1d")
                assert answer.result is Result.STALE
                assert answer.attempt
                assert answer.attempt.verdict.failure
                assert "PRAVDA_MIN_FREE_BYTES" in answer.attempt.verdict.failure.detail
                ballast.unlink()
                fill(home)
                with pytest.raises(ArchiveUnavailable) as trouble:  # noqa: PT012  # some rows may fit into the log
                    for _ in range(200):
                        await pravda.capture("https://example.org/", max_stale_age="1d")
                assert trouble.value.newest_usable
                assert trouble.value.newest_usable.id == first.id

        asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "most"),
    [("20GB", 20_000_000_000), ("1.5 GiB", 1_610_612_736), ("0", 0), ("", 0), ("12345", 12345)],
)
def test_sizes_as_people_write_them(monkeypatch, text, most):
    """Limits are bytes, or numbers with a unit."""
    monkeypatch.setenv("PRAVDA_MAX_BYTES", text)
    monkeypatch.setenv("PRAVDA_MIN_FREE_BYTES", text)
    assert load().max_bytes == most
    assert load().min_free_bytes == (most if text else None)


@pytest.mark.parametrize("text", ["much", "-1", "20 XB"])
def test_sizes_that_are_none(monkeypatch, text):
    """What is no size is refused by the setting's name."""
    monkeypatch.setenv("PRAVDA_MAX_BYTES", text)
    with pytest.raises(BadRequest, match="PRAVDA_MAX_BYTES"):
        load()


def test_the_settings_reach_the_archive(tmp_path, monkeypatch):
    """The limits hold for the command line and the library alike; the exit code is that of our own fault."""
    monkeypatch.setenv("PRAVDA_MAX_BYTES", "100")
    with Origin() as origin:
        origin.routes["/page"] = [R(b"200 OK", BODY, HT)]
        result = CliRunner().invoke(cli, ["capture", "--json", origin.url("/page"), "--home", str(tmp_path)])
        assert result.exit_code == Exit.LOCAL_FAULT
        assert json.loads(result.stdout)["attempt"]["failure"]["reason"] == "disk_full"
        with open_blocking(home=tmp_path, allow_addresses="127.0.0.1") as pravda:
            answer = pravda.capture(origin.url("/page"), on_failure="return")
        assert answer.attempt
        assert answer.attempt.state is State.PARTIAL
