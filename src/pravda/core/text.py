"""A page as text and as a tree: parsed at most once, and only when somebody asks."""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NoReturn, TypeAlias

from lxml import etree

from pravda.core.charset import decode
from pravda.core.media import HEAD_BYTES, effective_type

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml"})
_JSON = frozenset({"application/json", "text/json"})
_OTHER_TEXT = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/jsonl",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/yaml",
    }
)

# Elements that browsers never paint by themselves. `head` is not named, since a broken page may end up in it.
_UNSEEN = frozenset(
    {"script", "style", "template", "noscript", "title", "iframe", "noframes", "noembed", "datalist"}
)

# Elements that stand apart from their neighbours, so that two table cells do not read as one word.
_BREAKING = frozenset(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt "  # noqa: SIM905 - words read better than quotes
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html input legend li main "
    "menu nav ol optgroup option p pre search section select summary table tbody td textarea tfoot th "
    "thead tr ul xmp".split()
)
# Both are white space, so that folding drops them.
_NEW_LINE, _SAME_LINE = "\x1e", "\x1f"
_IN_A_LINE = frozenset({"button", "input", "option", "select", "td", "textarea", "th"})

_Tree: TypeAlias = tuple[etree._Element | None, bool]
"""The root, and whether the parser gave up at one of its limits before the end."""


class NotJSON(ValueError):
    """The body is not JSON that can be read."""


def fold(text: str) -> str:
    """Give the text with every run of white space as one space, and none at the ends."""
    return " ".join(text.split())


def html_bytes(text: str) -> bytes:
    """An HTML page's text as a parser takes it that is told UTF-8 and would stop at `</html>`."""
    return _as_utf8(_without_early_ends(text))


class Page:
    """A body and what can be read out of it; nothing in here raises but `json`."""

    def __init__(
        self,
        body: bytes,
        *,
        content_type: str | None,
        charset: str,
        final_url: str = "",
        whole: bool = True,
    ) -> None:
        self.body = body
        """The content, codings removed; only its head where `whole` is false."""
        self.content_type = content_type
        """The header's value as received; None: there was none."""
        self.charset = charset
        """The WHATWG name by which the body is decoded."""
        self.final_url = final_url
        """Where the body came from; empty: not known."""
        self.whole = whole
        """Whether `body` is all there was."""

    @cached_property
    def media_type(self) -> str:
        """The type the bytes show where that is decisive, else the header's, else a sniffed one."""
        return effective_type(self.content_type, self.body[:HEAD_BYTES])

    @cached_property
    def is_html(self) -> bool:
        """Whether the body is an HTML page, also one sent under a feed's or an API's media type."""
        if self.media_type in _HTML:
            return True
        # A reader of text/plain sees the source, whatever it looks like.
        if self.media_type == "text/plain" or not self._is_text_type:
            return False
        head = decode(self.body[:HEAD_BYTES], self.charset)
        return head.lstrip()[:14].lower().startswith(("<!doctype html", "<html"))

    @property
    def is_xml(self) -> bool:
        """Whether the body is XML other than an HTML page."""
        return not self.is_html and self._is_xml_type

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON by its media type."""
        return not self.is_html and self._is_json_type

    @property
    def is_text(self) -> bool:
        """Whether the body is meant to be read as characters."""
        return self._is_text_type

    @property
    def _is_xml_type(self) -> bool:
        return self.media_type in _XML or self.media_type.endswith("+xml")

    @property
    def _is_json_type(self) -> bool:
        return self.media_type in _JSON or self.media_type.endswith("+json")

    @property
    def _is_text_type(self) -> bool:
        named = self.media_type in _OTHER_TEXT or self.media_type.startswith("text/")
        return named or self._is_xml_type or self._is_json_type or self.media_type in _HTML

    @cached_property
    def text(self) -> str:
        """The body decoded."""
        return decode(self.body, self.charset)

    @property
    def root(self) -> etree._Element | None:
        """The tree of an HTML or XML page; None for other types and where no element was found."""
        return self._tree[0]

    @property
    def cut(self) -> bool:
        """Whether the tree ends before the page does, since it is nested deeper than a parser may follow."""
        return self._tree[1]

    @cached_property
    def _tree(self) -> _Tree:
        if not self.is_html and not self.is_xml:
            return None, False
        if self.is_xml:
            return _parse_xml(_as_utf8(self.text))
        data = html_bytes(self.text)
        root, cut = _parse_html(data, deep=False)
        return _parse_html(data, deep=True) if cut else (root, cut)

    @cached_property
    def visible(self) -> str:
        """What a reader sees, white space folded; empty for a binary body."""
        if self.is_html:
            return "" if self.root is None else _seen(self.root)
        return fold(self.text) if self.is_text else ""

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """What a reader sees, a line for each block and table row; the lines as they stand where it is no HTML."""
        if not self.is_html:
            return tuple(self.text.splitlines()) if self.is_text else ()
        flow = "" if self.root is None else _flow(self.root)
        return tuple(line for part in flow.split(_NEW_LINE) if (line := fold(part)))

    @cached_property
    def title(self) -> str:
        """The text of an HTML page's first title, white space folded; empty: none."""
        if not self.is_html:
            return ""
        # An image drawn in SVG may carry a title of its own.
        titles = (e for e in self._elements("title") if next(e.iterancestors("svg"), None) is None)
        return next((fold("".join(str(part) for part in e.itertext())) for e in titles), "")

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """What a reader sees of each h1 and h2 of an HTML page."""
        return tuple(_seen(element) for element in self._elements("h1", "h2"))

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        """The text of each script that stands in an HTML page."""
        texts = (element.text for element in self._elements("script"))
        return tuple(text for text in texts if text and not text.isspace())

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The `src` of each script and iframe of an HTML page, as written."""
        values = (str(element.get("src", "")).strip() for element in self._elements("script", "iframe"))
        return tuple(value for value in values if value)

    def _elements(self, *tags: str) -> Iterator[etree._Element]:
        return iter(()) if self.root is None or not self.is_html else self.root.iter(*tags)

    @cached_property
    def json(self) -> object:
        """The body read as JSON; raises NotJSON."""
        try:
            return json.loads(self.text, parse_constant=_refuse_constant)
        # ValueError covers bad syntax and numbers of more digits than Python converts.
        except (ValueError, RecursionError) as error:
            raise NotJSON("the body is not JSON, or it is nested too deep to read") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")  # RFC 8259 §6


def _as_utf8(text: str) -> bytes:
    """Give bytes for a parser that is told UTF-8, so that no `meta` or XML declaration decides again."""
    # HTML 13.2.5.1 makes U+FFFD of NUL, at which libxml2 would stop in XML.
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")


_END = re.compile(r"</(?:html|body)\s*>", re.IGNORECASE)
# What stands in these is text, also where it looks like a tag.
_RAW_OR_END = re.compile(
    r"(<(script|style|textarea|title|xmp|iframe)\b.*?(?:</\2|\Z)|<!--.*?(?:-->|\Z))|</(?:html|body)\s*>",
    re.IGNORECASE | re.DOTALL,
)


def _without_early_ends(html: str) -> str:
    """Drop the end tags of `html` and `body` where more follows: HTML 13.2.6.4.19 goes on, libxml2 would stop."""
    first = _END.search(html)
    if first is None or not _END.sub("", html[first.end() :]).strip():
        return html
    return _RAW_OR_END.sub(lambda token: token[1] or "", html)


def _parse_html(data: bytes, *, deep: bool) -> _Tree:
    """Parse UTF-8; libxml2 gives up at 256 levels, and at 2,048 when it may go `deep`."""
    parser = etree.HTMLParser(
        encoding="utf-8", recover=True, no_network=True, huge_tree=deep, remove_comments=True, remove_pis=True
    )
    return _parse(data, parser)


def _parse_xml(data: bytes) -> _Tree:
    """Parse UTF-8; never `huge_tree`, which would lift the limit on how far entities may grow."""
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=True,
        no_network=True,
        load_dtd=False,
        resolve_entities=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    return _parse(data, parser)


def _parse(data: bytes, parser: etree.HTMLParser | etree.XMLParser) -> _Tree:
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, SyntaxError, ValueError):
        root = None
    last = parser.error_log.last_error
    return root, last is not None and last.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT


def _seen(root: etree._Element) -> str:
    """Give the text below an element that a reader sees."""
    return fold(_flow(root))


def _flow(root: etree._Element) -> str:
    """Give that text with marks where lines break; walks instead of recursing, since pages nest at will."""
    parts: list[str] = []
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if element.tag in _BREAKING:
            parts.append(_SAME_LINE if element.tag in _IN_A_LINE else _NEW_LINE)
        if event == "end":
            if element is not root:
                parts.append(element.tail or "")
        elif _is_unseen(element):
            walker.skip_subtree()
        else:
            parts.append(element.text or "")
    return "".join(parts)


def _is_unseen(element: etree._Element) -> bool:
    if element.tag in _UNSEEN or "hidden" in element.attrib:
        return True
    style = element.get("style")
    return style is not None and _display(style) == "none"


def _display(style: str) -> str:
    """Give the value of `display` in a style attribute; the last declaration wins."""
    value = ""
    for declaration in style.lower().split(";"):
        name, _, given = declaration.partition(":")
        if name.strip() == "display":
            value = given.replace("!important", "").strip()
    return value
