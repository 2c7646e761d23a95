"""From exchanges to evidence: what an HTTP attempt saw, in the words of the law, secrets taken out."""

from dataclasses import dataclass, field
from datetime import datetime

from pravda.core import redact
from pravda.core.charset import detect
from pravda.core.evidence import (
    Artifact,
    Content,
    Ending,
    Evidence,
    Hop,
    Note,
    Response,
    Timings,
    Trouble,
    Validators,
)
from pravda.core.media import effective_type
from pravda.core.ports import Contents, Observed, Order
from pravda.core.refresh import client_redirects
from pravda.core.text import Page
from pravda.core.urls import URL
from pravda.core.urls import redact as without_credentials
from pravda.engines.exchange import Exchange, Head
from pravda.engines.spool import Bytes

_HEAD_BYTES = 65_536
"""What is read of a body to tell its type, charset and client redirects."""

_MESSAGE = "message/http"  # RFC 9112 §10.1
_CHAIN = "application/pem-certificate-chain"  # RFC 8555 §9.1
_OCTETS = "application/octet-stream"


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What one attempt has seen so far."""

    order: Order
    requested_at: datetime
    started: float
    """On the loop's clock."""
    url: URL
    """Of the exchange at hand."""
    method: str
    body: bytes | None
    exchanges: list[Exchange] = field(default_factory=list)
    sent: Validators = field(default_factory=Validators)
    trouble: Trouble | None = None
    seen: set[tuple[str, str, str]] = field(default_factory=set)
    """(method, URL, cookies) of all hops: the same three again is a loop."""


def observed(attempt: Attempt, engine: str, ended_at: datetime, seconds: float) -> Observed:
    """The evidence of an attempt that has ended, with its bytes."""
    request, last = attempt.order.request, attempt.exchanges[-1]
    hops = attempt.exchanges[:-1]
    kept = _Kept()
    for number, hop in enumerate(hops, 1):
        kept.keep_hop(number, hop)
    kept.keep_final(last)
    response = _response(last, last.head) if last.head else None
    content = _content(last, last.head) if last.head else None
    evidence = Evidence(
        url=without_credentials(request.url.href),
        final_url=attempt.url.page,
        engine=engine,
        method=request.method,
        requested_at=attempt.requested_at,
        captured_at=last.headers_at or ended_at,
        response=response,
        content=content,
        redirects=tuple(_hop(hop, hop.head) for hop in hops if hop.head),
        client_redirects=_client_redirects(last, content, response),
        trouble=attempt.trouble,
        sent=attempt.sent,
        asked_headers=tuple(sorted({name.lower() for name, _ in request.headers})),
        notes=tuple(Note(code=note.code, detail=note.detail) for note in last.notes),
        artifacts=tuple(kept.artifacts),
        timings=_timings(last, seconds),
    )
    return Observed(evidence=evidence, contents=kept.contents)


def _hop(exchange: Exchange, head: Head) -> Hop:
    return Hop(
        url=exchange.url,
        status=head.status,
        received_at=exchange.headers_at,
        remote_address=exchange.remote_address,
    )


class _Kept:
    """Artifacts and their bytes, gathered exchange by exchange."""

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []
        self.contents: dict[str, Contents] = {}

    def keep_hop(self, number: int, hop: Exchange) -> None:
        """The exchange of a redirect that was followed."""
        self._request(f"hop-{number}-request", hop)
        self._head(f"hop-{number}-head", hop.head.raw if hop.head else b"")
        if hop.content and hop.content.size:
            self._add(f"hop-{number}-body", _media_type(hop), hop.content)
        if hop.payload:
            self._add(f"hop-{number}-payload", _OCTETS, hop.payload)
        if hop.certificates:
            self._add(f"hop-{number}-certificates", _CHAIN, Bytes(hop.certificates))

    def keep_final(self, last: Exchange) -> None:
        """The exchange that decides."""
        self._request("request", last)
        self._head("response", last.head.raw if last.head else last.head_fragment)
        self._head("interim", last.interim)
        self._head("trailers", last.trailers)
        if last.certificates:
            self._add("certificates", _CHAIN, Bytes(last.certificates))
        if last.head:
            body = last.content or Bytes(b"")
            self._add("body", _media_type(last) or _OCTETS, body)
        if last.payload:
            self._add("payload", _OCTETS, last.payload)

    def _request(self, name: str, exchange: Exchange) -> None:
        if not exchange.request_head:
            return  # nothing went out
        head, redacted = redact.request_head(exchange.request_head)
        self._add(name, _MESSAGE, Bytes(head + exchange.request_body), redacted=redacted)

    def _head(self, name: str, raw: bytes) -> None:
        if raw:
            head, redacted = redact.response_head(raw)
            self._add(name, _MESSAGE, Bytes(head), redacted=redacted)

    def _add(self, name: str, media_type: str, contents: Contents, *, redacted: bool = False) -> None:
        self.contents[name] = contents
        self.artifacts.append(
            Artifact(
                name=name,
                media_type=media_type,
                bytes=contents.size,
                sha256=contents.sha256,
                redacted=redacted,
            )
        )


def _media_type(exchange: Exchange) -> str:
    types = exchange.head.values("content-type") if exchange.head else []
    head = exchange.content.read(_HEAD_BYTES) if exchange.content else b""
    return effective_type(types[0] if types else None, head)


def _response(exchange: Exchange, head: Head) -> Response:
    return Response(
        status=head.status,
        version=head.version,
        headers=tuple((name, redact.response_value(name, value)) for name, value in head.headers),
        remote_address=exchange.remote_address,
        tls=exchange.tls,
    )


def _content(exchange: Exchange, head: Head) -> Content:
    body = exchange.content or Bytes(b"")
    start = body.read(_HEAD_BYTES)
    types = head.values("content-type")
    media_type = effective_type(types[0] if types else None, start) if start or types else None
    charset = detect(start, types) if media_type and _is_text(media_type) else None
    lengths = {value.strip() for value in head.values("content-length")}
    length = lengths.pop() if len(lengths) == 1 else ""
    return Content(
        sha256=body.sha256,
        bytes=body.size,
        media_type=media_type,
        charset=charset.name if charset else None,
        charset_from=charset.source.value if charset else None,
        ending=exchange.ending,
        wire_bytes=exchange.wire_bytes,
        declared_bytes=int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None,
    )


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("xml", "json", "javascript"))


def _client_redirects(
    exchange: Exchange, content: Content | None, response: Response | None
) -> tuple[str, ...]:
    if response is None or content is None or exchange.ending is Ending.CORRUPT:
        return ()
    if not content.bytes and response.value("refresh") is None:
        return ()
    page = Page(
        exchange.content.read(_HEAD_BYTES) if exchange.content else b"",
        content_type=response.value("content-type"),
        charset=content.charset or "utf-8",
        final_url=exchange.url,
        whole=False,
    )
    return client_redirects(page, response.values("refresh"))


def _timings(exchange: Exchange, seconds: float) -> Timings:
    # libcurl takes that time also of exchanges in which nothing came
    answered = exchange.head or exchange.head_fragment or exchange.interim
    spans = {name: round(span * 1000, 1) for name, span in exchange.timings.items() if span}
    return Timings(
        dns_ms=spans.get("dns"),
        connect_ms=spans.get("connect"),
        tls_ms=spans.get("tls"),
        first_byte_ms=spans.get("first_byte") if answered else None,
        total_ms=round(seconds * 1000, 1),
    )
