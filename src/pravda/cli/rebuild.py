"""Building a tree's document behind a refresh."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pravda.assemble import open_bench
from pravda.parsing import files
from pravda.parsing.bench import Bench
from pravda.parsing.build import build


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a build came to."""

    problem: str | None = None
    """Why it failed, and was not written; None: it did not."""
    missing: tuple[str, ...] = ()
    """Sources without items in the document, since there is neither a snapshot nor a fixture."""


def rebuild(root: Path, target: Path, now: datetime) -> Rebuilt:
    """Build the document that the sources file names; one source that cannot be parsed costs the others nothing."""
    try:
        with open_bench(root) as bench:
            return _built(bench, target, now)
    except Exception as crash:  # the rim of the run: the pages are stored, and the report must be written
        return Rebuilt(problem=f"{type(crash).__name__}: {crash}")


def inside(root: Path, target: Path) -> str | None:
    """A file's name from the tree's root with slashes; None: it lies outside."""
    path = Path(os.path.abspath(target))
    top = Path(os.path.abspath(root))
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else None


def _built(bench: Bench, target: Path, now: datetime) -> Rebuilt:
    result = build(bench, clock=now)
    if result.sources and len(result.failed) == len(result.sources):
        return Rebuilt(problem="no source gave anything")
    try:
        files.write(target, result.document())
    except OSError as trouble:
        return Rebuilt(problem=f"{target} cannot be written: {trouble.strerror}")
    return Rebuilt(missing=result.missing)
