"""A small HTTP proxy: tunnels (CONNECT) and requests in absolute form, with or without credentials."""

import base64
import contextlib
import select
import socket
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Proxy:
    """Forwards to `target`, whatever host is asked for; `log` keeps the heads it was sent."""

    target: tuple[str, int]
    credentials: bytes | None = None
    """"user:password" that must be shown; None: everybody may."""
    refusal: bytes | None = None
    """The answer to everything instead; None: forward."""
    log: list[bytes] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.log.append(head)
            if self.refusal is not None:
                connection.sendall(self.refusal)
            elif not self._may_pass(head):
                connection.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\n"
                    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
                )
            else:
                self._forward(connection, head)

    def _may_pass(self, head: bytes) -> bool:
        if self.credentials is None:
            return True
        return b"Proxy-Authorization: Basic " + base64.b64encode(self.credentials) + b"\r\n" in head

    def _forward(self, connection: socket.socket, head: bytes) -> None:
        with socket.create_connection(self.target) as onward:
            if head.startswith(b"CONNECT "):
                connection.sendall(b"HTTP/1.1 200 Connection established\r\nX-From-Proxy: yes\r\n\r\n")
            else:
                method, url, rest = head.split(b" ", 2)
                parts = urlsplit(url.decode())
                target = parts.path + (f"?{parts.query}" if parts.query else "")
                onward.sendall(b" ".join([method, target.encode(), rest]))
            ends = [connection, onward]
            while True:
                for end in select.select(ends, [], [], 10)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    (onward if end is connection else connection).sendall(data)
