"""The catalog: rows go in by one connection, and come out by others."""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pravda.archive.connections import Mode, connect, make_durable, transaction
from pravda.archive.migrate import migrate, refuse_older
from pravda.archive.rows import Cell, Row, answers, find_parameters, find_statement, plain, snapshot_of
from pravda.archive.statements import named
from pravda.archive.trouble import BUSY_SECONDS, unavailable
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.errors import ArchiveUnavailable, Damaged

log = logging.getLogger("pravda")

_SQL = named("catalog.sql")


def open_writer(catalog: Path) -> sqlite3.Connection:
    """The connection that writes, on a catalog of this code's format; raises ArchiveUnavailable, OSError."""
    # private to this user from the start; SQLite's further files take over these rights
    os.close(os.open(catalog, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(catalog, Mode.CREATE)
    try:
        migrate(connection, catalog)
        make_durable(connection)
    except sqlite3.Error as problem:
        connection.close()
        raise unavailable(problem, catalog) from problem
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(catalog: Path) -> "Reader":
    """A reader on a catalog of this code's format, also where nothing may or can be written; raises ArchiveUnavailable."""
    try:
        return _of_this_format(Reader(catalog))
    except ArchiveUnavailable:
        if log_bytes(catalog):
            raise
    return _of_this_format(Reader(catalog, immutable=True))


def _of_this_format(reader: "Reader") -> "Reader":
    try:
        reader.refuse_older()
    except ArchiveUnavailable:
        reader.close()
        raise
    return reader


def insert(connection: sqlite3.Connection, rows: Iterable[Row], stored: int = 0) -> tuple[set[str], int]:
    """Write rows and count `stored` bytes more of blobs, in one transaction; raises sqlite3.Error.

    Answers the ids that were there before, and the bytes of all blobs.
    """
    known: set[str] = set()
    with transaction(connection):
        for row in rows:
            try:
                connection.execute(_SQL["insert_snapshot"], row.snapshot)
            except sqlite3.IntegrityError:
                known.add(str(row.snapshot["id"]))
            else:
                connection.executemany(_SQL["insert_artifact"], row.artifacts)
        total = connection.execute(_SQL["count_stored"], {"bytes": stored}).fetchone()
    return known, total[0] if total else 0


def set_stored(connection: sqlite3.Connection, stored: int) -> None:
    """Set the count of the bytes of all blobs; raises sqlite3.Error."""
    with transaction(connection):
        connection.execute(_SQL["set_stored"], {"bytes": stored})


class Reader:
    """Reading in many threads, each over a connection of its own."""

    def __init__(self, catalog: Path, *, immutable: bool = False, patience: float = BUSY_SECONDS) -> None:
        """Immutable: for a file that should not change while it is read; patience: seconds of waiting for a lock."""
        self._catalog = catalog
        self._patience = patience
        self._still = _Still.of(catalog) if immutable else None  # of a file that is read without locks
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False

    def refuse_older(self) -> None:
        """Raises ArchiveUnavailable unless the catalog's format is this code's."""
        try:
            refuse_older(self._connection(), self._catalog)
        except sqlite3.Error as problem:
            raise unavailable(problem, self._catalog) from problem

    def secret(self) -> bytes:
        """The archive's key for hashes of secrets."""
        found = self.rows(_SQL["meta"], {"name": "secret"})
        if not found or not isinstance(found[0][0], bytes):
            raise ArchiveUnavailable(
                f"The catalog {self._catalog} has lost its secret: restore it from a backup."
            )
        return found[0][0]

    def stored(self) -> int | None:
        """The bytes of all blobs on the disk, as counted by those who wrote them; None: nobody has counted yet."""
        found = self.rows(_SQL["meta"], {"name": "stored_bytes"})
        return found[0][0] if found and isinstance(found[0][0], int) else None

    def get(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot by id."""
        found = self.rows(_SQL["get"], {"id": plain(snapshot_id)})
        return snapshot_of(*found[0]) if found else None

    def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first by (captured_at, id); rows that are no longer what was written are passed over."""
        found: list[Snapshot] = []
        while rows := self.rows(find_statement(query), find_parameters(query)):
            intact = [snapshot for row in rows if (snapshot := _intact(row, query))]
            found += intact
            if len(intact) == len(rows) or (end := _end_of(rows)) is None:
                break
            query = replace(query, before=end, limit=len(rows) - len(intact))
        return tuple(found)

    def inline(self, snapshot_id: str, name: str) -> bytes | None:
        """An artifact's bytes in the catalog; None: they are in a blob, or the artifact is unknown."""
        found = self.rows(_SQL["inline"], {"snapshot_id": plain(snapshot_id), "name": plain(name)})
        return found[0][0] if found else None

    def close(self) -> None:
        """Close every connection; reading on raises ArchiveUnavailable."""
        with self._lock:
            self._closed = True
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def rows(self, sql: str, parameters: Mapping[str, Cell]) -> list[tuple[Any, ...]]:
        """What a statement finds; raises ArchiveUnavailable."""
        still = self._still
        if still is None:
            return self._ask(sql, parameters)
        try:
            found = self._ask(sql, parameters)
        except ArchiveUnavailable:
            if _Still.of(self._catalog) == still:
                raise
        else:
            # without locks, only a file that did not change meanwhile has told the truth
            if _Still.of(self._catalog) == still:
                return found
        self._still = _Still.of(self._catalog, without_log=True)
        return self._ask(sql, parameters)

    def _ask(self, sql: str, parameters: Mapping[str, Cell]) -> list[tuple[Any, ...]]:
        try:
            return self._connection().execute(sql, parameters).fetchall()
        except sqlite3.Error as problem:
            raise unavailable(problem, self._catalog) from problem

    def _connection(self) -> sqlite3.Connection:
        still, old = self._still, getattr(self._local, "connection", None)
        if old is not None and self._local.still == still and not self._closed:
            assert isinstance(old, sqlite3.Connection)
            return old
        with self._lock:
            if self._closed:
                raise ArchiveUnavailable(f"The archive {self._catalog.parent} is closed.")
            if old is not None:
                self._connections.remove(old)
                old.close()
                self._local.connection = None
            connection = connect(self._catalog, Mode.IMMUTABLE if still else Mode.READ, self._patience)
            self._local.connection, self._local.still = connection, still
            self._connections.append(connection)
        return connection


def _intact(row: tuple[Any, ...], query: Query) -> Snapshot | None:
    try:
        snapshot = snapshot_of(*row)
    except Damaged as problem:
        log.warning("passed over: %s", problem)
        return None
    if answers(snapshot, query):
        return snapshot
    log.warning("passed over: the row of snapshot %s was found by columns that its facts contradict", row[0])
    return None


def _end_of(rows: list[tuple[Any, ...]]) -> tuple[datetime, str] | None:
    """Where the next rows begin; None: the last row's own time cannot be read."""
    try:
        return datetime.fromisoformat(rows[-1][1]), rows[-1][0]
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Still:
    """What shows that a catalog has not changed."""

    written: int
    size: int
    log: int
    """Bytes."""

    @classmethod
    def of(cls, catalog: Path, *, without_log: bool = False) -> "_Still | None":
        """None: it cannot be told, or there is a log although there must be none."""
        try:
            about, log = catalog.stat(), log_bytes(catalog)
        except OSError:
            return None
        return None if without_log and log else cls(about.st_mtime_ns, about.st_size, log)


def log_bytes(catalog: Path) -> int:
    """How much stands in SQLite's write-ahead log (sqlite.org/tempfiles.html); raises OSError."""
    try:
        return log_of(catalog).stat().st_size
    except FileNotFoundError:
        return 0


def log_of(catalog: Path) -> Path:
    """Where SQLite writes ahead (sqlite.org/tempfiles.html)."""
    return catalog.with_name(f"{catalog.name}-wal")
