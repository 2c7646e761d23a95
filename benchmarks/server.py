"""The site of the benchmarks: pages of one size with an ETag, 304 for who sends it; raw asyncio, so that it is no bottleneck."""

import argparse
import asyncio
from email.utils import formatdate

ROW = b"<p class=row>Entry %d of the register, with <a href='/entry/%d'>a link</a> and some words.</p>\n"
DATE = formatdate(usegmt=True).encode()
HEAD = (
    b"HTTP/1.1 200 OK\r\nDate: "
    + DATE
    + b"\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b'ETag: "%b"\r\nContent-Length: %d\r\n\r\n'
)
NOT_MODIFIED = (
    b"HTTP/1.1 304 Not Modified\r\nDate: " + DATE + b'\r\nCache-Control: no-cache\r\nETag: "%b"\r\n\r\n'
)


def page(path: bytes, size: int) -> bytes:
    """A page of about `size` bytes, different for every path."""
    rows = b"".join(ROW % (number, number) for number in range(size // 80))
    return (b"<!doctype html><title>%b</title><body>" % path + rows)[:size] + b"</body>"


class Site(asyncio.Protocol):
    """One connection."""

    def __init__(self, size: int) -> None:
        self._rows = page(b"/", size)
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            request, self._data = self._data.split(b"\r\n\r\n", 1)
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        path = request.split(b" ", 2)[1]
        tag = path.strip(b"/").replace(b"/", b"-")
        lines = request.lower().split(b"\r\n")
        if any(line.startswith(b"if-none-match:") and tag in line for line in lines):
            self._transport.write(NOT_MODIFIED % tag)
            return
        body = self._rows + b"<!-- %b -->" % path
        self._transport.write(HEAD % (tag, len(body)) + body)


async def main() -> None:
    """Serve until killed; the first line of output is the port."""
    options = argparse.ArgumentParser()
    options.add_argument("--size", type=int, default=30_000)
    size = options.parse_args().size
    server = await asyncio.get_running_loop().create_server(lambda: Site(size), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
