"""Killed runs, and two runs at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.origin import BODY, HT, Origin, R, Sleep

ROOT = Path(__file__).resolve().parent.parent
KILLS = int(os.environ.get("PRAVDA_CHAOS") or 10)
"""How many random kills; a nightly run asks for many more."""

RUN = """
import asyncio, json, sys
from pathlib import Path
from pravda.assemble import SystemClock
from pravda.core.addresses import AddressPolicy
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.tree.files import Tree
from pravda.tree.lock import TreeBusy
from pravda.tree.refresh import refresh
from pravda.tree.run import Run
from pravda.tree.sources_file import parse_sources

async def main(folder, url):
    options = HttpOptions(user_agent="pravda/0", policy=AddressPolicy.parse("127.0.0.1"))
    clock = SystemClock()
    engine = HttpEngine(options, clock)
    text = f'[[source]]\\nid = "a"\\nurl = "{url}"\\n'
    run = Run(
        tree=Tree(Path(folder)), sources=parse_sources(text.encode()), clock=clock, engine_for=lambda _: engine
    )
    input("ready\\n")
    try:
        result = await refresh(run)
        print(json.dumps(result.to_json()["results"][0]["result"]))
    except TreeBusy as problem:
        print(json.dumps(str(problem)))
    finally:
        await engine.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.timeout(60 + KILLS * 2)
def test_a_killed_run_leaves_a_whole_tree(tmp_path: Path):
    """Killed at any step or moment, a run leaves the old page or the new one, whole, with the metadata of its bytes."""
    command = [sys.executable, "-m", "tests.kills", str(tmp_path), str(KILLS), str(os.getpid())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_two_processes_make_one_request(tmp_path: Path):
    """Of two refreshes of one tree at once, one asks and the other says who is at work (R-C22)."""
    with Origin(routes={"/a": [Sleep(1.5), R(b"200 OK", BODY, HT)]}) as origin:
        command = [sys.executable, "-c", RUN, str(tmp_path), origin.url("/a")]
        both = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            for _ in range(2)
        ]
        for process in both:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in both:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(json.loads(process.communicate()[0]) for process in both)
        assert said[0].startswith(str(tmp_path)), said
        assert any(f"process {process.pid} on " in said[0] for process in both)
        assert said[1] == "fetched"
        assert origin.targets() == ["/a"]
    assert (tmp_path / "snapshots" / "a.html").read_bytes() == BODY
