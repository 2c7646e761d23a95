"""How the catalog's file is opened and written to."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pravda.archive.trouble import BUSY_SECONDS, is_locked

_PAUSE = 0.01  # seconds between tries for a lock that SQLite does not wait for


class Mode(StrEnum):
    """What a connection may do, in SQLite's URI words (sqlite.org/uri.html)."""

    CREATE = "mode=rwc"
    READ = "mode=rw"
    """The log of a live catalog needs write access even for reading; PRAGMA query_only keeps the rows safe."""
    IMMUTABLE = "mode=ro&immutable=1"
    """No lock is taken and no log looked for: only for a file that cannot change."""


def connect(catalog: Path, mode: Mode, patience: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection in autocommit that waits so many seconds for a lock; raises sqlite3.Error."""
    connection = sqlite3.connect(
        f"{catalog.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,  # one thread at a time uses it, and another one closes it
    )
    # a flipped bit may leave text that is no UTF-8: that is the trouble of one row, not of the whole question
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    if mode is not Mode.CREATE:
        connection.execute("PRAGMA query_only = ON")
    return connection


def make_durable(connection: sqlite3.Connection) -> None:
    """From here on a commit returns only when its rows are on the disk itself; raises sqlite3.Error."""
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # macOS: without these the rows stay in the drive's cache (sqlite.org/pragma.html#pragma_fullfsync)
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the write lock is taken at the start, so that waiting for it cannot end in a deadlock."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # after some errors SQLite has rolled back by itself (sqlite.org/lang_transaction.html §3)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; the busy timeout does not cover this lock."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if not is_locked(problem) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)
