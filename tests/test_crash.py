"""Processes that are killed at any moment, and many of them in one archive."""

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pravda.archive.local import LocalArchive
from pravda.archive.verify import Counts, verify
from pravda.core.ports import Query

ROOT = Path(__file__).resolve().parent.parent
KILLS = int(os.environ.get("PRAVDA_CHAOS") or 20)
"""How many processes are killed; `make chaos` sets more."""
AT_ONCE = 4

_CAPTURES = """
import asyncio, sys
from pathlib import Path
from pravda.archive.local import LocalArchive
from pravda.assemble import SystemClock, new_id
from pravda.capture import Pravda
from pravda.testing import FrozenClock, ScriptedEngine, page

async def main():
    home, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    engine = ScriptedEngine(page(), clock=FrozenClock())
    async with Pravda(engine=engine, archive=LocalArchive.open(home), clock=SystemClock(), new_id=new_id) as pravda:
        for number in range(count):
            answer = await pravda.capture(f"https://{name}.example/{number}")
            print(answer.snapshot.id, flush=True)

asyncio.run(main())
"""


def start(*command: str, heard: bool = True) -> "subprocess.Popen[str]":
    """A Python process that warns of nothing in silence."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if heard else None,
        text=True,
    )


def ids_in(home: Path) -> set[str]:
    """The snapshots that an archive has."""

    async def find() -> set[str]:
        archive = LocalArchive.open(home)
        try:
            return {one.id for one in await archive.find(Query(limit=1_000_000))}
        finally:
            await archive.close()

    return asyncio.run(find())


@pytest.mark.timeout(60 + 10 * KILLS)
def test_killed_at_any_moment(tmp_path):
    """kill -9 under load: no acknowledged snapshot is lost, no row is without its bytes, and nothing is damaged."""
    chance = random.Random()
    told: set[str] = set()
    for _ in range(0, KILLS, AT_ONCE):
        processes = [
            start("-m", "tests.keeping", str(tmp_path), "endless", "nothing", heard=False)
            for _ in range(AT_ONCE)
        ]
        first = [process.stdout.readline() for process in processes if process.stdout]
        assert all(first)
        for process in processes:
            time.sleep(chance.uniform(0.0, 0.1))
            process.kill()
        for line, process in zip(first, processes, strict=True):
            assert process.stdout
            with process:  # not communicate(), which would pass over what readline() has read ahead
                out = line + process.stdout.read()
            told |= {one.split()[0] for one in out.splitlines(keepends=True) if one.endswith("\n")}
    counts = Counts()
    assert [found for found in verify(tmp_path, counts=counts) if found.is_damage] == []
    assert len(told) >= KILLS
    assert told <= ids_in(tmp_path)
    assert counts.rows >= len(told)


def test_many_processes_and_a_locked_catalog(tmp_path):
    """W-I1: 8 processes make 50 captures each while another connection holds the lock for 3 s: 400 rows, no complaint."""
    processes = [start("-c", _CAPTURES, str(tmp_path), f"p{number}", "50") for number in range(8)]
    while not (tmp_path / "catalog.sqlite3-wal").exists():
        time.sleep(0.01)
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite3", isolation_level=None)) as holder:
        holder.execute("PRAGMA busy_timeout = 30000")
        holder.execute("BEGIN IMMEDIATE")
        time.sleep(3)
        holder.execute("COMMIT")
    said = [process.communicate(timeout=100) for process in processes]
    assert [err for _, err in said] == [""] * 8
    told = {line for out, _ in said for line in out.split()}
    assert len(told) == 400
    assert ids_in(tmp_path) == told
    assert list(verify(tmp_path)) == []
