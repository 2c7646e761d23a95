"""Refreshes that are killed, run as a program of one thread: `python -m tests.kills FOLDER ROUNDS SEED`."""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pravda.core.digest import sha256
from pravda.core.ports import Observed, Order
from pravda.testing import FrozenClock, page
from pravda.tree.files import Tree
from pravda.tree.layout import leftover_of
from pravda.tree.meta import read_meta
from pravda.tree.refresh import refresh
from pravda.tree.run import Run
from pravda.tree.sources_file import parse_sources

TEXT = b'[defaults]\ninterval = "0s"\n[[source]]\nid = "a"\nurl = "https://example.org/a"\n'
LINE = "<p>version %08d</p>\n"
LINES = 20_000


class NewEveryTime:
    """An engine whose page is another one every time."""

    name = "http"

    def __init__(self, clock: FrozenClock) -> None:
        self._clock, self._number = clock, random.randrange(10**8)

    async def observe(self, order: Order) -> Observed:
        """The next version."""
        self._clock.advance(minutes=1)
        self._number = (self._number + 1) % 10**8
        return page(version(self._number))(order, self._clock.now())

    async def close(self) -> None:
        """Nothing to let go of."""


def version(number: int) -> bytes:
    """A page that shows by every line which one it is."""
    return ((LINE % number) * LINES).encode()


async def for_ever(tree: Tree) -> None:
    """Refresh until killed."""
    clock = FrozenClock()
    engine = NewEveryTime(clock)
    while True:
        run = Run(tree=tree, sources=parse_sources(TEXT), clock=clock, engine_for=lambda _: engine)
        result = await refresh(run)
        assert result.changed == 1, result


def killed(tree: Tree, prepare: Callable[[], None], patience: float) -> None:
    """A refresh in a process of its own that comes to its end with SIGKILL, of itself or of us."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            asyncio.run(for_ever(tree))
        finally:
            os._exit(1)
    deadline = time.monotonic() + patience
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.002)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the refresh broke before it was killed"


def check(tree: Tree) -> bool:
    """Hold what a killed run left to the promises; whether there is a page by now."""
    names = {path.name for path in tree.folder.iterdir()}
    known = {"a.html", "a.meta.json", "a.state.json", "_refresh.lock"}
    assert all(leftover_of(name) for name in names - known), names
    body = tree.page("a", "html").body
    if body is not None:
        assert body == version(int(body[11:19])), "a truncated page"
    if "a.meta.json" in names:
        assert read_meta("a", (tree.folder / "a.meta.json").read_bytes()), "truncated metadata"
        assert body is not None, "metadata of bytes that are not there"
    if body is not None and not tree.page("a", "html").intact:
        aside = [read_meta("a", path.read_bytes()) for path in tree.folder.glob("a.meta.json.tmp-*")]
        assert any(meta and meta.content_hash == sha256(body) for meta in aside), "bytes that nothing names"
    tree.sweep()
    assert not list(tree.folder.glob("*.tmp-*"))
    assert body is None or tree.page("a", "html").intact
    return body is not None


def at_call(name: str, number: int) -> Callable[[], None]:
    """Die right after the nth call of a function of `os`."""

    def prepare() -> None:
        real, count = getattr(os, name), iter(range(1, 10**9))

        def fatal(*arguments: object) -> object:
            result = real(*arguments)
            if next(count) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(os, name, fatal)

    return prepare


def main(folder: str, rounds: str, seed: str) -> None:
    """Kill at every step of two refreshes, then at random moments."""
    chance = random.Random(int(seed))
    tree = Tree(Path(folder))
    for name in ("replace", "fsync"):
        for number in range(1, 7):
            killed(tree, at_call(name, number), 20)
            check(tree)
    pages = 0
    for _ in range(int(rounds)):
        killed(tree, lambda: None, chance.uniform(0.02, 0.25))
        pages += check(tree)
    assert pages, "no page was ever written, so nothing was shown"


if __name__ == "__main__":
    main(*sys.argv[1:])
