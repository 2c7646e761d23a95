"""The service under load: many clients, fresh, stale and failed answers mixed, against the library on the same machine.

    python benchmarks/service.py --seconds 600 --clients 200

Ends with exit code 1 when an answer is none of the documented ones, or a bound that the project holds itself to is passed.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pravda

HERE = Path(__file__).parent
EXPECTED = {"fresh": 201, "stale": 200, "failed": 502}
KEYS = 200  # pages that broke after they had been captured once
MOST_OVERHEAD = 0.020  # seconds, at the 99th percentile, of a stale answer over a failed one
LEAST_SHARE = 0.5  # of the library's throughput
MOST_GROWTH = 0.10  # of memory in the second half


@dataclass
class Site:
    """Where pages are, and where nothing answers."""

    good: str
    broken: str

    def wish(self, chance: random.Random) -> tuple[str, dict[str, object]]:
        """What is asked next, and how it should end."""
        kind = chance.choice(("fresh", "fresh", "stale", "failed"))
        number = chance.randrange(KEYS)
        if kind == "fresh":
            return kind, {"url": f"{self.good}/page/{number}"}
        if kind == "stale":
            # a key stands for the page: it was captured where it lived, and is asked for where it is gone
            return kind, {"url": f"{self.broken}/{number}", "key": f"page-{number}", "max_stale_age": "7d"}
        return kind, {"url": f"{self.broken}/{number}?{chance.random()}"}


@dataclass
class Tally:
    """What came of it."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in EXPECTED})
    odd: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    """KiB, every second."""
    cpu: float = 0.0
    """Seconds that the service used."""

    @property
    def count(self) -> int:
        """Answers."""
        return sum(map(len, self.seconds.values()))

    def at(self, kind: str, share: float) -> float:
        """A percentile."""
        found = sorted(self.seconds[kind]) or [0.0]
        return found[min(len(found) - 1, int(len(found) * share))]


def chances(number: int) -> random.Random:
    """The same for the same crawler each time."""
    return random.Random(number)  # noqa: S311 - a load needs no secrets


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wish: dict[str, object]) -> int:
    """One request on a connection that stays open; the status."""
    body = json.dumps(wish).encode()
    head = "POST /snapshots HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(answer.split(b" ", 2)[1])


async def client(port: int, site: Site, chance: random.Random, until: float, tally: Tally) -> None:
    """One crawler."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while time.monotonic() < until:
        kind, wish = site.wish(chance)
        began = time.monotonic()
        status = await post(reader, writer, wish)
        if status == EXPECTED[kind]:
            tally.seconds[kind].append(time.monotonic() - began)
        else:
            tally.odd[f"{kind} {status}"] += 1
    writer.close()


def cpu_of(process: int) -> float:
    """Seconds of CPU that a process has used (proc_pid_stat(5), fields 14 and 15)."""
    told = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


async def watch(process: int, until: float, tally: Tally) -> None:
    """Note the service's memory."""
    while time.monotonic() < until:
        await asyncio.sleep(1)
        status = await asyncio.to_thread(Path(f"/proc/{process}/status").read_text, "ascii")
        found = re.search(r"VmRSS:\s+(\d+)", status)
        tally.memory.append(int(found[1]) if found else 0)


async def load(port: int, process: int, site: Site, clients: int, seconds: float) -> Tally:
    """Fill the archive with what will be stale, then let all crawlers loose."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    for number in range(KEYS):
        status = await post(reader, writer, {"url": f"{site.good}/page/{number}", "key": f"page-{number}"})
        assert status == 201, status
    writer.close()
    tally, until, before = Tally(), time.monotonic() + seconds, cpu_of(process)
    crawlers = [client(port, site, chances(number), until, tally) for number in range(clients)]
    await asyncio.gather(watch(process, until, tally), *crawlers)
    tally.cpu = cpu_of(process) - before
    return tally


async def library(home: Path, site: Site, clients: int, seconds: float) -> tuple[float, float]:
    """The library by itself, for the same wishes: captures a second, and seconds of CPU for each."""
    done = 0

    async def crawl(archive: pravda.Pravda, number: int, until: float) -> None:
        nonlocal done
        chance = chances(number)
        while time.monotonic() < until:
            _, wish = site.wish(chance)
            await archive.capture(**wish, on_failure="return")  # type: ignore[arg-type]  # the url is a text
            done += 1

    async with pravda.open(home=home, allow_addresses="127.0.0.0/8") as archive:
        for number in range(KEYS):
            await archive.capture(f"{site.good}/page/{number}", key=f"page-{number}")
        until, before = time.monotonic() + seconds, time.process_time()
        await asyncio.gather(*(crawl(archive, number, until) for number in range(clients)))
        return done / seconds, (time.process_time() - before) / done


def start(command: list[str], pattern: str, **variables: str) -> tuple[subprocess.Popen[str], str]:
    """A process, and what its output says of where it listens."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | variables
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return process, found[1]
    raise SystemExit(f"{command[1]} does not start")


def drain(process: subprocess.Popen[str]) -> None:
    """Read a log away, lest it fill the pipe."""
    for _ in process.stdout or ():
        pass


def report(tally: Tally, seconds: float, alone: float, alone_cpu: float) -> list[str]:
    """Print the numbers; the bounds that were passed."""
    for kind in EXPECTED:
        times = ", ".join(f"p{share * 100:g} {tally.at(kind, share) * 1000:.1f} ms" for share in (0.5, 0.99))
        print(f"{kind:7} {len(tally.seconds[kind]):8} answers, {times}")
    rate, half = tally.count / seconds, len(tally.memory) // 2
    overhead = tally.at("stale", 0.99) - tally.at("failed", 0.99)
    middle, last = tally.memory[half], tally.memory[-1]
    print(f"stale over failed at p99: {overhead * 1000:.1f} ms")
    print(f"service {rate:.0f}/s, library alone {alone:.0f}/s ({rate / alone:.0%})")
    print(
        f"CPU of an answer: {tally.cpu / tally.count * 1000:.2f} ms, library alone {alone_cpu * 1000:.2f} ms"
    )
    print(
        f"memory {middle / 1024:.0f} MiB at half time, {last / 1024:.0f} MiB at the end; odd answers: {dict(tally.odd)}"
    )
    passed = {
        "odd answers": bool(tally.odd),
        "overhead of stale answers": overhead > MOST_OVERHEAD,
        "throughput": rate < LEAST_SHARE * alone,
        "memory": last > middle * (1 + MOST_GROWTH),
    }
    return [name for name, is_passed in passed.items() if is_passed]


def main() -> int:
    """Run it all."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--clients", type=int, default=200)
    given = options.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = closed.getsockname()[1]
    site_process, port = start([sys.executable, str(HERE / "server.py"), "--size", "10000"], r"^(\d+)$")
    site = Site(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{nowhere}")
    with tempfile.TemporaryDirectory() as folder:
        serve = [
            sys.executable,
            "-m",
            "pravda",
            "serve",
            "--port",
            "0",
            "--per-minute",
            "0",
            "--home",
            f"{folder}/service",
        ]
        service, place = start(
            serve, r"listening on http://127\.0\.0\.1:(\d+)", PRAVDA_ALLOW_ADDRESSES="127.0.0.0/8"
        )
        threading.Thread(target=drain, args=(service,), daemon=True).start()
        try:
            tally = asyncio.run(load(int(place), service.pid, site, given.clients, given.seconds))
            service.send_signal(signal.SIGTERM)
            service.wait(60)
            alone, alone_cpu = asyncio.run(
                library(Path(folder) / "alone", site, given.clients, min(given.seconds, 30))
            )
        finally:
            for process in (service, site_process):
                process.kill()
                process.wait()
    passed = report(tally, given.seconds, alone, alone_cpu)
    print(f"bounds passed: {', '.join(passed) or 'none'}")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
