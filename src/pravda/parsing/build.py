"""Every source parsed, from its snapshot or else its newest fixture, into one document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from pravda.core.mistake import BadRequest
from pravda.core.states import FACTS, Reason, State
from pravda.parsing import fixtures
from pravda.parsing.bench import Bench, Recipe, Stored
from pravda.parsing.files import Unreadable, encoded, lines, one_line
from pravda.parsing.fixtures import time_text
from pravda.parsing.values import Item, Json, Parsing

_TOLD: Final = 20  # schema failures that the document names


class Origin(StrEnum):
    """Where a source's items come from."""

    SNAPSHOT = "snapshot"
    FIXTURE = "fixture"


class Code(StrEnum):
    """What a warning is about."""

    FIXTURE = "fixture"
    """The items are those of a fixture."""
    DAMAGED = "damaged"
    """The stored files are not as they should be."""
    ZERO = "zero"
    FEW = "few"
    """Fewer items than the source demands."""
    DROP = "drop"
    """Far fewer items than the same page gave before."""
    SCHEMA = "schema"
    """Items were left out."""
    NO_PARSER = "no_parser"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Something to be told of a source."""

    code: Code
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One source in the document."""

    recipe: Recipe
    origin: Origin | None
    """None: there is nothing to parse."""
    why: str | None
    """Why a fixture stands in; None: none does."""
    page: Stored | None
    parsing: Parsing | None
    """None: there is nothing to parse, or no parser."""
    warnings: tuple[Warned, ...]

    @property
    def items(self) -> tuple[Item, ...] | None:
        """None: there are none to be had, which is not the same as none on the page."""
        return self.parsing.items if self.parsing else None

    @property
    def missing(self) -> bool:
        """Whether there is neither a snapshot nor a fixture."""
        return self.page is None

    @property
    def failed(self) -> bool:
        """Whether there is nothing to show of a source that should have items."""
        return self.missing or (self.recipe.parser is not None and self.items is None)

    @property
    def poor(self) -> bool:
        """Whether there are fewer items than the source demands."""
        return self.items is not None and len(self.items) < self.recipe.min_items

    @property
    def state(self) -> State | None:
        """Live: the page gives what is demanded; partial: it does not; None: there is none."""
        if self.missing:
            return None
        return State.PARTIAL if self.failed or self.poor else State.LIVE

    @property
    def failure(self) -> dict[str, Json] | None:
        """Why it is not live."""
        if self.missing:
            return {"cause": None, "reason": None, "trouble": None, "detail": _NOTHING}
        if not self.failed and not self.poor:
            return None
        problem = self.parsing.problem if self.parsing else None
        count, wanted = len(self.items or ()), self.recipe.min_items
        detail = problem.detail if problem else f"{count} items, at least {wanted} are demanded"
        reason = Reason.PARSER_REJECTED
        return {
            "cause": FACTS[reason].cause,
            "reason": reason,
            "trouble": problem.trouble if problem else None,
            "detail": detail,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What a build came to."""

    sources: tuple[Built, ...]
    """In the order of their ids."""
    now: datetime | None
    """The present that was asked for; None: the clock's."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Sources with neither snapshot nor fixture."""
        return tuple(built.recipe.source_id for built in self.sources if built.missing)

    @property
    def failed(self) -> tuple[str, ...]:
        """Sources whose parser gave nothing, the missing ones included."""
        return tuple(built.recipe.source_id for built in self.sources if built.failed)

    @property
    def poor(self) -> tuple[str, ...]:
        """Sources with fewer items than they demand."""
        return tuple(built.recipe.source_id for built in self.sources if built.poor)

    def problem(self, *, strict: bool) -> str | None:
        """Why the build counts as failed; None: it does not, whatever single sources did."""
        if self.missing:
            return f"neither snapshot nor fixture: {', '.join(self.missing)}"
        if self.sources and len(self.failed) == len(self.sources):
            return "every source failed"
        if strict and (self.failed or self.poor):
            return f"failed, or with too few items: {', '.join((*self.failed, *self.poor))}"
        return None

    def document(self) -> bytes:
        """The built document."""
        now = one_line(time_text(self.now) if self.now else None)
        inner = ",\n".join(
            f"    {one_line(built.recipe.source_id)}: {_object(built)}" for built in self.sources
        )
        body = f"{{\n{inner}\n  }}" if inner else "{}"
        return encoded(f'{{\n  "now": {now},\n  "sources": {body}\n}}')


_NOTHING: Final = "There is neither a snapshot nor a fixture."


def build(
    bench: Bench,
    *,
    clock: datetime,
    now: datetime | None = None,
    progress: Callable[[Built], None] = lambda _: None,
) -> BuildResult:
    """Parse every source; `clock` is the present where `now` names none. Nothing that a parser does gets out."""
    done: list[Built] = []
    for recipe in sorted(bench.recipes, key=lambda recipe: recipe.source_id):
        done.append(_source(bench, recipe, now or clock))
        progress(done[-1])
    return BuildResult(sources=tuple(done), now=now)


def _source(bench: Bench, recipe: Recipe, now: datetime) -> Built:
    held = bench.held(recipe)
    warnings = [Warned(code=Code.DAMAGED, detail=sentence) for sentence in held.damage]
    origin: Origin | None = Origin.SNAPSHOT
    page, why = held.page, None
    if page is None:
        page, why, more = _from_fixture(bench, recipe, damaged=bool(held.damage))
        origin = Origin.FIXTURE if page else None
        warnings += more
    parsing = None
    if page is not None and recipe.parser is not None:
        parsing = bench.parse(recipe, page, now)
        warnings += _warnings(recipe, page, parsing)
    if recipe.parser is None:
        warnings.append(Warned(code=Code.NO_PARSER, detail="The source names no parser."))
    return Built(recipe=recipe, origin=origin, why=why, page=page, parsing=parsing, warnings=tuple(warnings))


def _from_fixture(
    bench: Bench, recipe: Recipe, *, damaged: bool
) -> tuple[Stored | None, str | None, list[Warned]]:
    """The newest fixture that can be read, why it stands in, and what is to be told."""
    because = "The snapshot is damaged" if damaged else "There is no snapshot"
    told: list[Warned] = []
    try:
        found = fixtures.find(bench, recipe)
    except BadRequest as problem:
        return None, None, [Warned(code=Code.DAMAGED, detail=str(problem))]
    for fixture in reversed(found):
        try:
            page = fixtures.pinned(fixture, recipe).page
        except Unreadable as problem:
            told.append(Warned(code=Code.DAMAGED, detail=f"{problem}."))
            continue
        why = f"{because}; these are the items of fixture {fixture.name}."
        return page, why, [*told, Warned(code=Code.FIXTURE, detail=why)]
    return None, None, told


def _warnings(recipe: Recipe, page: Stored, parsing: Parsing) -> list[Warned]:
    told: list[Warned] = []
    if parsing.failed:
        first = parsing.failures[0]
        words = f"{parsing.failed} items do not fit the schema and are left out, first {first.path}: {first.detail}"
        told.append(Warned(code=Code.SCHEMA, detail=words))
    if parsing.items is None:
        return told
    count, before = len(parsing.items), page.item_count
    if count < recipe.min_items:
        code = Code.FEW if count else Code.ZERO
        told.append(Warned(code=code, detail=f"{count} items, at least {recipe.min_items} are demanded."))
    if before and (before - count) / before > recipe.warn_drop:
        told.append(Warned(code=Code.DROP, detail=f"{count:,} items, {before:,} before."))
    return told


def _object(built: Built) -> str:
    """A source in the document: each key on a line of its own, and each item."""
    page, parsing = built.page, built.parsing
    values: Mapping[str, Json] = {
        "contentChangedAt": time_text(page.captured_at) if page else None,
        "contentHash": sha256(page.body).hexdigest() if page else None,
        "failure": built.failure,
        "freshAt": time_text(page.fresh_at) if page else None,
        "itemCount": None if built.items is None else len(built.items),
        "lastConfirmedAt": time_text(page.confirmed_at) if page and page.confirmed_at else None,
        "origin": built.origin,
        "originReason": built.why,
        "repaired": parsing.repaired if parsing else 0,
        "schemaFailures": [
            {"path": wrong.path, "detail": wrong.detail}
            for wrong in (parsing.failures[:_TOLD] if parsing else ())
        ],
        "state": built.state,
        "url": page.url if page else built.recipe.url,
        "warnings": [{"code": note.code, "detail": note.detail} for note in built.warnings],
    }
    texts = {name: one_line(value) for name, value in values.items()}
    texts["items"] = "null" if built.items is None else lines(built.items, "      ")
    inner = ",\n".join(f'      "{name}": {texts[name]}' for name in sorted(texts))
    return f"{{\n{inner}\n    }}"
