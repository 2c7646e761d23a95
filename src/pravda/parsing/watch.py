"""Whether the files of a tree have changed since the last look."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_UNWATCHED: Final = frozenset({".git", "__pycache__", ".venv", "node_modules"})

_Look = dict[str, tuple[int, int]]


class Watch:
    """A tree's files by time and size; those that are written by a build or tell of attempts are left out."""

    def __init__(self, root: Path, out: Path) -> None:
        self._root, self._out = root, out.resolve()
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether anything has changed since it was last asked."""
        before, self._seen = self._seen, self._look()
        return before != self._seen

    def _look(self) -> _Look:
        return dict(self._files())

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for folder, folders, names in os.walk(self._root):
            folders[:] = [name for name in folders if name not in _UNWATCHED]
            for name in names:
                path = os.path.join(folder, name)
                if (
                    ".tmp-" in name
                    or name.endswith((".state.json", ".lock"))
                    or Path(path).resolve() == self._out
                ):
                    continue
                try:
                    told = os.stat(path)
                except OSError:  # it went away meanwhile
                    continue
                yield path, (told.st_mtime_ns, told.st_size)
