"""A stored page as a parser is given it."""

from datetime import datetime
from functools import cached_property

from lxml import etree, html

from pravda.core.text import Page as Document
from pravda.core.text import html_bytes
from pravda.core.urls import whatwg_href


class NoDocument(ValueError):
    """The bytes hold no element."""


class Page:
    """The bytes of a page, and what can be read out of them; nothing is asked for."""

    def __init__(
        self,
        body: bytes,
        *,
        url: str,
        charset: str,
        captured_at: datetime,
        now: datetime,
        source_id: str = "",
    ) -> None:
        self.bytes = body
        """As served, content coding removed."""
        self.url = url
        """Where they came from, after redirects."""
        self.charset = charset
        """The WHATWG name that was stored with them; a page's own claims are not asked again."""
        self.captured_at = captured_at
        """When they came, in UTC."""
        self.now = now
        """The present, in UTC; a parser that asks the clock instead gives another answer tomorrow."""
        self.source_id = source_id

    @cached_property
    def _read(self) -> Document:
        return Document(self.bytes, content_type=None, charset=self.charset, final_url=self.url)

    @property
    def text(self) -> str:
        """The decoded bytes; what is no letter in the charset is U+FFFD."""
        return self._read.text

    @cached_property
    def document(self) -> html.HtmlElement:
        """The root element of an HTML page, with `cssselect` and `text_content`; raises NoDocument."""
        data = html_bytes(self.text)
        try:
            root = etree.fromstring(data, _html_parser())
        except (etree.LxmlError, SyntaxError, ValueError):
            root = None
        if not isinstance(root, html.HtmlElement):
            raise NoDocument("the page holds no element")
        return root

    @property
    def xml(self) -> etree._Element:
        """The root element of an XML page; raises NoDocument."""
        root = Document(self.bytes, content_type="application/xml", charset=self.charset).root
        if root is None:
            raise NoDocument("the page holds no element")
        return root

    @property
    def json(self) -> object:
        """The JSON value; raises ValueError."""
        return self._read.json

    def absolute(self, link: str) -> str:
        """A link of the page as an absolute URL; raises ValueError."""
        return whatwg_href(link, self.url)


def _html_parser() -> html.HTMLParser:
    # huge_tree lifts the limit of 256 levels, at which pages of today are cut without a word
    return html.HTMLParser(
        encoding="utf-8", recover=True, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
