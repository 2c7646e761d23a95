"""A scripted HTTP/2 server over TLS, on loopback."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, RequestReceived
from h2.exceptions import ProtocolError

from tests.certificates import authority

Answer = Callable[[H2Connection, int], None]


@dataclass
class H2Origin:
    """Answers every request by calling `answer` with the connection and the stream's number."""

    answer: Answer
    host: str = "two.example"
    requests: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._context = authority().server(self.host)
        self._context.set_alpn_protocols(["h2"])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "H2Origin":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def url(self, path: str) -> str:
        """An absolute URL of this origin."""
        return f"https://{self.host}:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(10)
        with plain, contextlib.suppress(OSError, ProtocolError):
            connection = self._context.wrap_socket(plain, server_side=True)
            with connection:
                self._converse(connection)

    def _converse(self, connection: ssl.SSLSocket) -> None:
        two = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        two.initiate_connection()
        connection.sendall(two.data_to_send())
        while data := connection.recv(65536):
            for event in two.receive_data(data):
                self._react(two, event)
                connection.sendall(two.data_to_send())
            connection.sendall(two.data_to_send())

    def _react(self, two: H2Connection, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self.requests.append({str(name): str(value) for name, value in event.headers})
            self.answer(two, event.stream_id)
