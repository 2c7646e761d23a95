"""Bytes that arrive piece by piece: in memory while they are few, in a nameless file beyond."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

PIECE = 256 * 1024
"""Bytes handed out at a time."""


class Spool:
    """Contents that grow; what was written before a failed write stays whole and stays hashed."""

    def __init__(self, folder: Path | None = None, memory: int = 1024 * 1024) -> None:
        """Beyond `memory` bytes a file in `folder` takes over; None: the system's temporary folder."""
        self._folder = folder
        self._memory = memory
        self._hash = hashlib.sha256()
        self._size = 0
        self._buffer = bytearray()
        self._file: FileIO | None = None
        self._closed = False

    @property
    def sha256(self) -> str:
        """Hex, of everything written so far; it outlives `close`."""
        return self._hash.hexdigest()

    @property
    def size(self) -> int:
        """Bytes written so far; it outlives `close`."""
        return self._size

    def write(self, chunk: bytes) -> None:
        """Append; an OSError of the temporary file passes through and leaves the spool as it was."""
        self._refuse_closed()
        if self._file is None and self._size + len(chunk) > self._memory:
            self._spill()
        if self._file is None:
            self._buffer += chunk
        else:
            _write_at(self._file.fileno(), chunk, self._size)
        self._hash.update(chunk)
        self._size += len(chunk)

    def read(self, limit: int | None = None) -> bytes:
        """The bytes, at most `limit` of them."""
        return self._piece(0, self._size if limit is None else max(0, limit))

    def head(self, count: int) -> bytes:
        """The first `count` bytes, or what there is of them."""
        return self.read(count)

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces of bounded size."""
        for start in range(0, self._size, PIECE):
            yield self._piece(start, PIECE)

    def close(self) -> None:
        """Let go of memory and the temporary file; safe to call twice."""
        self._closed = True
        self._buffer = bytearray()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _spill(self) -> None:
        # nameless from the start (O_TMPFILE where there is one), so that even a killed process leaves nothing behind
        file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  # close() ends it
        try:
            _write_at(file.fileno(), self._buffer, 0)
        except BaseException:
            file.close()
            raise
        self._file = file
        self._buffer = bytearray()

    def _piece(self, start: int, count: int) -> bytes:
        self._refuse_closed()
        count = min(count, self._size - start)
        if self._file is None:
            return bytes(memoryview(self._buffer)[start : start + count])
        return _read_at(self._file.fileno(), start, count)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ValueError("this spool is closed")


class Bytes:
    """Contents over bytes that are in memory anyway."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._sha256 = ""

    @property
    def sha256(self) -> str:
        """Hex, worked out when first asked for."""
        self._sha256 = self._sha256 or hashlib.sha256(self._data).hexdigest()
        return self._sha256

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._data)

    def read(self, limit: int | None = None) -> bytes:
        """The bytes, at most `limit` of them."""
        return self._data if limit is None else self._data[: max(0, limit)]

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces of bounded size."""
        for start in range(0, len(self._data), PIECE):
            yield self._data[start : start + PIECE]

    def close(self) -> None:
        """Nothing to let go of but the object itself."""


def _write_at(descriptor: int, data: bytes | bytearray, offset: int) -> None:
    with memoryview(data) as view:
        done = 0
        # a write may be short, above all near the end of a disk or quota
        while done < len(view):
            done += os.pwrite(descriptor, view[done:], offset + done)


def _read_at(descriptor: int, offset: int, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0:
        part = os.pread(descriptor, count, offset)
        if not part:
            raise OSError("a temporary file lost bytes that were written to it")
        parts.append(part)
        offset += len(part)
        count -= len(part)
    return b"".join(parts)
