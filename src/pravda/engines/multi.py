"""One libcurl multi handle, driven by asyncio, for all transfers of an event loop."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass

import pycurl

from pravda.engines.tls import Handshakes

_READ, _WRITE = 1, 2
_WANTS = {pycurl.POLL_IN: _READ, pycurl.POLL_OUT: _WRITE, pycurl.POLL_INOUT: _READ | _WRITE}
_CLOSING = 1.0  # seconds that closing waits for libcurl


@dataclass(frozen=True, slots=True)
class Ended:
    """How libcurl ended a transfer: CURLcode (0 is success) and its message."""

    code: int
    message: str


class Multi:
    """Runs easy handles until they end; everything happens on the loop it was made in."""

    def __init__(self, connections: int) -> None:
        """`connections` is the most that are kept open for reuse."""
        self._loop = asyncio.get_running_loop()
        self._running: dict[pycurl.Curl, asyncio.Future[Ended]] = {}
        self._watched: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.handshakes = Handshakes(2 * connections)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this belongs to."""
        return self._loop

    def start(self, handle: pycurl.Curl) -> "asyncio.Future[Ended]":
        """Begin a transfer; the future ends with it, is cancelled by `close`, or never ends after `stop`."""
        future: asyncio.Future[Ended] = self._loop.create_future()
        self._running[handle] = future
        self._multi.add_handle(handle)
        return future

    def stop(self, handle: pycurl.Curl) -> None:
        """Take a transfer out, ended or not."""
        if self._running.pop(handle, None) is not None:
            self._multi.remove_handle(handle)

    async def close(self) -> None:
        """Cancel what runs and close all connections."""
        for handle, future in list(self._running.items()):
            self.stop(handle)
            future.cancel()
        if self._timer:
            self._timer.cancel()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, None)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, None)
        for fd, wants in () if self._loop.is_closed() else self._watched.items():
            self._watch(fd, wants, 0)
        self._watched.clear()
        await self._let_go()

    async def _let_go(self) -> None:
        """Free libcurl's side, which first waits for its resolver threads, so not on this thread and not for ever."""
        closed, loop = asyncio.Event(), asyncio.get_running_loop()

        def work() -> None:
            self._multi.close()
            with suppress(RuntimeError):  # nobody waits any more, the loop is closed
                loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=work, name="pravda-close", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await closed.wait()

    def _on_socket(self, event: int, fd: int, _multi: object, _data: object) -> None:
        before, wants = self._watched.get(fd, 0), _WANTS.get(event, 0)
        self._watch(fd, before, wants)
        if wants:
            self._watched[fd] = wants
        else:
            self._watched.pop(fd, None)

    def _watch(self, fd: int, before: int, wants: int) -> None:
        if wants & _READ and not before & _READ:
            self._loop.add_reader(fd, self._act, fd, pycurl.CSELECT_IN)
        elif before & _READ and not wants & _READ:
            self._loop.remove_reader(fd)
        if wants & _WRITE and not before & _WRITE:
            self._loop.add_writer(fd, self._act, fd, pycurl.CSELECT_OUT)
        elif before & _WRITE and not wants & _WRITE:
            self._loop.remove_writer(fd)

    def _on_timer(self, milliseconds: int) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if milliseconds >= 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._act, pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, event: int) -> None:
        self._multi.socket_action(fd, event)
        more = 1
        while more:
            more, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                self._end(handle, Ended(0, ""))
            for handle, code, message in failed:
                self._end(handle, Ended(code, message))

    def _end(self, handle: pycurl.Curl, ended: Ended) -> None:
        future = self._running.get(handle)
        if future is not None and not future.done():
            future.set_result(ended)
