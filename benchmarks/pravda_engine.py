"""Pravda's HTTP engine alone: fetch, decode, hash, spool, evidence."""

import asyncio

from contest import Costs, Task, expect, read_task

from pravda.assemble import SystemClock
from pravda.core.addresses import AddressPolicy
from pravda.core.ports import Order
from pravda.core.request import Request
from pravda.engines.http import HttpEngine, HttpOptions


async def fetch(task: Task, costs: Costs) -> None:
    """Fetch everything once and write each body to a file, as the bare loop does."""
    policy = AddressPolicy.parse("127.0.0.1")
    engine = HttpEngine(HttpOptions(user_agent="benchmark", policy=policy), SystemClock())
    gate = asyncio.Semaphore(task.concurrency)

    async def one(number: int, url: str) -> None:
        async with gate:
            seen = await engine.observe(Order(request=Request.parse(url), budget=60))
            body = seen.contents["body"]
            expect(seen.evidence.response and body.size > 1000, url)
            (task.store / body.sha256).write_bytes(body.read())
            for contents in seen.contents.values():
                contents.close()

    with costs.measured("fetch"):
        await asyncio.gather(*(one(number, url) for number, url in enumerate(task.urls)))
    await engine.close()


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    asyncio.run(fetch(given, outcome))
    outcome.tell()
