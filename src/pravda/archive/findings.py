"""What a look through an archive can find."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pravda.archive.blobs import Harm


class What(StrEnum):
    """What something was found about."""

    CATALOG = "catalog"
    """The database file as such."""
    ROW = "row"
    HEAD = "head"
    """Small bytes that live in the catalog."""
    BLOB = "blob"
    ORPHAN = "orphan"
    """A file among the blobs that no row names: no damage, a crash at the wrong moment leaves one."""
    LEFTOVER = "leftover"
    """A file that a dead process left half written: no damage either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it was stored, or that nobody needs."""

    what: What
    name: str
    """A snapshot's id, a blob's hash or a path below the archive's folder."""
    detail: str
    """One sentence for people."""
    harm: Harm | None = None
    """None: nothing is lost."""
    snapshot: str | None = None
    """One snapshot that needs it; None: it is the snapshot itself, or none does."""
    moved_to: Path | None = None
    """Where a repair put the file; None: it stays where it is."""

    @property
    def is_damage(self) -> bool:
        """Whether evidence is touched."""
        return self.harm is not None
