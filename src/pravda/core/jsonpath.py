"""JSONPath (RFC 9535), kept from visiting the same value over and over."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from math import prod

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import RootFilterQuery
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
from jsonpath_rfc9535.selectors import FilterSelector

from pravda.core.query import BadQuery, said
from pravda.core.regex import find_regex

_MOST_MATCHES = 1_000_000
_MOST_DESCENTS = 2
_MOST_BRANCHES = 100
_LONGEST_PATTERN = 2_000  # characters; patterns may also stand in the document itself

# Deep values, huge numbers and odd types make the library stumble in all these ways.
_STUMBLES = (
    JSONPathError,
    RecursionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def check_json_path(path: str) -> None:
    """Raise BadQuery unless the path can be looked for."""
    _compiled(path)


def count_json_path(path: str, value: object) -> int:
    """Count the nodes that the path finds in what json.loads gave; none where it cannot be evaluated."""
    query = _compiled(path)
    try:
        found = query.finditer(value)  # type: ignore[arg-type] # it is what JSON is read into
        return sum(1 for _ in islice(found, _MOST_MATCHES))
    except _STUMBLES:
        return 0


@lru_cache(maxsize=256)
def _compiled(path: str) -> JSONPathQuery:
    try:
        query = _ENVIRONMENT.compile(path)
    except _STUMBLES as error:
        raise BadQuery(f"is not a JSONPath of RFC 9535: {said(error)}") from error
    parts = tuple(_parts(query))
    segments = [segment for part in parts if isinstance(part, JSONPathQuery) for segment in part.segments]
    descents = sum(isinstance(segment, JSONPathRecursiveDescentSegment) for segment in segments)
    if descents > _MOST_DESCENTS or prod(len(segment.selectors) for segment in segments) > _MOST_BRANCHES:
        raise BadQuery(
            "could visit a value too often; write at most two '..' and fewer alternatives in brackets"
        )
    if any(isinstance(part, RootFilterQuery) and not part.query.singular_query() for part in parts):
        raise BadQuery(
            "searches the whole document for each value; after '$' in a filter name a single value"
        )
    return query


def _parts(query: JSONPathQuery) -> Iterator[object]:
    """Give a query, and everything that its filters are made of."""
    waiting: list[object] = [query]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, JSONPathQuery):
            selectors = (selector for segment in part.segments for selector in segment.selectors)
            waiting += (selector.expression for selector in selectors if isinstance(selector, FilterSelector))
        else:
            arguments: Iterable[object] = getattr(part, "args", ())
            operands = (getattr(part, name, None) for name in ("expression", "left", "right", "query"))
            waiting += (one for one in (*operands, *arguments) if one is not None)


class _RegexFunction(FilterFunction):
    """A function that takes an I-Regexp (RFC 9485) and runs it on RE2; the library's own can take for ever."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 - declared so by the library
    return_type = ExpressionType.LOGICAL

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._after = after

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
            return False
        # RFC 9485 §5.3: the dot matches neither line feed nor carriage return.
        translated = _TOKEN.sub(lambda token: r"[^\n\r]" if token[0] == "." else token[0], pattern)
        try:
            return find_regex(self._before + translated + self._after, value) is not None
        except BadQuery:
            return False  # RFC 9535 §2.4.6: what is no I-Regexp matches nothing


_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", re.DOTALL)


class _Environment(JSONPathEnvironment):
    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _RegexFunction(r"\A(?:", r")\z")
        self.function_extensions["search"] = _RegexFunction("(?:", ")")


_ENVIRONMENT = _Environment()
