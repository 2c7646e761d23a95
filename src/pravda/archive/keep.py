"""Keeping: bytes first, row second, then the acknowledgement; whatever waits shares one round of syncs."""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from pravda.archive.blobs import Blobs, Staged
from pravda.archive.catalog import insert
from pravda.archive.quota import Quota
from pravda.archive.rows import Row, row_of
from pravda.archive.trouble import is_locked, storage_trouble, unavailable
from pravda.core.digest import sha256
from pravda.core.evidence import Artifact
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents
from pravda.core.states import Cause

INLINE_BYTES = 16 * 1024
"""Up to this size a protocol head lives in the catalog, which saves a durable file of its own."""
ALWAYS_FILES = frozenset({"body", "payload"})
MOST_AT_ONCE = 256
"""Keeps that share one transaction at most."""

Answer = Callable[[Exception | None], None]
"""Told once how a keep ended; None: it is durable."""


def is_inline(artifact: Artifact) -> bool:
    """Whether an artifact's bytes live in its catalog row instead of a blob."""
    return artifact.name not in ALWAYS_FILES and artifact.bytes <= INLINE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One keep whose bytes are written aside."""

    row: Row
    blobs: tuple[Staged, ...]
    answer: Answer


class Keeper:
    """The one writer of an archive: `stage` in any thread, everything after it in the writer's own."""

    def __init__(self, blobs: Blobs, connection: sqlite3.Connection, catalog: Path, quota: Quota) -> None:
        self.queue: SimpleQueue[Job | None] = SimpleQueue()
        """Jobs in their order; None ends the thread."""
        self._blobs = blobs
        self._connection = connection
        self._catalog = catalog
        self._quota = quota
        # a daemon, so that a forgotten `close` cannot keep the program from ending
        self._thread = threading.Thread(target=self._run, name="pravda-keep", daemon=True)
        self._thread.start()

    def stage(self, snapshot: Snapshot, contents: Mapping[str, Contents], answer: Answer) -> None:
        """Write bytes aside, then hand over to the writer."""
        blobs: list[Staged] = []
        inline: dict[str, bytes] = {}
        reserve = _tells_of_storage(snapshot)
        try:
            _refuse_misfit(snapshot, contents)
            for artifact in snapshot.evidence.artifacts:
                part = contents[artifact.name]
                if is_inline(artifact):
                    inline[artifact.name] = _small(artifact, part)
                else:
                    blobs.append(self._blobs.stage(part, artifact.sha256, artifact.bytes, reserve=reserve))
            row = row_of(snapshot, inline)
        except Exception as problem:  # whatever it is, the one who waits must hear of it
            for staged in blobs:
                staged.discard()
            self._quota.settle(_taken(blobs))
            answer(storage_trouble(problem, self._blobs.folder) if isinstance(problem, OSError) else problem)
        else:
            self.queue.put(Job(row=row, blobs=tuple(blobs), answer=self._counting(blobs, answer)))

    def _counting(self, blobs: Sequence[Staged], answer: Answer) -> Answer:
        def answered(problem: Exception | None) -> None:
            self._quota.settle(_taken(blobs))
            answer(problem)

        return answered

    def close(self) -> None:
        """Write what is waiting, then end the thread and its connection."""
        self.queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            jobs, going = self._next()
            try:
                self._keep(jobs)
            except Exception as problem:  # the rim of the thread: it must live, and nobody may wait for ever
                for job in jobs:
                    job.answer(problem)
        with suppress(sqlite3.Error):
            # what cannot be moved now stays in the log, and is read from there
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _next(self) -> tuple[list[Job], bool]:
        """Whatever waits, at least one job; False: nothing may follow."""
        jobs: list[Job] = []
        job = self.queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == MOST_AT_ONCE:
                return jobs, True
            try:
                job = self.queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _keep(self, jobs: Sequence[Job]) -> None:
        published = self._blobs.publish([staged for job in jobs for staged in job.blobs])
        failed = published.failed
        whole: list[Job] = []
        for job in jobs:
            problem = next((failed[staged.sha256] for staged in job.blobs if staged.sha256 in failed), None)
            if problem is None:
                whole.append(job)
            else:
                job.answer(storage_trouble(problem, self._blobs.folder))
        if whole:
            self._insert(whole, published.stored)

    def _insert(self, jobs: Sequence[Job], stored: int = 0) -> None:
        try:
            known, total = insert(self._connection, [job.row for job in jobs], stored)
        except Exception as problem:  # one row may be what cannot be stored; it must not sink its neighbours
            if len(jobs) > 1 and not is_locked(problem):
                for number, job in enumerate(jobs):
                    self._insert([job], 0 if number else stored)
                return
            for job in jobs:
                job.answer(
                    unavailable(problem, self._catalog) if isinstance(problem, sqlite3.Error) else problem
                )
            return
        self._quota.counted(total)
        for job in jobs:
            name = job.row.snapshot["id"]
            job.answer(ValueError(f"snapshot {name} is kept already") if name in known else None)


def _taken(blobs: Sequence[Staged]) -> int:
    return sum(staged.stored for staged in blobs)


def _tells_of_storage(snapshot: Snapshot) -> bool:
    """Whether this is the row that says why an attempt's bytes could not be kept: it may use the last room."""
    failure = snapshot.verdict.failure
    return failure is not None and failure.cause is Cause.STORAGE_ERROR


def _refuse_misfit(snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
    names = [artifact.name for artifact in snapshot.evidence.artifacts]
    if len(names) != len(set(names)) or set(names) != contents.keys():
        raise ValueError(f"the artifacts {sorted(names)} do not match the contents {sorted(contents)}")


def _small(artifact: Artifact, contents: Contents) -> bytes:
    data = contents.read(INLINE_BYTES + 1)
    if len(data) != artifact.bytes or sha256(data) != artifact.sha256:
        raise ValueError(
            f"contents of {artifact.name} are not the {artifact.bytes} bytes of {artifact.sha256}"
        )
    return data
