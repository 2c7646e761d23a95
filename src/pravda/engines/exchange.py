"""What one HTTP exchange leaves behind: raw heads, the body, facts of the connection, and what broke."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from pravda.core.evidence import Ending, Tls, Trouble
from pravda.core.request import Pairs
from pravda.engines.decoding import Note
from pravda.engines.spool import Spool

# RFC 9112 §4 wants upper case and a reason phrase; servers leave out either, and browsers do not mind
_STATUS_LINE = re.compile(rb"HTTP/([0-9](?:\.[0-9])?)[ \t]+([0-9]{1,4})(?:[ \t\r\n]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A complete block of response headers, as it came."""

    raw: bytes
    """As libcurl hands it out: byte for byte, but for folded lines, which it joins (RFC 9112 §5.2)."""
    status: int
    version: str
    """"1.0", "1.1" or "2"."""
    headers: Pairs
    """In order and spelling of the server, bytes read as latin-1."""

    @classmethod
    def parse(cls, raw: bytes) -> "Head | None":
        """The head in raw lines; None: its first line is no status line."""
        first, *rest = raw.split(b"\n")
        found = _STATUS_LINE.match(first)
        if not found:
            return None
        headers: list[tuple[str, str]] = []
        for line in rest:
            text = line.rstrip(b"\r").decode("latin-1")
            if text:
                name, _, value = text.partition(":")
                headers.append((name.rstrip(" \t"), value.strip(" \t")))
        return cls(raw=raw, status=int(found[2]), version=found[1].decode(), headers=tuple(headers))

    def values(self, name: str) -> list[str]:
        """All values of a header, whatever its letter case."""
        return [value for key, value in self.headers if key.lower() == name]


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What one exchange left behind; whoever holds it closes the spools."""

    url: str
    request_head: bytes = b""
    """As sent; empty: nothing was."""
    request_body: bytes = b""
    head: Head | None = None
    """The final response's; None: no complete one came."""
    head_fragment: bytes = b""
    """Header lines of a block that never ended."""
    interim: bytes = b""
    """Raw 1xx blocks."""
    trailers: bytes = b""
    """Raw header lines after a chunked body (RFC 9112 §7.1.2)."""
    headers_at: datetime | None = None
    """When the final head was complete; None: it never was."""
    content: Spool | None = None
    """The body without its coding; None: not a byte of it came."""
    payload: Spool | None = None
    """The coded payload, where a coding was removed."""
    ending: Ending = Ending.COMPLETE
    wire_bytes: int = 0
    """Bytes of the payload, chunk framing removed."""
    notes: tuple[Note, ...] = ()
    trouble: Trouble | None = None
    refused: tuple[str, ...] = ()
    """Addresses that the guard did not let through."""
    remote_address: str | None = None
    """The server's; None: not connected, or a proxy stood between."""
    tls: Tls | None = None
    certificates: bytes = b""
    """The server's chain, PEM; empty: none was shown."""
    timings: dict[str, float] = field(default_factory=dict)
    """libcurl's, seconds from the start of the exchange."""

    def close(self) -> None:
        """Let go of the body."""
        for spool in (self.content, self.payload):
            if spool:
                spool.close()
