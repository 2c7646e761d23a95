"""What parsing is given of a tree: how each source is read, and the page that is stored of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pravda.core.mistake import BadRequest
from pravda.parsing.runner import Runner
from pravda.parsing.values import Job, Parsing


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a source's pages are read."""

    source_id: str
    url: str
    """As a request asks for it, without credentials."""
    parser: str | None
    """`package.module:function` or `cmd: program args`; None: the source has none."""
    schema: str | None = None
    """`module:Model` or a JSON Schema file; None: any item will do."""
    sanitize: bool = True
    min_items: int = 1
    """Fewer items are not what the page should give."""
    warn_drop: float = 0.5
    """Share, 0-1, of the items whose loss is told."""
    extension: str = "html"
    fixtures: str | None = None
    """Pattern of an older layout's fixtures; None: `fixtures/<id>/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes that were a source's page once."""

    body: bytes = field(repr=False)
    charset: str
    """WHATWG name in lower case."""
    url: str
    """Where they came from, after redirects."""
    captured_at: datetime
    """When they came."""
    confirmed_at: datetime | None = None
    """When the source last said that they are current; None: it did not, or nobody knows."""
    item_count: int | None = None
    """What the parser found when they were stored; None: nobody counted."""

    @property
    def fresh_at(self) -> datetime:
        """When they were last known to be current."""
        return max(self.captured_at, self.confirmed_at or self.captured_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a tree holds of a source."""

    page: Stored | None
    """None: nothing, or nothing that is whole."""
    damage: tuple[str, ...] = ()
    """What is wrong with the files, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A tree laid out for parsing."""

    root: Path
    recipes: tuple[Recipe, ...]
    """In the order of the sources file."""
    held: Callable[[Recipe], Held]
    runner: Runner
    build_out: Path | None = None
    """Where the sources file wants the built document; None: it does not say."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runner.close()

    def recipe(self, source_id: str) -> Recipe:
        """The recipe of a source; raises BadRequest."""
        for recipe in self.recipes:
            if recipe.source_id == source_id:
                return recipe
        raise BadRequest("id", f"{source_id!r:.120} is no source of this tree")

    def parse(self, recipe: Recipe, page: Stored, now: datetime) -> Parsing:
        """What the source's parser makes of a page; raises BadRequest where it has none."""
        if recipe.parser is None:
            raise BadRequest("parser", f"{recipe.source_id} names no parser; add one to the sources file")
        return self.runner.run(job_of(recipe, page, now))


def job_of(recipe: Recipe, page: Stored, now: datetime) -> Job:
    """A page for the runner; the recipe has a parser."""
    assert recipe.parser is not None
    return Job(
        source_id=recipe.source_id,
        parser=recipe.parser,
        body=page.body,
        url=page.url,
        charset=page.charset,
        captured_at=page.captured_at,
        now=now,
        schema=recipe.schema,
        sanitize=recipe.sanitize,
    )
