"""What every contender has in common: options in, one JSON line of cost out."""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """What is to be fetched and where it is to be stored."""

    urls: tuple[str, ...]
    concurrency: int
    store: Path


def read_task() -> Task:
    """The task on the command line."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--urls", type=int, required=True)
    options.add_argument("--concurrency", type=int, required=True)
    options.add_argument("--store", type=Path, required=True)
    given = options.parse_args()
    urls = tuple(f"http://127.0.0.1:{given.port}/page/{number}" for number in range(given.urls))
    return Task(urls, given.concurrency, given.store)


class Costs:
    """CPU and wall seconds per named pass, for the whole process with its threads."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._passes: dict[str, dict[str, float]] = {}

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Measure what happens inside."""
        cpu, wall = _cpu(), time.perf_counter()
        yield
        self._passes[name] = {
            "cpu_ms": (_cpu() - cpu) * 1000 / self._count,
            "wall_ms": (time.perf_counter() - wall) * 1000 / self._count,
        }

    def tell(self) -> None:
        """Print the line that the runner reads."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"passes": self._passes, "peak_kib": peak}), flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class NotDoneError(Exception):
    """A contender did not do its work."""


def expect(condition: object, what: Callable[[], str] | str) -> None:
    """A contender that did not do the work must not win."""
    if not condition:
        raise NotDoneError(what if isinstance(what, str) else what())
