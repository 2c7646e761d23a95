"""Stands before everything else: limits, who is asking, a log line for each request."""

import logging
import math
import re
import time
from ipaddress import ip_address

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pravda.server import keys
from pravda.server.desk import seconds_up
from pravda.server.keys import Key
from pravda.server.problems import Kind, Problem, Refused, problem_of
from pravda.server.rate import Rates
from pravda.server.replies import problem_reply
from pravda.server.service import Service

log = logging.getLogger("pravda.server")

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no key: they tell nothing of what is kept."""
KEY = "pravda.key"
"""Where a request's scope has the caller's key."""

_BEARER = re.compile(rb"bearer +([\x21-\x7e]+) *", re.IGNORECASE)  # RFC 6750 §2.1
_ID = re.compile(rb"[0-9A-Za-z._-]{1,100}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]*)(?::\d{1,5})?", re.IGNORECASE | re.ASCII)


class Gate:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service, self._rates = app, service, Rates()
        self._open = 0  # requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what may pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._service)
        self._open += 1
        try:
            with structlog.contextvars.bound_contextvars(request_id=exchange.id):
                await self._handle(exchange)
                exchange.tell()
        finally:
            self._open -= 1

    async def _handle(self, exchange: "_Exchange") -> None:
        try:
            self._check(exchange)
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as raised:  # the rim of one request: its caller gets a problem, the log the rest
            problem = problem_of(raised)
            if problem.kind is Kind.INTERNAL:
                log.error("request failed", exc_info=raised)
            if exchange.status is None:
                await problem_reply(problem)(exchange.scope, exchange.receive, exchange.send)

    def _check(self, exchange: "_Exchange") -> None:
        """Raises Refused."""
        exchange.check_head()
        path = exchange.path
        if path in OPEN:
            return
        if self._open > self._service.options.most_requests:
            raise Refused(
                Problem(kind=Kind.QUEUE_FULL, detail="Too many requests at one time.", retry_after=1)
            )
        key = self._key_of(exchange)
        exchange.scope[KEY] = exchange.key = key
        limit = self._service.options.per_minute
        if key and key.per_minute is not None:
            limit = key.per_minute
        if wait := self._rates.wait(key.id if key else "", limit, time.monotonic()):
            detail = f"At most {limit} requests a minute are taken."
            raise Refused(Problem(kind=Kind.RATE_LIMITED, detail=detail, retry_after=seconds_up(wait)))

    def _key_of(self, exchange: "_Exchange") -> Key | None:
        """The caller's key; None: no keys are demanded. Raises Refused."""
        ring = self._service.keys
        if not ring.are_demanded():
            # else a page in a browser could reach this service under a name of its own that leads here
            exchange.check_host(self._service.parts.host)
            return None
        given = _BEARER.fullmatch(exchange.header(b"authorization") or b"")
        key = ring.find(given[1].decode("ascii"), self._service.now()) if given else None
        if key is None:
            raise Refused(
                Problem(
                    kind=Kind.UNAUTHORIZED,
                    detail="Send a valid key as Authorization: Bearer.",
                    headers={"WWW-Authenticate": 'Bearer realm="pravda"'},
                )
            )
        needed = _scope_of(exchange.scope["method"], exchange.path)
        if not key.allows(needed):
            raise Refused(Problem(kind=Kind.FORBIDDEN, detail=f"This needs a key with the scope {needed}."))
        return key


class _Exchange:
    """One request and what is answered."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, service: Service) -> None:
        self.scope, self._receive, self._send, self._service = scope, receive, send, service
        self.path: str = scope["path"]
        self.key: Key | None = None
        self.status: int | None = None
        given = self.header(b"x-request-id") or b""
        self.id = given.decode() if _ID.fullmatch(given) else service.parts.new_id()
        self._began, self._received = time.monotonic(), 0

    def header(self, name: bytes) -> bytes | None:
        """A header's value; the first, where there are several."""
        return next((value for key, value in self.scope["headers"] if key == name), None)

    def check_head(self) -> None:
        """Raises Refused for a head that is too long, or that two readers could read differently."""
        headers, options = self.scope["headers"], self._service.options
        if len(headers) > options.most_headers:
            detail = f"More than {options.most_headers} header fields are refused."
            raise Refused(Problem(kind=Kind.HEADERS_TOO_LARGE, detail=detail))
        names = [name for name, _ in headers]
        lengths = names.count(b"content-length")
        if lengths and b"transfer-encoding" in names:  # RFC 9112 §6.3: a sign of request smuggling
            raise _malformed("It has both Content-Length and Transfer-Encoding.")
        for name in (b"host", b"content-length", b"authorization", b"content-type", b"idempotency-key"):
            if names.count(name) > 1:
                raise _malformed(f"It has the header field {name.decode()} more than once.")
        length = self.header(b"content-length") or b"0"
        if length.isdigit() and len(length) < 20 and int(length) > options.most_request_bytes:
            raise self._too_large()

    def check_host(self, bound: str) -> None:
        """Raises Refused for a host name that is not this machine's own."""
        found = _HOST.fullmatch((self.header(b"host") or b"").decode("latin-1"))
        host = found[1].strip("[]").lower().rstrip(".") if found else ""
        if host not in ("localhost", bound.lower()) and not _is_loopback(host):
            detail = "Without API keys this service answers under localhost and loopback addresses only."
            raise Refused(Problem(kind=Kind.MISDIRECTED, detail=detail))

    async def receive(self) -> Message:
        """The next part of the request; raises Refused beyond the limit."""
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._service.options.most_request_bytes:
            raise self._too_large()
        return message

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on, with what every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message["headers"],
                (b"x-request-id", self.id.encode()),
                (b"x-content-type-options", b"nosniff"),
            ]
        await self._send(message)

    def tell(self) -> None:
        """Log and count the request; its query may hold what belongs to others and stays out."""
        route = getattr(self.scope.get("route"), "path", "-")
        seconds = time.monotonic() - self._began
        method = self.scope["method"] if self.scope["method"] in _METHODS else "other"
        self._service.metrics.answered(method, route, self.status or 0)
        told = {
            "method": method,
            "route": route,
            "status": self.status,
            "milliseconds": math.ceil(seconds * 1000),
            "key_id": self.key.id if self.key else None,
        }
        log.info("request", extra=told)

    def _too_large(self) -> Refused:
        most = self._service.options.most_request_bytes
        return Refused(Problem(kind=Kind.TOO_LARGE, detail=f"A request may have {most:,} bytes."))


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"})


def _scope_of(method: str, path: str) -> keys.Scope:
    if path == "/metrics":
        return keys.Scope.ADMIN
    capturing = method == "POST" or path.startswith("/captures/")
    return keys.Scope.CAPTURE if capturing else keys.Scope.READ


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _malformed(why: str) -> Refused:
    return Refused(Problem(kind=Kind.MALFORMED_REQUEST, detail=why))
