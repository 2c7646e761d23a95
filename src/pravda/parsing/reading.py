"""One job, done: the page parsed, its items made plain, cleaned, held to the schema, and written as JSON."""

import json
from pathlib import Path
from typing import Final

from pravda.parsing.clean import clean_item
from pravda.parsing.frames import write_parsing
from pravda.parsing.page import Page
from pravda.parsing.parser import Failed, Parse, described, load, trace_of
from pravda.parsing.plain import NotPlain, plain_item
from pravda.parsing.schema import BadSchema, Check, load_schema
from pravda.parsing.values import (
    MOST_TOLD,
    Job,
    Limits,
    Parsing,
    Repair,
    SchemaFailure,
    Trouble,
    failure,
)

_encode: Final = json.JSONEncoder().encode


class Reader:
    """Reads pages, with parsers and schemas that are loaded once."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self._root, self._limits = root, limits
        self._parsers: dict[str, Parse] = {}
        self._checks: dict[str, Check] = {}

    def read(self, job: Job) -> bytes:
        """What the job's parser makes of its page, as JSON; nothing that a parser can raise gets out."""
        try:
            parse, check = self._parser(job.parser), self._check(job.schema)
            return _Reading(job, check, self._limits).done(parse)
        except Failed as problem:
            broken = failure(problem.trouble, problem.detail, problem.trace)
        except NotPlain as problem:
            broken = failure(Trouble.UNUSABLE, str(problem))
        except BaseException as problem:  # a parser is anybody's code: one page wide, and it reports
            broken = failure(Trouble.RAISED, described(problem), trace_of(problem))
        return write_parsing(broken)

    def loaded(self, parser: str, schema: str | None) -> bytes:
        """No items where a parser and its schema can be loaded, else why not; as JSON."""
        try:
            self._parser(parser)
            self._check(schema)
        except Failed as problem:
            return write_parsing(failure(problem.trouble, problem.detail, problem.trace))
        return write_parsing(Parsing(items=()))

    def _parser(self, name: str) -> Parse:
        if name not in self._parsers:
            self._parsers[name] = load(name, self._root, self._limits)
        return self._parsers[name]

    def _check(self, name: str | None) -> Check | None:
        if name is None:
            return None
        if name not in self._checks:
            try:
                self._checks[name] = load_schema(name, self._root)
            except BadSchema as problem:
                raise Failed(Trouble.NOT_LOADED, str(problem)) from None
            except BaseException as problem:  # a model's module is anybody's code too
                raise Failed(
                    Trouble.NOT_LOADED, f"{name:.120}: {described(problem)}", trace_of(problem)
                ) from None
        return self._checks[name]


class _Reading:
    """The items of one page, one after the other, so that an endless parser is stopped."""

    def __init__(self, job: Job, check: Check | None, limits: Limits) -> None:
        self._job, self._check, self._limits = job, check, limits
        self._items: list[str] = []
        self._repairs: list[Repair] = []
        self._failures: list[SchemaFailure] = []
        self._seen = self._size = self._repaired = self._failed = 0

    def done(self, parse: Parse) -> bytes:
        job = self._job
        page = Page(
            job.body,
            url=job.url,
            charset=job.charset,
            captured_at=job.captured_at,
            now=job.now,
            source_id=job.source_id,
        )
        for value in parse(page):
            self._take(value)
        told = Parsing(
            items=(),
            repairs=tuple(self._repairs),
            repaired=self._repaired,
            failures=tuple(self._failures),
            failed=self._failed,
        )
        return write_parsing(told, self._items)

    def _take(self, value: object) -> None:
        path = f"items[{self._seen}]"
        self._seen += 1
        if self._seen > self._limits.items:
            raise Failed(Trouble.TOO_MUCH, f"It gave more than {self._limits.items:,} items.")
        item = plain_item(value, path)
        if self._job.sanitize:
            item = clean_item(item, path, self._job.url, self._report)
        if self._check and (wrong := self._check(item, path)):
            self._failed += 1
            self._failures += wrong[: MOST_TOLD - len(self._failures)]
            return
        written = _encode(item)
        self._size += len(written)
        if self._size > self._limits.output:
            raise Failed(Trouble.TOO_MUCH, f"Its items are more than {self._limits.output:,} bytes of JSON.")
        self._items.append(written)

    def _report(self, repair: Repair) -> None:
        self._repaired += 1
        if len(self._repairs) < MOST_TOLD:
            self._repairs.append(repair)
