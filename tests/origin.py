"""A scripted server on loopback: raw bytes in the order given, with pauses, resets and computed replies."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

HT = b"Content-Type: text/html; charset=utf-8"
GZ = b"Content-Encoding: gzip"
BODY = (
    b"<!doctype html><title>Notice 42</title><body><h1>Notice 42</h1>"
    + b"<p>evidence text</p>" * 200
    + b"</body>"
)


@dataclass(frozen=True)
class Sleep:
    """Wait before the next step."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """End the connection with RST instead of FIN."""


Step = bytes | Sleep | Reset | Callable[[bytes, str], bytes]
Reply = Sequence[Step]


class Script:
    """Replies for successive requests; the last one repeats."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()

    def next(self) -> Reply:
        with self._lock:
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def K(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A raw reply after which the connection stays open."""
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body), b"", b""]) + body


def R(status: bytes = b"200 OK", body: bytes = b"", *headers: bytes, cl: int | bool | None = None) -> bytes:
    """A raw reply; `cl=False` sends no Content-Length, a number lies about it."""
    lines = [b"HTTP/1.1 " + status, *headers]
    if cl is not False:
        lines.append(b"Content-Length: %d" % (len(body) if cl is None else cl))
    return b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body


def C(*parts: bytes, end: bool = True) -> bytes:
    """A chunked body; `end=False` leaves the last chunk out."""
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")


@dataclass
class Origin:
    """Serves `routes` by path; `log` keeps every raw request."""

    address: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    routes: dict[str, Reply | Script] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)
    port: int = 0
    keep_alive: bool = False
    """Read another request on the same connection after a reply."""
    greeting: bytes = b""
    """Sent as soon as a connection stands, whatever is asked."""
    connections: int = 0
    """How many were accepted, whatever came over them."""

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((self.address, self.port))
        self._socket.listen(256)
        self.port = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Origin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and cut what is open."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Cut what is open and go on listening."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def url(self, path: str, host: str | None = None) -> str:
        """An absolute URL of this origin."""
        scheme = "https" if self.tls else "http"
        name = host or (f"[{self.address}]" if ":" in self.address else self.address)
        return f"{scheme}://{name}:{self.port}{path}"

    def targets(self) -> list[str]:
        """The request targets, in order."""
        return [request.split(b" ", 2)[1].decode("latin-1") for request in self.log]

    def _accept(self) -> None:
        while not self._ended:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        with contextlib.suppress(OSError):
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            if self.greeting:
                connection.sendall(self.greeting)
            while request := _read_request(connection):
                self._reply(connection, request)
                if not self.keep_alive:
                    break
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _reply(self, connection: socket.socket, request: bytes) -> None:
        method, target = request.split(b" ", 2)[:2]
        with self._lock:
            self.log.append(request)
        reply = self.routes.get(target.decode("latin-1").split("?")[0], [R(b"404 Not Found")])
        for step in reply.next() if isinstance(reply, Script) else reply:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif isinstance(step, Sleep):
                time.sleep(step.seconds)
            elif isinstance(step, Reset):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            else:
                connection.sendall(step(request, method.decode()))


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:  # closing with bytes unread would reset the connection and lose the reply
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data, body = data + chunk, body + chunk
    return data


def header_of(request: bytes, name: bytes) -> bytes | None:
    """A header's value in a raw request; None: it is not there."""
    lines: Iterable[bytes] = request.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    for line in lines:
        key, _, value = line.partition(b":")
        if key.lower() == name.lower():
            return value.strip()
    return None
