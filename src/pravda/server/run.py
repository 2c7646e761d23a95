"""A service on a socket, from start to graceful end."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

import uvicorn

from pravda.core.mistake import BadRequest
from pravda.server.app import make_app
from pravda.server.keys import Keys
from pravda.server.service import Parts, Service

log = logging.getLogger("pravda.server")

_HEAD_BYTES = 64 * 1024  # of a request
_KEEP_ALIVE_SECONDS = 15
_BACKLOG = 512
_LAST_SECONDS = 5.0  # for answers to go out after captures were ended


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_open_door(host: str, keys: Keys, parts: Parts) -> None:
    """Raises BadRequest for a service that others could reach and use without a key."""
    if not is_loopback(host) and not any(key.is_valid(parts.now()) for key in keys.all()):
        raise BadRequest(
            "host",
            f"{host} can be reached from elsewhere, and there is no API key: make one with `pravda keys add` first",
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; raises BadRequest where that cannot be."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, proto)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(_BACKLOG)
        except OSError:
            made.close()
            raise
    except (OSError, UnicodeError, OverflowError) as problem:
        raise BadRequest("host", f"{host} port {port} cannot be listened on: {problem}") from None
    return made


class Server(uvicorn.Server):
    """Uvicorn, which ends captures before it waits for the answers to them, and then leaves quietly."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, give what runs its time, then end it."""
        ending = asyncio.create_task(self._service.desk.close(self._service.options.grace))
        await super().shutdown(sockets)
        if self.force_exit:  # a second signal: end it now
            await self._service.desk.close(0)
        await ending

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn, but without raising them once more at the end, which would lose the exit code."""
        loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        try:
            for one in signals:
                loop.add_signal_handler(one, self.handle_exit, one, None)
        except (ValueError, RuntimeError):  # not the main thread, which alone hears of signals
            yield
            return
        try:
            yield
        finally:
            for one in signals:
                loop.remove_signal_handler(one)


def make_server(parts: Parts, version: str) -> Server:
    """A server of these parts; it takes sockets and runs until it is told to exit."""
    service = Service(parts)
    config = uvicorn.Config(
        make_app(service, version),
        # h11, which bounds the size of a request's head; httptools does not
        http="h11",
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(parts.options.grace + _LAST_SECONDS),
        backlog=_BACKLOG,
    )
    return Server(config, service)
