"""Runs one HTTP exchange on one libcurl handle: streamed body, budgets per phase, guarded addresses."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import pycurl

from pravda.core.addresses import AddressPolicy
from pravda.core.evidence import Ending, Phase, Tls, Trouble
from pravda.core.request import Timeouts
from pravda.core.states import Reason
from pravda.engines import decoding
from pravda.engines.decoding import Decoder
from pravda.engines.exchange import Exchange, Head
from pravda.engines.faults import Broken, storage_trouble, trouble_of
from pravda.engines.lookup import resolver_silence
from pravda.engines.multi import Ended, Multi
from pravda.engines.spool import Spool
from pravda.engines.tls import asks_for_certificate, handshake, secured

LARGEST_HEAD = 256 * 1024
"""Bytes of all response header lines of one exchange; Chromium's limit too."""

_LONGEST_LENGTH = 18  # digits of a Content-Length that libcurl is sure to read
_HEADER_OUT, _TEXT = pycurl.INFOTYPE_HEADER_OUT, pycurl.INFOTYPE_TEXT
_OUT_OF_TIME = Ended(-1, "")

_TIMEOUTS = {
    Phase.CONNECT: (Reason.CONNECT_TIMEOUT, "connect"),
    Phase.RESPONSE: (Reason.RESPONSE_TIMEOUT, "first_byte"),
    Phase.BODY: (Reason.BODY_TIMEOUT, "body"),
}
"""Phase → the reason when it runs out of time, and the budget that ends it."""

_ENDINGS = {
    decoding.Ending.COMPLETE: Ending.COMPLETE,
    decoding.Ending.TRUNCATED: Ending.TRUNCATED_CODING,
    decoding.Ending.CORRUPT: Ending.CORRUPT,
    decoding.Ending.TOO_LARGE: Ending.TOO_LARGE,
    decoding.Ending.UNSUPPORTED: Ending.UNSUPPORTED,
}


class _Socket:
    """A descriptor that libcurl duplicates and Python closes, without a ResourceWarning."""

    __slots__ = ("_fd",)

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._fd = socket.socket(family, kind, protocol).detach()
        os.close(os.dup(self._fd))  # so that being out of descriptors shows here, where it has a number

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):  # AttributeError: socket() itself failed
            os.close(self._fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under which conditions an exchange is made."""

    host: str
    """Whose permission counts for the addresses connected to."""
    policy: AddressPolicy
    timeouts: Timeouts
    deadline: float
    """Of the whole attempt, on the loop's clock."""
    max_bytes: int
    """The most bytes of a body, both coded and decoded."""
    spool: Callable[[], Spool]
    """Makes an empty one."""
    now: Callable[[], datetime]
    through_proxy: bool = False
    """The addresses connected to are the proxy's, which the machine's owner chose."""
    overlooked: str | None = None
    """What is wrong with the certificate, when it is not verified any more; None: it is verified."""


@dataclass(slots=True)
class _Seen:
    """What the callbacks of a running transfer have noticed."""

    head_size: int = 0
    block: list[bytes] = field(default_factory=list)
    """Lines of a head that has not ended yet."""
    interim: list[bytes] = field(default_factory=list)
    trailers: list[bytes] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    opened: int = 0
    """Sockets that were let through."""
    connected: bool = False
    """A connection stands, with TLS where asked."""
    socket_error: int = 0
    handshake: tuple[str, str] | None = None
    """TLS version and cipher; None: none was made, for this connection was open already or is not secure."""
    certificate_asked: bool = False
    """The server wanted a client certificate."""
    tunnel_asked: bool = False
    """The proxy was reached and asked for a way to the host."""
    stopped: bool = False
    """A callback ended the transfer on purpose."""
    last_byte: float = 0.0
    """On the loop's clock."""


class Transfer:
    """One exchange under way; its callbacks only note what they see."""

    def __init__(self, multi: Multi, handle: pycurl.Curl, exchange: Exchange, terms: Terms) -> None:
        """`handle` is set up for the request; `exchange` is filled."""
        self._multi, self._loop, self._handle = multi, multi.loop, handle
        self._exchange, self._terms, self._seen = exchange, terms, _Seen()
        self._decoder: Decoder | None = None
        self._phase_end = self._loop.time() + terms.timeouts.connect
        self._ended: asyncio.Future[Ended] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Fill the exchange, whatever happens; on cancellation its trouble is `cancelled`."""
        self._set_callbacks()
        self._ended = self._multi.start(self._handle)
        self._arm()
        try:
            ended = await self._ended
            if ended is _OUT_OF_TIME:
                self._settle_timeout()
            else:
                self._settle(ended)
        except asyncio.CancelledError:
            self._trouble(Reason.CANCELLED, "The capture was cancelled.")
        finally:
            if self._timer:
                self._timer.cancel()
            self._read_facts()
            self._multi.stop(self._handle)
            self._finish_body()

    def _set_callbacks(self) -> None:
        handle = self._handle
        handle.setopt(pycurl.HEADERFUNCTION, self._on_header)
        handle.setopt(pycurl.WRITEFUNCTION, self._on_body)
        handle.setopt(pycurl.OPENSOCKETFUNCTION, self._on_open)
        handle.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        handle.setopt(pycurl.VERBOSE, 1)
        handle.setopt(pycurl.DEBUGFUNCTION, self._on_debug)

    # budgets

    def _phase(self) -> Phase:
        if self._exchange.head:
            return Phase.BODY
        return Phase.RESPONSE if self._seen.connected else Phase.CONNECT

    def _ends_at(self) -> float:
        end = min(self._phase_end, self._terms.deadline)
        return min(end, self._seen.last_byte + self._terms.timeouts.idle) if self._exchange.head else end

    def _arm(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._ends_at(), self._on_time)

    def _on_time(self) -> None:
        if self._loop.time() < self._ends_at():
            self._arm()
        elif self._ended and not self._ended.done():
            self._ended.set_result(_OUT_OF_TIME)

    def _enter(self, seconds: float) -> None:
        self._phase_end = self._loop.time() + seconds
        self._arm()

    # what libcurl tells; an exception in a callback would only surface as "aborted", so none may leave

    def _allows(self, address: str) -> bool:
        terms = self._terms
        if terms.through_proxy or terms.policy.allows(address, terms.host):
            return True
        self._seen.refused.append(address)
        return False

    def _on_open(self, _purpose: int, address: "pycurl.CurlSockAddr") -> "_Socket | int":
        if not self._allows(str(address.addr[0])):
            return int(pycurl.SOCKET_BAD)
        self._seen.opened += 1
        self._exchange.request_head = (
            b""  # what went out on a connection that was dead already does not count
        )
        try:
            return _Socket(address.family, address.socktype, address.protocol)
        except OSError as problem:
            self._seen.socket_error = problem.errno or 0
            return int(pycurl.SOCKET_BAD)

    def _on_connected(self, remote: str, _local: str, _port: int, _local_port: int) -> int:
        # also asked for reused connections, whose address was let through under another permission
        if not self._allows(remote):
            return int(pycurl.PREREQFUNC_ABORT)
        self._seen.connected = True
        self._enter(self._terms.timeouts.first_byte)
        return int(pycurl.PREREQFUNC_OK)

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == _TEXT:
            self._seen.handshake = handshake(data) or self._seen.handshake
            self._seen.certificate_asked |= asks_for_certificate(data)
        elif kind == _HEADER_OUT and data.startswith(b"CONNECT "):
            self._seen.tunnel_asked = True  # said to the proxy, and no part of the request
        elif kind == _HEADER_OUT:
            self._exchange.request_head += data  # a large head goes out in pieces

    def _on_header(self, line: bytes) -> int | None:
        seen = self._seen
        seen.head_size += len(line)
        if seen.head_size > LARGEST_HEAD:
            detail = f"The response headers exceed {LARGEST_HEAD:,} bytes."
            return self._stop(Reason.HEADERS_TOO_LARGE, detail)
        if self._exchange.head:
            seen.trailers.append(line)  # whatever they look like: there is one final head
            return None
        seen.block.append(line)
        return self._on_head() if line in (b"\r\n", b"\n") else None

    def _on_head(self) -> int | None:
        seen, exchange = self._seen, self._exchange
        raw = b"".join(seen.block)
        head = Head.parse(raw)
        if head is None:
            return self._stop(Reason.MALFORMED_RESPONSE, "The answer has no valid status line.")
        seen.block.clear()
        if 100 <= head.status < 200:  # RFC 9110 §15.2: interim, the final one follows
            seen.interim.append(raw)
            return None
        exchange.head = head
        exchange.headers_at = self._terms.now()
        seen.last_byte = self._loop.time()
        self._enter(self._terms.timeouts.body)
        return None

    def _on_body(self, chunk: bytes) -> int | None:
        exchange = self._exchange
        if exchange.head is None:  # after "101 Switching Protocols", which nobody asked for
            return self._stop(Reason.EMPTY_RESPONSE, "Only an interim answer came, and then no HTTP.")
        self._seen.last_byte = self._loop.time()
        exchange.wire_bytes += len(chunk)
        try:
            decoder = self._decoder or self._open_body(exchange.head)
            if exchange.payload:
                exchange.payload.write(chunk)
            if decoder.feed(chunk) and exchange.wire_bytes <= self._terms.max_bytes:
                return None
        except OSError as problem:
            exchange.trouble = storage_trouble(problem)
            exchange.ending = Ending.CUT
        self._seen.stopped = True
        return -1

    def _open_body(self, head: Head) -> Decoder:
        exchange = self._exchange
        codings, types = head.values("content-encoding"), head.values("content-type")
        exchange.content = self._terms.spool()
        if decoding.codings(codings) or "" in codings:
            exchange.payload = self._terms.spool()
        self._decoder = Decoder(
            codings,
            exchange.content.write,
            content_type=types[0] if types else None,
            max_bytes=self._terms.max_bytes,
        )
        return self._decoder

    # the end

    def _trouble(self, reason: Reason, detail: str, ending: Ending = Ending.CUT) -> None:
        self._exchange.trouble = Trouble(reason=reason, phase=self._phase(), detail=detail)
        self._exchange.ending = ending

    def _stop(self, reason: Reason, detail: str) -> int:
        self._trouble(reason, detail)
        self._seen.stopped = True
        return -1

    def _settle_timeout(self) -> None:
        now, terms, phase = self._loop.time(), self._terms, self._phase()
        reason, budget = _TIMEOUTS[phase]
        if phase is Phase.BODY and now < self._phase_end:
            budget = "idle"
        if now >= terms.deadline:
            budget = "total"
        detail = f"The budget `{budget}` ran out in phase {phase}."
        if phase is Phase.CONNECT and terms.through_proxy and not self._seen.tunnel_asked:
            reason, detail = Reason.LOCAL_PROXY, f"The proxy did not answer: {detail}"
        self._trouble(reason, detail, Ending.TIMED_OUT)
        if phase is Phase.CONNECT and not terms.through_proxy and not self._seen.opened:
            silence = resolver_silence(terms.host)
            self._exchange.trouble = replace(silence, detail=f"{silence.detail} {detail}")

    def _settle(self, ended: Ended) -> None:
        exchange, seen = self._exchange, self._seen
        if seen.stopped:
            return  # a callback, or the decoder, has said why
        if seen.refused and not seen.opened and not seen.connected:
            self._trouble(Reason.UNSAFE_ADDRESS, self._refusal())
        elif ended.code:
            exchange.trouble = self._broken(ended)
            exchange.ending = Ending.CUT
        elif exchange.head is None:
            # libcurl reports success for a header block cut by the end of the stream
            reason = Reason.MALFORMED_RESPONSE if seen.block else Reason.EMPTY_RESPONSE
            self._trouble(reason, "The connection ended before the response headers were complete.")
        elif _outgrows(exchange.head):
            exchange.ending = Ending.CUT

    def _broken(self, ended: Ended) -> Trouble:
        handle, seen = self._handle, self._seen
        return trouble_of(
            Broken(
                code=ended.code,
                message=ended.message,
                os_errno=seen.socket_error or handle.getinfo(pycurl.OS_ERRNO),
                verify_result=handle.getinfo(pycurl.SSL_VERIFYRESULT),
                through_proxy=self._terms.through_proxy,
                connected=seen.connected,
                certificate_asked=seen.certificate_asked and self._exchange.head is None,
            )
        )

    def _refusal(self) -> str:
        addresses = ", ".join(dict.fromkeys(self._seen.refused))
        return f"{self._terms.host} is at {addresses}, which is no public address."

    def _read_facts(self) -> None:
        handle, exchange, seen = self._handle, self._exchange, self._seen
        exchange.interim, exchange.trailers = b"".join(seen.interim), b"".join(seen.trailers)
        exchange.head_fragment = b"".join(seen.block)
        exchange.refused = tuple(dict.fromkeys(seen.refused))
        if not self._terms.through_proxy:
            exchange.remote_address = handle.getinfo(pycurl.PRIMARY_IP) or None
        exchange.timings = {
            "dns": handle.getinfo(pycurl.NAMELOOKUP_TIME),
            "connect": handle.getinfo(pycurl.CONNECT_TIME),
            "tls": handle.getinfo(pycurl.APPCONNECT_TIME),
            "first_byte": handle.getinfo(pycurl.STARTTRANSFER_TIME),
        }
        if exchange.url.startswith("https:"):
            self._read_tls()

    def _read_tls(self) -> None:
        """Facts come with a handshake only; an exchange on an open connection looks them up."""
        known, connection = self._multi.handshakes, self._handle.getinfo(pycurl.CONN_ID)
        if self._seen.handshake:
            known.remember(connection, secured(self._handle, self._seen.handshake))
        facts = known.of(connection)
        if facts:
            problem = self._terms.overlooked
            self._exchange.tls = Tls(
                version=facts.version, cipher=facts.cipher, verified=problem is None, problem=problem
            )
            self._exchange.certificates = facts.certificates

    def _finish_body(self) -> None:
        exchange = self._exchange
        if self._decoder is None:
            return
        try:
            decoded = self._decoder.finish(complete=exchange.ending is Ending.COMPLETE)
        except OSError as problem:  # its last bytes go to the disk as well
            exchange.trouble = exchange.trouble or storage_trouble(problem)
            exchange.ending = Ending.CUT
            return
        exchange.notes = decoded.notes
        if exchange.wire_bytes > self._terms.max_bytes and decoded.ending is not decoding.Ending.CORRUPT:
            exchange.ending = Ending.TOO_LARGE
        elif exchange.ending is Ending.COMPLETE:
            exchange.ending = _ENDINGS[decoded.ending]
        if exchange.payload and not decoded.coded:
            exchange.payload.close()
            exchange.payload = None


def _outgrows(head: Head) -> bool:
    """Whether the declared length is beyond what libcurl reads; it then takes the end of the stream for the end."""
    lengths = head.values("content-length")
    return not head.values("transfer-encoding") and any(
        value.isascii() and value.isdigit() and len(value.lstrip("0")) > _LONGEST_LENGTH for value in lengths
    )
