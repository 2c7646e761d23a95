"""Whole captures with Pravda: fetch, decode, classify, durable store; then a conditional pass answered by 304."""

import asyncio

from contest import Costs, Task, expect, read_task

import pravda


async def capture(task: Task, costs: Costs) -> None:
    """Capture everything twice."""
    gate = asyncio.Semaphore(task.concurrency)
    async with pravda.open(home=task.store, allow_addresses="127.0.0.1") as archive:

        async def one(url: str, *, conditional: bool) -> None:
            async with gate:
                answer = await archive.capture(url, conditional=conditional)
                snapshot = answer.snapshot
                expect(snapshot and snapshot.usable and snapshot.not_modified == conditional, url)

        for name, conditional in (("store", False), ("revalidate", True)):
            with costs.measured(name):
                await asyncio.gather(*(one(url, conditional=conditional) for url in task.urls))


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    asyncio.run(capture(given, outcome))
    outcome.tell()
