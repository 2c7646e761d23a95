"""How much an archive may take of its disk: asked before bytes are written, so that the disk never gets full."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pravda.core.states import Reason
from pravda.errors import StorageTrouble

SPARE_BYTES = 200_000_000
SPARE_SHARE = 0.05
"""Of the whole disk. What stays free by default is the smaller of the two, so that small disks are usable too."""

_AGE = 1.0  # seconds after which what other processes have stored is looked up again


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the machine's owner allows."""

    most: int = 0
    """Bytes the archive may take on its disk; 0: as many as there are."""
    spare: int | None = None
    """Bytes of the disk that must stay free; 0: none; None: the smaller of SPARE_BYTES and SPARE_SHARE."""


@dataclass(slots=True)
class Room:
    """What became of the room that was given."""

    taken: int = 0
    """Bytes on the disk, to be settled later."""


class Quota:
    """Decides whether more may be written; shared by the threads of a process."""

    def __init__(
        self,
        home: Path,
        limits: Limits,
        stored: Callable[[], int] = lambda: 0,
        catalog_files: tuple[Path, ...] = (),
    ) -> None:
        """`stored` asks the catalog for the bytes of all blobs, those that other processes wrote among them."""
        self._home, self._limits, self._ask = home, limits, stored
        self._catalog_files = catalog_files
        self._lock = threading.Lock()
        self._stored, self._asked_at = 0, -_AGE
        self._writing = 0  # bytes of contents that are being compressed right now
        self._waiting = 0  # bytes written aside that the catalog does not count yet

    @contextmanager
    def room(self, size: int, *, reserve: bool = False) -> Iterator["Room"]:
        """Room for `size` bytes while they are written; raises StorageTrouble where there is none.

        The size is that before compression: a keep is never begun that might not fit. `reserve` takes the last room too.
        """
        room = Room()
        with self._lock:
            if not reserve:
                self._refuse_when_full(self._writing + size)
            self._writing += size
        try:
            yield room
        finally:
            with self._lock:
                self._writing -= size
                self._waiting += room.taken

    def settle(self, taken: int) -> None:
        """So many bytes that were written are counted by the catalog now, or gone."""
        with self._lock:
            self._waiting -= taken

    def counted(self, stored: int) -> None:
        """The catalog counts so many bytes now."""
        with self._lock:
            self._stored, self._asked_at = stored, time.monotonic()

    def _refuse_when_full(self, more: int) -> None:
        self._refuse_beyond_spare(more)
        if not self._limits.most:
            return
        if time.monotonic() - self._asked_at >= _AGE:
            self._stored, self._asked_at = self._ask(), time.monotonic()
        used = self._stored + self._waiting + sum(_size(path) for path in self._catalog_files)
        if used + more > self._limits.most:
            raise StorageTrouble(
                Reason.DISK_FULL,
                f"The archive {self._home} holds {used:,} bytes and may hold {self._limits.most:,} "
                "(PRAVDA_MAX_BYTES), which leaves no room for this page: raise that setting, or set PRAVDA_HOME to a "
                "new folder; earlier evidence is safe.",
            )

    def _refuse_beyond_spare(self, more: int) -> None:
        disk = os.statvfs(self._home)
        whole, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
        if not whole:
            return  # some network file systems do not tell
        spare = self._limits.spare
        if spare is None:
            spare = min(SPARE_BYTES, int(whole * SPARE_SHARE))
        if spare and free - more < spare:
            raise StorageTrouble(
                Reason.DISK_FULL,
                f"The disk of the archive {self._home} has {free:,} bytes left, and {spare:,} must stay free "
                "(PRAVDA_MIN_FREE_BYTES), which leaves no room for this page: free some space there, or lower that "
                "setting; earlier evidence is safe.",
            )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
