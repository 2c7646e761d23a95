"""Building a tree's document behind a refresh."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pravda.assemble import open_bench
from pravda.parsing import files
from pravda.parsing.build import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a build came to."""

    target: Path
    name: str | None
    """The document, from the tree's root with slashes; None: it lies outside."""
    problem: str | None = None
    """Why it failed, and was not written; None: it did not."""


def rebuild(root: Path, now: datetime) -> Rebuilt | None:
    """Build the document that the sources file names; None: it names none."""
    with open_bench(root) as bench:
        if bench.build_out is None:
            return None
        result = build(bench, clock=now)
        problem = result.problem(strict=False)
        if problem is None:
            try:
                files.write(bench.build_out, result.document())
            except OSError as trouble:
                problem = f"{bench.build_out} cannot be written: {trouble.strerror}"
        return Rebuilt(target=bench.build_out, name=_inside(root, bench.build_out), problem=problem)


def _inside(root: Path, target: Path) -> str | None:
    path = Path(os.path.abspath(target))
    top = Path(os.path.abspath(root))
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else None
