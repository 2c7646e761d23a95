"""The content codings Pravda can remove: how each begins, and a decoder that hands out bounded pieces."""

import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import brotli

if sys.version_info >= (3, 14):  # pragma: no cover - the standard library has it from 3.14 on
    from compression import zstd
else:
    from backports import zstd

STEP: Final = 64 * 1024  # bytes wanted of one step; brotli may round up to its own block, 96 KiB
ZSTD_HEADER: Final = 18  # bytes: the longest frame header, RFC 8878 §3.1.1
_ZSTD_WINDOW_LOG: Final = 23  # 8 MiB, the most a recipient has to allow: RFC 9659 §3
_ZSTD_OPTIONS: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}

FAULTS: Final = (zlib.error, brotli.error, zstd.ZstdError)  # what a step raises on bytes it cannot read


class Stream(Protocol):
    """One coded stream from its first byte to its own end; gzip members and zstd frames are one each."""

    more: bool  # output is waiting: call step(b"") before giving new bytes
    ended: bool  # the stream's own end was read
    unused: bytes  # what followed that end in the piece last given

    def step(self, data: bytes) -> bytes:
        """Take a piece, or nothing while there is more, and return a bounded piece of output."""
        ...


class _Inflate:
    """DEFLATE in one of its three wrappings, chosen by zlib's window bits."""

    __slots__ = ("_inflater", "ended", "more", "unused")

    def __init__(self, window_bits: int) -> None:
        self._inflater = zlib.decompressobj(window_bits)
        self.more = False
        self.ended = False
        self.unused = b""

    def step(self, data: bytes) -> bytes:
        inflater = self._inflater
        out = inflater.decompress(inflater.unconsumed_tail if self.more else data, STEP)
        self.ended = inflater.eof
        # A full piece may leave a match half copied inside zlib, with no input left to show for it.
        self.more = not self.ended and (len(out) == STEP or bool(inflater.unconsumed_tail))
        self.unused = inflater.unused_data
        return out


class _Brotli:
    """Brotli; the library fails on bytes after the end instead of handing them back."""

    __slots__ = ("_decompressor", "ended", "more", "unused")

    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()
        self.more = False
        self.ended = False
        self.unused = b""

    def step(self, data: bytes) -> bytes:
        out: bytes = self._decompressor.process(data, output_buffer_limit=STEP)
        self.ended = self._decompressor.is_finished()
        # It says that it can accept more as soon as the input is used up, even with output still to come.
        self.more = not self.ended and (len(out) >= STEP or not self._decompressor.can_accept_more_data())
        return out


class _Zstd:
    """One Zstandard frame, or one skippable frame, which holds no content."""

    __slots__ = ("_decompressor", "ended", "more", "unused")

    def __init__(self) -> None:
        self._decompressor = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
        self.more = False
        self.ended = False
        self.unused = b""

    def step(self, data: bytes) -> bytes:
        out = self._decompressor.decompress(data, STEP)
        self.ended = self._decompressor.eof
        self.more = not self.ended and not self._decompressor.needs_input
        self.unused = self._decompressor.unused_data if self.ended else b""
        return out


def _nothing_refused(head: bytes) -> str:
    return ""


def _zstd_refusal(head: bytes) -> str:
    """Say what in a frame header asks for more than a recipient must offer; empty when nothing does."""
    head = head.ljust(ZSTD_HEADER, b"\0")
    descriptor = head[4]  # RFC 8878 §3.1.1.1.1
    single_segment = bool(descriptor & 0x20)
    at = 5
    exponent, mantissa = divmod(head[at], 8)  # §3.1.1.1.2
    window = (1 << 10 + exponent) // 8 * (8 + mantissa)
    at += not single_segment
    dictionary = head[at : at + (0, 1, 2, 4)[descriptor & 3]]  # §3.1.1.1.3
    at += len(dictionary)
    if single_segment:  # §3.1.1.1.4: the whole content is the window
        width = (1, 2, 4, 8)[descriptor >> 6]
        window = int.from_bytes(head[at : at + width], "little")
    if any(dictionary):
        return "it needs a dictionary"
    return "its window is larger than 8 MiB" if window > 1 << _ZSTD_WINDOW_LOG else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way in which a coding is written."""

    start: Callable[[], Stream]  # a decoder for one stream
    magics: tuple[bytes, ...] = ()  # every stream starts with one of these; empty: it has no signature
    several: bool = False  # streams may follow one another and make one content
    padding: bytes = b""  # bytes that may fill the room after a stream; empty: none
    refusal: Callable[[bytes], str] = _nothing_refused  # from a stream's first bytes: why it is unsupported

    def fits(self, head: bytes) -> bool | None:
        """Whether a stream of this form starts with these bytes; None when there are too few to tell."""
        if not self.magics or head.startswith(self.magics):
            return True
        return None if any(magic.startswith(head) for magic in self.magics) else False


# RFC 1950 §2.2: method 8, a window of at most 32 KiB, and a check that makes both bytes a multiple of 31.
_ZLIB_MAGICS: Final = tuple(
    first.to_bytes() + second.to_bytes()
    for first in range(0x08, 0x79, 0x10)
    for second in range(256)
    if (first << 8 | second) % 31 == 0
)
# RFC 8878 §3.1.1 and §3.1.2: a frame, or one of sixteen skippable frames.
_ZSTD_MAGICS: Final = (
    b"\x28\xb5\x2f\xfd",
    *(first.to_bytes() + b"\x2a\x4d\x18" for first in range(0x50, 0x60)),
)

_ZLIB: Final = Form(start=lambda: _Inflate(zlib.MAX_WBITS), magics=_ZLIB_MAGICS)
_RAW: Final = Form(start=lambda: _Inflate(-zlib.MAX_WBITS))

FORMS: Final[Mapping[str, tuple[Form, ...]]] = MappingProxyType(
    {
        "gzip": (
            Form(
                start=lambda: _Inflate(16 + zlib.MAX_WBITS),
                magics=(b"\x1f\x8b",),  # RFC 1952 §2.3.1
                several=True,  # RFC 1952 §2.2
                padding=b"\0",
            ),
        ),
        # RFC 9110 §8.4.1.2: zlib is meant, but some servers send DEFLATE without its wrapping.
        "deflate": (_ZLIB, _RAW),
        "br": (Form(start=_Brotli),),
        "zstd": (Form(start=_Zstd, magics=_ZSTD_MAGICS, several=True, refusal=_zstd_refusal),),
    }
)
"""The forms of each coding, in the order in which they are tried."""
