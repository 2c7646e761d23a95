"""The HTTP engine: one attempt is a chain of guarded exchanges, redirects followed by hand."""

import asyncio
import base64
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pycurl

from pravda.core.addresses import AddressPolicy, url_problem
from pravda.core.evidence import Phase, Trouble, Validators
from pravda.core.mistake import BadRequest
from pravda.core.ports import Clock, Observed, Order
from pravda.core.request import Pairs, Request, TlsMode
from pravda.core.states import Reason
from pravda.core.statuses import FOLLOWED
from pravda.core.urls import URL, BadURL, UnsupportedScheme, join
from pravda.engines.faults import has_default_route, resolver_trouble
from pravda.engines.multi import Multi
from pravda.engines.record import Attempt, observed
from pravda.engines.spool import Spool
from pravda.engines.transfer import Exchange, Transfer

MOST_REDIRECTS = 20
"""As browsers and RFC-minded clients allow."""

_SENSITIVE = frozenset({"authorization", "cookie"})
_BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl has no name for
_RESOLVER_PATIENCE = 5.0  # seconds for asking again why a name has no address


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """What the machine's owner decides, not the caller."""

    user_agent: str
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    proxy: str | None = None
    """http://, https:// or socks5h:// URL, may carry credentials; None: straight."""
    ca_file: Path | None = None
    """PEM bundle to trust; None: libcurl's own idea."""
    spool_folder: Path | None = None
    """Where large bodies wait; None: the system's place for temporary files."""
    spool_memory: int = 1024 * 1024
    """Bytes of a body kept in memory before it goes to disk."""
    connections: int = 100
    """The most connections kept open for reuse."""
    names: tuple[str, ...] = ()
    """"host:port:address" entries that stand before the resolver, for tests and split networks."""


class HttpEngine:
    """Observes pages with libcurl; one per event loop."""

    name = "http"

    def __init__(self, options: HttpOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._multi: Multi | None = None
        self._idle: list[pycurl.Curl] = []
        self._tls_of_connection: dict[int, tuple[str | None, str | None]] = {}

    async def observe(self, order: Order) -> Observed:
        """One attempt; raises BadRequest only when the asked URL itself leads to a refused address."""
        request, loop = order.request, asyncio.get_running_loop()
        self._refuse(request.url)
        attempt = Attempt(
            order=order,
            requested_at=self._now(),
            started=loop.time(),
            url=request.url,
            method=request.method,
            body=request.body,
        )
        try:
            with self._handle(request) as handle:
                attempt.seen.add(_step(handle, attempt.method, attempt.url))
                while await self._hop(attempt, handle):
                    pass
            return observed(attempt, self.name, self._now(), loop.time() - attempt.started)
        except BaseException:
            for exchange in attempt.exchanges:
                exchange.close()
            raise

    async def close(self) -> None:
        """Close all connections."""
        for handle in self._idle:
            handle.close()
        self._idle.clear()
        if self._multi:
            self._multi.close()
            self._multi = None

    def _now(self) -> datetime:
        moment = self._clock.now().astimezone(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)  # what the wire form can say

    def _refuse(self, url: URL) -> None:
        if problem := url_problem(url, self._options.policy):
            raise BadRequest("url", _refusal(url, problem))

    @contextmanager
    def _handle(self, request: Request) -> Iterator[pycurl.Curl]:
        """A clean handle whose cookies live for one attempt."""
        handle = self._idle.pop() if self._idle else pycurl.Curl()
        handle.setopt(pycurl.COOKIEFILE, "")
        handle.setopt(pycurl.COOKIELIST, "ALL")
        url = request.url
        for name, value in request.cookies:
            secure = "TRUE" if url.scheme == "https" else "FALSE"
            handle.setopt(
                pycurl.COOKIELIST, "\t".join((url.hostname, "FALSE", "/", secure, "0", name, value))
            )
        try:
            yield handle
        finally:
            handle.setopt(pycurl.COOKIELIST, "ALL")
            handle.reset()
            self._idle.append(handle)

    async def _hop(self, attempt: Attempt, handle: pycurl.Curl) -> bool:
        """Make one exchange; True when a redirect leads on."""
        loop = asyncio.get_running_loop()
        if self._multi is None or self._multi.loop is not loop:
            self._multi = Multi(self._options.connections)
        request = attempt.order.request
        exchange = Exchange(url=attempt.url.page, request_body=attempt.body or b"")
        attempt.exchanges.append(exchange)
        self._set_options(attempt, handle)
        transfer = Transfer(
            multi=self._multi,
            handle=handle,
            exchange=exchange,
            host=attempt.url.hostname,
            policy=self._options.policy,
            timeouts=request.timeouts,
            deadline=attempt.started + attempt.order.budget,
            max_bytes=request.max_bytes,
            spool=self._spool,
            now=self._now,
            through_proxy=self._options.proxy is not None,
            tls_of_connection=self._tls_of_connection,
        )
        await transfer.run()
        attempt.trouble = await self._explained(attempt, exchange)
        return attempt.trouble is None and await self._follow(attempt, handle, exchange)

    def _spool(self) -> Spool:
        return Spool(self._options.spool_folder, self._options.spool_memory)

    def _set_options(self, attempt: Attempt, handle: pycurl.Curl) -> None:
        options, request, url = self._options, attempt.order.request, attempt.url
        first = len(attempt.exchanges) == 1
        handle.setopt(pycurl.URL, url.fetch_url)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.PATH_AS_IS, 1)
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        handle.setopt(pycurl.FRESH_CONNECT, int(attempt.order.fresh_connection and first))
        handle.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        handle.setopt(
            pycurl.PROXY, options.proxy or ""
        )  # empty: the environment's proxies are not asked either
        handle.setopt(pycurl.NOPROXY, "")
        handle.setopt(pycurl.OPT_CERTINFO, 1)
        if options.ca_file:
            handle.setopt(pycurl.CAINFO, str(options.ca_file))
        verify = request.tls is TlsMode.VERIFY
        handle.setopt(pycurl.SSL_VERIFYPEER, int(verify))
        handle.setopt(pycurl.SSL_VERIFYHOST, 2 if verify else 0)
        if options.names:
            handle.setopt(pycurl.RESOLVE, list(options.names))
        _set_method(handle, attempt.method, attempt.body)
        handle.setopt(pycurl.HTTPHEADER, [_header_line(*pair) for pair in self._headers(attempt)])

    def _headers(self, attempt: Attempt) -> Pairs:
        request, url = attempt.order.request, attempt.url
        own_origin = url.same_origin(request.url)
        given = request.headers
        if not own_origin:  # Fetch §4.4 (HTTP-redirect fetch): credentials do not cross origins
            given = tuple(pair for pair in given if pair[0].lower() not in _SENSITIVE)
        if attempt.body is None and request.body is not None:
            given = tuple(pair for pair in given if pair[0].lower() not in _BODY_HEADERS)
        names = {name.lower() for name, _ in given}
        defaults = (
            ("User-Agent", self._options.user_agent),
            ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
        )
        credentials = url.credentials or (request.url.credentials if own_origin else None)
        ours = [pair for pair in defaults if pair[0].lower() not in names]
        if credentials is not None and "authorization" not in names:
            ours.append(("Authorization", f"Basic {base64.b64encode(credentials).decode()}"))  # RFC 7617 §2
        return (*ours, *given, *self._validators(attempt), ("Expect", ""))

    def _validators(self, attempt: Attempt) -> Pairs:
        """RFC 9110 §13.1: validators go only to the URL they came from, and only as they came."""
        held = attempt.order.held
        attempt.sent = Validators()
        if held is None or held.url != attempt.url.page or attempt.method != "GET":
            return ()
        attempt.sent = held.validators
        pairs = (
            ("If-None-Match", held.validators.etag),
            ("If-Modified-Since", held.validators.last_modified),
        )
        return tuple((name, value) for name, value in pairs if value)

    async def _explained(self, attempt: Attempt, exchange: Exchange) -> Trouble | None:
        """The exchange's trouble, with the resolver and the routes asked where libcurl could not tell."""
        trouble, first = exchange.trouble, len(attempt.exchanges) == 1
        if trouble is None:
            return None
        if trouble.reason is Reason.UNSAFE_ADDRESS and first:
            raise BadRequest("url", trouble.detail)
        if trouble.phase is Phase.RESOLVE and trouble.reason is not Reason.RESOURCE_EXHAUSTED:
            return await _ask_resolver(attempt.url.hostname)
        if trouble.reason is Reason.ADDRESS_UNREACHABLE and not has_default_route():
            return replace(trouble, reason=Reason.LOCAL_NETWORK)
        return trouble

    async def _follow(self, attempt: Attempt, handle: pycurl.Curl, exchange: Exchange) -> bool:
        """Turn the attempt to the redirect's target; False when there is none or it must not be followed."""
        head = exchange.head
        if head is None or head.status not in FOLLOWED:
            if head and head.status == 407 and self._options.proxy and head.values("proxy-authenticate"):
                attempt.trouble = _trouble(
                    Reason.LOCAL_PROXY_AUTH, "The configured proxy asks for credentials."
                )
            return False
        location = next((value for value in head.values("location") if value), None)
        if location is None:
            return False
        try:
            target = join(attempt.url, location.encode("latin-1"))
        except UnsupportedScheme as problem:
            attempt.trouble = _trouble(Reason.REDIRECT_UNSUPPORTED_SCHEME, str(problem))
            return False
        except BadURL as problem:
            attempt.trouble = _trouble(Reason.REDIRECT_INVALID, str(problem))
            return False
        if problem_word := url_problem(target, self._options.policy):
            attempt.trouble = _trouble(Reason(problem_word), _refusal(target, problem_word))
            return False
        method, body = _method_after(head.status, attempt.method, attempt.body)
        step = _step(handle, method, target)
        if step in attempt.seen or len(attempt.exchanges) > MOST_REDIRECTS:
            attempt.trouble = _trouble(
                Reason.REDIRECT_LOOP,
                f"The redirects come back to {target.page}."
                if step in attempt.seen
                else f"More than {MOST_REDIRECTS} redirects in a row.",
            )
            return False
        if attempt.order.gate and (refusal := await attempt.order.gate(target)):
            attempt.trouble = refusal
            return False
        attempt.seen.add(step)
        attempt.url, attempt.method, attempt.body = target, method, body
        return True


def _step(handle: pycurl.Curl, method: str, url: URL) -> tuple[str, str, str]:
    return method, url.page, "\n".join(sorted(handle.getinfo(pycurl.INFO_COOKIELIST)))


def _trouble(reason: Reason, detail: str) -> Trouble:
    return Trouble(reason=reason, phase=Phase.REDIRECT, detail=detail)


def _refusal(url: URL, problem: str) -> str:
    if problem == Reason.UNSAFE_PORT:
        return f"port {url.port} is one that browsers refuse, since it belongs to another protocol"
    return f"{url.host} is inside a private network; allow it in the setting PRAVDA_ALLOW_ADDRESSES if that is meant"


def _method_after(status: int, method: str, body: bytes | None) -> tuple[str, bytes | None]:
    """RFC 9110 §15.4.2-4: 303 turns anything to GET, 301 and 302 turn POST to GET, 307 and 308 change nothing."""
    if status == 303 or (status in (301, 302) and method == "POST"):
        return "GET", None
    return method, body


def _set_method(handle: pycurl.Curl, method: str, body: bytes | None) -> None:
    if method == "GET":
        handle.setopt(pycurl.HTTPGET, 1)
        handle.unsetopt(pycurl.CUSTOMREQUEST)
        return
    if body is not None or method in ("POST", "PUT", "PATCH"):
        handle.setopt(pycurl.POST, 1)
        handle.setopt(pycurl.POSTFIELDS, body or b"")
    handle.setopt(pycurl.CUSTOMREQUEST, method)


def _header_line(name: str, value: str) -> bytes:
    # libcurl: "Name;" sends an empty value; "Name:" would take a header of its own away, as is meant for Expect
    if not value:
        return f"{name}:".encode("latin-1") if name == "Expect" else f"{name};".encode("latin-1")
    return f"{name}: {value}".encode("latin-1")


async def _ask_resolver(host: str) -> Trouble:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVER_PATIENCE):
            # bytes: text would go through the idna codec, which raises UnicodeError for names such as "a..b"
            await loop.getaddrinfo(host.encode("ascii", "replace"), None, type=socket.SOCK_STREAM)
    except TimeoutError:
        return _resolver_silence(host)
    except OSError as problem:
        return resolver_trouble(host, problem, routed=has_default_route())
    return resolver_trouble(host, None, routed=True)


def _resolver_silence(host: str) -> Trouble:
    reason = Reason.DNS_SERVER_FAILURE if has_default_route() else Reason.LOCAL_NETWORK
    return Trouble(
        reason=reason, phase=Phase.RESOLVE, detail=f"{host}: the name servers did not answer in time."
    )
