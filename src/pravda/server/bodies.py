"""A request's JSON, read strictly: what two readers could read differently is refused."""

import json
from collections.abc import Iterable

from pravda.core.mistake import shown
from pravda.server.problems import Kind, Problem, Refused

_EXACT = 2**53


def read_object(data: bytes, most_depth: int) -> dict[str, object]:
    """The object in a body; raises Refused."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_float=_number, parse_constant=_constant
        )
    except RecursionError:
        raise _malformed(f"it is nested deeper than {most_depth} levels") from None
    except ValueError as problem:
        raise _malformed(_said(problem)) from None
    if not isinstance(value, dict):
        raise _malformed("it must be one object, field names and their values")
    if _is_deeper(value, most_depth):
        raise _malformed(f"it is nested deeper than {most_depth} levels")
    return value


def _unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise _Ambiguous(f"the name {shown(name)} occurs twice in one object")  # RFC 8259 §4
        found[name] = value
    return found


def _number(text: str) -> int | float:
    """JSON has one kind of number: 5.0 is 5 (RFC 8259 §6), as far as every reader keeps it exact."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _constant(word: str) -> object:
    raise _Ambiguous(f"{word} is no JSON")  # RFC 8259 §6


class _Ambiguous(ValueError):
    """Said in our own words."""


def _said(problem: ValueError) -> str:
    match problem:
        case _Ambiguous():
            return str(problem)
        case UnicodeDecodeError():
            return "it is no UTF-8"
        case json.JSONDecodeError():
            return f"it is no JSON from line {problem.lineno}, column {problem.colno} on"
        case _:
            return "it holds a number that nobody can read"


def _is_deeper(value: object, levels: int) -> bool:
    here = [value]
    while here and levels >= 0:
        here = [
            inner
            for one in here
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        levels -= 1
    return bool(here)


def _malformed(why: str) -> Refused:
    return Refused(Problem(kind=Kind.MALFORMED_REQUEST, detail=f"The request's body cannot be read: {why}."))
