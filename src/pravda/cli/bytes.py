"""Copying an artifact's bytes out of the archive."""

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pravda.archive.local import LocalArchive
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot
from pravda.errors import Damaged, NotFound
from pravda.settings import load

_PLAIN = frozenset(b"\t\n\r")


async def pieces_of(archive: LocalArchive, snapshot_id: str, name: str) -> Iterator[bytes]:
    """An artifact in pieces, checked as a whole before the first; raises NotFound and Damaged."""
    snapshot = await archive.get(snapshot_id)
    if snapshot is None:
        raise NotFound(f"there is no snapshot {snapshot_id[:60]!r} in this archive")
    holder = await _holder(archive, snapshot) if name in ("body", "payload") else snapshot
    pieces = archive.stream(holder, name)
    if pieces is None:
        names = ", ".join(artifact.name for artifact in holder.evidence.artifacts) or "none"
        raise NotFound(f"snapshot {snapshot.id} has no artifact {name[:60]!r}; it has: {names}")
    return pieces


async def copy(home: Path | None, snapshot_id: str, name: str, target: str, *, force: bool = True) -> None:
    """Write an artifact to a file, or to stdout for `-`; without `force` a terminal gets plain text only."""
    archive = LocalArchive.open(load(home=home).home)
    try:
        pieces = await pieces_of(archive, snapshot_id, name)
        if target != "-":
            _to_file(pieces, target)
            return
        out = sys.stdout.buffer
        if not force and out.isatty() and not is_plain(await pieces_of(archive, snapshot_id, name)):
            raise BadRequest(
                "artifact", f"{name} could upset a terminal; write it with -o FILE, or insist with --force"
            )
        _write(pieces, out)
    finally:
        await archive.close()


async def _holder(archive: LocalArchive, snapshot: Snapshot) -> Snapshot:
    """The snapshot that holds the bytes, which a 304 only points at."""
    if snapshot.content_from is None:
        return snapshot
    holder = await archive.get(snapshot.content_from)
    if holder is None:
        raise Damaged(
            f"snapshot {snapshot.id} points at {snapshot.content_from}, which is not in this archive"
        )
    return holder


def is_plain(pieces: Iterator[bytes]) -> bool:
    """Whether the bytes are UTF-8 without control characters, so that they cannot steer a terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            if any(_steers(letter) for letter in decoder.decode(piece)):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _steers(letter: str) -> bool:
    code = ord(letter)
    return (code < 0x20 and code not in _PLAIN) or 0x7F <= code < 0xA0


def _to_file(pieces: Iterator[bytes], target: str) -> None:
    try:
        with open(target, "wb") as file:
            _write(pieces, file)
    except OSError as problem:
        raise BadRequest("output", f"{target!r:.200} cannot be written: {problem.strerror}") from None


def _write(pieces: Iterator[bytes], out: BinaryIO) -> None:
    for piece in pieces:
        out.write(piece)
    out.flush()
