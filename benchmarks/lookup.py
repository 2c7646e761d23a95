"""How long a look-up of the latest usable snapshot takes in an archive of a million rows.

Run it as `python benchmarks/lookup.py [--rows 1000000] [--home FOLDER]`; a folder that is there already is used again.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pravda.archive.catalog import insert, open_writer
from pravda.archive.local import CATALOG, LocalArchive
from pravda.archive.rows import row_of
from pravda.assemble import SystemClock, new_id
from pravda.capture import Pravda
from pravda.core.digest import identity
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.request import Request
from pravda.core.states import State
from pravda.testing import FrozenClock, ScriptedEngine, page

_PAGE_BYTES = 30_000
_PER_PAGE = 20  # snapshots of one URL
_BATCH = 2000  # rows in one transaction
_LOOKUPS = 2000


def _url(number: int) -> str:
    return f"https://host{number % 1000}.example/pages/{number}"


async def _sample(home: Path) -> Snapshot:
    """One snapshot as a capture keeps it, so that the rows are true to life."""
    words = " ".join(f"word{number}" for number in range(_PAGE_BYTES // 10))
    clock = FrozenClock()
    body = f"<!doctype html><title>A page</title><p>{words:<{_PAGE_BYTES}}</p>".encode()
    headers = {"ETag": '"a"', "Server": "nginx"} | {f"X-Header-{number}": "value" * 6 for number in range(12)}
    engine = ScriptedEngine(page(body, headers=headers), clock=clock)
    archive = LocalArchive.open(home)
    async with Pravda(engine=engine, archive=archive, clock=clock, new_id=new_id) as pravda:
        answer = await pravda.capture(_url(0))
    assert answer.snapshot is not None
    return answer.snapshot


def _fill(home: Path, rows: int) -> None:
    """Rows that differ in page, time and id; they share one blob, since look-ups do not care."""
    sample = asyncio.run(_sample(home))
    pages = max(1, rows // _PER_PAGE)
    archive = LocalArchive.open(home)
    identities = [identity(Request.parse(_url(number)), archive.secret) for number in range(pages)]
    asyncio.run(archive.close())
    with closing(open_writer(home / CATALOG)) as writer:
        for start in range(0, rows, _BATCH):
            insert(
                writer,
                [_row(sample, number, number % pages, identities) for number in range(start, start + _BATCH)],
            )


def _row(sample: Snapshot, number: int, place: int, identities: list[str]):  # type: ignore[no-untyped-def]  # a Row
    url = _url(place)
    evidence = replace(
        sample.evidence,
        url=url,
        final_url=url,
        captured_at=sample.captured_at + timedelta(seconds=number),
    )
    asked = replace(sample.asked, page=url, identity=identities[place])
    return row_of(replace(sample, id=new_id(), evidence=evidence, asked=asked), {})


async def _times(look: Callable[[int], Awaitable[object]], pages: int) -> list[float]:
    chosen = random.Random(7)  # noqa: S311  # which pages are looked up, the same in every run
    times = []
    for _ in range(_LOOKUPS):
        place = chosen.randrange(pages)
        start = time.perf_counter()
        found = await look(place)
        times.append(time.perf_counter() - start)
        assert found
    return times


async def _measure(home: Path, pages: int) -> None:
    archive = LocalArchive.open(home)
    engine = ScriptedEngine(page(), clock=FrozenClock())
    async with Pravda(engine=engine, archive=archive, clock=SystemClock(), new_id=new_id) as pravda:
        identities = {place: identity(Request.parse(_url(place)), archive.secret) for place in range(pages)}

        async def row(place: int) -> object:
            return await archive.find(Query(identity=identities[place], state=State.LIVE, limit=1))

        async def latest(place: int) -> object:
            return await pravda.latest(_url(place))

        async def with_rules(place: int) -> object:
            return await pravda.latest(_url(place), expect={"min_bytes": 1000})

        for name, look in (("row", row), ("latest", latest), ("latest, min_bytes", with_rules)):
            await _times(look, pages)
            times = sorted(await _times(look, pages))
            p50, p99 = statistics.median(times), times[int(len(times) * 0.99)]
            print(f"{name:<20} p50 {p50 * 1e6:6.0f} us   p99 {p99 * 1e6:6.0f} us")


def main() -> None:
    """Fill where needed, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = chosen.home or Path(folder)
        if not (home / CATALOG).exists():
            began = time.perf_counter()
            _fill(home, chosen.rows)
            print(f"{chosen.rows} rows written in {time.perf_counter() - began:.0f} s")
        asyncio.run(_measure(home, max(1, chosen.rows // _PER_PAGE)))


if __name__ == "__main__":
    main()
