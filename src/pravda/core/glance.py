"""What the bytes of an HTML page tell before anybody parses it."""

import re
from typing import Protocol

import re2

from pravda.core.text import Page

_LOOKS = (6_144, 24_576, 131_072)
"""How many bytes are looked at, one after the other; what they show is shown by the whole page too."""

_SINGLE_BYTE = ("windows-", "iso-8859-", "koi8-", "macintosh", "ibm866", "x-mac-")

# Comments, and the elements that hold text without tags and that nobody sees (HTML 13.2.6.2). Each ends at its end
# or at the end of the page and so never fails after a long run: a million `<script` take linear time.
_RAW = re.compile(
    b"<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?"
    rb"|<(script|style|title|iframe|noframes|noembed)\b[^<]*+(?:<(?!/\1)[^<]*+)*+",
    re.IGNORECASE,
)

# Elements with tags inside that nobody sees; a run ends where another begins, so that none is gone through twice.
_UNSEEN = re.compile(
    rb"<(template|noscript|datalist)\b[^<]*+(?:<(?!/\1|template|noscript|datalist)[^<]*+)*+</\1",
    re.IGNORECASE,
)

# A tag (HTML 13.2.5: a quotation mark quotes only after `=`) or a character reference; neither counts as a character.
_MARKUP = re.compile(
    rb"""<[a-z/!?](?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?)*+>?|&[#a-z0-9]{1,32}+;?""", re.IGNORECASE
)

_LINEAR = re2.Options()
_LINEAR.encoding = re2.Options.Encoding.LATIN1
_LINEAR.case_sensitive = False
_LINEAR.log_errors = False

# A tag whose element is hidden. A hit too many costs a parse, one too few would hide a finding.
_HIDING = re2.compile(
    rb"""<(?:(?:template|noscript|datalist)\b"""
    rb"""|([a-z][^\s/>]*)(?:[^>=]|=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]))*?"""
    rb"""(?:(?:[\s/]|=\s*"[^"]*"|=\s*'[^']*')hidden[\s=/>]"""
    rb"""|[\s/"']style\s*=\s*(?:"[^"]*|'[^']*|[^\s>"']*)display\s*:\s*none))""",
    _LINEAR,
)
_VOID = frozenset(
    {b"area", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source", b"wbr"}
)

# White space, and the bytes that continue a character in UTF-8.
_UNCOUNTED = bytes(range(0x21)) + bytes(range(0x80, 0xC0))


class Needles(Protocol):
    """A compiled pattern over bytes."""

    def search(self, data: bytes, /) -> object:
        """Give something true where the pattern is found."""


def haystack(page: Page) -> bytes:
    """Give the body with every ASCII character as that one byte, whatever its encoding."""
    if page.charset == "utf-8" or page.charset.startswith(_SINGLE_BYTE):
        return page.body
    return page.text.encode("utf-8", "replace")


def compile_needles(needles: tuple[str, ...]) -> Needles:
    """Give a pattern that finds any of the needles in bytes, case ignored, in linear time."""
    compiled: Needles = re2.compile("|".join(map(_needle, needles)).encode(), _LINEAR)
    return compiled


def _needle(words: str) -> str:
    # Between words may stand any white space, also as a character reference.
    return r"(?:\s|&[#\w]{1,8};)+".join(re2.escape(word) for word in words.split(" "))


def is_surely_long(data: bytes, limit: int) -> bool:
    """Whether the tags leave no doubt that a page shows at least `limit` characters; False: only a parse can tell."""
    looked = 0
    for size in _LOOKS:
        if len(data) > looked and _shown(data[:size]) >= limit:
            return True
        looked = size
    return False


def _shown(head: bytes) -> int:
    """Give a number of characters that are seen before any element is hidden."""
    head = _UNSEEN.sub(b"", _RAW.sub(b"", head))
    tags = _HIDING.finditer(head)
    hiding = next((tag for tag in tags if (tag.group(1) or b"").lower() not in _VOID), None)
    seen = _MARKUP.sub(b"", head if hiding is None else head[: hiding.start()])
    return len(seen.translate(None, _UNCOUNTED))
