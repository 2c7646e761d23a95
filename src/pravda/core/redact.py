"""Secrets taken out of what is kept, before it is hashed."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import re2

from pravda.core.urls import redact as url_without_credentials

REDACTED = "REDACTED"

_SECRET = re.compile(
    r"authoriz|authentication-info|cookie|token|secret|passw|pwd|session|(?<!allow-)credential|bearer|jwt|dpop"
    r"|(?:api|access|account|auth|private|subscription|functions)[-_]?key|(?:^|[-_])(?:auth|otp|sid)(?:$|[-_])",
    re.IGNORECASE,
)
_ANYWHERE = re2.Options()
_ANYWHERE.encoding = re2.Options.Encoding.LATIN1
_ANYWHERE.case_sensitive = False
_SECRET_WORDS = re2.compile(
    rb"authoriz|authentication-info|cookie|token|secret|passw|pwd|session|credential|bearer|jwt|dpop|key|auth|otp|sid",
    _ANYWHERE,
)
"""A superset of `_SECRET`, looked for in whole heads at once: nearly no head has any of it."""
_URL_HEADERS = frozenset({"location", "content-location", "referer", "origin"})
_USERINFO = re.compile(r"(?<=://)[^\s/?#\"'<>]*@")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*", re.ASCII)  # RFC 9112 §5.1
# RFC 6265 §5.2: the attributes that say nothing secret; a comma would begin another cookie, save in a date
_ATTRIBUTE = re.compile(
    r"(?:expires=(?:[a-z]{3,9},)?[^,]*|(?:path|domain|max-age|samesite|priority|version)=[^,]*"
    r"|secure|httponly|partitioned)?",
    re.IGNORECASE,
)


_NAME_LENGTH = 256  # characters; longer names are nothing that repeats


@lru_cache(maxsize=1024)
def _speaks_of_secrets(name: str) -> bool:
    return _SECRET.search(name) is not None


def is_secret_header(name: str) -> bool:
    """Whether a header's value is a secret by its name."""
    return _speaks_of_secrets(name) if len(name) <= _NAME_LENGTH else _SECRET.search(name) is not None


def response_value(name: str, value: str) -> str:
    """A response header's value without cookie values, tokens and credentials."""
    if name.strip().lower() in ("set-cookie", "set-cookie2"):
        return _cookie(value)
    return _value(name, value)


def request_head(head: bytes) -> tuple[bytes, bool]:
    """A raw request head without secrets, and whether there were any."""
    return _head(head, _value)


def response_head(head: bytes) -> tuple[bytes, bool]:
    """Raw response heads or trailers without secrets, and whether there were any."""
    return _head(head, response_value)


def _value(name: str, value: str) -> str:
    if is_secret_header(name):
        return REDACTED if value.strip() else value
    if name.strip().lower() in _URL_HEADERS:
        return url_without_credentials(value)
    return _USERINFO.sub(f"{REDACTED}@", value)


def _cookie(value: str) -> str:
    """A Set-Cookie value (RFC 6265 §4.1.1) with its name and attributes, but without what it remembers."""
    pair, *attributes = value.split(";")
    name, equals, text = pair.partition("=")
    if not (text if equals else name).strip():
        return value  # a cookie that is taken back
    kept = (text if _ATTRIBUTE.fullmatch(text.strip()) else f" {REDACTED}" for text in attributes)
    return ";".join((f"{name}={REDACTED}" if equals else REDACTED, *kept))


def _head(head: bytes, clean: Callable[[str, str], str]) -> tuple[bytes, bool]:
    if b"@" not in head and _SECRET_WORDS.search(head) is None:
        return head, False
    result = "".join(_cleaned(line, clean) for line in _lines(head.decode("latin-1"))).encode("latin-1")
    return result, result != head


def _lines(text: str) -> Iterator[str]:
    """The lines with their ends, an obsolete fold (RFC 9112 §5.2) together with the line it goes on with."""
    gathered: list[str] = []
    for line in _LINE.findall(text):
        if gathered and not line.startswith((" ", "\t")):
            yield "".join(gathered)
            gathered.clear()
        gathered.append(line)
    yield "".join(gathered)


def _cleaned(line: str, clean: Callable[[str, str], str]) -> str:
    field = _FIELD.match(line)
    if field is None:
        return _USERINFO.sub(f"{REDACTED}@", line)  # a start line, or nothing a header could be
    value = line[field.end() :].rstrip("\r\n \t")
    kept = clean(field[1], value)
    return line if kept == value else field[0] + kept + line[field.end() + len(value) :]
