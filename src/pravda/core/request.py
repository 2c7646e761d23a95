"""What a caller asks for, checked once at the door."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from itertools import islice

from pravda.core import durations
from pravda.core.mistake import BadRequest, shown
from pravda.core.rules import Rules
from pravda.core.states import State
from pravda.core.urls import URL, BadURL, parse

Pairs = tuple[tuple[str, str], ...]
_Parser = Callable[[str, object], object]


class TlsMode(StrEnum):
    """Whether certificates are held against the trusted issuers."""

    VERIFY = "verify"
    INSECURE = "insecure"


class RobotsMode(StrEnum):
    """Whether a site's robots.txt is asked before its pages are."""

    IGNORE = "ignore"
    """For a page that somebody asked for by name."""
    OBEY = "obey"
    """Also keeps a pause between requests to one host."""


class OnFailure(StrEnum):
    """How a capture without a usable snapshot ends: as an exception or as an answer."""

    RAISE = "raise"
    RETURN = "return"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Budgets in seconds; each ends its phase, `total` ends the attempt with its retry."""

    connect: float = 20.0
    """Name look-up, TCP and TLS of one hop."""
    first_byte: float = 45.0
    """From connected to complete response headers of one hop."""
    idle: float = 30.0
    """The longest silence inside a body."""
    body: float = 240.0
    """From the final headers to the end of the body."""
    total: float = 300.0
    """Everything: all hops and one retry."""

    def but(self, value: object) -> "Timeouts":
        """These budgets with others from a mapping of names to durations; unknown names and zeros raise BadRequest."""
        if value is None:
            return self
        if isinstance(value, Timeouts):
            return value
        if not isinstance(value, Mapping):
            raise BadRequest("timeouts", f"must map budget names to durations, not {shown(value)}")
        known = [item.name for item in fields(self)]
        given: dict[str, float] = {}
        for name, text in value.items():
            if name not in known:
                raise BadRequest(f"timeouts.{_named(name)}", f"is no budget; there are {', '.join(known)}")
            given[name] = durations.seconds(f"timeouts.{name}", text)
            if given[name] == 0:
                raise BadRequest(f"timeouts.{name}", "must be more than 0; nothing can be done in no time")
        return replace(self, **given)


DEFAULT_MAX_BYTES = 2 * 1024**3
ENGINES = ("http",)
HTTP_ARTIFACTS = ("body", "payload", "request", "response")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY")

# RFC 9110 §5.6.2 token; §5.5 field value without the controls that split messages
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# RFC 6265 §4.1.1 as browsers read it: quotes, commas and spaces occur, what ends a cookie or a line does not
_COOKIE_NAME = re.compile(r"[\x21-\x3a\x3c\x3e-\x7e]{1,256}")
_COOKIE_VALUE = re.compile(r"[\x20-\x3a\x3c-\x7e]*")
_MOST_HEADERS = 200
_LONGEST_HEADER = 65_536  # characters of a value
# beyond these clients leave cookies out without a word (RFC 6265 §6.1 asks for 50 of 4,096 bytes)
_MOST_COOKIES = 150
_LONGEST_COOKIE = 4096  # characters of name and value
_LONGEST_COOKIES = 8000  # characters of all together
_OURS = {
    # message framing and connection belong to the engine (RFC 9110 §7.6.1, RFC 9112 §6)
    **dict.fromkeys(
        ("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
         "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
        "is set by the engine",
    ),
    **dict.fromkeys(
        ("if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"),
        "asks a conditional question; use the field `conditional` instead",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One wish for a page."""

    url: URL
    method: str = "GET"
    headers: Pairs = ()
    cookies: Pairs = ()
    """Sent to the asked host only, as its own cookies would be."""
    body: bytes | None = None
    engine: str = "http"
    expect: Rules = field(default_factory=Rules)
    max_age: float | None = None
    """Seconds; a usable snapshot that young is the answer without any attempt. None or 0: always capture."""
    max_stale_age: float | None = None
    """Seconds; the oldest snapshot that may stand in for a failed attempt. None or 0: none may."""
    stale_if: frozenset[State] = frozenset(State) - {State.LIVE}
    """The states of a failed attempt that allow fallback; a local fault always does."""
    key: str | None = None
    """A caller-given identity in place of URL and body."""
    conditional: bool = False
    artifacts: tuple[str, ...] = ()
    """What the caller cannot do without, beyond what is always kept."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_bytes: int = DEFAULT_MAX_BYTES
    """The most decoded bytes of a body that are kept."""
    tls: TlsMode = TlsMode.VERIFY
    on_failure: OnFailure = OnFailure.RAISE
    robots: RobotsMode = RobotsMode.IGNORE

    @classmethod
    def parse(cls, url: object, **given: object) -> "Request":
        """A request from loose values as they come over HTTP, from a shell or from Python; raises BadRequest."""
        unknown = sorted(set(given) - _PARSERS.keys())
        if unknown:
            known = ", ".join(sorted(_PARSERS))
            raise BadRequest(_named(unknown[0]), f"is no field of a request; there are url, {known}")
        values: dict[str, object] = {
            name: _PARSERS[name](name, value) for name, value in given.items() if value is not None
        }
        headers, cookies = _split_cookies(values.pop("headers", ()), values.pop("cookies", ()))  # type: ignore[arg-type]  # parsed above
        request = cls(url=_url(url), headers=headers, cookies=cookies, **values)  # type: ignore[arg-type]  # parsed above
        if request.method == "GET" and request.body:
            raise BadRequest("body", "a GET carries no body; say method POST")
        return request


def _named(name: object) -> str:
    """A caller's own name for a field, where it stands in the name of the field that is wrong."""
    return name if isinstance(name, str) and _TOKEN.fullmatch(name) else shown(name)


def _url(value: object) -> URL:
    if not isinstance(value, str):
        raise BadRequest("url", f"must be text, not {type(value).__name__}")
    try:
        return parse(value)
    except BadURL as problem:
        raise BadRequest("url", str(problem)) from None


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadRequest(field, f"must be text, not {type(value).__name__}")
    return value


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadRequest(field, f"must be true or false, not {shown(value)}")
    return value


def _choice(*words: str) -> Callable[[str, object], str]:
    def check(field: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise BadRequest(field, f"must be one of {', '.join(words)}, not {shown(value)}")
        return value

    return check


def _method(field: str, value: object) -> str:
    word = _text(field, value).upper()
    if word == "HEAD":
        raise BadRequest(field, "a HEAD answer has no page in it; use GET")
    return _choice(*METHODS)(field, word)


def _pairs(field: str, value: object) -> Pairs:
    pairs = value.items() if isinstance(value, Mapping) else value
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise BadRequest(field, "must map names to values, or list [name, value] pairs")
    out: list[tuple[str, str]] = []
    for pair in islice(pairs, _MOST_HEADERS + 1):
        match pair:
            case (str() as name, str() as text):
                out.append((name, text))
            case _:
                raise BadRequest(field, f"{shown(pair)} is no pair of a name and a value, both text")
    if len(out) > _MOST_HEADERS:
        raise BadRequest(field, f"more than {_MOST_HEADERS} are refused")
    return tuple(out)


def _headers(field: str, value: object) -> Pairs:
    pairs = tuple((name, text.strip(" \t")) for name, text in _pairs(field, value))
    for name, text in pairs:
        if not _TOKEN.fullmatch(name):
            raise BadRequest(f"{field}.{shown(name)}", "is no header name (RFC 9110 §5.6.2)")
        if len(text) > _LONGEST_HEADER:
            raise BadRequest(f"{field}.{name}", f"has a value of more than {_LONGEST_HEADER:,} characters")
        if not _VALUE.fullmatch(text):
            raise BadRequest(
                f"{field}.{name}", "has a value with characters that no header can carry (RFC 9110 §5.5)"
            )
        if problem := _OURS.get(name.lower()):
            raise BadRequest(f"{field}.{name}", problem)
    return pairs


def _cookies(field: str, value: object) -> Pairs:
    pairs = _pairs(field, value)
    for name, text in pairs:
        if not _COOKIE_NAME.fullmatch(name):
            raise BadRequest(f"{field}.{shown(name)}", "is no cookie name (RFC 6265 §4.1.1)")
        if not _COOKIE_VALUE.fullmatch(text) or len(name) + len(text) > _LONGEST_COOKIE:
            raise BadRequest(f"{field}.{name}", "has a value that no cookie can carry (RFC 6265 §4.1.1)")
    return pairs


def _split_cookies(headers: Pairs, cookies: Pairs) -> tuple[Pairs, Pairs]:
    """Move a Cookie header into the cookies, so that it lives under the same rules at redirects."""
    for name, text in headers:
        if name.lower() == "cookie":
            parts = (part.partition("=") for part in text.split(";") if part.strip())
            cookies += _cookies("headers.Cookie", [(key.strip(), value.strip()) for key, _, value in parts])
    if (
        len(cookies) > _MOST_COOKIES
        or sum(len(key) + len(value) + 3 for key, value in cookies) > _LONGEST_COOKIES
    ):
        raise BadRequest(
            "cookies",
            f"are more than {_MOST_COOKIES}, or longer than {_LONGEST_COOKIES:,} characters together",
        )
    return tuple(pair for pair in headers if pair[0].lower() != "cookie"), cookies


def _body(field: str, value: object) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadRequest(field, "has lone surrogates, which no encoding can send") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise BadRequest(field, f"must be text or bytes, not {type(value).__name__}")
    return bytes(value)


def _rules(field: str, value: object) -> Rules:
    if isinstance(value, Rules):
        return value
    if not isinstance(value, Mapping):
        raise BadRequest(field, f"must map rule names to values, not {shown(value)}")
    return Rules.parse(value)


def _states(field: str, value: object) -> frozenset[State]:
    known = tuple(state.value for state in State if state is not State.LIVE)
    return frozenset(State(word) for word in _words(field, value, known))


def _key(field: str, value: object) -> str:
    text = _text(field, value)
    if not text.strip() or len(text) > 1024 or not text.isprintable():
        raise BadRequest(field, "must be 1 to 1,024 printable characters")
    return text


def _artifacts(field: str, value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_words(field, value, HTTP_ARTIFACTS)))


def _words(field: str, value: object, known: tuple[str, ...]) -> list[str]:
    """Words of a closed set, from a list or from one text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple | set | frozenset):
        raise BadRequest(field, f"must list some of {', '.join(known)}, not be {shown(value)}")
    words = [word.strip() if isinstance(word, str) else word for word in given]
    for word in words:
        if word not in known:
            raise BadRequest(field, f"{shown(word)} is none of {', '.join(known)}")
    return words


def _size(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**53:
        raise BadRequest(field, f"must be a whole number of bytes above 0, not {shown(value)}")
    return value


def _tls(field: str, value: object) -> TlsMode:
    return TlsMode(_choice(*TlsMode)(field, value))


def _robots(field: str, value: object) -> RobotsMode:
    return RobotsMode(_choice(*RobotsMode)(field, value))


def _on_failure(field: str, value: object) -> OnFailure:
    return OnFailure(_choice(*OnFailure)(field, value))


def _timeouts(field: str, value: object) -> Timeouts:
    return Timeouts().but(value)


_PARSERS: dict[str, _Parser] = {
    "method": _method,
    "headers": _headers,
    "cookies": _cookies,
    "body": _body,
    "engine": _choice(*ENGINES),
    "expect": _rules,
    "max_age": durations.seconds,
    "max_stale_age": durations.seconds,
    "stale_if": _states,
    "key": _key,
    "conditional": _flag,
    "artifacts": _artifacts,
    "timeouts": _timeouts,
    "max_bytes": _size,
    "tls": _tls,
    "on_failure": _on_failure,
    "robots": _robots,
}
"""Field name of a request beside `url` → what reads its loose value."""
