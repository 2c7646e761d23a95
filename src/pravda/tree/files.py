"""The files of a tree: read as they are, written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pravda.core.digest import sha256
from pravda.core.states import Reason
from pravda.tree import layout
from pravda.tree.lock import TreeUnavailable, locked
from pravda.tree.meta import Meta, read_meta
from pravda.tree.state import SourceState, read_state

LONGEST_BODY = 256 * 1024 * 1024
"""Bytes; a longer file is no page that was stored here."""

_REASONS = {
    errno.ENOSPC: Reason.DISK_FULL,
    errno.EDQUOT: Reason.DISK_FULL,
    errno.EROFS: Reason.STORAGE_DENIED,
    errno.EACCES: Reason.STORAGE_DENIED,
    errno.EPERM: Reason.STORAGE_DENIED,
    errno.EMFILE: Reason.RESOURCE_EXHAUSTED,
    errno.ENFILE: Reason.RESOURCE_EXHAUSTED,
    errno.ENOMEM: Reason.RESOURCE_EXHAUSTED,
}


class Unreadable(Exception):
    """A file is there and cannot be read as what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """What a tree holds of one source."""

    meta: Meta | None
    """None: there is none, or it is damaged."""
    body: bytes | None
    """None: there is none, or it cannot be read."""
    body_hash: str | None = None
    """SHA-256 of the stored bytes, hex; None: there are none."""
    damage: tuple[str, ...] = ()
    """What is wrong with the files, a sentence each."""

    @property
    def intact(self) -> bool:
        """Whether the stored bytes are those that the metadata speaks of."""
        return self.meta is not None and self.meta.content_hash == self.body_hash


class Tree:
    """A snapshot tree; writing needs the lock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / layout.SNAPSHOTS

    def locked(self, now: datetime) -> AbstractContextManager[None]:
        """Hold the tree's lock; raises TreeBusy and TreeUnavailable."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as problem:
            raise TreeUnavailable(f"{self.folder} cannot be made: {problem.strerror}") from problem
        return locked(self.folder / layout.LOCK, now)

    # reading

    def page(self, source_id: str, extension: str) -> StoredPage:
        """The stored page and its metadata."""
        damage: list[str] = []
        meta = self._meta(source_id, damage)
        name = layout.body_name(source_id, extension)
        body = self._bytes(name, LONGEST_BODY, damage)
        if meta and body is None:
            damage.append(f"{name} is missing")
        body_hash = None if body is None else sha256(body)
        if meta and body_hash and body_hash != meta.content_hash:
            damage.append(f"{name} is not what its metadata says: the hash differs")
        return StoredPage(meta=meta, body=body, body_hash=body_hash, damage=tuple(damage))

    def state(self, source_id: str) -> tuple[SourceState, tuple[str, ...]]:
        """The last attempt, and what is wrong with its file; a damaged one counts as none."""
        damage: list[str] = []
        name = layout.state_name(source_id)
        data = self._bytes(name, layout.LONGEST_JSON, damage)
        state = None if data is None else read_state(source_id, data)
        if data is not None and state is None:
            damage.append(f"{name} is damaged")
        return state or SourceState(source_id=source_id), tuple(damage)

    def ids(self) -> tuple[str, ...]:
        """The ids that the tree has metadata or state of, in order."""
        found = (layout.id_of(entry.name) for entry in self._entries())
        return tuple(sorted({source_id for source_id in found if source_id}))

    def retired(self, source_ids: Sequence[str]) -> tuple[str, ...]:
        """The ids in the tree that are none of these."""
        return tuple(source_id for source_id in self.ids() if source_id not in set(source_ids))

    def hosts(self) -> bytes | None:
        """What is kept of hosts across runs; None: nothing."""
        return self._bytes(layout.HOSTS, LONGEST_BODY, [])

    # writing

    def store(self, meta: Meta, body: bytes | None, extension: str) -> tuple[str, ...]:
        """Write metadata, and before it the bytes unless they are None; the names written. Raises OSError."""
        name, meta_name = layout.body_name(meta.source_id, extension), layout.meta_name(meta.source_id)
        # Both are aside before either moves: a disk that fills up leaves the old page whole, and a kill between
        # the two renames leaves the metadata aside, for the next run to finish with.
        with _Aside(self.folder) as aside:
            if body is not None:
                aside.write(name, body)
            aside.write(meta_name, meta.to_file())
            aside.publish()
        return (name, meta_name) if body is not None else (meta_name,)

    def record(self, state: SourceState) -> None:
        """Write the last attempt; raises OSError."""
        self._put(layout.state_name(state.source_id), state.to_file())

    def put_hosts(self, data: bytes) -> None:
        """Keep what is known of hosts; raises OSError."""
        self._put(layout.HOSTS, data)

    def sweep(self) -> None:
        """Finish or remove what a killed run left aside."""
        for entry in self._entries():
            file = layout.leftover_of(entry.name)
            if file and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if not self._finish(entry.name, file):
                        os.unlink(entry.path)

    def forget(self, source_id: str) -> tuple[str, ...]:
        """Remove a source's page, metadata and state, fixtures stay; the names removed. Raises OSError."""
        # metadata goes first, so that it never speaks of bytes that are not there
        names = sorted(
            (entry.name for entry in self._entries() if layout.is_file_of(source_id, entry.name)),
            key=lambda name: (name != layout.meta_name(source_id), name),
        )
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        return tuple(names)

    def _meta(self, source_id: str, damage: list[str]) -> Meta | None:
        name = layout.meta_name(source_id)
        data = self._bytes(name, layout.LONGEST_JSON, damage)
        if data is None:
            return None
        old_state = None
        if b'"lastConfirmedAt"' not in data:
            old_state = self._bytes(layout.state_name(source_id), layout.LONGEST_JSON, [])
        meta = read_meta(source_id, data, old_state)
        if meta is None:
            damage.append(f"{name} is damaged")
        return meta

    def _bytes(self, name: str, limit: int, damage: list[str]) -> bytes | None:
        try:
            return read_file(self.folder / name, limit)
        except Unreadable as problem:
            damage.append(f"{name} cannot be read: {problem}")
            return None

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as entries:
                yield from list(entries)
        except OSError:
            return

    def _put(self, name: str, data: bytes) -> None:
        # What git does not see can be had again: after a power cut a damaged state only makes a source due,
        # and waiting for the disk at every source would cost more than all else in a run of 304s.
        with _Aside(self.folder) as aside:
            aside.write(name, data, durable=False)
            aside.publish()

    def _finish(self, leftover: str, file: str) -> bool:
        """Move metadata into place whose bytes a killed run had already moved."""
        source_id = layout.id_of(file)
        if source_id is None or file != layout.meta_name(source_id):
            return False
        aside = read_meta(source_id, self._bytes(leftover, layout.LONGEST_JSON, []) or b"")
        standing = self._meta(source_id, [])
        if aside is None or (standing and standing.content_hash == aside.content_hash):
            return False
        for entry in self._entries():
            if layout.is_body_of(source_id, entry.name):
                body = self._bytes(entry.name, LONGEST_BODY, [])
                if body is not None and sha256(body) == aside.content_hash:
                    os.replace(self.folder / leftover, self.folder / file)
                    return True
        return False


def storage_reason(problem: OSError) -> Reason:
    """Why bytes could not be written."""
    return _REASONS.get(problem.errno or 0, Reason.STORAGE_UNAVAILABLE)


def read_file(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file; None: it is not there. Raises Unreadable."""
    try:
        # a named pipe in a cloned tree must not hold the run up
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Unreadable(problem.strerror) from problem
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("it is no file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as problem:
        raise Unreadable(problem.strerror) from problem
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise Unreadable(f"it is longer than {limit:,} bytes")
    return data


class _Aside:
    """Files written beside those they replace, then renamed in the order of writing; none stays behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: list[tuple[Path, Path]] = []

    def __enter__(self) -> "_Aside":
        return self

    def __exit__(self, *_: object) -> None:
        for aside, _target in self._written:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Write a file aside, safe from a power cut where it is to be durable; raises OSError."""
        target = self._folder / name
        aside = self._folder / f"{name}.tmp-{os.getpid()}-{secrets.token_hex(4)}"
        # 0666 less the umask, as a plain open would give
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._written.append((aside, target))
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                before = os.lstat(target).st_mode
                if stat.S_ISREG(before):
                    os.fchmod(descriptor, stat.S_IMODE(before))
            file.write(data)
            file.flush()
            if durable:
                os.fsync(descriptor)

    def publish(self) -> None:
        """Rename what was written; each is durable before the next moves."""
        while self._written:
            aside, target = self._written[0]
            os.replace(aside, target)
            del self._written[0]
            if self._written:
                _sync_folder(self._folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
