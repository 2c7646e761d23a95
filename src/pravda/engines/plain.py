"""Signs that bytes are content as it is, and not the output of some coding."""

import codecs
import re
from typing import Final

from pravda.core.media import satisfies, shown_type

HEAD: Final = 512  # first bytes of a body that tell text from a coding

# What is in no text: https://mimesniff.spec.whatwg.org/#binary-data-byte
_BINARY: Final = bytes(set(range(0x20)) - set(b"\t\n\x0c\r\x1b"))
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")  # UTF-16 is full of NULs
_GZIP_HEADER: Final = re.compile(rb"\x1f\x8b\x08[\x00-\x1f].{4}[\x00\x02\x04][\x00-\x0d\xff]", re.DOTALL)
"""The header of RFC 1952 §2.3.1 with flags, speed and system as in use; no other coding begins like it."""
_ARCHIVES: Final = (
    "zip",
    "tar",
    "tgz",
    "compress",
    "zstd",
    "brotli",
    "octet-stream",
    "debian",
    "rpm",
    "warc",
)
"""Words in a content type whose files may themselves be gzip."""


def may_be_gzip_itself(content_type: str) -> bool:
    """Whether gzip bytes of this content type are the content, and not a coding of it."""
    return any(word in content_type for word in _ARCHIVES)


def may_be_plain(head: bytes, content_type: str) -> bool:
    """Whether the first bytes of a body may be content that nothing was done to."""
    text = head.startswith(_BYTE_ORDER_MARKS) or not _has_binary(head)
    return text or _as_claimed(head, content_type)


def is_surely_plain(head: bytes, content_type: str) -> bool:
    """Whether the first bytes of a body are so like a file that a decoder's success on them is chance."""
    return _as_claimed(head, content_type) or _GZIP_HEADER.match(head) is not None or _is_utf8_text(head)


def _is_utf8_text(head: bytes) -> bool:
    try:
        # Incremental, so that a letter cut by the end of the head is no error.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return not _has_binary(head)


def _has_binary(head: bytes) -> bool:
    return len(head.translate(None, _BINARY)) < len(head)


def _as_claimed(head: bytes, content_type: str) -> bool:
    """Whether the bytes begin as a file of that content type does."""
    return shown_type(head) is not None and satisfies(content_type, content_type, head)
