"""The sources file as it is read: every refusal names file, line and key, before anything is asked."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from pravda.core import durations
from pravda.core.mistake import BadRequest
from pravda.core.request import Request
from pravda.tree.fields import (
    Table,
    read_agent,
    read_count,
    read_extension,
    read_flag,
    read_host_name,
    read_id,
    read_parser,
    read_proxy,
    read_schema,
    read_share,
    read_table,
    read_tables,
    read_text,
    read_word,
)
from pravda.tree.layout import DEFAULT_EXTENSION
from pravda.tree.lines import Lines, scan
from pravda.tree.meta import Confirmations
from pravda.tree.sources import (
    DEFAULT_INTERVAL,
    DEFAULT_WARN_DROP,
    Host,
    OnChallenge,
    RobotsMode,
    Source,
    Sources,
)

LONGEST_FILE: Final = 16 * 1024 * 1024

ParserProblem = Callable[[str], str | None]
"""Why a parser cannot be used, given its name; None: it can. Asked once per parser."""

_T = TypeVar("_T")
_D = TypeVar("_D")

_OWN_DEFAULTS: Final = ("contact", "user_agent", "host_gap", "confirmations")
_ASKED: Final = ("engine", "expect", "headers")
_JUDGED: Final[Mapping[str, Callable[[str, object], object]]] = {
    "interval": durations.seconds,
    "parser": read_parser,
    "min_items": read_count,
    "warn_drop": read_share,
    "extension": read_extension,
    "robots": read_word(RobotsMode),
    "fixtures": read_text,
    "schema": read_schema,
    "sanitize": read_flag,
}
_SHARED: Final = (*_JUDGED, *_ASKED)
"""Keys of a source that the defaults may say for all."""


def load_sources(path: Path, parser_problem: ParserProblem | None = None) -> Sources:
    """The checked sources of a file; raises BadRequest that names file, line and key."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except OSError as problem:
        raise BadRequest(str(path), f"cannot be read: {problem.strerror or problem}") from None
    return parse_sources(data, str(path), parser_problem)


def parse_sources(
    data: bytes, name: str = "sources.toml", parser_problem: ParserProblem | None = None
) -> Sources:
    """The checked sources in the bytes of a file; raises BadRequest that names file, line and key."""
    if len(data) > LONGEST_FILE:
        raise BadRequest(name, f"is longer than {LONGEST_FILE:,} bytes")
    try:
        text = data.decode()
        top = tomllib.loads(text)
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise BadRequest(f"{name}:{line}", "is not written in UTF-8 (TOML 1.0)") from None
    except (ValueError, RecursionError) as problem:
        raise BadRequest(name, f"is no TOML: {problem}") from None
    return SourcesFile(name, scan(text), parser_problem).read(top)


class SourcesFile:
    """Reads one file; every refusal names the line."""

    def __init__(self, name: str, lines: Lines, parser_problem: ParserProblem | None) -> None:
        self._name, self._lines = name, lines
        self._parser_problem, self._parsers = parser_problem, dict[str, str | None]()

    def read(self, top: Table) -> Sources:
        """The whole file."""
        root = _Reader(self, "", 0, top)
        root.refuse_unknown("defaults", "source", "host", "build")
        defaults = _Reader(self, "defaults", 0, root.take("defaults", read_table, {}))
        defaults.refuse_unknown(*_SHARED, *_OWN_DEFAULTS)
        defaults.check(_JUDGED)
        build = _Reader(self, "build", 0, root.take("build", read_table, {}))
        build.refuse_unknown("out")
        sources = tuple(
            self._source(_Reader(self, "source", number, table, defaults.table))
            for number, table in enumerate(root.take("source", read_tables, ()))
        )
        hosts = tuple(
            self._host(_Reader(self, "host", number, table))
            for number, table in enumerate(root.take("host", read_tables, ()))
        )
        self._refuse_twice("source", "id", [source.id for source in sources])
        self._refuse_twice("host", "name", [host.name for host in hosts])
        return Sources(
            sources=sources,
            hosts=hosts,
            contact=defaults.take("contact", read_agent, None),
            user_agent=defaults.take("user_agent", read_agent, None),
            host_gap=defaults.take("host_gap", durations.seconds, None),
            confirmations=defaults.take("confirmations", read_word(Confirmations), Confirmations.ALWAYS),
            build_out=build.take("out", read_text, None),
        )

    def _source(self, table: "_Reader") -> Source:
        table.refuse_unknown("id", "url", *_SHARED)
        source_id, url = table.need("id", read_id), table.need("url", read_text)
        parser = table.take("parser", read_parser, None)
        if parser and (problem := self._problem_of(parser)):
            table.refuse("parser", problem)
        return Source(
            id=source_id,
            url=url,
            request=table.request(url),
            interval=table.take("interval", durations.seconds, DEFAULT_INTERVAL),
            parser=parser,
            min_items=table.take("min_items", read_count, 1),
            warn_drop=table.take("warn_drop", read_share, DEFAULT_WARN_DROP),
            extension=table.take("extension", read_extension, DEFAULT_EXTENSION),
            robots=table.take("robots", read_word(RobotsMode), RobotsMode.OBEY),
            fixtures=table.take("fixtures", read_text, None),
            schema=table.take("schema", read_schema, None),
            sanitize=table.take("sanitize", read_flag, True),
        )

    def _host(self, table: "_Reader") -> Host:
        table.refuse_unknown("name", "gap", "robots_on_challenge", "note", "proxy")
        assumed = table.take("robots_on_challenge", read_word(OnChallenge), OnChallenge.REFUSE)
        note = table.take("note", read_text, None)
        if assumed is OnChallenge.ASSUME_ALLOWED and note is None:
            table.refuse("robots_on_challenge", "needs a note of who read the rules and when; write note")
        return Host(
            name=table.need("name", read_host_name),
            gap=table.take("gap", durations.seconds, None),
            assume_allowed=assumed is OnChallenge.ASSUME_ALLOWED,
            note=note,
            proxy=table.take("proxy", read_proxy, None),
        )

    def _problem_of(self, parser: str) -> str | None:
        if parser not in self._parsers:
            self._parsers[parser] = self._parser_problem(parser) if self._parser_problem else None
        return self._parsers[parser]

    def _refuse_twice(self, table: str, key: str, names: list[str]) -> None:
        seen: dict[str, int] = {}
        for number, name in enumerate(names):
            first = seen.setdefault(name.lower(), number)
            if first != number:
                line = self._lines.find(table, first, key)
                raise self.mistake(table, number, key, f"{name!r} is there already, on line {line}")

    def mistake(self, table: str, number: int, key: str, problem: str) -> BadRequest:
        """The refusal of a key."""
        path = ".".join(part for part in (table, key) if part)
        return BadRequest(f"{self._name}:{self._lines.find(table, number, key)}: {path}", problem)


class _Reader:
    """One table of the file, what it does not say taken from the defaults."""

    def __init__(
        self, file: SourcesFile, name: str, number: int, table: Table, defaults: Table | None = None
    ) -> None:
        self._file, self._name, self._number = file, name, number
        self.table, self._defaults = table, defaults or {}

    def refuse(self, key: str, problem: str) -> NoReturn:
        """Raise BadRequest for a key, at the line that says its value."""
        inherited = key.partition(".")[0] not in self.table and key.partition(".")[0] in self._defaults
        table, number = ("defaults", 0) if inherited else (self._name, self._number)
        raise self._file.mistake(table, number, key, problem)

    def refuse_unknown(self, *known: str) -> None:
        """Raise BadRequest for the first key that is none of the known ones."""
        for key in self.table:
            if key not in known:
                self.refuse(key[:60], f"is no key here; there are {', '.join(known)}")

    def take(self, key: str, read: Callable[[str, object], _T], default: _D) -> _T | _D:
        """The value of a key, else of the same key of the defaults, else the default."""
        table = self.table if key in self.table else self._defaults
        if key not in table:
            return default
        try:
            return read(key, table[key])
        except BadRequest as problem:
            self.refuse(problem.field, problem.problem)

    def need(self, key: str, read: Callable[[str, object], _T]) -> _T:
        """The value of a key that must be there."""
        if key not in self.table:
            self.refuse(key, "is missing")
        try:
            return read(key, self.table[key])
        except BadRequest as problem:
            self.refuse(problem.field, problem.problem)

    def check(self, readers: Mapping[str, Callable[[str, object], object]]) -> None:
        """Raise BadRequest for what could not be read where it is used, and for rules and headers likewise."""
        for key, read in readers.items():
            self.take(key, read, None)
        self.request("https://host.invalid/")

    def request(self, url: str) -> Request:
        """What will be asked for."""
        given = {
            key: table[key]
            for key in _ASKED
            for table in (self.table if key in self.table else self._defaults,)
            if key in table
        }
        try:
            return Request.parse(url, conditional=True, **given)
        except BadRequest as problem:
            self.refuse(problem.field, problem.problem)
