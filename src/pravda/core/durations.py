"""Durations as callers write them."""

import math
import re

from pravda.core.mistake import BadRequest

LONGEST = 100 * 366 * 86400.0
"""Seconds; longer ones are a mistake and would not fit a calendar."""

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SHORT = re.compile(r"(?:\d+(?:\.\d+)?[wdhms])+", re.ASCII)
_SHORT_PART = re.compile(r"(\d+(?:\.\d+)?)([wdhms])", re.ASCII)
# ISO 8601-1 §5.5.2.2 without years and months, whose length is not fixed
_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?=.)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


def seconds(field: str, value: object) -> float:
    """The seconds in a number, "7d", "36h", "1h30m" or "P7D"; anything else raises BadRequest."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadRequest(field, f'{value!r:.60} is no duration; write seconds, "7d", "36h" or "P7D"')
    number = _from_text(field, value) if isinstance(value, str) else _from_number(field, value)
    if not math.isfinite(number) or number < 0:
        raise BadRequest(field, f"{value!r:.60} must not be negative or endless")
    if number > LONGEST:
        raise BadRequest(field, f"{value!r:.60} is longer than a hundred years")
    return number


def _from_number(field: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise BadRequest(field, "longer than a hundred years") from None


def _from_text(field: str, value: str) -> float:
    text = value.strip()
    if len(text) > 60:
        raise BadRequest(field, "no duration is that long to write")
    if _NUMBER.fullmatch(text):
        return float(text)
    if _SHORT.fullmatch(text):
        return sum(float(n) * _UNITS[unit] for n, unit in _SHORT_PART.findall(text))
    if found := _ISO.fullmatch(text):
        return sum(float(n) * _UNITS[unit] for unit, n in found.groupdict().items() if n)
    raise BadRequest(field, f'{value!r} is no duration; write seconds, "7d", "36h" or "P7D"')
