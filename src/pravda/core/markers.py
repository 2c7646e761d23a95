"""Which signatures a response carries, looked up in its parsed structure and never in the raw page."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from lxml import etree

from pravda.core.glance import Needles, compile_needles, haystack, is_surely_long
from pravda.core.signatures import DECISIVE, SMALL, WEAK, Clue, Signature, Where
from pravda.core.states import Reason
from pravda.core.text import Page, fold

MATCHED_LENGTH = 200
"""How many characters of a match are kept as evidence."""

_TEXT_LENGTH = 4096
"""How much of a URL, an attribute or a title is looked at, in characters."""

_ELEMENTS = 3
"""How many elements of one class are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One signature that a response carries."""

    reason: Reason
    signature: str
    """Its id, as `cloudflare-challenge-header`."""
    where: str
    """The places that showed it, as `header cf-mitigated`, `title + src`."""
    matched: str
    """What was found there, at most MATCHED_LENGTH characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The final response, as far as signatures look at it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    asked_url: str
    final_url: str
    page: Page


def decisive(seen: Seen) -> tuple[Finding, ...]:
    """Give the challenges, denials and proxy faults the response proves whatever its status, in the table's order."""
    view = _View(seen)
    every, at_rim = _applicable(seen.status)
    # Most pages are decided here, without a parse: by headers, URL and one pass over the bytes.
    tests = every if _gate(every).search(view.haystack) else at_rim
    return tuple(found for test in tests if (found := test.find(view)) is not None)


def weak(seen: Seen) -> tuple[Finding, ...]:
    """Give what a small page looks like other than the page that was asked for, in the table's order."""
    view = _View(seen)
    if not seen.page.is_html or not view.is_below(SMALL):
        return ()
    return tuple(found for test in _WEAK if (found := test.find(view)) is not None)


class _View:
    """The places of one response, each read at most once."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._texts: dict[tuple[Where, str], tuple[str, ...]] = {}

    @cached_property
    def haystack(self) -> bytes:
        return haystack(self.seen.page)

    @cached_property
    def _is_surely_long(self) -> bool:
        return is_surely_long(self.haystack, SMALL)

    @cached_property
    def _headers(self) -> dict[str, list[str]]:
        headers: dict[str, list[str]] = {}
        for name, value in self.seen.headers:
            headers.setdefault(name.lower(), []).append(value.strip())
        return headers

    def is_below(self, limit: int) -> bool:
        """Whether the page shows fewer characters; not so where its end was not read or not parsed."""
        page = self.seen.page
        return page.whole and not self._is_surely_long and len(page.visible) < limit and not page.cut

    def texts(self, where: Where, name: str) -> tuple[str, ...]:
        key = where, name
        if key not in self._texts:
            self._texts[key] = tuple(self._read(where, name))
        return self._texts[key]

    def _read(self, where: Where, name: str) -> Iterable[str]:
        match where:
            case Where.HEADER:
                return self._headers.get(name, ())
            case Where.URL:
                return (_host_and_path(self.seen.final_url),)
            case Where.ASKED:
                return (_host_and_path(self.seen.asked_url),)
        page = self.seen.page
        root = page.root
        if root is None or not page.is_html:
            return ()
        match where:
            case Where.TITLE:
                return (page.title[:_TEXT_LENGTH],)
            case Where.HEADING:
                return (heading[:_TEXT_LENGTH] for heading in page.headings)
            case Where.TEXT:
                return page.title[:_TEXT_LENGTH], page.visible
            case Where.META:
                return _metas(root, name)
            case Where.ELEMENT:
                return _element_texts(root, name)
            case Where.SCRIPT | Where.ANY_SCRIPT:
                return _scripts(root, sources=where is Where.ANY_SCRIPT)
            case Where.CLASS:
                return (token for value in _attributes(root, where) for token in value.split())
            case _:
                return _attributes(root, where)


@dataclass(frozen=True, slots=True, eq=False)
class _Lookup:
    """A clue ready to be looked up."""

    clue: Clue
    pattern: re.Pattern[str]

    def find(self, view: _View) -> str | None:
        """Give what was found, an empty text where rightly nothing was; None: the clue does not hold."""
        where = self.clue.where
        matches = (
            match for text in view.texts(where, self.clue.name) for match in self.pattern.finditer(text)
        )
        found = next((match for match in matches if match.lastgroup != "quoted"), None)
        if self.clue.absent:
            return "" if found is None else None
        if found is None:
            return None
        return found.group() if where in _LONG else found.string

    @property
    def place(self) -> str:
        return f"{self.clue.where} {self.clue.name}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """A signature ready to be looked up: what costs least comes first."""

    signature: Signature
    rim: tuple[_Lookup, ...]
    """The clues outside the body."""
    needles: tuple[Needles, ...]
    inner: tuple[_Lookup, ...]
    """The clues that need a parse."""

    def find(self, view: _View) -> Finding | None:
        matched = _find_all(self.rim, view)
        if matched is None or not all(needle.search(view.haystack) for needle in self.needles):
            return None
        below = self.signature.visible_below
        if below is not None and not view.is_below(below):
            return None
        inside = _find_all(self.inner, view)
        if inside is None:
            return None
        return self._finding(tuple(pair for pair in matched + inside if pair[1]))

    def _finding(self, pairs: tuple[tuple[str, str], ...]) -> Finding:
        return Finding(
            reason=self.signature.reason,
            signature=self.signature.id,
            where=" + ".join(dict.fromkeys(place for place, _ in pairs)),
            matched=fold(" … ".join(text[:MATCHED_LENGTH] for _, text in pairs))[:MATCHED_LENGTH],
        )


def _find_all(lookups: tuple[_Lookup, ...], view: _View) -> tuple[tuple[str, str], ...] | None:
    pairs: list[tuple[str, str]] = []
    for lookup in lookups:
        found = lookup.find(view)
        if found is None:
            return None
        pairs.append((lookup.place, found))
    return tuple(pairs)


_RIM = frozenset({Where.HEADER, Where.URL, Where.ASKED})
_LONG = frozenset({Where.TEXT, Where.SCRIPT, Where.ELEMENT})
"""Places whose texts are long, so that only the match itself is evidence."""

# A string within a script is a quotation: pages of today carry their whole article as one.
_QUOTED = r"""(?P<quoted>"(?:[^"\\\n]|\\[\s\S])*+"?|'(?:[^'\\\n]|\\[\s\S])*+'?)|"""


def _lookup(clue: Clue) -> _Lookup:
    quoted = _QUOTED if clue.where is Where.SCRIPT else ""
    return _Lookup(clue=clue, pattern=re.compile(f"{quoted}(?:{clue.pattern})", re.IGNORECASE))


def _test(signature: Signature) -> _Test:
    return _Test(
        signature=signature,
        rim=tuple(_lookup(clue) for clue in signature.all_of if clue.where in _RIM),
        needles=tuple(compile_needles((needle,)) for needle in signature.needles),
        inner=tuple(_lookup(clue) for clue in signature.all_of if clue.where not in _RIM),
    )


_DECISIVE = tuple(_test(signature) for signature in DECISIVE)
_WEAK = tuple(_test(signature) for signature in WEAK)


@lru_cache(maxsize=1024)
def _applicable(status: int) -> tuple[tuple[_Test, ...], tuple[_Test, ...]]:
    """Give all tests that count on a status, and those of them which begin outside the body."""
    every = tuple(test for test in _DECISIVE if status in test.signature.statuses)
    return every, tuple(test for test in every if test.rim)


@lru_cache(maxsize=64)
def _gate(tests: tuple[_Test, ...]) -> Needles:
    """Give the pattern without which no test holds that begins in the body."""
    return compile_needles(tuple(test.signature.needles[0] for test in tests if not test.rim))


_HOST_AND_PATH = re.compile(r"https?://(?:[^/?#]*@)?([^/?#:]*)(?::\d*)?([^?#]*)", re.IGNORECASE)


def _host_and_path(url: str) -> str:
    """Give host and path without credentials, port and query; empty for what is no web address."""
    match = _HOST_AND_PATH.match(url[:_TEXT_LENGTH])
    return "" if match is None else match[1].lower() + match[2]


_ATTRIBUTES: dict[Where, tuple[str, tuple[str, ...]]] = {
    Where.SRC: ("src", ("script", "iframe", "img")),
    Where.IFRAME: ("src", ("iframe",)),
    Where.HREF: ("href", ("link", "a")),
    Where.ID: ("id", ("*",)),
    Where.CLASS: ("class", ("*",)),
    Where.INPUT: ("type", ("input",)),
}


def _attributes(root: etree._Element, where: Where) -> Iterator[str]:
    attribute, tags = _ATTRIBUTES[where]
    return (element.get(attribute, "")[:_TEXT_LENGTH].strip() for element in root.iter(*tags))


def _element_texts(root: etree._Element, name: str) -> Iterator[str]:
    """Give the texts of the first few elements: to read each of many that nest would take for ever."""
    attribute, word = ("id" if name.startswith("#") else "class"), name[1:]
    named = (element for element in root.iter("*") if word in element.get(attribute, "").split())
    return (fold("".join(str(text) for text in element.itertext())) for element in islice(named, _ELEMENTS))


def _metas(root: etree._Element, name: str) -> Iterator[str]:
    named = (meta for meta in root.iter("meta") if meta.get("name", "").strip().lower() == name)
    return (meta.get("content", "")[:_TEXT_LENGTH].strip() for meta in named)


def _scripts(root: etree._Element, *, sources: bool) -> Iterator[str]:
    """Give the texts of the scripts that run, not of data that stands in one; with `sources` the src where there is one."""
    for script in root.iter("script"):
        kind = script.get("type", "").strip().lower()
        if kind in ("", "module") or "javascript" in kind or "ecmascript" in kind:
            yield (script.get("src") if sources else None) or script.text or ""
