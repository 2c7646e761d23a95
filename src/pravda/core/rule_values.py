"""One value of a caller's rule: read, made canonical and compiled before anything is fetched."""

from collections.abc import Callable
from enum import StrEnum
from typing import NoReturn

from pravda.core.charset import label_to_name
from pravda.core.content_type import parse as parse_media_type
from pravda.core.css import check_selector
from pravda.core.jsonpath import check_json_path
from pravda.core.mistake import BadRequest
from pravda.core.query import BadQuery
from pravda.core.regex import check_regex
from pravda.core.text import fold
from pravda.core.xpath import check_xpath

_LONGEST = 2_000  # characters
_MOST = 50
_LARGEST = 2**53 - 1  # every JSON reader keeps it exact (RFC 8259 §6)


class Rule(StrEnum):
    """The rules in the order in which they are judged; the first that fails gives the reason."""

    MEDIA_TYPE = "media_type"
    CHARSET = "charset"
    MIN_BYTES = "min_bytes"
    MAX_BYTES = "max_bytes"
    FINAL_URL = "final_url"
    SELECTOR = "selector"
    XPATH = "xpath"
    JSON_PATH = "json_path"
    MIN_MATCHES = "min_matches"
    MAX_MATCHES = "max_matches"
    TEXT_PRESENT = "text_present"
    TEXT_ABSENT = "text_absent"
    MATCHES = "matches"
    NOT_MATCHES = "not_matches"
    MAX_DROP = "max_drop"


def read_texts(rule: Rule, given: object) -> tuple[str, ...]:
    """Read the value or values of a rule in TEXT_RULES; raises BadRequest."""
    values = _values(rule, given)
    return tuple(dict.fromkeys(_read_text(rule, value) for value in values))


def read_integer(rule: Rule, given: object) -> int:
    """Read the value of a rule in INTEGER_RULES, of several the strictest; raises BadRequest."""
    values = [_read_integer(rule, value) for value in _values(rule, given)]
    return INTEGER_RULES[rule](values)


def read_share(rule: Rule, given: object) -> float:
    """Read a share between 0 and 1, of several the strictest; raises BadRequest."""
    return min(_read_share(rule, value) for value in _values(rule, given))


def refuse(rule: Rule, problem: str) -> NoReturn:
    """Raise BadRequest that names the rule."""
    raise BadRequest(f"expect.{rule}", problem)


def _values(rule: Rule, given: object) -> tuple[object, ...]:
    values = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not values:
        refuse(rule, "is an empty list; write a value, or leave the rule out")
    if len(values) > _MOST:
        refuse(rule, f"has {len(values)} values; write at most {_MOST}")
    return values


def _read_text(rule: Rule, value: object) -> str:
    if not isinstance(value, str):
        refuse(rule, f"is of type {type(value).__name__}; write a text, or a list of texts")
    if len(value) > _LONGEST:
        refuse(rule, f"is {len(value)} characters long; write at most {_LONGEST}")
    if not value.strip():
        refuse(rule, "is empty; write a value, or leave the rule out")
    # Neither UTF-8 nor XML can hold these, so no page ever shows them.
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        refuse(rule, "holds a NUL or half a character; write text")
    try:
        return TEXT_RULES[rule](value)
    except BadQuery as error:
        raise BadRequest(f"expect.{rule}", f"{value!r:.200} {error}") from error


def _read_integer(rule: Rule, value: object) -> int:
    # bool is an int to Python, but nobody means `true` bytes.
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(rule, f"is of type {type(value).__name__}; write a whole number")
    if not 0 <= value <= _LARGEST:
        refuse(rule, f"is out of range; write a number from 0 to {_LARGEST}")
    return value


def _read_share(rule: Rule, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(rule, f"is of type {type(value).__name__}; write a number from 0 to 1")
    if not 0 <= value <= 1:  # so is NaN refused
        refuse(rule, "is outside 0 to 1; write 0.5 to allow half to be lost")
    return float(value)


def _read_media_type(value: str) -> str:
    read = parse_media_type(value)
    if read is None or value.strip().lower() != read.essence:
        raise BadQuery("is no media type; write one as text/html or text/*, without parameters")
    return read.essence


def _read_charset(value: str) -> str:
    name = label_to_name(value)
    if name is None:
        raise BadQuery("is no encoding that browsers know; write a name as utf-8 or windows-1252")
    return name


def _checked(check: Callable[[str], None]) -> Callable[[str], str]:
    def read(value: str) -> str:
        check(value)
        return value

    return read


TEXT_RULES: dict[str, Callable[[str], str]] = {
    Rule.MEDIA_TYPE: _read_media_type,
    Rule.CHARSET: _read_charset,
    Rule.FINAL_URL: _checked(check_regex),
    Rule.SELECTOR: _checked(check_selector),
    Rule.XPATH: _checked(check_xpath),
    Rule.JSON_PATH: _checked(check_json_path),
    Rule.TEXT_PRESENT: fold,
    Rule.TEXT_ABSENT: fold,
    Rule.MATCHES: _checked(check_regex),
    Rule.NOT_MATCHES: _checked(check_regex),
}
"""How a rule of texts reads one of them; raises BadQuery."""

INTEGER_RULES: dict[str, Callable[[list[int]], int]] = {
    Rule.MIN_BYTES: max,
    Rule.MAX_BYTES: min,
    Rule.MIN_MATCHES: max,
    Rule.MAX_MATCHES: min,
}
"""Which of several values is the strictest."""
