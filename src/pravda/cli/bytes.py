"""Copying an artifact's bytes out of the archive."""

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pravda.cli.reading import find, open_kept
from pravda.core.mistake import BadRequest

_PLAIN = frozenset(b"\t\n\r")


async def copy(home: Path | None, wanted: str, name: str, target: str, *, force: bool = True) -> None:
    """Write an artifact to a file, or to stdout for `-`; without `force` a terminal gets plain text only."""
    async with open_kept(home) as archive:
        snapshot = await find(archive, home, wanted)
        pieces = await archive.stream(snapshot, name)
        if target != "-":
            _to_file(pieces, target)
            return
        out = sys.stdout.buffer
        if not force and out.isatty() and not is_plain(await archive.stream(snapshot, name)):
            raise BadRequest(
                "artifact", f"{name} could upset a terminal; write it with -o FILE, or insist with --force"
            )
        _write(pieces, out)


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
