"""What was observed of one attempt; it carries no judgement."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pravda.core.states import Reason


class Phase(StrEnum):
    """Where in an exchange something happened."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    RESPONSE = "response"
    BODY = "body"
    REDIRECT = "redirect"
    STORE = "store"
    CHECK = "check"


class Ending(StrEnum):
    """How the content ended, as far as the bytes tell."""

    COMPLETE = "complete"
    CUT = "cut"
    """The connection ended before the declared end."""
    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    """Our own limit on size or on the ratio of decoded to coded bytes ended it."""
    TRUNCATED_CODING = "truncated_coding"
    """All bytes came, but the content coding has no end of stream."""
    CORRUPT = "corrupt"
    """The content coding breaks after some bytes."""
    UNSUPPORTED = "unsupported"
    """A content coding that nobody here reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What broke on the way, in the engine's own words."""

    reason: Reason
    phase: Phase
    detail: str
    """One sentence for people."""
    raw: str = ""
    """The library's message, untouched."""
    errno: int | None = None
    """The operating system's error number, where there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something odd that is worth telling but decides nothing by itself."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """RFC 9110 §8.8 validators, byte for byte as received; None where none came."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One HTTP redirect that was followed."""

    url: str
    status: int
    received_at: datetime | None = None
    """When its headers were complete; None: the engine does not tell."""
    remote_address: str | None = None
    """Of the server that answered; None: the engine does not tell, or a proxy stood between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Facts of the secure connection the final response came over."""

    version: str | None = None
    """As OpenSSL names it, "TLSv1.3"."""
    cipher: str | None = None
    verified: bool = True
    """False: the caller asked for `tls: "insecure"`, so the certificate was not held against anything."""
    problem: str | None = None
    """What verification would have said, when it was not verified and was wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete block of response headers."""

    status: int
    version: str
    """"1.0", "1.1", "2" or "3"."""
    headers: tuple[tuple[str, str], ...]
    """In order and in the server's spelling; bytes read as latin-1; Set-Cookie values redacted."""
    remote_address: str | None = None
    tls: Tls | None = None

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a header, whatever its letter case."""
        wanted = name.lower()
        return tuple(value for key, value in self.headers if key.lower() == wanted)

    def value(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return next(iter(self.values(name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The body as served, content-coding removed, never re-encoded."""

    sha256: str
    bytes: int
    media_type: str | None
    """type/subtype from the header, else sniffed; None for an empty body without one."""
    charset: str | None
    """WHATWG name in lower case; None where the content is no text."""
    charset_from: str | None
    """"bom", "header", "meta" or "default"."""
    ending: Ending = Ending.COMPLETE
    wire_bytes: int = 0
    """Bytes of the coded payload, chunk framing removed."""
    declared_bytes: int | None = None
    """What Content-Length said; None: it said nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One kept piece of evidence and where its bytes are."""

    name: str
    """body, payload, request, response, hop-1-head, …"""
    media_type: str
    bytes: int
    sha256: str
    redacted: bool = False
    """Secrets were taken out before it was hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds from the start of the final hop; None where the phase was not reached; total spans all hops."""

    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything one attempt saw."""

    url: str
    """As asked, credentials taken out."""
    final_url: str
    """Of the last request that was made."""
    engine: str
    method: str
    requested_at: datetime
    captured_at: datetime
    """When the final response's headers were complete, else the end of the attempt."""
    response: Response | None = None
    """The final response; None: no complete headers came."""
    content: Content | None = None
    redirects: tuple[Hop, ...] = ()
    client_redirects: tuple[str, ...] = ()
    """Where the page itself would send a browser (meta refresh, Refresh header); recorded, not followed."""
    trouble: Trouble | None = None
    sent: Validators = field(default_factory=Validators)
    """The validators that went out with the final request; empty: it was unconditional."""
    asked_headers: tuple[str, ...] = ()
    """Lower-case names of the headers the caller gave; some answers mean something else then."""
    notes: tuple[Note, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    timings: Timings = field(default_factory=Timings)

    @property
    def is_confirmation(self) -> bool:
        """Whether the answer is a 304 to validators that were sent (RFC 9110 §15.4.5): the held page is still the page."""
        return self.response is not None and self.response.status == 304 and bool(self.sent)

    @property
    def validators(self) -> Validators:
        """The validators the final response carried; blank ones are none (RFC 9110 §8.8.3)."""
        if self.response is None:
            return Validators()
        etag, modified = self.response.value("etag"), self.response.value("last-modified")
        return Validators(
            etag=etag if etag and etag.strip() else None,
            last_modified=modified if modified and modified.strip() else None,
        )
