"""A tree of 1,000 sources on 100 hosts: CPU time per source of a pass in which nothing has changed, and the pauses."""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from server import Site

from pravda.assemble import open_tree
from pravda.settings import load
from pravda.tree.refresh import refresh
from pravda.tree.results import RunResult

MOST_CPU = 2.0
"""Milliseconds of CPU time that a source may cost which answers 304."""

_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Watched(Site):
    """Notes when each host was asked."""

    asked: ClassVar[defaultdict[str, list[float]]] = defaultdict(list)

    def _answer(self, request: bytes) -> None:
        host = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"host:"))
        self.asked[host[5:].strip().decode()].append(time.monotonic())
        if request.split(b" ", 2)[1] == b"/robots.txt":
            self._transport.write(_NOT_FOUND)
        else:
            super()._answer(request)


async def serve(size: int, hosts: int) -> None:
    """Serve on one address of loopback per host until told to end; then tell when each host was asked."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(lambda: Watched(size), "127.0.1.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    others = [f"127.0.{1 + number}.1" for number in range(1, hosts)]
    more = [await loop.create_server(lambda: Watched(size), host, port, backlog=512) for host in others]
    print(port, flush=True)
    await ended.wait()
    for listening in (server, *more):
        listening.close()
    print(json.dumps(Watched.asked), flush=True)


def sources(port: int, hosts: int, each: int, gap: float) -> str:
    """The sources file."""
    blocks = (
        f'[[source]]\nid = "s{number}"\nurl = "http://127.0.{1 + number % hosts}.1:{port}/page/{number}"\n'
        for number in range(hosts * each)
    )
    head = f'[defaults]\ninterval = "0s"\nhost_gap = "{gap}s"\ncontact = "https://host.invalid/"\n'
    return head + "".join(blocks)


async def run(root: Path) -> tuple[RunResult, float, float]:
    """One refresh: what it came to, seconds of CPU time and of wall time."""
    cpu, wall = time.process_time(), time.monotonic()
    async with open_tree(root, settings=load(allow_addresses="127.0.0.0/8", home=root / "home")) as opened:
        result = await refresh(opened)
    return result, time.process_time() - cpu, time.monotonic() - wall


def main() -> int:
    """Measure; 1 where a promise is not kept."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hosts", type=int, default=100)
    options.add_argument("--each", type=int, default=10)
    options.add_argument("--gap", type=float, default=0.5, help="seconds; 2 is what a tree has by default")
    options.add_argument("--size", type=int, default=30_000)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        asyncio.run(serve(given.size, given.hosts))
        return 0
    command = [
        sys.executable,
        os.path.abspath(__file__),
        "--serve",
        f"--size={given.size}",
        f"--hosts={given.hosts}",
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as site,
    ):
        assert site.stdout is not None
        root, port = Path(folder), int(site.stdout.readline())
        (root / "sources.toml").write_text(sources(port, given.hosts, given.each, given.gap))
        first, second, third = (asyncio.run(run(root)) for _ in range(3))
        site.terminate()
        asked: dict[str, list[float]] = json.loads(site.stdout.readline())
    count = given.hosts * given.each
    for name, (result, cpu, wall) in (("200", first), ("304", second), ("304", third)):
        told = f"{result.changed} changed, {result.confirmed} confirmed"
        print(f"all {name}: {1000 * cpu / count:.2f} CPU-ms per source, {wall:.1f} s; {told}")
    least = min(later - earlier for times in asked.values() for earlier, later in pairwise(times))
    print(f"least pause between two requests to one host: {least:.3f} s, of {given.gap} s")
    best = min(cpu for _, cpu, _ in (second, third))
    kept = second[0].confirmed == third[0].confirmed == count and least >= given.gap
    return 0 if kept and 1000 * best / count <= MOST_CPU else 1


if __name__ == "__main__":
    sys.exit(main())
