"""A process that keeps snapshots and says what it was told is kept; it may be made to do so in a wrong order."""

import asyncio
import os
import stat
import sys
from pathlib import Path

from pravda.archive import blobs, catalog, connections, keep
from pravda.archive.blobs import Blobs
from pravda.archive.keep import Keeper
from pravda.archive.local import LocalArchive
from tests.factories import a_snapshot


async def _one(archive: LocalArchive, number: int) -> None:
    snapshot, contents = a_snapshot(body=os.urandom(2000) + b"%d" % number)
    await archive.keep(snapshot, contents)
    os.write(1, f"{snapshot.id} {snapshot.evidence.artifacts[0].sha256}\n".encode())


async def _one_by_one(archive: LocalArchive) -> None:
    for number in range(3):
        await _one(archive, number)


async def _together(archive: LocalArchive) -> None:
    for _ in range(2):
        await asyncio.gather(*(_one(archive, number) for number in range(6)))


async def _without_end(archive: LocalArchive) -> None:
    async def go_on() -> None:
        while True:
            await _one(archive, 0)

    await asyncio.gather(*(go_on() for _ in range(16)))


_LOADS = {"single": _one_by_one, "grouped": _together, "endless": _without_end}

_sync, _rename, _make_durable, _insert = blobs.sync, Blobs._rename, connections.make_durable, Keeper._insert


def _is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def _no_sync_of_files(descriptor):
    if _is_folder(descriptor):
        _sync(descriptor)


def _no_sync_of_folders(descriptor):
    if not _is_folder(descriptor):
        _sync(descriptor)


def _no_sync_of_new_folders(descriptor):
    if not os.readlink(f"/proc/self/fd/{descriptor}").endswith("/blobs"):
        _sync(descriptor)


def _rename_and_sync(self, staged):
    _rename(self, staged)
    os.fsync(staged.descriptor)


def _not_durable(connection):
    _make_durable(connection)
    connection.execute("PRAGMA synchronous = OFF")


def _answer_first(self, jobs, stored=0):
    for job in jobs:
        job.answer(None)
    _insert(self, jobs, stored)


def _row_first(self, jobs):
    self._insert(jobs)
    self._blobs.publish([staged for job in jobs for staged in job.blobs])


def _break(what: str) -> None:
    """Leave out or move one step; what is broken here is what the trace must notice."""
    match what:
        case "sync of the file":
            blobs.sync = _no_sync_of_files
        case "sync of the folder":
            blobs.sync = _no_sync_of_folders
        case "sync of a new folder":
            blobs.sync = _no_sync_of_new_folders
        case "sync before rename":
            blobs.sync = _no_sync_of_files
            Blobs._rename = _rename_and_sync  # type: ignore[method-assign]  # the point of it
        case "sync of the commit":
            catalog.make_durable = _not_durable  # type: ignore[attr-defined]  # where it is used
        case "commit before acknowledgement":
            Keeper._insert = _answer_first  # type: ignore[method-assign]  # the point of it
        case "bytes before row":
            Keeper._keep = _row_first  # type: ignore[method-assign]  # the point of it
        case _:
            assert what == "nothing"


async def _main(home: Path, load: str) -> None:
    archive = LocalArchive.open(home)
    await _LOADS[load](archive)
    await archive.close()


if __name__ == "__main__":
    keep.MOST_AT_ONCE = 6
    _break(sys.argv[3])
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2]))
