"""Whether everything that was kept is still there and unchanged; what nobody needs is told too."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pravda.archive.blobs import YOUNG_SECONDS, Blobs, Harm, Harmed, files_in
from pravda.archive.catalog import Reader, open_reader, open_writer, set_stored
from pravda.archive.findings import Finding, What
from pravda.archive.local import CATALOG, catalog_in
from pravda.archive.quarantine import Quarantine
from pravda.archive.rows import Cell, row_of, snapshot_of
from pravda.archive.statements import named
from pravda.core.digest import sha256
from pravda.core.outcome import Snapshot
from pravda.errors import ArchiveUnavailable, Damaged

_SQL = named("verify.sql")
_ROWS = 64  # looked at together
_BLOBS = 256
_THREADS = 4  # unpacking and hashing go on beside each other
_STRAYS = 100
_COLUMNS = (
    "id", "page", "identity", "key", "url", "state", "reason", "cause", "captured_at",
    "capture_id", "content_sha256", "content_from", "row_hash", "document",
)  # fmt: skip


@dataclass(slots=True)
class Counts:
    """How far a look through an archive has come."""

    rows: int = 0
    blobs: int = 0
    bytes: int = 0
    """Of the content of those blobs."""
    damaged: int = 0
    orphans: int = 0
    """Files that nobody needs, leftovers among them."""
    orphan_bytes: int = 0
    """On the disk."""
    moved: int = 0
    """Files put into quarantine."""
    all_rows: int = 0
    """How many there are to look at, known from the start."""
    all_blobs: int = 0


def verify(
    home: Path, *, repair: bool = False, counts: Counts | None = None, tick: Callable[[], None] = lambda: None
) -> Iterator[Finding]:
    """Look at every row and every blob; captures may run meanwhile.

    A repair moves changed and orphaned files into quarantine. `tick` is called whenever `counts` have moved.
    Raises NotFound where there is no archive, ArchiveUnavailable when its catalog cannot be read at all.
    """
    catalog = catalog_in(home)
    reader = open_reader(catalog)
    try:
        work = _Work(
            home, reader, counts or Counts(), Quarantine(home, datetime.now(UTC)) if repair else None
        )
        for finding in work.findings(tick):
            yield work.counted(finding)
    finally:
        reader.close()
    if repair:
        _recount(catalog, Blobs(home))


class _Work:
    def __init__(self, home: Path, reader: Reader, counts: Counts, quarantine: Quarantine | None) -> None:
        self._home, self._reader, self._counts, self._quarantine = home, reader, counts, quarantine
        self._blobs = Blobs(home)
        self._sound = True
        self._old = time.time() - YOUNG_SECONDS

    def findings(self, tick: Callable[[], None]) -> Iterator[Finding]:
        try:
            ((self._counts.all_rows, self._counts.all_blobs),) = self._ask("counts")
            tick()
            yield from self._structure()
            yield from self._rows(tick)
            with ThreadPoolExecutor(_THREADS, "pravda-verify") as threads:
                yield from self._named_blobs(threads, tick)
        except ArchiveUnavailable as problem:
            yield Finding(what=What.CATALOG, name=CATALOG, harm=Harm.UNREADABLE, detail=str(problem))
            return  # which blobs are named is not known, so that none may be called an orphan
        yield from self._leftovers()

    def counted(self, finding: Finding) -> Finding:
        self._counts.damaged += finding.is_damage
        self._counts.orphans += not finding.is_damage
        self._counts.moved += finding.moved_to is not None
        return finding

    def _ask(self, statement: str, **parameters: Cell) -> list[tuple[Any, ...]]:
        return self._reader.rows(_SQL[statement], parameters)

    # the catalog

    def _structure(self) -> Iterator[Finding]:
        for (said,) in self._ask("structure"):
            if said != "ok":
                self._sound = False
                yield Finding(
                    what=What.CATALOG, name=CATALOG, harm=Harm.CHANGED, detail=f"SQLite says: {said}"
                )
        for snapshot_id, name in self._ask("strays", limit=_STRAYS):
            detail = f"The row of its artifact {name} is there, its own is not."
            yield Finding(what=What.ROW, name=snapshot_id, harm=Harm.MISSING, detail=detail)

    def _rows(self, tick: Callable[[], None]) -> Iterator[Finding]:
        after = -(2**63)
        while rows := self._ask("rows", after=after, limit=_ROWS):
            for number, *cells in rows:
                yield from self._row(dict(zip(_COLUMNS, cells, strict=True)))
                after = number
            self._counts.rows += len(rows)
            tick()

    def _row(self, cells: Mapping[str, Any]) -> Iterator[Finding]:
        name = cells["id"]
        artifacts = self._ask("artifacts", id=name)
        try:
            snapshot = snapshot_of(name, cells["captured_at"], cells["row_hash"], cells["document"])
        except Damaged as problem:
            harm = Harm.UNREADABLE if "unreadable" in str(problem) else Harm.CHANGED
            yield Finding(what=What.ROW, name=name, harm=harm, detail=str(problem))
        else:
            yield from self._contradictions(snapshot, cells, artifacts)
            yield from self._pointer(snapshot, cells)
        for label, hashed, _, _, _, inline in artifacts:
            if inline is not None and sha256(inline) != hashed:
                detail = f"The bytes of {label} in the catalog no longer have their SHA-256."
                yield Finding(what=What.HEAD, name=name, harm=Harm.CHANGED, detail=detail)

    def _contradictions(
        self, snapshot: Snapshot, cells: Mapping[str, Any], artifacts: Iterable[tuple[Any, ...]]
    ) -> Iterator[Finding]:
        right = row_of(snapshot, {})
        wrong = [label for label in _COLUMNS[:-2] if right.snapshot[label] != cells[label]]
        if wrong:
            detail = f"The columns {', '.join(wrong)} no longer say what the row's facts say."
            yield Finding(what=What.ROW, name=snapshot.id, harm=Harm.CHANGED, detail=detail)
        kept = {tuple(row[:-1]) for row in artifacts}
        known = {
            tuple(row[label] for label in ("name", "sha256", "bytes", "media_type", "redacted"))
            for row in right.artifacts
        }
        if lost := {str(row[0]) for row in known} - {str(row[0]) for row in kept}:
            detail = f"The rows of its artifacts {', '.join(sorted(lost))} are gone."
            yield Finding(what=What.ROW, name=snapshot.id, harm=Harm.MISSING, detail=detail)
        elif kept != known:
            detail = "The rows of its artifacts no longer say what its facts say."
            yield Finding(what=What.ROW, name=snapshot.id, harm=Harm.CHANGED, detail=detail)

    def _pointer(self, snapshot: Snapshot, cells: Mapping[str, Any]) -> Iterator[Finding]:
        """A 304 must lead to the snapshot that holds its bytes, in one step."""
        if snapshot.content_from is None:
            return
        holder = self._ask("holder", id=cells["content_from"])
        if not holder:
            harm, detail = Harm.MISSING, f"The snapshot {snapshot.content_from} that holds its bytes is gone."
        elif holder[0][0] is not None:
            harm, detail = Harm.CHANGED, f"It points at {snapshot.content_from}, which holds no bytes itself."
        elif holder[0][1] != cells["content_sha256"]:
            harm, detail = Harm.CHANGED, f"It points at {snapshot.content_from}, which holds other bytes."
        else:
            return
        yield Finding(what=What.ROW, name=snapshot.id, harm=harm, detail=detail)

    # the blobs

    def _named_blobs(self, threads: ThreadPoolExecutor, tick: Callable[[], None]) -> Iterator[Finding]:
        """Folder by folder, so that what is there is compared with what is named in little memory."""
        start = ""
        for folder in [*self._blobs.folders(), None]:
            there = dict(files_in(folder)) if folder else {}
            end = (
                f"{folder.name}g" if folder else "\U0010ffff"
            )  # behind every hash that begins with that name
            yield from self._range(threads, tick, start, end, there)
            start = max(start, end)
            yield from self._orphans(there)
        yield from self._orphans(dict(files_in(self._blobs.folder)))

    def _range(
        self,
        threads: ThreadPoolExecutor,
        tick: Callable[[], None],
        start: str,
        end: str,
        there: dict[Path, os.stat_result],
    ) -> Iterator[Finding]:
        after, size = start, 2**62
        while rows := self._ask("blobs", after=after, size=size, end=end, limit=_BLOBS):
            after, size = rows[-1][:2]
            problems = threads.map(lambda row: _problem(self._blobs, row[0], row[1]), rows)
            for (hashed, length, snapshot, count), problem in zip(rows, problems, strict=True):
                self._counts.blobs += 1
                self._counts.bytes += length
                with suppress(Harmed):
                    there.pop(self._blobs.path(hashed), None)
                if problem is not None:
                    yield self._harmed(hashed, length, problem, snapshot, count)
            tick()

    def _harmed(self, hashed: str, size: int, problem: Harmed, snapshot: str, count: int) -> Finding:
        others = f" and {count - 1} more" if count > 1 else ""
        finding = Finding(
            what=What.BLOB,
            name=hashed,
            harm=problem.harm,
            snapshot=snapshot,
            detail=f"The bytes of snapshot {snapshot}{others} are {problem}.",
        )
        if problem.harm is not Harm.CHANGED or self._quarantine is None:
            return finding  # what cannot be read may be as it was: rights or the disk are to be mended, not the file
        with suppress(Harmed):
            path = self._blobs.path(hashed)
            return self._moved(
                finding, path, lambda moved: _problem(self._blobs, hashed, size, moved) is None
            )
        return finding

    def _orphans(self, files: Mapping[Path, os.stat_result]) -> Iterator[Finding]:
        if not self._sound:
            return  # what a damaged catalog does not name may be needed all the same
        for path, about in files.items():
            if about.st_mtime > self._old or self._is_named(path):
                continue
            self._counts.orphan_bytes += about.st_size
            finding = Finding(
                what=What.ORPHAN, name=str(path.relative_to(self._home)), detail="No row names this file."
            )
            yield self._moved(finding, path, partial(self._is_needed, path))

    def _is_needed(self, path: Path, moved: Path) -> bool:
        return moved.stat().st_mtime > self._old or self._is_named(path)

    def _is_named(self, path: Path) -> bool:
        hashed = path.name.removesuffix(".zst")
        try:
            return self._blobs.path(hashed) == path and bool(self._ask("named", sha256=hashed))
        except Harmed:
            return False

    def _leftovers(self) -> Iterator[Finding]:
        for path, about in files_in(self._blobs.aside):
            if about.st_mtime <= self._old and _is_forgotten(path):
                self._counts.orphan_bytes += about.st_size
                finding = Finding(
                    what=What.LEFTOVER,
                    name=str(path.relative_to(self._home)),
                    detail="A process that died left it half written.",
                )
                yield self._moved(finding, path, lambda _: False)

    def _moved(self, finding: Finding, path: Path, unless: Callable[[Path], bool]) -> Finding:
        if self._quarantine is None:
            return finding
        try:
            target = self._quarantine.take(path, unless=unless)
        except OSError as problem:
            return replace(
                finding, detail=f"{finding.detail} It could not be moved: {problem.strerror or problem}."
            )
        return replace(finding, moved_to=target)


def _problem(blobs: Blobs, hashed: str, size: int, at: Path | None = None) -> Harmed | None:
    try:
        for _ in blobs.pieces(hashed, size, at):
            pass
    except Harmed as problem:
        return problem
    return None


def _is_forgotten(path: Path) -> bool:
    """Whether nobody writes the file any more: who does, holds a lock on it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _recount(catalog: Path, blobs: Blobs) -> None:
    """Set the count of stored bytes to what is there, since crashes and repairs leave it a little wrong."""
    with suppress(OSError, ArchiveUnavailable, sqlite3.Error), closing(open_writer(catalog)) as connection:
        set_stored(connection, blobs.measure())
