"""What the operating system and SQLite say, in our errors and with advice."""

import errno
import sqlite3
from pathlib import Path

from pravda.core.states import Reason
from pravda.errors import ArchiveUnavailable, StorageTrouble

BUSY_SECONDS = 30.0
"""How long a write waits for another program's transaction."""

_REASONS = {
    errno.ENOSPC: Reason.DISK_FULL,
    errno.EDQUOT: Reason.DISK_FULL,
    errno.EROFS: Reason.STORAGE_DENIED,
    errno.EACCES: Reason.STORAGE_DENIED,
    errno.EPERM: Reason.STORAGE_DENIED,
}

_ADVICE = {
    Reason.DISK_FULL: "Free some space there, or raise this user's quota; earlier evidence is safe.",
    Reason.STORAGE_DENIED: "Give this user write access to it, or set PRAVDA_HOME to a folder of its own.",
    Reason.STORAGE_UNAVAILABLE: "Check the disk; earlier evidence can be tested with `pravda verify`.",
}

_CATALOG = {
    sqlite3.SQLITE_FULL: "its disk is full: free some space there",
    sqlite3.SQLITE_READONLY: "it may not be written: give this user write access to the file and its folder",
    sqlite3.SQLITE_PERM: "it may not be written: give this user write access to the file and its folder",
    sqlite3.SQLITE_BUSY: f"another program has kept it locked for {BUSY_SECONDS:.0f} seconds: end that program's transaction",
    sqlite3.SQLITE_LOCKED: f"another program has kept it locked for {BUSY_SECONDS:.0f} seconds: end that program's transaction",
    sqlite3.SQLITE_IOERR: "the disk does not read or write it: check the disk and the space that is left",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that this user may read and write it and its folder",
    sqlite3.SQLITE_CORRUPT: "it is damaged: run `pravda verify`, and restore it from a backup",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database: move it away, or set PRAVDA_HOME to another folder",
}


def storage_trouble(problem: OSError, folder: Path) -> StorageTrouble:
    """The error for bytes that could not be written below `folder`."""
    reason = _REASONS.get(problem.errno or 0, Reason.STORAGE_UNAVAILABLE)
    said = problem.strerror or str(problem)
    return StorageTrouble(reason, f"The evidence could not be written to {folder}: {said}. {_ADVICE[reason]}")


def unavailable(problem: sqlite3.Error, catalog: Path) -> ArchiveUnavailable:
    """The error for a catalog that cannot be used as it was meant to be."""
    why = _CATALOG.get(_code(problem), "SQLite refused")
    return ArchiveUnavailable(f"The catalog {catalog} cannot be used, {why} (SQLite says: {problem}).")


def may_be_full(problem: BaseException | None) -> bool:
    """Whether room that could not be had, or a failing disk, may be what is behind an error; reading may work still."""
    if isinstance(problem, OSError):
        return problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    if isinstance(problem, sqlite3.Error):
        return _code(problem) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return problem is not None and may_be_full(problem.__cause__)


def is_locked(problem: BaseException | None) -> bool:
    """Whether another program's transaction stood in the way."""
    return _code(problem) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(problem: BaseException | None) -> int:
    # the low byte is the primary code; errors of the Python module itself carry none
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
