"""Building a tree's document behind a refresh."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a build came to."""

    name: str | None
    """The document, from the tree's root with slashes; None: it lies elsewhere."""
    problem: str | None = None
    """Why it failed; None: it did not."""


def rebuild(root: Path, now: datetime) -> Rebuilt:
    raise NotImplementedError
