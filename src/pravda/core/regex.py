"""Regular expressions on RE2, whose time grows with the text and never explodes."""

from functools import lru_cache
from typing import Any

import re2

from pravda.core.query import BadQuery, said

_MEMORY = 8 << 20  # bytes, for the program and the states that RE2 keeps while it searches
_INSTRUCTIONS = 10_000  # a search takes at most this many steps for each byte of the text


def check_regex(pattern: str) -> None:
    """Raise BadQuery unless the pattern can be searched for."""
    _compiled(pattern)


def find_regex(pattern: str, text: str) -> str | None:
    """Give the first part of the text that the pattern matches; None: it matches nowhere."""
    # As bytes, since RE2 works on UTF-8 and JSON strings may hold lone surrogates, which have none.
    found = _compiled(pattern).search(text.encode("utf-8", "replace"))
    return None if found is None else str(found.group(), "utf-8", "replace")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        compiled = re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        raise BadQuery(
            f"is not a regular expression of RE2 ({said(error)}); "
            r"look-around and back-references are not supported, and the end is written \z"
        ) from error
    if compiled.programsize > _INSTRUCTIONS:
        raise BadQuery("is too large a regular expression; write smaller repetitions")
    return compiled
