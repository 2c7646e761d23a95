"""Durations as callers write them."""

import math
import re

from pravda.core.mistake import BadRequest, shown

LONGEST = 100 * 366 * 86400.0
"""Seconds; longer ones are a mistake and would not fit a calendar."""

_LONGEST_TEXT = 60  # characters
_HELP = 'write seconds, "7d", "36h", "1h30m" or "P7D"'
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_SHORT = re.compile("".join(rf"(?:(?P<{unit}>\d+(?:\.\d+)?){unit})?" for unit in _UNITS), re.ASCII)
# ISO 8601-1 §5.5.2 without years and months, whose length is not fixed
_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=.)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)


def seconds(field: str, value: object) -> float:
    """The seconds in a number, "7d", "36h", "1h30m" or "P7D"; anything else raises BadRequest naming the field."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadRequest(field, f"{shown(value)} is no duration; {_HELP}")
    try:
        number = _from_text(field, value) if isinstance(value, str) else float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number) or number < 0:
        raise BadRequest(field, f"{shown(value)} is no duration: it must be 0 or more")
    if number > LONGEST:
        raise BadRequest(field, f"{shown(value)} is longer than a hundred years")
    return number


def _from_text(field: str, value: str) -> float:
    text = value.strip()
    if len(text) <= _LONGEST_TEXT:
        if _NUMBER.fullmatch(text):
            return float(text)
        if text and (found := _SHORT.fullmatch(text) or _ISO.fullmatch(text)):
            return sum(float(number) * _UNITS[unit] for unit, number in found.groupdict().items() if number)
    raise BadRequest(field, f"{shown(value)} is no duration; {_HELP}")
