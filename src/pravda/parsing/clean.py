"""The one seam between pages nobody controls and the items that leave: texts cleaned, URLs checked.

Dates are never touched: nothing here reads, orders or rewrites what a text says, not even full-width digits.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from pravda.core.urls import BadURL, whatwg_href
from pravda.parsing.values import Item, Json, Repair


class Fix(StrEnum):
    """What was repaired."""

    CONTROL = "control"
    """Control characters, half characters and codes that are no character."""
    ZERO_WIDTH = "zero_width"
    BIDI = "bidi"
    MARKUP = "markup"
    """Left-over tags, comments and character references."""
    WHITE_SPACE = "white_space"
    REFUSED_URL = "refused_url"
    """Not http or https, or no URL at all; null stands in its place."""
    DOUBLE_KEY = "double_key"
    """Two keys that are one when cleaned; the second is left out."""


_CONTROL: Final = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufff9-\ufffb\ufffe\uffff"
_HALF: Final = "\ud800-\udfff"
# also what looks like nothing without being called a format character: fillers of Hangul, and tags
_ZERO_WIDTH: Final = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e007f"
)
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_JOINERS: Final = "\u200c\u200d"
# Joiners are spelling between letters of these scripts (Arabic to Tai Tham, RFC 5892 appendix A) and within emoji.
_JOINED: Final = "\u0600-\u1aff"
_PICTURES: Final = "\u2190-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

_REMOVED: Final[tuple[tuple[Fix, re.Pattern[str], str], ...]] = (
    (Fix.CONTROL, re.compile(f"[{_CONTROL}]"), ""),
    (Fix.CONTROL, re.compile(f"[{_HALF}]"), "\ufffd"),
    (Fix.BIDI, re.compile(f"[{_BIDI}]"), ""),
    (Fix.ZERO_WIDTH, re.compile(f"[{_ZERO_WIDTH}]"), ""),
    (
        Fix.ZERO_WIDTH,
        re.compile(f"(?<![{_JOINED}{_PICTURES}\ufe0f])[{_JOINERS}]+|[{_JOINERS}]+(?![{_JOINED}{_PICTURES}])"),
        "",
    ),
)
_WHITE: Final = "\t\n\x0b\x0c\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# one class of letters, which is found several times faster than a choice of patterns
_SUSPECT: Final = re.compile(f"[{_CONTROL}{_HALF}{_ZERO_WIDTH}{_BIDI}{_JOINERS}{_WHITE}]")

# HTML Standard §4, and the obsolete elements of §16.2; other words in angle brackets are somebody's text.
_ELEMENTS: Final = frozenset(
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink blockquote body br "  # noqa: SIM905 - words read better than quotes
    "button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em "
    "embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html "
    "i iframe img input ins kbd label legend li link main map mark marquee math menu meta meter nav nobr noembed "
    "noframes noscript object ol optgroup option output p param picture plaintext pre progress q rb rp rt rtc ruby "
    "s samp script search section select slot small source span strike strong style sub summary sup svg table "
    "tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp".split()
)
_INLINE: Final = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rb rp rt rtc ruby s samp "  # noqa: SIM905 - as above
    "small span strike strong sub sup time tt u var wbr".split()
)
_MARKUP: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<raw>script|style)\b[^<>]*>.*?(?:</(?P=raw)\s*>|\Z)"
    r"|</?(?P<name>[A-Za-z][A-Za-z0-9]{0,20})(?:[\s/][^<>]*)?>",
    re.IGNORECASE | re.DOTALL,
)
# An ampersand may be escaped any number of times; taking all of them at once keeps the time linear.
_REFERENCE: Final = re.compile(
    r"&(?:amp;|#0{0,5}38;|#x0{0,5}26;)*(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE
)
_MOST_ROUNDS: Final = 5

_URL_KEY: Final = re.compile(
    r"(?:.*[_\-. ])?(?:url|uri|href|src|link)s?|.*[a-z0-9](?:Url|URL|Uri|URI|Href|Src|Link)s?",
)
_RUNNABLE: Final = re.compile(r"(?:javascript|vbscript|blob|file):\S+|data:[^,\s]{0,200},\S*", re.IGNORECASE)
_TAB_OR_NEWLINE: Final = str.maketrans("", "", "\t\n\r")
_ABSOLUTE: Final = re.compile(r"https?://", re.IGNORECASE)
# Most links of most pages are such, and what the URL Standard makes of them is plain: no segment begins with a dot,
# nothing is to be escaped. They are a quarter of all the time that cleaning takes.
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?(?:\?[A-Za-z0-9._~=&+-]*)?", re.ASCII)
_PLAIN_KEY: Final = re.compile(r"\w{1,60}")

Report = Callable[[Repair], None]
"""Takes each repair, in the order of the item."""


def clean_item(item: Item, path: str, url: str, report: Report) -> Item:
    """An item with its texts cleaned and its URLs checked; relative ones are resolved against the page's."""
    return _object(item, path, url, report)


def clean_text(text: str) -> tuple[str, tuple[Fix, ...]]:
    """A text as a reader sees it, on one line, and what had to be done for it."""
    if _is_clean(text):
        return text, ()
    fixes: dict[Fix, None] = {}
    for _ in range(_MOST_ROUNDS):
        before, text = text, _round(text, fixes)
        if text == before:
            break
    else:
        # Only what was built to survive is still changing.
        text = _round(text.translate({ord(mark): None for mark in "<>&"}), fixes)
    return text, tuple(fix for fix in Fix if fix in fixes)


def _is_clean(text: str) -> bool:
    """Whether a text needs nothing, told fast: it is so for nearly all."""
    if _SUSPECT.search(text) or "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    return not (("<" in text and _MARKUP.search(text)) or ("&" in text and _REFERENCE.search(text)))


def _round(text: str, fixes: dict[Fix, None]) -> str:
    for fix, pattern, instead in _REMOVED:
        text, times = pattern.subn(instead, text)
        if times:
            fixes[fix] = None
    bare = _REFERENCE.sub(_character, _MARKUP.sub(_space, text))
    if bare != text:
        fixes[Fix.MARKUP] = None
    folded = " ".join(bare.split())
    if folded != bare:
        fixes[Fix.WHITE_SPACE] = None
    return folded


def _space(match: re.Match[str]) -> str:
    """What stands in place of a tag: nothing where it is none or only dresses letters, else a space."""
    name = match["name"]
    if name is None:
        return " "
    if name.lower() not in _ELEMENTS:
        return match[0]
    return "" if name.lower() in _INLINE else " "


def _character(match: re.Match[str]) -> str:
    return html.unescape(f"&{match[1]};")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """What there is to know of a key."""

    name: str
    fixes: tuple[Fix, ...]
    step: str
    """Behind the path of the object, as `.title`."""
    is_url: bool
    """Whether URLs stand under it."""


@lru_cache(maxsize=1024)
def _key(key: str) -> _Key:
    name, fixes = clean_text(key)
    return _Key(
        name=name,
        fixes=fixes,
        step=f".{name}" if _PLAIN_KEY.fullmatch(name) else f"[{name[:60]!a}]",
        is_url=_URL_KEY.fullmatch(name[:200]) is not None,
    )


def _object(value: Item, path: str, url: str, report: Report) -> Item:
    out: Item = {}
    for given, part in value.items():
        key = _key(given)
        if key.fixes:
            report(Repair(path=f"{path}{key.step} (key)", what=key.fixes))
        if key.name in out:
            report(Repair(path=path + key.step, what=(Fix.DOUBLE_KEY,)))
            continue
        if isinstance(part, str):
            if not key.is_url and ":" not in part and _is_clean(part):
                out[key.name] = part
                continue
            out[key.name], fixes = _text(part, url, is_url=key.is_url)
            if fixes:
                report(Repair(path=path + key.step, what=fixes))
        elif isinstance(part, list | dict):
            out[key.name] = _nested(part, path + key.step, url, report, is_url=key.is_url)
        else:
            out[key.name] = part
    return out


def _nested(value: Json, path: str, url: str, report: Report, *, is_url: bool) -> Json:
    if isinstance(value, dict):
        return _object(value, path, url, report)
    if isinstance(value, list):
        return [
            _nested(part, f"{path}[{place}]", url, report, is_url=is_url) for place, part in enumerate(value)
        ]
    if isinstance(value, str):
        text, fixes = _text(value, url, is_url=is_url)
        if fixes:
            report(Repair(path=path, what=fixes))
        return text
    return value


def _text(value: str, url: str, *, is_url: bool) -> tuple[str | None, tuple[Fix, ...]]:
    if not is_url:
        text, fixes = clean_text(value)
        return (None, (*fixes, Fix.REFUSED_URL)) if _RUNNABLE.fullmatch(text) else (text, fixes)
    if not value.isprintable():
        # URL Standard §4.4: a browser drops these, so that a scheme may be spelt with them in between
        value = value.translate(_TAB_OR_NEWLINE)
    text, fixes = clean_text(value)
    if not text:
        return text, fixes
    checked, more = _checked(text, url)
    return checked, fixes + more


@lru_cache(maxsize=16)
def _origin(base: str) -> str:
    """Scheme and authority of a page's URL, as every absolute path is put behind them; raises BadURL."""
    return whatwg_href("/", base)[:-1]


def _checked(text: str, base: str) -> tuple[str | None, tuple[Fix, ...]]:
    """An http or https URL, absolute and otherwise as written; None: it is none. To be relative is no fault."""
    try:
        if _ABSOLUTE.match(text):
            whatwg_href(text)
            return text, ()
        if _PLAIN_PATH.fullmatch(text):
            return _origin(base) + text, ()
        href = whatwg_href(text, base)
    except BadURL:
        return None, (Fix.REFUSED_URL,)
    return (href, ()) if _ABSOLUTE.match(href) else (None, (Fix.REFUSED_URL,))
