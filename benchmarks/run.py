"""Run the contenders by turns and print their costs side by side.

Each contender runs in an environment of its own, made from a hashed requirements file, against one local site.
Rounds are interleaved, so that a busy minute of the machine meets all of them; medians are told.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".environments"
CONTENDERS = {
    "pravda_engine.py": "",
    "aiohttp_loop.py": "aiohttp",
    "pravda_capture.py": "",
    "scrapy_cache.py": "scrapy",
    "hishel_httpx.py": "hishel",
    "requests_cache_pool.py": "requests-cache",
}
"""Script → requirements it needs; none: this project's own environment."""

TARGETS = (
    ("fetch", "pravda_engine.py", "aiohttp_loop.py", 1 / 3),
    ("store", "pravda_capture.py", "scrapy_cache.py", 1 / 4),
    ("store", "pravda_capture.py", "hishel_httpx.py", 1 / 4),
    ("store", "pravda_capture.py", "requests_cache_pool.py", 1 / 3),
    ("revalidate", "pravda_capture.py", "scrapy_cache.py", 1 / 6),
    ("revalidate", "pravda_capture.py", "hishel_httpx.py", 1 / 6),
    ("revalidate", "pravda_capture.py", "requests_cache_pool.py", 1 / 6),
)
"""Pass, contender, peer, and the share of the peer's CPU that is aimed at."""


def python_of(requirements: str) -> str:
    """The interpreter of an environment, made when it is missing."""
    if not requirements:
        return sys.executable
    folder = ENVIRONMENTS / requirements
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {requirements} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        locked = HERE / "requirements" / f"{requirements}.txt"
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(locked)], check=True
        )
    return str(python)


@contextmanager
def site() -> Iterator[int]:
    """The local site's port."""
    server = subprocess.Popen([sys.executable, str(HERE / "server.py")], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def run(script: str, port: int, urls: int, concurrency: int) -> dict[str, dict[str, float]]:
    """One contender's costs by pass."""
    store = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        done = subprocess.run(
            [
                python_of(CONTENDERS[script]),
                str(HERE / script),
                f"--port={port}",
                f"--urls={urls}",
                f"--concurrency={concurrency}",
                f"--store={store}",
            ],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    finally:
        shutil.rmtree(store, ignore_errors=True)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    passes: dict[str, dict[str, float]] = told["passes"]  # type: ignore[assignment]  # contest.py writes it
    for costs in passes.values():
        costs["peak_mib"] = float(str(told["peak_kib"])) / 1024
    return passes


def main() -> None:
    """Print the tables as Markdown."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--urls", type=int, default=5000)
    options.add_argument("--concurrency", type=int, default=100)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    for requirements in CONTENDERS.values():
        python_of(requirements)
    seen: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    with site() as port:
        for number in range(given.rounds):
            for script in CONTENDERS:
                print(f"round {number + 1}: {script}", file=sys.stderr)
                for name, costs in run(script, port, given.urls, given.concurrency).items():
                    seen[script, name].append(costs)
    print(
        f"{given.urls:,} pages of 30 KB, concurrency {given.concurrency}, medians of {given.rounds} rounds, "
    )
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")
    print("| contender | pass | CPU ms a page | wall ms a page | peak MiB |\n|---|---|---|---|---|")
    for (script, name), rounds in seen.items():
        cells = [
            statistics.median(costs[kind] for costs in rounds) for kind in ("cpu_ms", "wall_ms", "peak_mib")
        ]
        print(f"| {script.removesuffix('.py')} | {name} | {cells[0]:.3f} | {cells[1]:.3f} | {cells[2]:.0f} |")
    print("\n| pass | Pravda against | share of its CPU | aimed at |\n|---|---|---|---|")
    for name, ours, theirs, aim in TARGETS:
        shares = [
            mine["cpu_ms"] / other["cpu_ms"]
            for mine, other in zip(seen[ours, name], seen[theirs, name], strict=True)
        ]
        share = statistics.median(shares)
        verdict = "" if share <= aim else " (missed)"
        print(f"| {name} | {theirs.removesuffix('.py')} | {share:.2f}{verdict} | ≤ {aim:.2f} |")


if __name__ == "__main__":
    main()
