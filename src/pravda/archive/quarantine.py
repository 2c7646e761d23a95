"""Where a repair puts files that are no evidence any more: nothing is ever deleted."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pravda.archive.blobs import make_folder, sync_folder

FOLDER = "quarantine"


class Quarantine:
    """One folder for each repair."""

    def __init__(self, home: Path, moment: datetime) -> None:
        self._home = home
        self._folder = home / FOLDER / moment.strftime("%Y-%m-%dT%H%M%SZ")

    def take(self, path: Path, *, unless: Callable[[Path], bool]) -> Path | None:
        """Move a file here, so that it survives a crash; None: it is back in its place. Raises OSError.

        `unless` is asked about the moved file, since a capture that runs now may have made it good, or begun to need it.
        """
        target = self._free(path)
        make_folder(target.parent)
        path.rename(target)
        if unless(target):
            target.rename(path)
            return None
        sync_folder(target.parent)
        sync_folder(path.parent)
        return target

    def _free(self, path: Path) -> Path:
        target, number = self._folder / path.relative_to(self._home), 1
        while target.exists():
            target, number = target.with_name(f"{path.name}.{number}"), number + 1
        return target
