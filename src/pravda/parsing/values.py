"""What goes into a parser and what comes out of it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Item = dict[str, Json]
"""One thing that a parser found on a page."""

MOST_TOLD: Final = 100
"""Repairs and schema failures that are told one by one; the rest are counted."""


class Trouble(StrEnum):
    """Why a parser gave no items."""

    NOT_LOADED = "not_loaded"
    """It, or its schema, could not be found or imported."""
    REJECTED = "rejected"
    """It says that this is not the page it knows."""
    RAISED = "raised"
    UNUSABLE = "unusable"
    """What it gave is no list of items."""
    TOO_MUCH = "too_much"
    """It gave more than is taken."""
    TIMED_OUT = "timed_out"
    DIED = "died"
    """Its process ended under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a parser may use up."""

    seconds: float = 30.0
    """For one page, the import of its module included."""
    items: int = 100_000
    output: int = 32 * 1024 * 1024
    """Bytes of JSON."""
    memory: int = 2 * 1024 * 1024 * 1024
    """Bytes of data that its process, and each program it starts, may hold; 0: as many as the machine allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A page and the parser that is to read it."""

    source_id: str
    parser: str
    """`package.module:function` or `cmd: program args`."""
    body: bytes = field(repr=False)
    url: str
    """Where the bytes came from, after redirects."""
    charset: str
    """WHATWG name in lower case, as it is stored."""
    captured_at: datetime
    """When the bytes came."""
    now: datetime
    """What the parser is to take for the present."""
    schema: str | None = None
    """`module:Model` or a JSON Schema file, from the tree's root; None: any item will do."""
    sanitize: bool = True
    """Whether texts are cleaned and URLs checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A value that was cleaned."""

    path: str
    """As `items[3].title`."""
    what: tuple[str, ...]
    """Which repairs were made, by name, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFailure:
    """An item that its schema does not take, and that is therefore left out."""

    path: str
    """As `items[3].start`; the position is that in what the parser gave."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why there are no items."""

    trouble: Trouble
    detail: str
    """One sentence, of bounded length; it may hold text of the page."""
    traceback: str = ""
    """For whoever writes the parser; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsing:
    """What a parser made of a page."""

    items: tuple[Item, ...] | None
    """None: it failed, which is not the same as having found nothing."""
    problem: Problem | None = None
    """None: there are items."""
    repairs: tuple[Repair, ...] = ()
    """The first of them, in the order of items."""
    repaired: int = 0
    """How many values were repaired."""
    failures: tuple[SchemaFailure, ...] = ()
    """The first of them, in the order of items."""
    failed: int = 0
    """How many items the schema did not take."""
    said: str = ""
    """What the parser printed, its beginning."""


_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")


def failure(trouble: Trouble, detail: str, traceback: str = "", said: str = "") -> Parsing:
    """A parser's failure."""
    # an address in memory is another one in every run, and a build's bytes are not
    words = _ADDRESS.sub("0x...", " ".join(detail[:4000].split())[:1000])
    return Parsing(
        items=None,
        problem=Problem(trouble=trouble, detail=words, traceback=traceback[-20_000:]),
        said=said,
    )
