"""The HTTP engine: one attempt is a chain of guarded exchanges, redirects followed by hand."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pycurl

from pravda.core.addresses import AddressPolicy, url_problem
from pravda.core.evidence import Ending, Phase, Trouble
from pravda.core.mistake import BadRequest
from pravda.core.ports import Clock, Observed, Order
from pravda.core.request import Request, TlsMode
from pravda.core.states import Reason
from pravda.core.statuses import FOLLOWED
from pravda.core.urls import URL, BadURL, UnsupportedScheme, join
from pravda.engines import sending
from pravda.engines.exchange import Exchange
from pravda.engines.lookup import ask_resolver, has_default_route
from pravda.engines.multi import Multi
from pravda.engines.record import Attempt, observed
from pravda.engines.spool import Spool
from pravda.engines.transfer import Terms, Transfer

MOST_REDIRECTS = 20
"""As browsers and RFC-minded clients allow."""

_CERTIFICATE = frozenset(
    {
        Reason.TLS_CERTIFICATE_EXPIRED,
        Reason.TLS_CERTIFICATE_HOSTNAME_MISMATCH,
        Reason.TLS_CERTIFICATE_UNTRUSTED,
        Reason.TLS_CERTIFICATE_REVOKED,
    }
)
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

    @property
    def proxy_reads_requests(self) -> bool:
        """Whether plain http requests are made to the proxy itself (RFC 9112 §3.2.2), not through a tunnel."""
        return self.proxy is not None and self.proxy.lower().startswith("http")


class HttpEngine:
    """Observes pages with libcurl; one per event loop."""

    name = "http"

    def __init__(self, options: HttpOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._multi: Multi | None = None
        self._idle: list[pycurl.Curl] = []

    async def observe(self, order: Order) -> Observed:
        """One attempt; raises BadRequest for a request that cannot be sent or whose own URL leads to a refused address."""
        request, loop = order.request, asyncio.get_running_loop()
        if problem := url_problem(request.url, self._options.policy):
            raise BadRequest("url", _refusal(request.url, problem))
        sending.refuse_oversized(request)
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
        """End what runs, as cancelled, and close all connections."""
        multi, self._multi = self._multi, None
        if multi:
            await multi.close()
        for handle in self._idle:
            handle.close()
        self._idle.clear()

    def _now(self) -> datetime:
        moment = self._clock.now().astimezone(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)  # what the wire form can say

    @contextmanager
    def _handle(self, request: Request) -> Iterator[pycurl.Curl]:
        """A clean handle whose cookies live for one attempt."""
        handle = self._idle.pop() if self._idle else pycurl.Curl()
        try:
            sending.set_cookies(handle, request)
            yield handle
        finally:
            handle.setopt(pycurl.COOKIELIST, "ALL")
            handle.reset()
            self._idle.append(handle)

    async def _hop(self, attempt: Attempt, handle: pycurl.Curl) -> bool:
        """Make one exchange; True when a redirect leads on."""
        exchange = await self._exchange(attempt, handle, None)
        problem = exchange.trouble
        if problem and problem.reason in _CERTIFICATE and attempt.order.request.tls is TlsMode.INSECURE:
            attempt.exchanges.pop()  # nothing went out; asking first tells what is being overlooked
            exchange = await self._exchange(attempt, handle, problem.detail)
        attempt.trouble = await self._explained(attempt, exchange)
        return attempt.trouble is None and await self._follow(attempt, handle, exchange)

    async def _exchange(self, attempt: Attempt, handle: pycurl.Curl, overlooked: str | None) -> Exchange:
        """One exchange; certificates are verified unless a problem with them is to be overlooked."""
        loop, options, request = asyncio.get_running_loop(), self._options, attempt.order.request
        if self._multi is None or self._multi.loop is not loop:
            self._multi = Multi(options.connections)
        exchange = Exchange(url=attempt.url.page, request_body=attempt.body or b"")
        attempt.exchanges.append(exchange)
        self._set_options(attempt, handle, verify=overlooked is None)
        terms = Terms(
            host=attempt.url.hostname,
            policy=options.policy,
            timeouts=request.timeouts,
            deadline=attempt.started + attempt.order.budget,
            max_bytes=request.max_bytes,
            spool=self._spool,
            now=self._now,
            through_proxy=options.proxy is not None,
            overlooked=overlooked,
        )
        await Transfer(self._multi, handle, exchange, terms).run()
        return exchange

    def _spool(self) -> Spool:
        return Spool(self._options.spool_folder, self._options.spool_memory)

    def _set_options(self, attempt: Attempt, handle: pycurl.Curl, *, verify: bool) -> None:
        options, request, url = self._options, attempt.order.request, attempt.url
        first = len(attempt.exchanges) == 1
        handle.setopt(pycurl.URL, url.fetch_url)
        # libcurl would write escapes in capitals: the target goes out as it stands in the URL
        absolute = options.proxy_reads_requests and url.scheme == "http"
        handle.setopt(pycurl.REQUEST_TARGET, url.page if absolute else url.target)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.PATH_AS_IS, 1)
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        handle.setopt(pycurl.FRESH_CONNECT, int(attempt.order.fresh_connection and first))
        handle.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        handle.setopt(pycurl.PROXY, options.proxy or "")  # empty: nor are the environment's proxies asked
        handle.setopt(pycurl.NOPROXY, "")
        handle.setopt(pycurl.USERAGENT, options.user_agent)  # to the proxy, where a tunnel is asked for
        handle.setopt(pycurl.OPT_CERTINFO, 1)
        if options.ca_file:
            handle.setopt(pycurl.CAINFO, str(options.ca_file))
        handle.setopt(pycurl.SSL_VERIFYPEER, int(verify))
        handle.setopt(pycurl.SSL_VERIFYHOST, 2 if verify else 0)
        if options.names:
            handle.setopt(pycurl.RESOLVE, list(options.names))
        sending.set_method(handle, attempt.method, attempt.body)
        attempt.sent = sending.validators_for(attempt.order.held, url, attempt.method)
        lines = sending.header_lines(
            request,
            url,
            method=attempt.method,
            body=attempt.body,
            user_agent=options.user_agent,
            sent=attempt.sent,
        )
        handle.setopt(pycurl.HTTPHEADER, lines)

    async def _explained(self, attempt: Attempt, exchange: Exchange) -> Trouble | None:
        """The exchange's trouble, with the resolver and the routes asked where libcurl could not tell."""
        trouble = exchange.trouble
        if trouble is None:
            return None
        if trouble.reason is Reason.UNSAFE_ADDRESS and len(attempt.exchanges) == 1:
            raise BadRequest("url", trouble.detail)
        if trouble.reason is Reason.ADDRESS_UNREACHABLE and not has_default_route():
            return replace(trouble, reason=Reason.LOCAL_NETWORK)
        answered = trouble.phase is Phase.RESOLVE and exchange.ending is not Ending.TIMED_OUT
        if not answered or trouble.reason is Reason.RESOURCE_EXHAUSTED:
            return trouble
        left = attempt.started + attempt.order.budget - asyncio.get_running_loop().time()
        try:
            return await ask_resolver(attempt.url.hostname, min(_RESOLVER_PATIENCE, left))
        except asyncio.CancelledError:
            return replace(trouble, reason=Reason.CANCELLED, detail="The capture was cancelled.")

    async def _follow(self, attempt: Attempt, handle: pycurl.Curl, exchange: Exchange) -> bool:
        """Turn the attempt to the redirect's target; False when there is none or it must not be followed."""
        head = exchange.head
        if head is None or head.status not in FOLLOWED:
            asked = head is not None and head.status == 407 and bool(head.values("proxy-authenticate"))
            if asked and self._options.proxy_reads_requests and attempt.url.scheme == "http":
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
        return await self._turn(attempt, handle, head.status, target)

    async def _turn(self, attempt: Attempt, handle: pycurl.Curl, status: int, target: URL) -> bool:
        """Turn the attempt to a target that may be asked; False when it goes in a circle."""
        method, body = sending.after_redirect(status, attempt.method, attempt.body)
        step = _step(handle, method, target)
        if step in attempt.seen:
            attempt.trouble = _trouble(Reason.REDIRECT_LOOP, f"The redirects come back to {target.page}.")
            return False
        if len(attempt.exchanges) > MOST_REDIRECTS:
            attempt.trouble = _trouble(
                Reason.REDIRECT_LOOP, f"More than {MOST_REDIRECTS} redirects in a row."
            )
            return False
        if refusal := await _asked_at_the_gate(attempt.order, target):
            attempt.trouble = refusal
            return False
        attempt.seen.add(step)
        attempt.url, attempt.method, attempt.body = target, method, body
        return True


async def _asked_at_the_gate(order: Order, target: URL) -> Trouble | None:
    try:
        return await order.gate(target) if order.gate else None
    except asyncio.CancelledError:
        return _trouble(Reason.CANCELLED, "The capture was cancelled.")


def _step(handle: pycurl.Curl, method: str, url: URL) -> tuple[str, str, str]:
    return method, url.page, "\n".join(sorted(handle.getinfo(pycurl.INFO_COOKIELIST)))


def _trouble(reason: Reason, detail: str) -> Trouble:
    return Trouble(reason=reason, phase=Phase.REDIRECT, detail=detail)


def _refusal(url: URL, problem: str) -> str:
    if problem == Reason.UNSAFE_PORT:
        return f"port {url.port} is one that browsers refuse, since it belongs to another protocol"
    return f"{url.host} is inside a private network; allow it in the setting PRAVDA_ALLOW_ADDRESSES if that is meant"
