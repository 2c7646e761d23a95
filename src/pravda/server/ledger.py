"""The service's own book: keys, and captures that somebody may ask for again. It holds no evidence."""

import fcntl
import os
import re
import secrets
import sqlite3
import threading
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from pravda.errors import ArchiveUnavailable

Cell = str | int | float | bytes | None

FILE = "service.sqlite3"
_LOCK = "service.lock"
_BUSY_SECONDS = 10.0
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _statements() -> dict[str, str]:
    text = files("pravda.server").joinpath("ledger.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    return {name: sql.strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}


_SQL = _statements()


class Ledger:
    """A SQLite file beside the catalog; safe to share between threads."""

    def __init__(self, home: Path) -> None:
        """Opened or made; raises ArchiveUnavailable."""
        self._path, self._lock, self._reading = home / FILE, threading.Lock(), threading.Lock()
        self._held = -1
        try:
            home.mkdir(parents=True, exist_ok=True)
            # private to this user from the start; SQLite's further files take over these rights
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection, self._reader = self._connect(), self._connect()
        except (OSError, sqlite3.Error) as problem:
            raise self._unavailable(problem) from problem
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SQL["schema"])
            self._connection.execute(_SQL["insert_secret"], {"value": secrets.token_bytes(32)})
        except sqlite3.Error as problem:
            self.close()
            raise self._unavailable(problem) from problem
        ((secret,),) = self.rows("secret")
        assert isinstance(secret, bytes)
        self.secret = secret
        """Key for hashes of what callers sent."""

    def hold(self) -> bool:
        """Be the one service of this folder until closed; False: another process is."""
        self._held = os.open(self._path.with_name(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def rows(self, statement: str, **values: Cell) -> list[tuple[Cell, ...]]:
        """What a statement finds; raises ArchiveUnavailable."""
        try:
            # a connection of its own: no reader waits until a writer's bytes are on the disk
            with self._reading:
                return self._reader.execute(_SQL[statement], values).fetchall()
        except sqlite3.Error as problem:
            raise self._unavailable(problem) from problem

    def write(self, statement: str, **values: Cell) -> bool:
        """Change the book, durably; False: a row like that is there. Raises ArchiveUnavailable."""
        try:
            with self._lock:
                self._connection.execute(_SQL[statement], values)
        except sqlite3.IntegrityError:
            return False
        except sqlite3.Error as problem:
            raise self._unavailable(problem) from problem
        return True

    def close(self) -> None:
        """Let go; safe to call twice."""
        with self._lock, self._reading:
            self._reader.close()
            self._connection.close()
        if self._held >= 0:
            with suppress(OSError):
                os.close(self._held)
            self._held = -1

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )

    def _unavailable(self, problem: Exception) -> ArchiveUnavailable:
        return ArchiveUnavailable(f"The service's book {self._path} cannot be used: {problem}.")
