"""Which part of an artifact a request asks for: RFC 9110 §13 and §14, decided without any I/O."""

import re
from dataclasses import dataclass
from enum import Enum

_ONE = re.compile(r"bytes=[ \t]*(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))[ \t]*", re.IGNORECASE | re.ASCII)


class Instead(Enum):
    """What is answered instead of bytes."""

    NOT_MODIFIED = 304
    PRECONDITION_FAILED = 412
    NOT_SATISFIABLE = 416


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes to be sent."""

    start: int
    end: int
    """One past the last."""
    partial: bool
    """Whether only a part was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The header fields that decide; None where one is absent."""

    if_match: str | None = None
    if_none_match: str | None = None
    range: str | None = None
    if_range: str | None = None


def part_of(size: int, etag: str, asked: Conditions) -> Part | Instead:
    """The part to be sent, in the order of RFC 9110 §13.2.2."""
    if asked.if_match is not None and not _lists(asked.if_match, etag, weak=False):
        return Instead.PRECONDITION_FAILED
    if asked.if_none_match is not None and _lists(asked.if_none_match, etag, weak=True):
        return Instead.NOT_MODIFIED
    whole = Part(start=0, end=size, partial=False)
    if asked.range is None or (asked.if_range is not None and asked.if_range.strip() != etag):
        return whole
    found = _ONE.fullmatch(asked.range.strip())
    if found is None:
        return whole  # §14.2: a range that is not understood, or several, may be ignored
    first, last, suffix = found.groups()
    if suffix is not None:
        start, end = max(0, size - int(suffix)), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return whole  # §14.1.1: invalid, so ignored
    return Part(start=start, end=end, partial=True) if start < end else Instead.NOT_SATISFIABLE


def _lists(field: str, etag: str, *, weak: bool) -> bool:
    """Whether a list of entity tags names this one (RFC 9110 §8.8.3.2)."""
    tags = [tag.strip() for tag in field.split(",")]
    return "*" in tags or etag in tags or (weak and f"W/{etag}" in tags)
