"""One HTTP exchange on one libcurl handle: raw heads, streamed body, budgets per phase, guarded addresses."""

import asyncio
import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import pycurl

from pravda.core.addresses import AddressPolicy
from pravda.core.evidence import Ending, Phase, Tls, Trouble
from pravda.core.request import Pairs, Timeouts
from pravda.core.states import Reason
from pravda.engines import decoding
from pravda.engines.decoding import Decoder
from pravda.engines.faults import Broken, storage_trouble, trouble_of
from pravda.engines.multi import Ended, Multi
from pravda.engines.spool import Spool

LARGEST_HEAD = 256 * 1024
"""Bytes of all response header lines of one exchange; Chromium's limit too."""

_HEADER_OUT, _TEXT = pycurl.INFOTYPE_HEADER_OUT, pycurl.INFOTYPE_TEXT
_TLS_WORDS = re.compile(rb"SSL connection using ([^ ]+) / ([^ ]+)")
_STATUS_LINE = re.compile(rb"HTTP/([0-9](?:\.[0-9])?)[ \t]+([0-9]{1,4})(?:[ \t\r\n]|$)")

_OUT_OF_TIME = Ended(-1, "")

_ENDINGS = {
    decoding.Ending.COMPLETE: Ending.COMPLETE,
    decoding.Ending.TRUNCATED: Ending.TRUNCATED_CODING,
    decoding.Ending.CORRUPT: Ending.CORRUPT,
    decoding.Ending.TOO_LARGE: Ending.TOO_LARGE,
    decoding.Ending.UNSUPPORTED: Ending.UNSUPPORTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A complete block of response headers, as it came."""

    raw: bytes
    status: int
    version: str
    headers: Pairs

    @classmethod
    def parse(cls, raw: bytes) -> "Head | None":
        """The head in raw lines, bytes read as latin-1; None: its first line is no status line."""
        lines = raw.split(b"\n")
        found = _STATUS_LINE.match(lines[0])
        if not found:
            return None
        headers: list[tuple[str, str]] = []
        for line in lines[1:]:
            text = line.rstrip(b"\r").decode("latin-1")
            if text[:1] in (" ", "\t") and headers:  # obsolete line folding, RFC 9112 §5.2
                headers[-1] = (headers[-1][0], f"{headers[-1][1]} {text.strip()}".strip())
            elif text:
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
    request_body: bytes = b""
    head: Head | None = None
    """The final response's; None: no complete one came."""
    head_fragment: bytes = b""
    """Header lines of a block that never ended."""
    interim: bytes = b""
    """Raw 1xx blocks."""
    trailers: bytes = b""
    headers_at: datetime | None = None
    content: Spool | None = None
    payload: Spool | None = None
    """The coded payload, where a coding was removed."""
    ending: Ending = Ending.COMPLETE
    wire_bytes: int = 0
    notes: tuple[decoding.Note, ...] = ()
    trouble: Trouble | None = None
    refused: tuple[str, ...] = ()
    """Addresses that the guard did not let through."""
    remote_address: str | None = None
    tls: Tls | None = None
    certificates: bytes = b""
    """The server's chain, PEM."""
    timings: dict[str, float] = field(default_factory=dict)
    """libcurl's, seconds from the start of the exchange."""

    def close(self) -> None:
        """Let go of the body."""
        for spool in (self.content, self.payload):
            if spool:
                spool.close()


class _Socket:
    """A descriptor that libcurl duplicates and Python closes, without a ResourceWarning."""

    __slots__ = ("_fd",)

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._fd = socket.socket(family, kind, protocol).detach()

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):  # AttributeError: socket() itself failed
            os.close(self._fd)


class Transfer:
    """Runs one exchange; its callbacks only note what they see."""

    def __init__(
        self,
        *,
        multi: Multi,
        handle: pycurl.Curl,
        exchange: Exchange,
        host: str,
        policy: AddressPolicy,
        timeouts: Timeouts,
        deadline: float,
        max_bytes: int,
        spool: Callable[[], Spool],
        now: Callable[[], datetime],
        through_proxy: bool,
        tls_of_connection: dict[int, tuple[str | None, str | None]],
    ) -> None:
        """`deadline` is on the loop's clock; `spool` makes an empty one."""
        self._multi, self._loop, self._handle = multi, multi.loop, handle
        self.exchange = exchange
        self._host, self._policy = host, policy
        self._timeouts, self._deadline, self._max_bytes = timeouts, deadline, max_bytes
        self._make_spool, self._now = spool, now
        self._through_proxy, self._known_tls = through_proxy, tls_of_connection
        self._head_size = 0
        self._block: list[bytes] = []
        self._refused: list[str] = []
        self._decoder: Decoder | None = None
        self._keeps_payload = False
        self._connected = False
        self._socket_error = 0
        self._tls: tuple[str, str] | None = None
        self._phase_end = self._loop.time() + timeouts.connect
        self._last_byte = 0.0
        self._ended: asyncio.Future[Ended] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> Exchange:
        """The exchange, whatever happened; on cancellation its trouble is `cancelled`."""
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
            self._trouble(Reason.CANCELLED, "The capture was cancelled.", Ending.CUT)
        finally:
            if self._timer:
                self._timer.cancel()
            self._read_facts()
            self._multi.stop(self._handle)
            self._finish_body()
        return self.exchange

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
        if self.exchange.head:
            return Phase.BODY
        return Phase.RESPONSE if self._connected else Phase.CONNECT

    def _ends_at(self) -> float:
        end = min(self._phase_end, self._deadline)
        return min(end, self._last_byte + self._timeouts.idle) if self.exchange.head else end

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

    def _on_open(self, _purpose: int, address: "pycurl.CurlSockAddr") -> "_Socket | int":
        text = str(address.addr[0])
        if not self._through_proxy and not self._policy.allows(text, self._host):
            self._refused.append(text)
            return int(pycurl.SOCKET_BAD)
        try:
            return _Socket(address.family, address.socktype, address.protocol)
        except OSError as problem:
            self._socket_error = problem.errno or 0
            return int(pycurl.SOCKET_BAD)

    def _on_connected(self, remote: str, _local: str, _port: int, _local_port: int) -> int:
        # also asked for reused connections, whose address was let through under another host name's permission
        if not self._through_proxy and not self._policy.allows(remote, self._host):
            self._refused.append(remote)
            return int(pycurl.PREREQFUNC_ABORT)
        self._connected = True
        self._enter(self._timeouts.first_byte)
        return int(pycurl.PREREQFUNC_OK)

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == _HEADER_OUT:
            self.exchange.request_head = data  # a retry on a dead connection sends again: the last one counts
        elif kind == _TEXT and (found := _TLS_WORDS.search(data)):
            self._tls = (found[1].decode("ascii", "replace"), found[2].decode("ascii", "replace"))

    def _on_header(self, line: bytes) -> int | None:
        self._head_size += len(line)
        if self._head_size > LARGEST_HEAD:
            self._trouble(
                Reason.HEADERS_TOO_LARGE, f"The response headers exceed {LARGEST_HEAD:,} bytes.", Ending.CUT
            )
            return -1
        if self.exchange.head and not line.startswith(b"HTTP/"):
            self.exchange.trailers += line  # RFC 9112 §7.1.2
            return None
        self._block.append(line)
        if line in (b"\r\n", b"\n"):
            return self._on_head(b"".join(self._block))
        return None

    def _on_head(self, raw: bytes) -> int | None:
        self._block.clear()
        head = Head.parse(raw)
        if head is None:
            self._trouble(Reason.MALFORMED_RESPONSE, "The answer has no valid status line.", Ending.CUT)
            self.exchange.head_fragment = raw
            return -1
        if 100 <= head.status < 200 and head.status != 101:  # RFC 9110 §15.2: interim, the final one follows
            self.exchange.interim += raw
            return None
        self.exchange.head = head
        self.exchange.headers_at = self._now()
        self._last_byte = self._loop.time()
        self._enter(self._timeouts.body)
        return None

    def _on_body(self, chunk: bytes) -> int | None:
        self._last_byte = self._loop.time()
        self.exchange.wire_bytes += len(chunk)
        try:
            decoder = self._decoder or self._open_body()
            if self._keeps_payload and self.exchange.payload:
                self.exchange.payload.write(chunk)
            if decoder.feed(chunk) and self.exchange.wire_bytes <= self._max_bytes:
                return None
        except OSError as problem:
            self.exchange.trouble = storage_trouble(problem)
        return -1

    def _open_body(self) -> Decoder:
        head = self.exchange.head
        codings = head.values("content-encoding") if head else []
        types = head.values("content-type") if head else []
        self.exchange.content = self._make_spool()
        self._keeps_payload = bool(decoding.codings(codings)) or any(value == "" for value in codings)
        if self._keeps_payload:
            self.exchange.payload = self._make_spool()
        self._decoder = Decoder(
            codings,
            self.exchange.content.write,
            content_type=types[0] if types else None,
            max_bytes=self._max_bytes,
        )
        return self._decoder

    # the end

    def _trouble(self, reason: Reason, detail: str, ending: Ending) -> None:
        self.exchange.trouble = Trouble(reason=reason, phase=self._phase(), detail=detail)
        self.exchange.ending = ending

    def _settle_timeout(self) -> None:
        phase = self._phase()
        whole = self._loop.time() >= self._deadline
        reason = {
            Phase.CONNECT: Reason.CONNECT_TIMEOUT,
            Phase.RESPONSE: Reason.RESPONSE_TIMEOUT,
            Phase.BODY: Reason.BODY_TIMEOUT,
        }[phase]
        name = {Phase.CONNECT: "connect", Phase.RESPONSE: "first_byte", Phase.BODY: "body"}[phase]
        if phase is Phase.BODY and self._loop.time() < self._phase_end:
            name = "idle"
        budget = "total" if whole else name
        self._trouble(reason, f"The budget `{budget}` ran out in phase {phase}.", Ending.TIMED_OUT)

    def _settle(self, ended: Ended) -> None:
        exchange = self.exchange
        if exchange.trouble is not None:
            return  # a callback ended it and has said why
        if ended.code == pycurl.E_WRITE_ERROR and self._decoder is not None:
            return  # the decoder wants no more; its ending says why
        if self._refused and not self._connected:
            self._trouble(Reason.UNSAFE_ADDRESS, self._refusal(), Ending.CUT)
        elif ended.code:
            exchange.trouble = trouble_of(
                Broken(
                    code=ended.code,
                    message=ended.message,
                    os_errno=self._handle.getinfo(pycurl.OS_ERRNO) or self._socket_error,
                    verify_result=self._handle.getinfo(pycurl.SSL_VERIFYRESULT),
                    through_proxy=self._through_proxy,
                    connected=self._connected,
                )
            )
            exchange.ending = Ending.CUT
        elif exchange.head is None:
            # libcurl reports success for a header block cut by the end of the stream
            reason = Reason.MALFORMED_RESPONSE if self._block else Reason.EMPTY_RESPONSE
            self._trouble(
                reason, "The connection ended before the response headers were complete.", Ending.CUT
            )

    def _refusal(self) -> str:
        return f"{self._host} is at {', '.join(dict.fromkeys(self._refused))}, which is no public address."

    def _read_facts(self) -> None:
        handle, exchange = self._handle, self.exchange
        exchange.refused = tuple(dict.fromkeys(self._refused))
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
        handle = self._handle
        connection = handle.getinfo(pycurl.CONN_ID)
        if self._tls:
            self._known_tls[connection] = self._tls
        version, cipher = self._known_tls.get(connection, (None, None))
        certificates = [
            value
            for facts in handle.getinfo(pycurl.INFO_CERTINFO) or ()
            for name, value in facts
            if name == "Cert"
        ]
        self.exchange.certificates = "\n".join(text.strip() for text in certificates).encode(
            "ascii", "replace"
        )
        if version or certificates:
            self.exchange.tls = Tls(version=version, cipher=cipher)

    def _finish_body(self) -> None:
        exchange = self.exchange
        exchange.head_fragment = exchange.head_fragment or b"".join(self._block)
        if self._decoder is None:
            return
        try:
            decoded = self._decoder.finish(complete=exchange.ending is Ending.COMPLETE)
        except OSError as problem:  # its last bytes go to the disk as well
            exchange.trouble = exchange.trouble or storage_trouble(problem)
            exchange.ending = Ending.CUT
            return
        exchange.notes = decoded.notes
        if exchange.wire_bytes > self._max_bytes and decoded.ending is not decoding.Ending.CORRUPT:
            exchange.ending = Ending.TOO_LARGE
        elif exchange.ending is Ending.COMPLETE:
            exchange.ending = _ENDINGS[decoded.ending]
        if exchange.payload and not decoded.coded:
            exchange.payload.close()
            exchange.payload = None
