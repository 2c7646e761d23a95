"""One content coding on the way from the bytes of a body to its content."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from pravda.engines.codings import FAULTS, FORMS, STEP, Form, Stream
from pravda.engines.plain import HEAD, is_surely_plain

RATIO_FREE: Final = 32 * 1024 * 1024  # decoded bytes that never make a bomb, however small the payload

_TEXT_LEAST: Final = 16  # printable bytes; fewer may be chance
_REPLAY: Final = 1024 * 1024  # coded bytes of one stream kept so that a failed step can be taken again
_STREAMS_FREE: Final = 10_000  # gzip members or zstd frames; a decoder for each costs time ...
_STREAM_LEAST: Final = 4096  # ... so each one beyond those must be paid for with this many decoded bytes


class Ending(StrEnum):
    """How decoding came to its end."""

    COMPLETE = "complete"  # every decoder read its own end of stream, or there was nothing to decode
    TRUNCATED = "truncated"  # the input ended before a decoder's end of stream
    CORRUPT = "corrupt"  # a checksum or the format was wrong
    TOO_LARGE = "too_large"  # a cap on decoded size, on ratio or on the number of members was reached
    UNSUPPORTED = "unsupported"  # a coding, a number of codings or a window that is not decoded here


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something odd that did not stop the decoding."""

    code: str  # a warning's code, such as trailing_bytes
    detail: str  # one sentence for people


class Run:
    """What the layers of one decoding share: its limits, its notes and its ending."""

    __slots__ = ("content_type", "detail", "ending", "max_ratio", "notes", "wire_bytes")

    def __init__(self, content_type: str, max_ratio: float) -> None:
        self.content_type = content_type  # type and subtype in lower case; empty: unknown
        self.max_ratio = max_ratio  # decoded bytes per wire byte
        self.wire_bytes = 0
        self.notes: list[Note] = []
        self.ending: Ending | None = None  # None: nothing was wrong so far
        self.detail = ""

    def conclude(self, ending: Ending, detail: str) -> None:
        """Set the ending; the first trouble is the cause of those after it."""
        if self.ending is None:
            self.ending, self.detail = ending, detail

    def note(self, code: str, detail: str) -> None:
        """Add a note, once."""
        note = Note(code=code, detail=detail)
        if note not in self.notes:
            self.notes.append(note)


class _State(StrEnum):
    """What the next byte pushed into a layer is."""

    OPENING = "opening"  # the start of a stream, or not
    DECODING = "decoding"  # part of a stream
    DOUBTING = "doubting"  # part of something the decoder could not read, and too little of it to judge by
    SKIPPING = "skipping"  # behind the last stream, and of no use
    PASSING = "passing"  # content: the coding was never applied


class Layer:
    """Removes one coding from the bytes pushed through it, or finds that it was never applied.

    Gzip and zstd show themselves by their first bytes. Brotli and deflate do not, and plain text can pass for
    the start of either, so what they yield is held until enough was read to believe it.
    """

    __slots__ = (
        "_again",
        "_coded",
        "_coded_bytes",
        "_declared",
        "_fault",
        "_form",
        "_head",
        "_held",
        "_holding",
        "_limit",
        "_name",
        "_next",
        "_produced",
        "_run",
        "_state",
        "_stream",
        "_streams",
        "_total",
        "_trailing",
        "removed",
    )
    _form: Form  # set, with the stream, when the first one begins
    _stream: Stream

    def __init__(
        self, name: str, run: Run, give: Callable[[bytes], object], *, limit: int | None, declared: bool
    ) -> None:
        self._name = name
        self._run = run
        self._next = give
        self._limit = limit  # bytes this layer may pass on; None: no limit of its own
        self._declared = declared  # False: the coding is a guess, and nothing is said when it is wrong
        self._state = _State.OPENING
        self._head = b""  # first bytes, too few to tell what they are
        self._streams = 0  # streams begun
        self._coded: list[bytes] | None = None  # coded bytes of this stream; None: more than are kept
        self._coded_bytes = 0  # their number
        self._produced = 0  # bytes this stream has yielded
        self._again = 0  # bytes yet to be yielded a second time, after a failed step
        self._fault = ""  # the library's words on the failed step
        self._holding = False  # what is yielded waits in `_held`
        self._held: list[bytes] = []
        self._total = 0  # decoded bytes passed on
        self._trailing = 0  # bytes behind the last stream
        self.removed = False  # the bytes passed on are not those that came

    def push(self, data: bytes) -> None:
        """Take the next bytes."""
        while data and self._run.ending is None:
            match self._state:
                case _State.OPENING:
                    data = self._open(data)
                case _State.DECODING:
                    data = self._decode(data)
                case _State.DOUBTING:
                    data = self._doubt(data)
                case _State.SKIPPING:
                    data = self._skip(data)
                case _State.PASSING:
                    self._next(data)
                    return
                case never:
                    assert_never(never)

    def close(self, *, complete: bool) -> None:
        """Draw the conclusions once no more will come; `complete` is False when the transfer was cut."""
        if self._state is _State.DOUBTING:
            self._next(self._fail())
        doubtful = self._holding and (self._state is _State.DECODING or self._trailing > 0)
        if doubtful and self._is_text():
            self._next(self._as_served())
        self._settle()
        if self._head and not self._declared:
            self._next(self._head)
        elif self._head or self._state is _State.DECODING:
            self.removed = True
            how = "ends too early" if complete else "was cut with the transfer"
            self._run.conclude(
                Ending.TRUNCATED, f"The {self._name} data {how}, after {self._total} decoded bytes."
            )
        self._head = b""
        if self._trailing:
            left = (
                f"{self._trailing} bytes behind the end of the {self._name} data are not part of the content."
            )
            self._run.note("trailing_bytes", left)

    def _open(self, data: bytes) -> bytes:
        """Tell from the first bytes whether a stream begins here."""
        head = self._head + data
        if self._streams:
            head = head.lstrip(self._form.padding)
        for form in (self._form,) if self._streams else FORMS[self._name]:
            fits = form.fits(head)
            if fits is None:
                self._head = head
                return b""
            if fits:
                self._begin(form)
                break
        else:
            self._refuse()
        self._head = b""
        return head

    def _refuse(self) -> None:
        """Find that no stream begins here."""
        if self._streams:
            self._state = _State.SKIPPING
        else:
            self._as_served()

    def _begin(self, form: Form) -> None:
        self._streams += 1
        if self._streams > _STREAMS_FREE + self._total // _STREAM_LEAST:
            detail = (
                f"The {self._name} data has more than {_STREAMS_FREE} members with next to nothing in them."
            )
            self._run.conclude(Ending.TOO_LARGE, detail)
        self._form, self._stream = form, form.start()
        self._coded, self._coded_bytes, self._produced = [], 0, 0
        self._holding = not form.several  # those that may follow one another are known by their first bytes
        self._state = _State.DECODING
        self.removed = True
        if not self._declared:
            self._run.note(
                "blank_content_encoding", "Content-Encoding is blank, but the bytes are gzip: decoded."
            )

    def _decode(self, data: bytes) -> bytes:
        """Decode a piece, and return what follows the end of the stream."""
        self._remember(data)
        rest = self._stream.unused if self._drive(data) else self._salvage(data)
        if rest is None:
            self._state = _State.DOUBTING
            return self._doubt(b"")
        if self._stream.ended:
            self._end(rest)
            return rest
        return self._weigh() if self._produced else b""

    def _drive(self, data: bytes) -> bool:
        """Yield all that these bytes decode to; False when the decoder cannot read them."""
        stream = self._stream
        while True:
            try:
                out = stream.step(data)
            except FAULTS as fault:
                self._fault = str(fault)
                return False
            self._yield(out)
            if not stream.more or self._run.ending is not None:
                return True
            data = b""

    def _salvage(self, last: bytes) -> bytes | None:
        """Repeat a failed step byte by byte, for the libraries drop what it had decoded before its fault.

        Returns what follows the end of the stream, since bytes there are a fault to the brotli library; None
        when the stream is broken, or so long that its beginning was not kept.
        """
        if self._coded is None:
            return None
        self._stream = self._form.start()
        self._again = self._produced
        for piece in self._coded[:-1]:
            self._drive(piece)
        for at in range(len(last)):  # pragma: no branch - it fails again where it failed before
            if not self._drive(last[at : at + 1]) or self._run.ending is not None:
                break
            if self._stream.ended:
                return last[at + 1 :]
        return None

    def _end(self, rest: bytes) -> None:
        """Close a stream that read its own end."""
        self._state = _State.OPENING if self._form.several else _State.SKIPPING
        if self._holding and self._coded and rest:
            self._coded[-1] = self._coded[-1][: -len(rest)]  # the rest comes by again
            self._coded_bytes -= len(rest)

    def _doubt(self, data: bytes) -> bytes:
        """Wait for a head to judge by, so that the answer does not depend on how the bytes arrive."""
        self._remember(data)
        if self._holding and self._produced and self._coded_bytes < HEAD:
            return b""
        return self._fail()

    def _fail(self) -> bytes:
        """Give up on a stream, or on the belief that there was one: then return what came as content."""
        never_began = not self._form.magics and not self._produced
        if self._holding and (never_began or self._is_text(least=1)):
            return self._as_served()
        refusal = self._form.refusal(self._opening())
        self._settle()
        self._state = _State.SKIPPING
        if refusal:
            self._run.conclude(
                Ending.UNSUPPORTED, f"The {self._name} data cannot be decoded here: {refusal}."
            )
        else:
            where = f"after {self._total} decoded bytes ({self._fault})"
            self._run.conclude(Ending.CORRUPT, f"The {self._name} data is damaged {where}.")
        return b""

    def _skip(self, data: bytes) -> bytes:
        """Count bytes behind the last stream."""
        self._trailing += len(data)
        if self._holding:
            self._remember(data)
        return self._weigh()

    def _weigh(self) -> bytes:
        """Once enough was read, believe the decoder, or else return the bytes so far as content."""
        if self._holding and self._coded_bytes >= HEAD:
            if self._is_text():
                return self._as_served()
            self._settle()
        return b""

    def _as_served(self) -> bytes:
        """Find that the coding was never applied, and return the bytes so far, which are content."""
        served = b"".join(self._coded or ())
        self._held, self._holding, self._coded, self._trailing = [], False, None, 0
        self._state = _State.PASSING
        self.removed = False
        if self._declared:
            detail = f"Content-Encoding says {self._name}, but the bytes are not: kept as they came."
            self._run.note("content_encoding_mismatch", detail)
        return served

    def _remember(self, data: bytes) -> None:
        if self._coded is None:
            return
        self._coded.append(data)
        self._coded_bytes += len(data)
        if self._coded_bytes > _REPLAY:
            self._coded = None
            self._settle()

    def _opening(self) -> bytes:
        """Return the first bytes of the stream; nothing once they are forgotten."""
        return b"".join(self._coded or ())[:HEAD]

    def _is_text(self, least: int = _TEXT_LEAST) -> bool:
        head = self._opening()
        return len(head) >= least and is_surely_plain(head, self._run.content_type)

    def _yield(self, out: bytes) -> None:
        """Take decoded bytes, save those that an earlier try yielded already."""
        if self._again:
            known = min(self._again, len(out))
            self._again -= known
            out = out[known:]
        if not out:
            return
        self._produced += len(out)
        if not self._holding:
            self._emit(out)
            return
        self._held.append(out)
        if self._produced >= STEP:
            self._settle()

    def _settle(self) -> None:
        """Believe the decoder, and pass on what was held."""
        self._holding = False
        held, self._held = self._held, []
        for out in held:
            self._emit(out)

    def _emit(self, out: bytes) -> None:
        """Pass decoded bytes on, within the limits."""
        run, total = self._run, self._total + len(out)
        if total > RATIO_FREE and total > run.max_ratio * run.wire_bytes:
            much = f"more than {run.max_ratio:g} times the {run.wire_bytes} bytes received"
        elif self._limit is not None and total > self._limit:
            much = f"more than {self._limit} bytes"
        else:
            self._total = total
            self._next(out)
            return
        run.conclude(Ending.TOO_LARGE, f"The {self._name} data unpacks to {much}.")
