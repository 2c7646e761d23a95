"""Which lines of two texts differ, in bounded time whatever the texts."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

CONTEXT = 3
"""Unchanged lines shown around a change."""
MOST_LINES = 100_000
"""Lines of a text that are compared."""
MOST_SHOWN = 5000
"""Lines of the result."""

_LONG = 200  # characters from which a line is broken where sentences end
_LONGEST = 500
_SENTENCE = re.compile(r"(?<=[.!?;,]) ")
_SMALL = 40_000  # pairs of lines that may each be compared
_WORK = 5_000_000  # lines looked at, or pairs compared, altogether

_Block = tuple[int, int, int]
"""Where equal lines begin in one text and in the other, and how many."""


class Change(StrEnum):
    """What became of a line."""

    KEPT = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of one text or of both."""

    change: Change
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Changes that stand together, with what stands around them."""

    before: int
    """Number of its first line in the earlier text, from 1."""
    after: int
    """The same in the later text."""
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDiff:
    """What differs between two texts."""

    hunks: tuple[Hunk, ...]
    added: int
    """Lines, also those beyond what is shown."""
    removed: int
    cut: bool
    """Whether the texts or the result are longer than what is looked at or shown."""


def compare(before: Iterable[str], after: Iterable[str]) -> LineDiff:
    """The changes from one text to the other; long lines are broken at the ends of sentences first."""
    old, old_cut = _taken(before)
    new, new_cut = _taken(after)
    blocks = [*sorted(_blocks(old, new)), (len(old), len(new), 0)]
    kept = sum(count for _, _, count in blocks)
    hunks, cut = _hunks(old, new, blocks)
    return LineDiff(
        hunks=hunks, added=len(new) - kept, removed=len(old) - kept, cut=cut or old_cut or new_cut
    )


def _taken(lines: Iterable[str]) -> tuple[list[str], bool]:
    taken = list(islice((part for line in lines for part in _parts(line)), MOST_LINES + 1))
    return taken[:MOST_LINES], len(taken) > MOST_LINES


def _parts(line: str) -> Iterator[str]:
    if len(line) <= _LONG:
        yield line
        return
    for part in _SENTENCE.split(line):
        for start in range(0, len(part) or 1, _LONGEST):
            yield part[start : start + _LONGEST]


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    """Runs of equal lines: ends first, then lines that occur once in both, then all pairs where those are few."""
    work = 0
    ranges = [(0, len(old), 0, len(new))]
    while ranges:
        top, end, new_top, new_end = ranges.pop()
        head = _common(old, new, range(top, end), range(new_top, new_end))
        yield top, new_top, head
        top, new_top = top + head, new_top + head
        tail = _common(old, new, range(end - 1, top - 1, -1), range(new_end - 1, new_top - 1, -1))
        end, new_end = end - tail, new_end - tail
        yield end, new_end, tail
        if top == end or new_top == new_end:
            continue
        work += end - top + new_end - new_top
        if work > _WORK:
            continue  # what is left counts as replaced
        anchors = _anchors(old, new, range(top, end), range(new_top, new_end))
        if anchors:
            for line, new_line in anchors:
                ranges.append((top, line, new_top, new_line))
                top, new_top = line, new_line  # the anchor itself is the head of the next range
            ranges.append((top, end, new_top, new_end))
        elif (end - top) * (new_end - new_top) <= _SMALL:
            work += (end - top) * (new_end - new_top)
            matcher = SequenceMatcher(None, old[top:end], new[new_top:new_end], autojunk=False)
            for line, new_line, count in matcher.get_matching_blocks():
                yield top + line, new_top + new_line, count


def _common(old: Sequence[str], new: Sequence[str], lines: range, new_lines: range) -> int:
    count = 0
    for line, new_line in zip(lines, new_lines, strict=False):
        if old[line] != new[new_line]:
            break
        count += 1
    return count


def _anchors(old: Sequence[str], new: Sequence[str], lines: range, new_lines: range) -> list[tuple[int, int]]:
    """Lines that occur once in both, as many of them as stand in the same order (patience sorting)."""
    counts, new_counts = Counter(old[at] for at in lines), Counter(new[at] for at in new_lines)
    places = {new[at]: at for at in new_lines if new_counts[new[at]] == 1}
    pairs = [(at, places[old[at]]) for at in lines if counts[old[at]] == 1 and old[at] in places]
    ends: list[int] = []  # the smallest new place that ends an ordered run, by the run's length
    last: list[int] = []  # the pair that does so
    previous: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(last[length - 1] if length else None)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    found = []
    step = last[-1] if last else None
    while step is not None:
        found.append(pairs[step])
        step = previous[step]
    return found[::-1]


def _hunks(old: Sequence[str], new: Sequence[str], blocks: Iterable[_Block]) -> tuple[tuple[Hunk, ...], bool]:
    """The changes between the blocks with lines around them, cut off where there are too many to show."""
    hunks: list[Hunk] = []
    left = MOST_SHOWN
    for group in _groups(_gaps(blocks)):
        start, new_start = max(group[0].top - CONTEXT, 0), group[0].new_top
        lines = _marked(Change.KEPT, old[start : group[0].top])
        for gap, following in zip(group, (*group[1:], None), strict=True):
            lines += _marked(Change.REMOVED, old[gap.top : gap.end])
            lines += _marked(Change.ADDED, new[gap.new_top : gap.new_end])
            lines += _marked(Change.KEPT, old[gap.end : following.top if following else gap.end + CONTEXT])
        first = new_start - (group[0].top - start)
        hunks.append(Hunk(before=start + 1, after=first + 1, lines=tuple(lines[:left])))
        left -= len(lines)
        if left < 0:
            return tuple(hunks), True
    return tuple(hunks), False


class _Gap(NamedTuple):
    """What stands between two runs of equal lines."""

    top: int
    end: int
    new_top: int
    new_end: int


def _gaps(blocks: Iterable[_Block]) -> Iterator[_Gap]:
    at = new_at = 0
    for block, new_block, count in blocks:
        if at < block or new_at < new_block:
            yield _Gap(at, block, new_at, new_block)
        at, new_at = block + count, new_block + count


def _groups(gaps: Iterable[_Gap]) -> Iterator[list[_Gap]]:
    """Gaps so near each other that what is shown around them would touch."""
    group: list[_Gap] = []
    for gap in gaps:
        if group and gap.top - group[-1].end > 2 * CONTEXT:
            yield group
            group = []
        group.append(gap)
    if group:
        yield group


def _marked(change: Change, lines: Sequence[str]) -> list[Line]:
    return [Line(change=change, text=text) for text in lines]
