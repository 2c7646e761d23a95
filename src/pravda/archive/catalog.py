"""The catalog: rows go in by one connection, and come out by others."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pravda.archive.connections import Mode, connect, make_durable, transaction
from pravda.archive.migrate import migrate, refuse_older
from pravda.archive.rows import Cell, Row, find_parameters, find_statement, plain, snapshot_of
from pravda.archive.statements import named
from pravda.archive.trouble import unavailable
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.errors import ArchiveUnavailable

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


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> set[str]:
    """Write rows in one transaction; answers the ids that were there before. Raises sqlite3.Error."""
    known: set[str] = set()
    with transaction(connection):
        for row in rows:
            try:
                connection.execute(_SQL["insert_snapshot"], row.snapshot)
            except sqlite3.IntegrityError:
                known.add(str(row.snapshot["id"]))
            else:
                connection.executemany(_SQL["insert_artifact"], row.artifacts)
    return known


class Reader:
    """Reading in many threads, each over a connection of its own."""

    def __init__(self, catalog: Path, *, immutable: bool = False) -> None:
        """Immutable: for a file that cannot change."""
        self._catalog = catalog
        self._mode = Mode.IMMUTABLE if immutable else Mode.READ
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
        found = self._rows(_SQL["meta"], {"name": "secret"})
        if not found or not isinstance(found[0][0], bytes):
            raise ArchiveUnavailable(
                f"The catalog {self._catalog} has lost its secret: restore it from a backup."
            )
        return found[0][0]

    def get(self, snapshot_id: str) -> Snapshot | None:
        """One snapshot by id."""
        found = self._rows(_SQL["get"], {"id": plain(snapshot_id)})
        return snapshot_of(*found[0]) if found else None

    def find(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first by (captured_at, id)."""
        return tuple(snapshot_of(*row) for row in self._rows(find_statement(query), find_parameters(query)))

    def inline(self, snapshot_id: str, name: str) -> bytes | None:
        """An artifact's bytes in the catalog; None: they are in a blob, or the artifact is unknown."""
        found = self._rows(_SQL["inline"], {"snapshot_id": plain(snapshot_id), "name": plain(name)})
        return found[0][0] if found else None

    def close(self) -> None:
        """Close every connection; reading on raises ArchiveUnavailable."""
        with self._lock:
            self._closed = True
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def _rows(self, sql: str, parameters: Mapping[str, Cell]) -> list[tuple[Any, ...]]:
        try:
            return self._connection().execute(sql, parameters).fetchall()
        except sqlite3.Error as problem:
            raise unavailable(problem, self._catalog) from problem

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and not self._closed:
            return connection
        with self._lock:
            if self._closed:
                raise ArchiveUnavailable(f"The archive {self._catalog.parent} is closed.")
            connection = self._local.connection = connect(self._catalog, self._mode)
            self._connections.append(connection)
        return connection
