"""A bare aiohttp loop: fetch, hash, write a file; no redirects, no checks, no records."""

import asyncio
import hashlib

import aiohttp
from contest import Costs, Task, expect, read_task


async def fetch(task: Task, costs: Costs) -> None:
    """Fetch everything once."""
    gate = asyncio.Semaphore(task.concurrency)
    connector = aiohttp.TCPConnector(limit=task.concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(url: str) -> None:
            async with gate, session.get(url) as response:
                digest, parts = hashlib.sha256(), []
                async for chunk in response.content.iter_any():
                    digest.update(chunk)
                    parts.append(chunk)
                body = b"".join(parts)
                expect(response.status == 200 and len(body) > 1000, url)
                (task.store / digest.hexdigest()).write_bytes(body)

        with costs.measured("fetch"):
            await asyncio.gather(*(one(url) for url in task.urls))


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    asyncio.run(fetch(given, outcome))
    outcome.tell()
