"""A stored page as a parser is given it."""

from datetime import datetime
from functools import cached_property

from lxml import etree

from pravda.core.text import Page as Document
from pravda.core.urls import BadURL, whatwg_href


class NoDocument(ValueError):
    """The bytes hold no element."""


class Page:
    """The bytes of a page, and what can be read out of them; nothing is asked for."""

    def __init__(
        self, body: bytes, *, url: str, charset: str, captured_at: datetime, now: datetime, source_id: str = ""
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
    def document(self) -> etree._Element:
        """The root element: as HTML, unless the bytes show themselves to be XML; raises NoDocument."""
        read = self._read
        if not read.is_xml and not read.is_html:
            read = Document(self.bytes, content_type="text/html", charset=self.charset, final_url=self.url)
        if read.root is None:
            raise NoDocument("the page holds no element")
        return read.root

    @property
    def json(self) -> object:
        """The JSON value; raises ValueError."""
        return self._read.json

    def absolute(self, link: str) -> str:
        """A link of the page as an absolute URL; raises ValueError."""
        return whatwg_href(link, self.url)


__all__ = ["BadURL", "NoDocument", "Page"]
