"""Secrets taken out of what is kept, before it is hashed."""

import re
from collections.abc import Callable

REDACTED = "REDACTED"
_R = REDACTED.encode()

_NAMES = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token"}
)
_WORDS = re.compile(r"secret|token|passw|api[-_]?key|session", re.IGNORECASE)
_USERINFO = re.compile(rb"(?<=://)[^\s/?#\"'<>]*@")
_LINK_HEADERS = frozenset({b"location", b"content-location", b"refresh", b"link", b"referer"})


def is_secret_header(name: str) -> bool:
    """Whether a request header's value is a secret by its name."""
    return name.lower() in _NAMES or _WORDS.search(name) is not None


def response_value(name: str, value: str) -> str:
    """A response header's value without cookie values and credentials."""
    return _response(name.lower().encode("latin-1"), value.encode("latin-1")).decode("latin-1")


def request_head(head: bytes) -> tuple[bytes, bool]:
    """A raw request head without secrets, and whether there were any."""
    return _head(
        head, lambda name, value: _R if is_secret_header(name.decode("latin-1")) else _links(name, value)
    )


def response_head(head: bytes) -> tuple[bytes, bool]:
    """A raw response head without cookie values and credentials, and whether there were any."""
    return _head(head, _response)


def _response(name: bytes, value: bytes) -> bytes:
    if name in (b"set-cookie", b"set-cookie2"):
        pair, semicolon, attributes = value.partition(b";")
        key, equals, _ = pair.partition(b"=")
        return (key + equals if equals else b"") + _R + semicolon + attributes
    return _links(name, value)


def _links(name: bytes, value: bytes) -> bytes:
    return _USERINFO.sub(_R + b"@", value) if name in _LINK_HEADERS else value


def _head(head: bytes, clean: Callable[[bytes, bytes], bytes]) -> tuple[bytes, bool]:
    lines = head.split(b"\n")
    secret = b""
    out: list[bytes] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and secret:
            continue  # an obsolete fold (RFC 9112 §5.2) carries on a value that was taken out
        secret = b""
        name, colon, rest = line.partition(b":")
        if not colon or not out:
            out.append(line)
            continue
        value = rest.rstrip(b"\r")
        cleaned = clean(name.strip().lower(), value.strip(b" \t"))
        if cleaned == value.strip(b" \t"):
            out.append(line)
            continue
        secret = name
        out.append(
            name + colon + value[: len(value) - len(value.lstrip(b" \t"))] + cleaned + rest[len(value) :]
        )
    result = b"\n".join(out)
    return result, result != head
