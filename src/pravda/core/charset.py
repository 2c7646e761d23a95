"""Which character encoding a body is in, and its text."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import html5prescan
import webencodings

from pravda.core import content_type as header

DEFAULT: Final = "utf-8"
PRESCAN_BYTES: Final = 1024
"""How far a declaration within the document is looked for (HTML Standard, "prescan a byte stream")."""

# html5prescan reads its table of labels on the first label it meets; it must not be left to a moment when
# the process is out of file descriptors.
html5prescan.get(b"<meta charset=utf-8>")

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_UTF_16: Final = frozenset({"utf-16le", "utf-16be"})
# XML 1.0 §4.3.3 and the HTML Standard's "get an XML encoding".
_XML_DECLARATION: Final = re.compile(
    rb"<\?xml(?=[\t\n\r ])[^>]{0,900}?[\t\n\r ]encoding[\t\n\r ]*=[\t\n\r ]*(?:\"([^\">]{1,80})\"|'([^'>]{1,80})')"
)
_XML_START_UTF_16: Final = ((b"<\x00?\x00x\x00", "utf-16le"), (b"\x00<\x00?\x00x", "utf-16be"))
_XML_TYPE: Final = re.compile(r"(?:text|application)/xml|.+\+xml")
# Formats with encodings of their own, in which a <meta> is somebody's data.
_NO_META_TYPE: Final = re.compile(r"(?:text|application)/(?:json|csv)|.+\+json")
_ASCII_WHITE_SPACE: Final = "\t\n\f\r "


class CharsetSource(StrEnum):
    """Where the name of an encoding was found."""

    BOM = "bom"
    HEADER = "header"
    META = "meta"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charset:
    """The encoding of a body."""

    name: str  # WHATWG name in lower case, as "utf-8" or "windows-1252"
    source: CharsetSource  # what said so; META also stands for an XML declaration


def label_to_name(label: str) -> str | None:
    """The WHATWG encoding a label means, in lower case; None when it means none."""
    # WHATWG labels are ASCII; the library would fail on a lone surrogate.
    stripped = label.strip(_ASCII_WHITE_SPACE)
    if not stripped.isascii():
        return None
    encoding = webencodings.lookup(stripped)
    return None if encoding is None else str(encoding.name)


def from_content_type(values: Sequence[str]) -> str | None:
    """The encoding that the Content-Type header names, given the value of each of its lines."""
    found = header.read(values)
    return None if found is None or found.charset is None else label_to_name(found.charset)


def sniff(body: bytes, header_label: str | None, default: str) -> str:
    """The encoding of an HTML page whose header names `header_label`."""
    named = label_to_name(header_label) if header_label is not None else None
    return _from_bom(body) or named or _from_meta(body) or label_to_name(default) or DEFAULT


def detect(head: bytes, content_type: Sequence[str]) -> Charset:
    """The encoding of a body from its first bytes and its Content-Type header: mark, header, declaration, UTF-8."""
    found = header.read(content_type)
    by_bom = _from_bom(head)
    if by_bom:
        return Charset(name=by_bom, source=CharsetSource.BOM)
    by_header = label_to_name(found.charset) if found is not None and found.charset is not None else None
    if by_header:
        return Charset(name=by_header, source=CharsetSource.HEADER)
    by_declaration = _from_declaration(head, found.essence if found else "")
    if by_declaration:
        return Charset(name=by_declaration, source=CharsetSource.META)
    return Charset(name=DEFAULT, source=CharsetSource.DEFAULT)


def decode(data: bytes, name: str) -> str:
    """The text of a body in the named encoding, without its byte order mark; what cannot be read becomes U+FFFD."""
    encoding = label_to_name(name) or DEFAULT
    if encoding == DEFAULT or encoding in _UTF_16:
        return data.decode(encoding, "replace").removeprefix("\ufeff")
    if encoding == "replacement":
        # Encoding Standard §14.1: bytes in an encoding that is unsafe to read are one error, whatever they are.
        return "\ufffd" if data else ""
    if encoding in _MULTI_BYTE:
        codec, errors, corrections = _MULTI_BYTE[encoding]
        return data.decode(codec, errors).translate(corrections)
    return codecs.charmap_decode(data, "strict", _single_byte_table(encoding))[0]


def _from_bom(head: bytes) -> str | None:
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def _from_declaration(head: bytes, essence: str) -> str | None:
    """What the document says of itself, in the way its type allows."""
    if _XML_TYPE.fullmatch(essence):
        return _from_xml(head)
    if _NO_META_TYPE.fullmatch(essence):
        return None
    if not essence:
        return _from_xml(head) or _from_meta(head)
    return _from_meta(head) or _from_xml(head)


def _from_meta(head: bytes) -> str | None:
    """The encoding of the first <meta> that names one."""
    scan, _ = html5prescan.get(head[:PRESCAN_BYTES], PRESCAN_BYTES)
    return None if scan.name is None else str(scan.name).lower()


def _from_xml(head: bytes) -> str | None:
    """The encoding of an XML declaration."""
    in_utf_16 = next((name for start, name in _XML_START_UTF_16 if head.startswith(start)), None)
    match = _XML_DECLARATION.match(head[:PRESCAN_BYTES])
    if match is None:
        return in_utf_16
    name = label_to_name((match[1] or match[2]).decode("latin-1"))
    # Whoever could read this declaration as ASCII knows that UTF-16 is not what it is written in.
    return DEFAULT if name in _UTF_16 else name


def _one_error_a_pair(error: UnicodeError) -> tuple[str, int]:
    """Go on after a broken pair as the Encoding Standard does: a trail byte in ASCII is read again."""
    assert isinstance(error, UnicodeDecodeError)
    lead, trail = error.object[error.start], error.object[error.start + 1 : error.start + 2]
    is_pair = 0x81 <= lead <= 0xFE and trail >= b"\x80"
    return "\ufffd", error.start + 1 + is_pair


def _euro_in_gbk(error: UnicodeError) -> tuple[str, int]:
    """As above, and the lone byte by which Windows writes the euro sign (Encoding Standard §10.2.1)."""
    assert isinstance(error, UnicodeDecodeError)
    if error.object[error.start] == 0x80:
        return "€", error.start + 1
    return _one_error_a_pair(error)


def _nec_rows_in_euc_jp(error: UnicodeError) -> tuple[str, int]:
    """As above, and the rows of jis0208 that only Microsoft's codec has, where ① and ㈱ are."""
    assert isinstance(error, UnicodeDecodeError)
    start = error.start
    lead, trail = error.object[start : start + 2].ljust(2, b"\x00")
    row, cell = lead - 0xA0, trail - 0xA0
    if 1 <= row <= 94 and 1 <= cell <= 94:
        return _shift_jis_pair(row, cell).decode("cp932", "replace")[:1], start + 2
    if lead == 0x8F and trail >= 0xA1:
        return "\ufffd", min(start + 3, len(error.object))
    if lead in (0x8E, 0x8F) or 1 <= row <= 94:
        return _one_error_a_pair(error)
    return "\ufffd", start + 1


def _shift_jis_pair(row: int, cell: int) -> bytes:
    """The place of a JIS X 0208 letter in Shift_JIS, where two rows share a lead byte and 0x7F is left out."""
    lead = (row + 1) // 2 + (0x80 if row <= 62 else 0xC0)
    trail = cell + 0x9E if row % 2 == 0 else cell + (0x3F if cell <= 63 else 0x40)
    return bytes((lead, trail))


codecs.register_error("pravda.pair", _one_error_a_pair)
codecs.register_error("pravda.gbk", _euro_in_gbk)
codecs.register_error("pravda.euc-jp", _nec_rows_in_euc_jp)

# Where Python's tables and the Encoding Standard's indexes differ on letters that pages use.
_JIS_0208: Final = str.maketrans("〜‖−¢£¬", "～∥－￠￡￢")
_SHIFT_JIS: Final = str.maketrans("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd" * 4)
_GB_18030: Final = str.maketrans("\ue5e5", "\u3000")
_MULTI_BYTE: Final[dict[str, tuple[str, str, dict[int, int]]]] = {
    "shift_jis": ("cp932", "pravda.pair", _SHIFT_JIS),
    "euc-jp": ("euc_jp", "pravda.euc-jp", _JIS_0208),
    "iso-2022-jp": ("iso2022_jp_ext", "replace", _JIS_0208),
    "euc-kr": ("cp949", "pravda.pair", {}),
    "gbk": ("gb18030", "pravda.gbk", _GB_18030),
    "gb18030": ("gb18030", "pravda.gbk", _GB_18030),
    "big5": ("big5hkscs", "pravda.pair", {}),
}
_SINGLE_BYTE_CORRECTIONS: Final = {
    ("koi8-u", 0xAE): "ў",
    ("koi8-u", 0xBE): "Ў",
    ("windows-1255", 0xCA): "\u05ba",
}


@lru_cache(maxsize=64)
def _single_byte_table(name: str) -> str:
    """The 256 letters of a single-byte encoding."""
    codec = webencodings.lookup(name).codec_info
    return "".join(_letter(name, byte, codec.decode(bytes((byte,)), "replace")[0]) for byte in range(256))


def _letter(name: str, byte: int, letter: str) -> str:
    # The indexes of the Encoding Standard give the undefined bytes 0x80 to 0x9F their control characters.
    if letter == "\ufffd" and 0x80 <= byte <= 0x9F:
        letter = chr(byte)
    return _SINGLE_BYTE_CORRECTIONS.get((name, byte), letter)
