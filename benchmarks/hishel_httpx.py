"""httpx with hishel's cache on SQLite; the second pass revalidates, since the site says no-cache."""

import asyncio

from contest import Costs, Task, expect, read_task
from hishel import AsyncSqliteStorage
from hishel.httpx import AsyncCacheClient


async def fetch(task: Task, costs: Costs) -> None:
    """Fetch everything twice."""
    gate = asyncio.Semaphore(task.concurrency)
    storage = AsyncSqliteStorage(database_path=str(task.store / "cache.db"))
    async with AsyncCacheClient(storage=storage, rfc=True, timeout=60) as client:

        async def one(url: str, *, again: bool) -> None:
            async with gate:
                response = await client.get(url)
                body = await response.aread()
                expect(response.status_code == 200 and len(body) > 1000, url)
                expect(not again or response.extensions["caching"]["revalidated"], f"{url} not revalidated")

        for name, again in (("store", False), ("revalidate", True)):
            with costs.measured(name):
                await asyncio.gather(*(one(url, again=again) for url in task.urls))


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    asyncio.run(fetch(given, outcome))
    outcome.tell()
