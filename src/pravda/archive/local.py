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
from pravda.archive.catalog import Reader, log_bytes, log_of, open_writer, set_stored
from pravda.archive.keep import ALWAYS_FILES, Job, Keeper
from pravda.archive.quota import Limits, Quota
from pravda.archive.trouble import is_locked, may_be_full
from pravda.core.digest import sha256
from pravda.core.evidence import Artifact
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents, Query
from pravda.errors import ArchiveUnavailable, Damaged, NotFound

CATALOG = "catalog.sqlite3"

NEAR_ROWS = 20
NEAR_BYTES = 64 * 1024
"""Up to this much is read on the caller's own thread, since handing over to another one takes longer than reading."""

_NEAR_PATIENCE = 0.02  # seconds that such a read waits for a lock before it moves to a thread after all

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LocalArchive:
    """An archive in one folder; any number of threads and processes may have it open."""

    def __init__(
        self,
        home: Path,
        blobs: Blobs,
        readers: tuple[Reader, Reader],
        keeper: Keeper | None,
        refusal: str = "",
    ) -> None:
        """Use `open`; the second reader is for the caller's thread; no keeper: why nothing is kept says `refusal`."""
        self.home = home
        self.secret = readers[0].secret()
        self._blobs = blobs
        self._reader, self._near = readers
        self._keeper, self._refusal = keeper, refusal
        # rows apart from bytes, so that no look-up waits behind a large body
        self._row_threads = ThreadPoolExecutor(2, "pravda-rows")
        self._byte_threads = ThreadPoolExecutor(4, "pravda-bytes")
        self._forgotten = weakref.finalize(self, _let_go, readers, keeper.queue if keeper else None)

    @classmethod
    def open(cls, home: Path, limits: Limits | None = None) -> "LocalArchive":
        """Open the archive in a folder, made and brought up to date as needed; raises ArchiveUnavailable."""
        try:
            if _is_read_only(home):
                return cls._open_for_reading(home, "is read-only here")
            return cls._open_for_writing(home, limits or Limits())
        except ArchiveUnavailable as problem:
            refused = problem
        except OSError as problem:
            refused = _unusable(problem, home)
        if may_be_full(refused):
            with suppress(OSError, ArchiveUnavailable):
                return cls._open_for_reading(home, "was opened on a disk that is full or fails")
        raise refused

    @classmethod
    def _open_for_writing(cls, home: Path, limits: Limits) -> "LocalArchive":
        catalog = home / CATALOG
        make_folder(home)
        connection = open_writer(catalog)
        reader, near = Reader(catalog), Reader(catalog, patience=_NEAR_PATIENCE)
        quota = Quota(home, limits, lambda: reader.stored() or 0, (catalog, log_of(catalog)))
        blobs = Blobs(home, quota)
        try:
            blobs.prepare()
            reader.secret()
            if reader.stored() is None:
                set_stored(connection, blobs.measure())  # of a catalog that is older than the count
        except BaseException:
            reader.close()
            connection.close()
            raise
        return cls(home, blobs, (reader, near), Keeper(blobs, connection, catalog, quota))

    @classmethod
    def _open_for_reading(cls, home: Path, why: str) -> "LocalArchive":
        catalog = home / CATALOG
        if log_bytes(catalog):
            raise ArchiveUnavailable(
                f"The archive {home} {why} and its write-ahead log {log_of(catalog).name} holds rows that are not in "
                "the catalog yet: open it once where it may be written, or copy the folder to such a place."
            )
        readers = (Reader(catalog, immutable=True), Reader(catalog, immutable=True))
        try:
            readers[0].refuse_older()
            return cls(home, Blobs(home), readers, None, why)
        except BaseException:
            readers[0].close()
            raise

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        """Store bytes, then the row; when this returns both are durable. Raises StorageTrouble or ArchiveUnavailable."""
        if self._keeper is None:
            raise ArchiveUnavailable(
                f"The archive {self.home} {self._refusal}: it can be read, but takes no snapshot."
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
        return await self._look(self._row_threads, lambda reader: reader.get(snapshot_id), near=True)

    async def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first by (captured_at, id)."""
        near = query.limit <= NEAR_ROWS
        return await self._look(self._row_threads, lambda reader: reader.find(query), near=near)

    async def read(self, snapshot: Snapshot, name: str, limit: int | None = None) -> bytes | None:
        """An artifact's bytes, all of them checked against their hash; None: there is none. Raises Damaged."""
        artifact = _artifact(snapshot, name)
        if artifact is None:
            return None

        def read(reader: Reader) -> bytes:
            return _first(
                self._pieces(reader, snapshot, artifact), artifact.bytes if limit is None else limit
            )

        return await self._look(self._byte_threads, read, near=artifact.bytes <= NEAR_BYTES)

    def stream(self, snapshot: Snapshot, name: str) -> Iterator[bytes] | None:
        """An artifact in pieces, the first only after all were checked; blocks. None: there is none. Raises Damaged."""
        artifact = _artifact(snapshot, name)
        if artifact is None:
            return None
        self._refuse_closed()
        for _ in self._pieces(self._reader, snapshot, artifact):
            pass
        return self._pieces(self._reader, snapshot, artifact)

    async def close(self) -> None:
        """Keep what is waiting, then let go of everything; safe to call twice."""
        if self._forgotten.detach() is not None:
            await asyncio.to_thread(self._end)

    def _end(self) -> None:
        # staging ends first, so that the writer's queue gets no more; readers next, so that the log can be emptied
        self._byte_threads.shutdown()
        self._row_threads.shutdown()
        self._reader.close()
        self._near.close()
        if self._keeper is not None:
            self._keeper.close()

    async def _look(self, threads: ThreadPoolExecutor, look: Callable[[Reader], _T], *, near: bool) -> _T:
        """Look on this thread where that is quicker than handing over; readers of the log wait for no writer."""
        self._refuse_closed()
        if near:
            try:
                return look(self._near)
            except ArchiveUnavailable as problem:
                if not is_locked(problem.__cause__):
                    raise
        return await asyncio.wrap_future(self._submit(threads, look, self._reader))

    def _refuse_closed(self) -> None:
        if not self._forgotten.alive:
            raise ArchiveUnavailable(f"The archive {self.home} is closed.")

    def _submit(
        self, threads: ThreadPoolExecutor, act: Callable[_P, _T], *args: _P.args, **names: _P.kwargs
    ) -> Future[_T]:
        try:
            return threads.submit(act, *args, **names)
        except RuntimeError as problem:
            raise ArchiveUnavailable(f"The archive {self.home} is closed.") from problem

    def _pieces(self, reader: Reader, snapshot: Snapshot, artifact: Artifact) -> Iterator[bytes]:
        try:
            always_file = artifact.name in ALWAYS_FILES
            inline = None if always_file else reader.inline(snapshot.id, artifact.name)
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


def catalog_in(home: Path) -> Path:
    """The catalog of an archive that is there; raises NotFound where there is none, ArchiveUnavailable."""
    catalog = home / CATALOG
    try:
        catalog.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no archive in {home}") from None
    except OSError as problem:
        raise _unusable(problem, home) from problem
    return catalog


def _is_read_only(home: Path) -> bool:
    catalog = home / CATALOG
    return catalog.exists() and not (os.access(home, os.W_OK | os.X_OK) and os.access(catalog, os.W_OK))


def _artifact(snapshot: Snapshot, name: str) -> Artifact | None:
    return next((artifact for artifact in snapshot.evidence.artifacts if artifact.name == name), None)


def _first(pieces: Iterator[bytes], wanted: int) -> bytes:
    """The first bytes of something that is read to its end, since only the whole can be held against its hash."""
    parts: list[bytes] = []
    for piece in pieces:
        if wanted > 0:
            parts.append(piece[:wanted])
            wanted -= len(piece)
    return b"".join(parts)


def _unusable(problem: OSError, home: Path) -> ArchiveUnavailable:
    refused = ArchiveUnavailable(
        f"The archive's folder {home} cannot be used: {problem.strerror or problem}. "
        "Give this user write access to it, or set PRAVDA_HOME to another folder."
    )
    refused.__cause__ = problem
    return refused


def _settle(done: "asyncio.Future[None]", problem: Exception | None) -> None:
    if done.done():
        return  # the waiter was cancelled; what was kept stays kept
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)


def _let_go(readers: tuple[Reader, Reader], queue: "SimpleQueue[Job | None] | None") -> None:
    """What a forgotten `close` still gets; nothing that waits, since this may run anywhere."""
    if queue is not None:
        queue.put(None)
    for reader in readers:
        reader.close()
