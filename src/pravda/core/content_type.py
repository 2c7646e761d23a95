"""The Content-Type header, read as browsers read it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_WHITE_SPACE: Final = " \t\r\n"
# RFC 9110 §5.6.2, and "HTTP quoted-string token code point" of the WHATWG MIME Sniffing Standard §3.
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTED_TEXT: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)
_NAME: Final = re.compile(r"[^;=]*")
_UNQUOTED: Final = re.compile(r"[^;]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|(\\)?\Z)', re.DOTALL)
_LIST_ITEM: Final = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))*', re.DOTALL)


_CACHED_LENGTH: Final = 200  # characters; longer values are nothing that repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentType:
    """What one or more Content-Type headers say together."""

    essence: str  # type/subtype in lower case
    charset: str | None = None  # the charset parameter as written; None where there is none


def read(values: Sequence[str]) -> ContentType | None:
    """What the header says, given the value of each of its lines; None where nothing in it can be read."""
    # Fetch Standard, "extract a MIME type": the last readable one counts, and a charset outlives a repetition.
    found: ContentType | None = None
    for value in _items(", ".join(values)):
        item = parse(value)
        if item is None or item.essence == "*/*":
            continue
        if item.charset is None and found is not None and found.essence == item.essence:
            continue
        found = item
    return found


def parse(value: str) -> ContentType | None:
    """A single media type with its charset (MIME Sniffing Standard §4.4); None when it is not one."""
    return _parse_known(value) if len(value) <= _CACHED_LENGTH else _parse(value)


def _parse(value: str) -> ContentType | None:
    kind, _, rest = value.strip(_WHITE_SPACE).partition("/")
    subtype, _, parameters = rest.partition(";")
    subtype = subtype.rstrip(_WHITE_SPACE)
    if not (_TOKEN.fullmatch(kind) and _TOKEN.fullmatch(subtype)):
        return None
    charset = next((text for name, text in _parameters(parameters) if name == "charset"), None)
    return ContentType(essence=f"{kind}/{subtype}".lower(), charset=charset)


_parse_known = lru_cache(maxsize=512)(
    _parse
)  # sites repeat themselves, and each value is asked for several times


def _items(value: str) -> Iterator[str]:
    """The members of a comma-separated header value; a comma within quotes does not separate."""
    position = 0
    while position <= len(value):
        end = _end(_LIST_ITEM, value, position)
        yield value[position:end]
        position = end + 1


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """The well-formed parameters in order, names in lower case."""
    position = 0
    while position < len(text):
        name_end = _end(_NAME, text, position)
        name = text[position:name_end].lstrip(_WHITE_SPACE).lower()
        position = name_end + 1
        if text[name_end : name_end + 1] != "=":
            continue
        quoted = _QUOTED.match(text, position)
        end = _end(_UNQUOTED, text, quoted.end() if quoted else position)
        value = _unescape(quoted) if quoted else text[position:end].rstrip(_WHITE_SPACE)
        position = end + 1
        if (value or quoted) and _TOKEN.fullmatch(name) and _QUOTED_TEXT.fullmatch(value):
            yield name, value


def _unescape(quoted: re.Match[str]) -> str:
    """The text of a quoted string; a backslash that ends an unfinished one stands for itself."""
    return _ESCAPED.sub(r"\1", quoted[1]) + (quoted[2] or "")


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where a pattern that can match nothing stops matching."""
    match = pattern.match(text, position)
    return match.end() if match else position
