"""The embedded archive: a SQLite catalog and a folder of blobs."""

import asyncio
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from pravda.archive.blobs import Blobs, Harm, Harmed, make_folder
from pravda.archive.catalog import Reader, open_writer
from pravda.archive.keep import Job, Keeper
from pravda.core.digest import sha256
from pravda.core.evidence import Artifact
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents, Query
from pravda.errors import ArchiveUnavailable, Damaged

CATALOG = "catalog.sqlite3"

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LocalArchive:
    """An archive in one folder; any number of threads and processes may have it open."""

    def __init__(self, home: Path, blobs: Blobs, reader: Reader, keeper: Keeper | None) -> None:
        """Use `open`; no keeper: the folder cannot be written."""
        self.home = home
        self.secret = reader.secret()
        self._blobs = blobs
        self._reader = reader
        self._keeper = keeper
        # rows apart from bytes, so that no look-up waits behind a large body
        self._row_threads = ThreadPoolExecutor(2, "pravda-rows")
        self._byte_threads = ThreadPoolExecutor(4, "pravda-bytes")
        self._forgotten = weakref.finalize(self, _let_go, reader, keeper.queue if keeper else None)

    @classmethod
    def open(cls, home: Path) -> "LocalArchive":
        """Open the archive in a folder, made and brought up to date as needed; raises ArchiveUnavailable."""
        try:
            return cls._open_read_only(home) if _is_read_only(home) else cls._open_for_writing(home)
        except OSError as problem:
            raise ArchiveUnavailable(
                f"The archive's folder {home} cannot be used: {problem.strerror or problem}. "
                "Give this user write access to it, or set PRAVDA_HOME to another folder."
            ) from problem

    @classmethod
    def _open_for_writing(cls, home: Path) -> "LocalArchive":
        catalog, blobs = home / CATALOG, Blobs(home)
        make_folder(home)
        connection = open_writer(catalog)
        reader = Reader(catalog)
        try:
            blobs.prepare()
            reader.secret()
        except BaseException:
            reader.close()
            connection.close()
            raise
        return cls(home, blobs, reader, Keeper(blobs, connection, catalog))

    @classmethod
    def _open_read_only(cls, home: Path) -> "LocalArchive":
        catalog, log = home / CATALOG, home / f"{CATALOG}-wal"
        if log.exists() and log.stat().st_size:
            raise ArchiveUnavailable(
                f"The archive {home} is read-only and its write-ahead log {log.name} holds rows that are not in the "
                "catalog yet: open it once where it may be written, or copy the folder to such a place."
            )
        reader = Reader(catalog, immutable=True)
        try:
            reader.refuse_older()
            return cls(home, Blobs(home), reader, None)
        except BaseException:
            reader.close()
            raise

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        """Store bytes, then the row; when this returns both are durable. Raises StorageTrouble or ArchiveUnavailable."""
        if self._keeper is None:
            raise ArchiveUnavailable(
                f"The archive {self.home} is read-only here: it can be read, but takes no snapshot."
            )
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def answer(problem: Exception | None) -> None:
            # a closed loop raises RuntimeError: nobody waits there any more
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, done, problem)

        self._submit(self._byte_threads, self._keeper.stage, snapshot, contents, answer)
        await done

    async def get(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot by id."""
        return await asyncio.wrap_future(self._submit(self._row_threads, self._reader.get, snapshot_id))

    async def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first by (captured_at, id)."""
        return await asyncio.wrap_future(self._submit(self._row_threads, self._reader.find, query))

    async def read(self, snapshot: Snapshot, name: str, limit: int | None = None) -> bytes | None:
        """An artifact's bytes, all of them checked against their hash; None: there is none. Raises Damaged."""
        artifact = _artifact(snapshot, name)
        if artifact is None:
            return None
        return await asyncio.wrap_future(
            self._submit(self._byte_threads, self._read, snapshot, artifact, limit)
        )

    def stream(self, snapshot: Snapshot, name: str) -> Iterator[bytes] | None:
        """An artifact in pieces, the first only after all were checked; blocks. None: there is none. Raises Damaged."""
        artifact = _artifact(snapshot, name)
        if artifact is None:
            return None
        for _ in self._pieces(snapshot, artifact):
            pass
        return self._pieces(snapshot, artifact)

    async def close(self) -> None:
        """Keep what is waiting, then let go of everything; safe to call twice."""
        if self._forgotten.detach() is not None:
            await asyncio.to_thread(self._end)

    def _end(self) -> None:
        # staging ends first, so that the writer's queue gets no more; readers next, so that the log can be emptied
        self._byte_threads.shutdown()
        self._row_threads.shutdown()
        self._reader.close()
        if self._keeper is not None:
            self._keeper.close()

    def _submit(
        self, threads: ThreadPoolExecutor, act: Callable[_P, _T], *args: _P.args, **names: _P.kwargs
    ) -> Future[_T]:
        try:
            return threads.submit(act, *args, **names)
        except RuntimeError as problem:
            raise ArchiveUnavailable(f"The archive {self.home} is closed.") from problem

    def _read(self, snapshot: Snapshot, artifact: Artifact, limit: int | None) -> bytes:
        wanted = artifact.bytes if limit is None else max(0, limit)
        parts: list[bytes] = []
        # to the end even when less is wanted: only the whole can be held against its hash
        for piece in self._pieces(snapshot, artifact):
            if wanted > 0:
                parts.append(piece[:wanted])
                wanted -= len(piece)
        return b"".join(parts)

    def _pieces(self, snapshot: Snapshot, artifact: Artifact) -> Iterator[bytes]:
        try:
            inline = self._reader.inline(snapshot.id, artifact.name)
            if inline is None:
                yield from self._blobs.pieces(artifact.sha256, artifact.bytes)
            elif sha256(inline) != artifact.sha256:
                raise Harmed(Harm.CHANGED, "its bytes in the catalog no longer have their SHA-256")
            else:
                yield inline
        except Harmed as problem:
            raise Damaged(
                f"The artifact {artifact.name} of snapshot {snapshot.id} is {problem}. "
                "It is not handed out; run `pravda verify` for the whole extent."
            ) from problem


def _is_read_only(home: Path) -> bool:
    catalog = home / CATALOG
    return catalog.exists() and not (os.access(home, os.W_OK | os.X_OK) and os.access(catalog, os.W_OK))


def _artifact(snapshot: Snapshot, name: str) -> Artifact | None:
    return next((artifact for artifact in snapshot.evidence.artifacts if artifact.name == name), None)


def _settle(done: "asyncio.Future[None]", problem: Exception | None) -> None:
    if done.done():
        return  # the waiter was cancelled; what was kept stays kept
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)


def _let_go(reader: Reader, queue: "SimpleQueue[Job | None] | None") -> None:
    """What a forgotten `close` still gets; nothing that waits, since this may run anywhere."""
    if queue is not None:
        queue.put(None)
    reader.close()
