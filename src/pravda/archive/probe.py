"""A quick look at whether an archive can take snapshots."""

import os
from pathlib import Path

from pravda.archive.catalog import Reader
from pravda.archive.local import CATALOG
from pravda.archive.quota import Limits, Quota
from pravda.errors import ArchiveUnavailable, StorageTrouble


class Probe:
    """Looks at one archive, again and again, over a connection of its own."""

    def __init__(self, home: Path, limits: Limits) -> None:
        self._home = home
        self._reader = Reader(home / CATALOG, patience=1.0)
        self._quota = Quota(home, limits, lambda: self._reader.stored() or 0)

    def database(self) -> bool:
        """Whether rows can be read."""
        try:
            self._reader.secret()
        except ArchiveUnavailable:
            return False
        return True

    def blobs(self) -> bool:
        """Whether this user may write where bytes are kept."""
        return all(os.access(self._home / name, os.W_OK | os.X_OK) for name in ("", "blobs", "tmp"))

    def has_room(self) -> bool:
        """Whether a small page would still be taken."""
        try:
            with self._quota.room(1):
                return True
        except (StorageTrouble, ArchiveUnavailable, OSError):
            return False

    def free_bytes(self) -> int:
        """Left on the disk for this user; 0 where it cannot be told."""
        try:
            disk = os.statvfs(self._home)
        except OSError:
            return 0
        return disk.f_bavail * disk.f_frsize

    def blob_bytes(self) -> int:
        """Of all blobs; 0 where it cannot be told."""
        try:
            return self._reader.stored() or 0
        except ArchiveUnavailable:
            return 0

    def close(self) -> None:
        """Let go."""
        self._reader.close()
