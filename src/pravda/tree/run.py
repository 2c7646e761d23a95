"""What a refresh is given from outside."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pravda.core.outcome import Verdict
from pravda.core.ports import Clock, Engine, Observed
from pravda.core.request import Request, Timeouts
from pravda.tree.attempt import Parsed
from pravda.tree.book import TreeBook
from pravda.tree.files import Tree
from pravda.tree.results import SourceResult
from pravda.tree.sources import Source, Sources

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of a page; a longer one does not belong under git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserInput:
    """A page as a parser is given it."""

    source: Source
    body: bytes = field(repr=False)
    charset: str
    """WHATWG name in lower case."""
    final_url: str
    captured_at: datetime


class ParserRunner(Protocol):
    """Runs a source's parser; what the parser raises may pass through and rejects the page."""

    async def __call__(self, page: ParserInput) -> Parsed:
        """What the parser made of the page."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as an archive may keep it; its contents are open until the keeper returns."""

    source: Source
    request: Request
    observed: Observed
    started: datetime
    verdict: Verdict | None = None
    """With the parser's word; None: not judged yet, which no keeper sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come."""

    source_id: str
    result: SourceResult | None
    """None: the source is being asked now."""
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything a refresh needs from outside."""

    tree: Tree
    sources: Sources
    clock: Clock
    engine_for: Callable[[Source], Engine]
    """By engine, robots mode and proxy of the source; polite or not."""
    parser: ParserRunner | None = None
    """Needed as soon as a source names a parser."""
    book: TreeBook | None = None
    """What the polite engine remembers of hosts; None: it remembers nothing, or elsewhere."""
    keeper: Callable[[Attempt], Awaitable[None]] | None = None
    """Keeps every attempt in an archive; None: nobody does."""
    progress: Callable[[Progress], None] = lambda _: None
    only: tuple[str, ...] = ()
    """Ids; empty: every source."""
    force: bool = False
    """Ask sources that are not due, too."""
    dry_run: bool = False
    """Neither ask nor write."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_bytes: int = DEFAULT_MAX_BYTES
    parallel: int = 100
    """The most hosts asked at the same time."""
