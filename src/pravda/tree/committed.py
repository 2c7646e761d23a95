"""The files of a tree as the last commit has them."""

import hashlib
from collections.abc import Mapping

from pravda.tree.git import Git


class Committed:
    """What the last commit holds."""

    def __init__(self, git: Git, blobs: Mapping[str, str]) -> None:
        self._git = git
        self._algorithm = git.text("rev-parse", "--show-object-format")
        self.blobs = blobs
        """Git's hash of each file, by name from the tree's root with slashes."""

    def blob_of(self, data: bytes) -> str:
        """Git's hash of these bytes as they are, whatever the attributes say."""
        # gitformat-object: the type, the length and a NUL precede the content that is hashed
        head = b"blob %d\0" % len(data)
        return hashlib.new(self._algorithm, head + data, usedforsecurity=False).hexdigest()

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None: the commit does not have it."""
        blob = self.blobs.get(name)
        return None if blob is None else self._git.data("cat-file", "blob", blob)

    def differs(self, name: str) -> bool:
        """Whether a file of the tree is there, and not as the commit has it; raises GitTrouble."""
        if not (self._git.folder / name).is_file():
            return False
        return self._git.text("hash-object", "--no-filters", "--", name) != self.blobs.get(name)
