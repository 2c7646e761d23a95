"""One value of the sources file: checked and made a Python value."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pravda.core.mistake import BadRequest
from pravda.tree.layout import extension_problem, id_problem

Table = Mapping[str, object]

_Word = TypeVar("_Word", bound=StrEnum)

_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_AGENT: Final = re.compile(r"[\x20-\x7e]{1,500}")
_HOST: Final = re.compile(r"[^\s/@?#\\]{1,255}")
_PROXY_SCHEMES: Final = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


def read_table(key: str, value: object) -> Table:
    """A table."""
    if not isinstance(value, Mapping):
        raise BadRequest(key, f"must be a table; write [{key}]")
    return value


def read_tables(key: str, value: object) -> tuple[Table, ...]:
    """Tables of one name."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadRequest(key, f"must be tables; write [[{key}]]")
    return tuple(value)


def read_text(key: str, value: object) -> str:
    """A text with something in it."""
    if not isinstance(value, str) or not value.strip() or len(value) > 65_536:
        raise BadRequest(key, f"must be text with something in it, not {value!r:.60}")
    return value


def read_word(kind: type[_Word]) -> Callable[[str, object], _Word]:
    """What reads one of a closed set of words."""

    def read(key: str, value: object) -> _Word:
        if not isinstance(value, str) or value not in list(kind):
            raise BadRequest(key, f"must be one of {', '.join(kind)}, not {value!r:.60}")
        return kind(value)

    return read


def read_id(key: str, value: object) -> str:
    """A source's id."""
    text = read_text(key, value)
    if problem := id_problem(text):
        raise BadRequest(key, f"{text!r:.120} {problem}")
    return text


def read_extension(key: str, value: object) -> str:
    """The extension of a stored page."""
    text = read_text(key, value)
    if problem := extension_problem(text):
        raise BadRequest(key, f"{text!r:.60} {problem}")
    return text


def read_parser(key: str, value: object) -> str:
    """The name of a parser, not yet looked for."""
    text = read_text(key, value)
    command = text.startswith("cmd:") and text.removeprefix("cmd:").strip()
    if not command and not _FUNCTION.fullmatch(text):
        raise BadRequest(key, f'{text!r:.120} is neither "package.module:function" nor "cmd: program args"')
    return text


def read_schema(key: str, value: object) -> str:
    """The name of a schema, not yet looked for."""
    text = read_text(key, value)
    if not text.endswith(".json") and not _FUNCTION.fullmatch(text):
        raise BadRequest(key, f'{text!r:.120} is neither "package.module:Model" nor the name of a .json file')
    return text


def read_flag(key: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise BadRequest(key, f"must be true or false, not {value!r:.60}")
    return value


def read_count(key: str, value: object) -> int:
    """A whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise BadRequest(key, f"must be a whole number from 0, not {value!r:.60}")
    return value


def read_share(key: str, value: object) -> float:
    """A share from 0 to 1."""
    # so is NaN refused
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadRequest(key, f"must be a number from 0 to 1, not {value!r:.60}")
    return float(value)


def read_agent(key: str, value: object) -> str:
    """What may stand in a User-Agent."""
    text = read_text(key, value)
    if not _AGENT.fullmatch(text):
        raise BadRequest(key, "must be at most 500 printable characters of ASCII")
    return text


def read_host_name(key: str, value: object) -> str:
    """A host's name in lower case."""
    text = read_text(key, value)
    if not _HOST.fullmatch(text):
        raise BadRequest(key, f"{text!r:.60} is no host name; write it without scheme and path")
    return text.lower()


def read_proxy(key: str, value: object) -> str:
    """The URL of a proxy."""
    text = read_text(key, value)
    try:
        parts = urlsplit(text)
        valid = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        # the value is not repeated: it may hold a password
        raise BadRequest(key, f"must be a URL with one of the schemes {', '.join(_PROXY_SCHEMES)}")
    return text
