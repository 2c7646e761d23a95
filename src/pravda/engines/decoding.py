"""From the bytes of a response body to its content: the content codings removed, with an honest ending."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pravda.engines.codings import FORMS, STEP
from pravda.engines.layer import Ending, Layer, Note, Run
from pravda.engines.plain import HEAD, may_be_gzip_itself, may_be_plain

__all__ = ["MAX_LAYERS", "MAX_RATIO", "Decoded", "Decoder", "Ending", "Note", "codings"]

MAX_LAYERS: Final = 5  # codings in a row; a server uses one, a mistaken proxy makes it two
# Real content of more than 32 MiB (less never counts) shrinks some tens of times. Filler alone reaches what
# DEFLATE can do, 230:1 at its fastest and 1,032:1 at most; brotli and zstd have no limit worth the name.
MAX_RATIO: Final = 200

_PIECE: Final = 16 * 1024  # bytes given to a decoder at once, for the libraries copy what they leave unread

_ALIASES: Final = {"x-gzip": "gzip", "x-compress": "compress"}  # RFC 9110 §8.4.1.1, §8.4.1.3
_NO_CODING: Final = frozenset({"identity", "none"})
_HARMLESS: Final = frozenset({"aws-chunked"})  # the framing of an upload, which the store removed long ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What became of a body."""

    ending: Ending  # how the decoding came to its end
    notes: tuple[Note, ...]  # in the order found; empty when all was as declared
    coded: bool  # a coding was removed: the payload is not the content and must be kept too
    decoded_bytes: int  # bytes of content the sink received
    detail: str  # one sentence for people on a bad ending; empty when complete


def codings(values: Sequence[str]) -> tuple[str, ...]:
    """List the codings of all Content-Encoding values in the order in which they were applied."""
    # RFC 9110 §8.4.1: names do not depend on case; §5.3: several lines are one list; §5.6.1.2: empty members go.
    names = (name.strip().lower() for value in values for name in value.split(","))
    return tuple(_ALIASES.get(name, name) for name in names if name)


class _Outlet:
    """The end of the way: hands content to the sink, up to the cap and not a byte beyond."""

    __slots__ = ("decoded_bytes", "head", "max_bytes", "run", "sink")

    def __init__(self, sink: Callable[[bytes], object], run: Run, max_bytes: int | None) -> None:
        self.sink = sink
        self.run = run
        self.max_bytes = max_bytes
        self.decoded_bytes = 0
        self.head = b""  # first bytes of the content

    def take(self, data: bytes) -> None:
        if self.max_bytes is not None and len(data) > self.max_bytes - self.decoded_bytes:
            data = data[: self.max_bytes - self.decoded_bytes]
            self.run.conclude(Ending.TOO_LARGE, f"The content is larger than {self.max_bytes} bytes.")
        if not data:
            return
        if len(self.head) < HEAD:
            self.head += data[: HEAD - len(self.head)]
        self.decoded_bytes += len(data)
        self.sink(data)


class Decoder:
    """Decodes one response body piece by piece, in memory that does not grow with the content."""

    __slots__ = ("_entry", "_layers", "_outlet", "_refusal", "_run", "_unknown")

    def __init__(
        self,
        content_encoding: Sequence[str],
        sink: Callable[[bytes], object],
        *,
        content_type: str | None = None,
        max_bytes: int | None = None,
        max_ratio: float = MAX_RATIO,
    ) -> None:
        """Prepare for the values of all Content-Encoding headers, none where there was no such header.

        `max_bytes` caps what the sink receives (None: no cap), `max_ratio` the decoded bytes per byte fed, once
        32 MiB are decoded.
        """
        self._run = Run((content_type or "").partition(";")[0].strip().lower(), max_ratio)
        self._outlet = _Outlet(sink, self._run, max_bytes)
        self._entry: Callable[[bytes], object] = self._outlet.take
        self._layers: tuple[Layer, ...] = ()  # in the order in which the bytes pass them
        self._unknown = ""  # codings that nobody knows; empty: none
        self._refusal = ""  # why nothing is decoded; empty: it is
        names = codings(content_encoding)
        if names:
            self._plan(names)
        elif content_encoding and not may_be_gzip_itself(self._run.content_type):
            self._stack(["gzip"], declared=False)

    def feed(self, chunk: bytes) -> bool:
        """Decode the next bytes; False once no more are wanted."""
        if self._run.ending is not None:
            return False
        if not self._layers:
            self._entry(chunk)
        else:
            for at in range(0, len(chunk), _PIECE):
                piece = chunk[at : at + _PIECE]  # the chunk itself when it is no larger
                self._run.wire_bytes += len(piece)
                self._entry(piece)
        return self._run.ending is None

    def finish(self, *, complete: bool = True) -> Decoded:
        """Say how it ended; `complete` is False when the transfer itself was cut."""
        for layer in self._layers:
            layer.close(complete=complete)
        outlet, run = self._outlet, self._run
        if self._refusal and outlet.decoded_bytes:
            run.conclude(Ending.UNSUPPORTED, self._refusal)
        if self._unknown and not may_be_plain(outlet.head, run.content_type):
            unread = f"The content coding {self._unknown} is unknown, and the bytes are not plain content."
            run.conclude(Ending.UNSUPPORTED, unread)
        return Decoded(
            ending=run.ending or Ending.COMPLETE,
            notes=tuple(run.notes),
            coded=any(layer.removed for layer in self._layers),
            decoded_bytes=outlet.decoded_bytes,
            detail=run.detail,
        )

    def _plan(self, names: Sequence[str]) -> None:
        """Sort the codings into those to remove, those to mention and those too many."""
        if "none" in names:
            self._run.note(
                "content_encoding_none", "Content-Encoding says none, which is no coding: ignored."
            )
        applied = [name for name in names if name not in _NO_CODING]
        if len(applied) > MAX_LAYERS:
            self._refusal = f"{len(applied)} content codings in a row are more than {MAX_LAYERS}."
            return
        unknown = [name for name in applied if name not in FORMS]
        for name in unknown:
            self._run.note(
                "unknown_content_encoding", f"The content coding {_quoted(name)} is unknown: ignored."
            )
        self._unknown = ", ".join(_quoted(name) for name in unknown if name not in _HARMLESS)
        self._stack([name for name in applied if name in FORMS])

    def _stack(self, names: Sequence[str], *, declared: bool = True) -> None:
        """Lay a layer for each coding, so that the one applied last is removed first (RFC 9110 §8.4)."""
        limit = None
        for name in names:
            layer = Layer(name, self._run, self._entry, limit=limit, declared=declared)
            self._layers = (layer, *self._layers)
            self._entry = layer.push
            if self._outlet.max_bytes is not None:
                # A coded form is smaller than its content, or larger by a trifle.
                limit = self._outlet.max_bytes + self._outlet.max_bytes // 8 + STEP


def _quoted(name: str) -> str:
    """Show a name from a header, which may be anything."""
    return repr(name if len(name) <= 40 else name[:40] + "…")
