"""A real service on loopback: in this process, or in one of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from pravda import assemble
from pravda.archive.probe import Probe
from pravda.archive.quota import Limits
from pravda.capture import Pravda
from pravda.cli.serve import _health
from pravda.server.ledger import Ledger
from pravda.server.options import Options
from pravda.server.run import Server, listen, make_server
from pravda.server.service import Parts
from pravda.settings import VERSION, load

LOOPBACK = "127.0.0.0/8"


@dataclass
class Serving:
    """A service in a thread of this process, entered and left like a file."""

    home: Path
    options: Options = field(default_factory=lambda: Options(per_minute=0, grace=0.5))
    make: Callable[[], Pravda] | None = None
    """What makes another Pravda than the real one over `home`."""
    key: str | None = None

    def __enter__(self) -> "Serving":
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(20)
        if self._problem:
            raise self._problem
        self.client = self.another()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def another(self, key: str | None = None) -> httpx.Client:
        """One more client, with a key of its own."""
        token = key or self.key
        head = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=head, timeout=30, trust_env=False)

    def capture(self, url: str, headers: dict[str, str] | None = None, **fields: object) -> httpx.Response:
        """`POST /snapshots`."""
        return self.client.post("/snapshots", json={"url": url, **fields}, headers=headers)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as problem:
            self._problem = problem
            self._ready.set()

    async def _serve(self) -> None:
        settings = load(home=self.home, allow_addresses=LOOPBACK)
        ledger = Ledger(self.home)
        evidence = self.make() if self.make else assemble.open(settings)
        probe = Probe(self.home, Limits(most=settings.max_bytes, spare=settings.min_free_bytes))
        parts = Parts(
            evidence=evidence,
            ledger=ledger,
            probe=lambda: _health(probe),
            now=assemble.SystemClock().now,
            new_id=assemble.new_id,
            options=self.options,
        )
        self.server: Server = make_server(parts, VERSION)
        listening = listen("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._ready.set()
        await self.server.serve([listening])
        probe.close()


@dataclass
class Daemon:
    """`pravda serve` as a process of its own."""

    home: Path
    arguments: tuple[str, ...] = ()
    client: httpx.Client = field(default_factory=httpx.Client)

    def __enter__(self) -> "Daemon":
        self.log = self.home.with_name(f"{self.home.name}.log")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        """Start, or start again, and wait until it listens."""
        self.client.close()
        with self.log.open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pravda", "serve", "--port", "0", *self.arguments],
                env=os.environ | {"PRAVDA_HOME": str(self.home), "PRAVDA_ALLOW_ADDRESSES": LOOPBACK},
                stderr=log,
                stdout=log,
            )
        for _ in range(2000):
            text = self.log.read_bytes()[begin:].decode()
            if found := re.search(r"listening on (http://\S+)", text):
                self.url = found[1]
                self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)
                return
            assert self.process.poll() is None, text
            threading.Event().wait(0.01)
        raise AssertionError("it does not listen")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.client.close()  # another one is made at the next start
        self.process.send_signal(how)
        return self.process.wait(timeout=30)

    def capture(self, url: str, headers: dict[str, str] | None = None, **fields: object) -> httpx.Response:
        """`POST /snapshots`."""
        return self.client.post("/snapshots", json={"url": url, **fields}, headers=headers)


def curl(*arguments: str) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of one exchange by the curl program."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "--noproxy", "*", "-m", "30", *arguments],
        capture_output=True,
        check=True,
        timeout=40,
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers, json.loads(body) if body else None
