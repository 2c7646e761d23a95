"""A thousand sources on a hundred hosts: one request at a time per host, pauses kept, hosts side by side."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from pravda.core.ports import Observed, Order
from pravda.core.states import Reason
from pravda.engines.polite import PoliteEngine, PoliteOptions
from pravda.testing import page, trouble
from pravda.tree.book import TreeBook
from pravda.tree.files import Tree
from pravda.tree.refresh import refresh
from pravda.tree.results import Outcome, RunResult
from pravda.tree.run import Run
from tests import virtual
from tests.trees import sources

HOSTS, EACH, GAP, ANSWER, PATIENCE = 100, 10, 2.0, 0.1, 20.0
DEAD = "host0.example"
SOURCES = sources(
    '[defaults]\ninterval = "0s"\n'
    + "".join(
        f'[[source]]\nid = "s{number}"\nurl = "https://host{number % HOSTS}.example/{number}"\n'
        for number in range(HOSTS * EACH)
    )
)


class LoopClock(virtual.LoopClock):
    """The time of one loop, for its threads too."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def monotonic(self) -> float:
        """Seconds since the loop began."""
        return self._loop.time()


class World:
    """Servers that notice how they are asked; one never answers."""

    name = "http"

    def __init__(self) -> None:
        self.asked: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.answers: list[int] = []

    async def observe(self, order: Order) -> Observed:
        """The page, a 304 for who has it, or nothing."""
        clock, host = LoopClock(), order.request.url.host
        begun = clock.monotonic()
        await asyncio.sleep(PATIENCE if host == DEAD else ANSWER)
        self.asked[host].append((begun, clock.monotonic()))
        if host == DEAD:
            return trouble(Reason.CONNECT_TIMEOUT)(order, clock.now())
        if order.request.url.target == "/robots.txt":
            return page(b"", status=404)(order, clock.now())
        self.answers.append(304 if order.held else 200)
        return page(status=self.answers[-1], headers={"ETag": '"v1"'})(order, clock.now())

    async def close(self) -> None:
        """Nothing to let go of."""


async def run(root: Path, world: World) -> RunResult:
    """One refresh, as the command makes it."""
    clock, tree = LoopClock(), Tree(root)
    book = TreeBook(tree, clock)
    polite = PoliteEngine(world, book, clock, asyncio.sleep, PoliteOptions(user_agent="pravda/1"))
    return await refresh(Run(tree=tree, sources=SOURCES, clock=clock, engine_for=lambda _: polite, book=book))


class AtOnce(ThreadPoolExecutor):
    """Does what a thread would do, before time can pass."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> "Future[Any]":
        """The result, already there."""
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done


async def twice(root: Path, world: World) -> tuple[RunResult, RunResult]:
    """Two refreshes, the second right behind the first."""
    asyncio.get_running_loop().set_default_executor(AtOnce())
    return await run(root, world), await run(root, world)


def test_a_thousand_sources_on_a_hundred_hosts(tmp_path):
    """Within and across runs no host is asked twice at once or too soon, and a dead one delays nobody."""
    world = World()
    first, second = virtual.run(twice(tmp_path, world))
    alive = HOSTS * EACH - EACH
    assert (first.changed, second.confirmed) == (alive, alive)
    assert world.answers == [200] * alive + [304] * alive
    assert sum(result.outcome is Outcome.SKIPPED_ROBOTS for result in second.results) == EACH
    for host, visits in world.asked.items():
        assert all(later - ended >= GAP - 1e-6 for (_, ended), (later, _) in pairwise(visits)), host
    ends = {host: visits[-1][1] for host, visits in world.asked.items() if host != DEAD}
    rounds = 1 + 2 * EACH  # robots.txt once, each page twice
    assert len(ends) == HOSTS - 1
    assert max(ends.values()) <= rounds * (GAP + ANSWER) + 1e-6
    assert len(world.asked[DEAD]) == 2, "its robots.txt is asked for once in each run"
