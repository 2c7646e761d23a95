"""A parser run over a page's whole history, oldest first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pravda.parsing.bench import Bench, Recipe, Stored
from pravda.parsing.diff import counts
from pravda.parsing.values import Item, Parsing


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One snapshot that holds a page."""

    snapshot_id: str
    page: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a parser makes of one snapshot."""

    past: Past
    parsing: Parsing
    came: int
    """Items that the last snapshot with items did not have."""
    went: int
    """Items that it had and this one has not."""


def over(bench: Bench, recipe: Recipe, history: Iterable[Past]) -> Iterator[Step]:
    """Parse each snapshot, the present being the moment it was captured."""
    before: tuple[Item, ...] = ()
    for past in history:
        parsing = bench.parse(recipe, past.page, past.page.captured_at)
        came, went = (0, 0) if parsing.items is None else counts(before, parsing.items)
        yield Step(past=past, parsing=parsing, came=came, went=went)
        before = before if parsing.items is None else parsing.items
