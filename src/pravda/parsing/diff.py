"""How two lists of items differ, for people."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from pravda.parsing.files import one_line
from pravda.parsing.values import Item, Json

_MOST_MATCHED: Final = 2000  # items; matching takes the square of it at worst
_MOST_LINES: Final = 200
_LONGEST: Final = 500  # characters of one line


def item_diff(before: Sequence[Item], after: Sequence[Item]) -> tuple[str, ...]:
    """One line or more per item that came, went or changed; empty: none did."""
    out: list[str] = []
    for line in _differences(before, after):
        if len(out) == _MOST_LINES:
            out.append("... and more")
            break
        out.append(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}...")
    return tuple(out)


def counts(before: Sequence[Item], after: Sequence[Item]) -> tuple[int, int]:
    """How many items came, and how many went; a changed one counts as both."""
    old, new = (list(map(one_line, items)) for items in (before, after))
    old_set, new_set = set(old), set(new)
    return sum(item not in old_set for item in new), sum(item not in new_set for item in old)


def _differences(before: Sequence[Item], after: Sequence[Item]) -> Iterator[str]:
    for tag, old_from, old_to, new_from, new_to in _blocks(before, after):
        if tag == "equal":
            continue
        pairs = min(old_to - old_from, new_to - new_from)
        for place in range(pairs):
            yield from _changed(new_from + place, before[old_from + place], after[new_from + place])
        for place in range(old_from + pairs, old_to):
            yield f"- item {place}: {one_line(before[place])}"
        for place in range(new_from + pairs, new_to):
            yield f"+ item {place}: {one_line(after[place])}"


def _blocks(before: Sequence[Item], after: Sequence[Item]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) > _MOST_MATCHED:
        return [("replace", 0, len(before), 0, len(after))]
    old, new = (list(map(one_line, items)) for items in (before, after))
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _changed(place: int, old: Item, new: Item) -> Iterator[str]:
    names = [name for name in sorted(old.keys() | new.keys()) if _at(old, name) != _at(new, name)]
    if names:
        yield f"  item {place}:"
    for name in names:
        if name in old:
            yield f"-   {one_line(name)}: {_at(old, name)}"
        if name in new:
            yield f"+   {one_line(name)}: {_at(new, name)}"


def _at(item: Item, name: str) -> str | None:
    """A value as it is written, so that 1 is not 1.0; None: there is none."""
    value: Json = item.get(name)
    return one_line(value) if name in item else None
