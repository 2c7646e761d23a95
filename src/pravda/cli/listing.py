"""A list of URLs, one a line, read as it is needed: from a file or a pipe of any length."""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from pravda.core.mistake import BadRequest

LONGEST_LINE = 65_536
"""Bytes; longer lines are bad lines."""

_PIECE = 65_536  # bytes read at a time
_BOM = "\ufeff"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

_Waiter = asyncio.Future[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line that is neither blank nor a comment."""

    number: int
    """From 1, blank lines and comments counted."""
    text: str
    problem: str = ""
    """What keeps it from being read as text; empty: nothing."""


class Listing:
    """A list by its file's name; `-` is stdin."""

    def __init__(self, name: str) -> None:
        """Raises BadRequest."""
        self.reached = 0
        """The number of the last line that was read."""
        self.count = 0
        """How many lines were read; less than reached where nothing stands behind the last line's end."""
        self._name = name
        try:
            self._descriptor = os.dup(sys.stdin.fileno()) if name == "-" else os.open(name, os.O_RDONLY)
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None
        self._wanted: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Waiter] | None] = SimpleQueue()

    def length(self) -> int | None:
        """How many lines there are; None: a pipe, which nobody can know."""
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return None
        lines, at = 1, os.lseek(self._descriptor, 0, os.SEEK_CUR)
        while piece := os.pread(self._descriptor, _PIECE, at):
            lines, at = lines + piece.count(b"\n"), at + len(piece)
        return lines

    async def lines(self) -> AsyncGenerator[Text, None]:
        """The lines in their order; raises BadRequest where the list cannot be read on."""
        # a daemon of its own, so that a pipe that says nothing holds up neither captures nor the end of the program
        threading.Thread(target=self._read, name="pravda-list", daemon=True).start()
        rest, skipping, ended = b"", False, False
        try:
            while not ended:
                piece = await self._piece()
                ended = not piece
                empty_end = ended and not rest and not skipping
                *whole, rest = (rest + (piece or b"\n")).split(b"\n")
                for line in whole:
                    self.reached += 1
                    self.count = self.reached - empty_end
                    if text := self._text(line, too_long=skipping):
                        yield text
                    skipping = False
                if len(rest) > LONGEST_LINE:
                    rest, skipping = b"", True
        finally:
            self._wanted.put(None)

    def _text(self, line: bytes, *, too_long: bool) -> Text | None:
        if self.reached == 1 and line.startswith(_UTF16):
            raise BadRequest("from", f"{self._name!r:.200} is UTF-16; save it as UTF-8")
        if too_long or len(line) > LONGEST_LINE:
            return Text(number=self.reached, text="", problem=f"is longer than {LONGEST_LINE:,} bytes")
        try:
            text = line.decode().strip().removeprefix(_BOM).strip()
        except UnicodeDecodeError:
            return Text(number=self.reached, text="", problem="is no UTF-8")
        return None if not text or text.startswith("#") else Text(number=self.reached, text=text)

    async def _piece(self) -> bytes:
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        self._wanted.put((loop, waiter))
        try:
            return await waiter
        except OSError as problem:
            raise self._unreadable(problem) from None

    def _read(self) -> None:
        while wanted := self._wanted.get():
            loop, waiter = wanted
            problem, piece = None, b""
            try:
                piece = os.read(self._descriptor, _PIECE)
            except OSError as raised:
                problem = raised
            with suppress(RuntimeError):  # a closed loop: nobody waits there any more
                loop.call_soon_threadsafe(_settle, waiter, piece, problem)
        os.close(self._descriptor)

    def _unreadable(self, problem: OSError | ValueError) -> BadRequest:
        said = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        return BadRequest("from", f"{self._name!r:.200} cannot be read: {said}")


def _settle(waiter: _Waiter, piece: bytes, problem: OSError | None) -> None:
    if waiter.done():
        return
    if problem is None:
        waiter.set_result(piece)
    else:
        waiter.set_exception(problem)
