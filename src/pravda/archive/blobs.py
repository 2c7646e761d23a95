"""Bytes in a folder, each under the SHA-256 of its uncompressed content."""

import fcntl
import hashlib
import itertools
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pravda.archive.quota import Limits, Quota
from pravda.core.ports import Contents

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_T = TypeVar("_T")

LEVEL = 3
PIECE = 256 * 1024
"""Bytes read or decompressed at a time."""
LEFTOVER_SECONDS = 24 * 3600.0
"""How old a file written aside must be before it counts as forgotten."""
YOUNG_SECONDS = 3600.0
"""A blob this young that no row names may still get its row: it is no orphan yet."""

_NAME = re.compile(r"[0-9a-f]{64}")
# 16 MiB: far more than level 3 writes with, so a tampered frame cannot ask for gigabytes of window
_WINDOW = {int(zstd.DecompressionParameter.window_log_max): 24}


class Harm(StrEnum):
    """What became of bytes that were stored."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    CHANGED = "changed"


class Harmed(Exception):
    """A blob is not what was stored."""

    def __init__(self, harm: Harm, detail: str) -> None:
        super().__init__(f"{harm}: {detail}")
        self.harm = harm


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Content on its way into the folder."""

    sha256: str
    aside: Path | None = None
    """Where it is written aside; None: an intact blob is there already."""
    descriptor: int = -1
    """Open and locked for as long as the file is aside, so that no sweep takes it; -1: there is no file."""
    heals: bool = False
    """Whether it replaces a damaged blob."""
    stored: int = 0
    """Bytes it takes on the disk; 0: they are there already."""

    def discard(self, *, moved: bool = False) -> None:
        """Let go of the file, and of its name unless it was moved away from there."""
        if self.aside is not None:
            os.close(self.descriptor)
            if not moved:
                with suppress(OSError):
                    self.aside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What became of staged content."""

    failed: Mapping[str, OSError]
    """By hash; all others are durable."""
    stored: int
    """Bytes that the disk holds more than before."""


class Blobs:
    """The folder of blobs; `stage` and reading may run in many threads, `publish` in one."""

    def __init__(self, home: Path, quota: Quota | None = None) -> None:
        """Without a quota, only what must stay free of the disk limits what is written."""
        self.folder = home / "blobs"
        self.aside = home / "tmp"
        self._quota = quota or Quota(home, Limits())
        self._token, self._numbers = secrets.token_hex(8), itertools.count(1)  # names no other process takes
        self._durable: set[str] = set()  # names of sub-folders this process knows to survive a crash

    def prepare(self) -> None:
        """Make the folders and sweep away what crashed processes left aside; raises OSError."""
        for folder in (self.folder, self.aside):
            make_folder(folder)
        oldest = time.time() - LEFTOVER_SECONDS
        with os.scandir(self.aside) as entries:
            for entry in entries:
                # another process may sweep at the same time
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        _sweep(entry.path)

    def path(self, sha256: str) -> Path:
        """Where a blob is, or would be; raises Harmed for what is no hash."""
        if not _NAME.fullmatch(sha256):
            raise Harmed(Harm.CHANGED, f"{sha256!r:.80} is no SHA-256")
        return Path(f"{self.folder}/{sha256[:2]}/{sha256}.zst")

    def stage(self, contents: Contents, sha256: str, size: int, *, reserve: bool = False) -> Staged:
        """Write content aside unless an intact blob has it; `reserve` writes even beyond the quota.

        Raises OSError, StorageTrouble beyond the quota, or ValueError when the bytes are not what they claim to be.
        """
        harm = self._harm(sha256, size)
        if harm is None:
            return Staged(sha256=sha256)
        with self._quota.room(size, reserve=reserve) as room:
            staged = self._write_aside(contents, sha256, size, heals=harm is not Harm.MISSING)
            room.taken = staged.stored
        return staged

    def _write_aside(self, contents: Contents, sha256: str, size: int, *, heals: bool) -> Staged:
        aside = self.aside / f"{self._token}-{next(self._numbers)}"
        descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        staged = Staged(sha256=sha256, aside=aside, descriptor=descriptor, heals=heals)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _compress(contents, sha256, size, descriptor)
        except BaseException:
            staged.discard()
            raise
        return replace(staged, stored=os.fstat(descriptor).st_size)

    def publish(self, batch: Sequence[Staged]) -> Published:
        """Make staged content durable under its name, with shared syncs."""
        failed: dict[str, OSError] = {}
        fresh: dict[str, Staged] = {}
        for staged in batch:
            if staged.aside is not None and (staged.heals or not os.path.exists(self.path(staged.sha256))):
                fresh.setdefault(staged.sha256, staged)
        moved: set[Path | None] = set()
        try:
            for staged in fresh.values():
                _noting(failed, staged.sha256, sync, staged.descriptor)
            for staged in fresh.values():
                if staged.sha256 not in failed:
                    _noting(failed, staged.sha256, self._rename, staged)
            moved = {staged.aside for sha256, staged in fresh.items() if sha256 not in failed}
        finally:
            for staged in batch:
                staged.discard(moved=staged.aside in moved)
        self._sync_folders({staged.sha256 for staged in batch} - failed.keys(), failed)
        stored = sum(staged.stored for sha256, staged in fresh.items() if sha256 not in failed)
        return Published(failed=failed, stored=stored)

    def pieces(self, sha256: str, size: int, at: Path | None = None) -> Iterator[bytes]:
        """The content piece by piece, out of another file where `at` names one; raises Harmed, at the latest at the end."""
        digest, total = hashlib.sha256(), 0
        try:
            for piece in _decompress(at or self.path(sha256)):
                total += len(piece)
                if total > size:
                    break
                digest.update(piece)
                yield piece
        except FileNotFoundError:
            raise Harmed(Harm.MISSING, "its file is gone") from None
        except OSError as problem:
            raise Harmed(Harm.UNREADABLE, problem.strerror or str(problem)) from problem
        except (zstd.ZstdError, EOFError) as problem:
            raise Harmed(Harm.CHANGED, f"its compressed form is broken ({problem})") from problem
        if total != size or digest.hexdigest() != sha256:
            raise Harmed(Harm.CHANGED, "its bytes no longer have the SHA-256 under which they were stored")

    def check(self, sha256: str, size: int) -> Harm | None:
        """Read a blob to its end; None when it is intact."""
        try:
            for _ in self.pieces(sha256, size):
                pass
        except Harmed as problem:
            return problem.harm
        return None

    def measure(self) -> int:
        """The bytes of all blobs on the disk."""
        return sum(about.st_size for folder in self.folders() for _, about in files_in(folder))

    def folders(self) -> list[Path]:
        """The sub-folders, in the order of their names."""
        try:
            return sorted(path for path in self.folder.iterdir() if path.is_dir())
        except OSError:
            return []

    def _harm(self, sha256: str, size: int) -> Harm | None:
        """What is wrong with a blob that is about to be named again; None: nothing."""
        path = self.path(sha256)
        try:
            # it must look young, so that no repair takes it for an orphan meanwhile
            if time.time() - os.stat(path).st_mtime > YOUNG_SECONDS / 2:
                os.utime(path)
        except FileNotFoundError:
            return Harm.MISSING
        except OSError:
            pass  # reading it tells more
        return self.check(sha256, size)

    def _rename(self, staged: Staged) -> None:
        assert staged.aside is not None
        path = self.path(staged.sha256)
        try:
            os.rename(staged.aside, path)
        except FileNotFoundError:  # the first blob with these two digits
            path.parent.mkdir(mode=0o700, exist_ok=True)
            os.rename(staged.aside, path)

    def _sync_folders(self, hashes: set[str], failed: dict[str, OSError]) -> None:
        """Blobs found in place count too: another process may not have come as far as its own sync."""
        for prefix in sorted({sha256[:2] for sha256 in hashes}):
            try:
                sync_folder(self.folder / prefix)
                if prefix not in self._durable:
                    sync_folder(self.folder)
                    self._durable.add(prefix)
            except OSError as problem:
                failed.update({sha256: problem for sha256 in hashes if sha256.startswith(prefix)})


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of a folder; what cannot be looked at, or goes away meanwhile, is passed over."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, private to this user, so that they survive a crash; raises OSError."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync(descriptor: int) -> None:
    """Return when what was written is on the disk itself."""
    if sys.platform == "darwin":
        # macOS: fsync leaves the data in the drive's cache (fsync(2))
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def _noting(failed: dict[str, OSError], sha256: str, act: Callable[[_T], None], on: _T) -> None:
    try:
        act(on)
    except OSError as problem:
        failed[sha256] = problem


def _sweep(name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        # refused while the process that writes it lives
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name)
    finally:
        os.close(descriptor)


def _compress(contents: Contents, sha256: str, size: int, descriptor: int) -> None:
    compressor, digest, total = zstd.ZstdCompressor(level=LEVEL), hashlib.sha256(), 0
    for piece in contents.chunks():
        digest.update(piece)
        total += len(piece)
        _write(descriptor, compressor.compress(piece))
    _write(descriptor, compressor.flush())
    if total != size or digest.hexdigest() != sha256:
        raise ValueError(f"contents give {total} bytes with another SHA-256 than the {size} of {sha256}")


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _decompress(path: Path) -> Iterator[bytes]:
    decompressor = zstd.ZstdDecompressor(options=_WINDOW)
    descriptor = os.open(
        path, os.O_RDONLY | os.O_CLOEXEC
    )  # a file object would double the time of a small blob
    try:
        while not decompressor.eof:
            data = os.read(descriptor, PIECE) if decompressor.needs_input else b""
            if decompressor.needs_input and not data:
                raise EOFError("it ends too early")
            yield decompressor.decompress(data, PIECE)
        if decompressor.unused_data or os.read(descriptor, 1):
            raise EOFError("something follows it")
    finally:
        os.close(descriptor)
