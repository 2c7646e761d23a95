"""Media types: what the header claims, what the bytes show, and which of the two to believe."""

import re
from typing import Final

import puremagic

from pravda.core import content_type as header

OCTET_STREAM: Final = "application/octet-stream"
"""The media type that says nothing."""

ZIP: Final = "application/zip"
OLE: Final = "application/x-ole-storage"
HEAD_BYTES: Final = 4096
"""As much of a body as is ever looked at, in bytes."""

# Signatures which no text begins with; the first that fits counts. Sources: WHATWG MIME Sniffing Standard §6,
# the formats' own specifications, the IANA media type registrations.
_SIGNATURES: Final[tuple[tuple[str, bytes], ...]] = (
    ("application/pdf", rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*%PDF-"),
    ("application/postscript", rb"%!PS-Adobe-"),
    ("application/rtf", rb"\{\\rtf1?[\\ \r\n{]"),
    ("image/png", rb"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", rb"\xff\xd8\xff"),
    ("image/gif", rb"GIF8[79]a"),
    ("image/webp", rb"RIFF.{4}WEBP"),
    ("image/bmp", rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00"),
    ("image/tiff", rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+"),
    ("image/vnd.microsoft.icon", rb"\x00\x00\x01\x00"),
    ("image/vnd.adobe.photoshop", rb"8BPS\x00[\x01\x02]"),
    ("image/vnd.djvu", rb"AT&TFORM.{4}DJV[MU]"),
    ("image/jp2", rb"\x00\x00\x00\x0cjP  \r\n\x87\n"),
    ("image/jxl", rb"\x00\x00\x00\x0cJXL \r\n\x87\n"),
    ("image/avif", rb".{4}ftypavi[fs]"),
    ("image/heic", rb".{4}ftyphe(?:i[cxms]|v[cxms])"),
    ("image/heif", rb".{4}ftypm(?:if1|sf1)"),
    ("audio/mp4", rb".{4}ftypM4[AB] "),
    ("video/quicktime", rb".{4}ftypqt  "),
    ("video/3gpp", rb".{4}ftyp3g"),
    ("video/mp4", rb".{4}ftyp"),
    ("video/webm", rb"\x1aE\xdf\xa3.{0,60}\x42\x82[\x80-\x8f]webm"),
    ("video/x-matroska", rb"\x1aE\xdf\xa3"),
    ("video/x-msvideo", rb"RIFF.{4}AVI "),
    ("video/x-flv", rb"FLV\x01"),
    ("video/x-ms-asf", rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9"),
    ("audio/wav", rb"(?:RIFF|RF64).{4}WAVE"),
    ("audio/aiff", rb"FORM.{4}AIF[FC]"),
    ("audio/mpeg", rb"ID3[\x02-\x04]\x00"),
    ("audio/flac", rb"fLaC\x00"),
    ("audio/midi", rb"MThd\x00\x00\x00\x06"),
    ("application/ogg", rb"OggS\x00"),
    (ZIP, rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"),
    ("application/gzip", rb"\x1f\x8b\x08"),
    ("application/x-7z-compressed", rb"7z\xbc\xaf\x27\x1c"),
    ("application/vnd.rar", rb"Rar!\x1a\x07[\x00\x01]"),
    ("application/x-bzip2", rb"BZh[1-9](?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)"),
    ("application/x-xz", rb"\xfd7zXZ\x00"),
    ("application/zstd", rb"\x28\xb5\x2f\xfd"),
    ("application/x-lz4", rb"\x04\x22\x4d\x18"),
    ("application/x-compress", rb"\x1f\x9d"),
    ("application/vnd.ms-cab-compressed", rb"MSCF\x00\x00\x00\x00"),
    ("application/x-tar", rb".{257}ustar[\x00 ]"),
    (OLE, rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ("application/x-msaccess", rb"\x00\x01\x00\x00Standard (?:Jet|ACE) DB"),
    ("application/vnd.sqlite3", rb"SQLite format 3\x00"),
    ("application/vnd.apache.parquet", rb"PAR1[\x15\x19\x1c]"),
    ("application/wasm", rb"\x00asm\x01\x00\x00\x00"),
    ("font/woff", rb"wOFF(?:\x00\x01\x00\x00|OTTO|true)"),
    ("font/woff2", rb"wOF2(?:\x00\x01\x00\x00|OTTO|true)"),
    ("font/collection", rb"ttcf\x00"),
    ("font/otf", rb"OTTO\x00"),
    ("font/ttf", rb"\x00\x01\x00\x00\x00"),
)
_MAGIC: Final = re.compile(b"|".join(b"(%s)" % pattern for _, pattern in _SIGNATURES), re.DOTALL)

# Types of files that may lack their signature (an MP3 without tags, a tar from before POSIX, an old QuickTime
# film, a bitmap of a rare kind): such a claim stands unless the bytes say otherwise.
_MAY_LACK_MAGIC: Final = frozenset(
    {
        "audio/mpeg",
        "application/x-tar",
        "video/quicktime",
        "image/bmp",
        "image/jxl",
        "image/jp2",
        "video/mp4",
        "audio/mp4",
        "application/rtf",
        "application/postscript",
        "application/x-compress",
    }
)
_WITH_MAGIC: Final = frozenset(name for name, _ in _SIGNATURES) - _MAY_LACK_MAGIC
_ZIP_BASED: Final = re.compile(
    r"application/(?:vnd\.openxmlformats-officedocument\..+|vnd\.oasis\.opendocument\.(?!.*flat-xml).+"
    r"|java-archive|vnd\.android\.package-archive|vnd\.google-earth\.kmz|.+macroenabled\.12|wacz|.+\+zip)"
)
_OLE_BASED: Final = re.compile(
    r"application/(?:msword|vnd\.ms-(?:excel|powerpoint|project|outlook)|vnd\.visio|x-msi)"
)
# A container's first bytes cannot tell which of its formats a file is: there the header may say so.
_HELD_BY: Final = {
    ZIP: re.compile(
        _ZIP_BASED.pattern + r"|application/(?:vnd\.(?!.*\+(?:xml|json)$).+|x-xpinstall)|model/3mf"
    ),
    OLE: re.compile(_OLE_BASED.pattern + r"|application/(?:vnd\..+|x-(?:ms|ole).*|hwp.*|x-hwp)"),
    "application/gzip": re.compile(
        r"application/(?:x-gtar|x-tgz|x-compressed-tar|x-gtar-compressed|warc|.+\+gzip)"
    ),
    "application/ogg": re.compile(r"(?:audio|video)/(?:x-)?(?:ogg|opus|vorbis|theora|speex|flac).*"),
    "video/mp4": re.compile(r"(?:audio|video|application)/(?:mp4|x-m4[abvp]|quicktime|3gpp2?)"),
    "audio/mp4": re.compile(r"(?:audio|video)/(?:x-m4[abp]|mp4)"),
    "image/heic": re.compile(r"image/hei[cf](?:-sequence)?"),
    "image/heif": re.compile(r"image/(?:hei[cf](?:-sequence)?|avif)"),
    "video/webm": re.compile(r"audio/webm|(?:audio|video)/x-matroska|application/x-matroska"),
    "video/x-matroska": re.compile(r"(?:audio|video)/(?:webm|matroska)|(?:audio|application)/x-matroska"),
    "video/x-ms-asf": re.compile(r"(?:audio|video)/x-ms-(?:wm[av]|asf)"),
    "image/tiff": re.compile(r"image/(?:x-.+|dng)"),
    "application/postscript": re.compile(r"image/x-eps|application/(?:x-eps|eps)"),
}
_ALIASES: Final = {
    "application/x-pdf": "application/pdf",
    "application/x-gzip": "application/gzip",
    "application/gzip-compressed": "application/gzip",
    "application/x-zip": ZIP,
    "application/x-zip-compressed": ZIP,
    "application/x-rar": "application/vnd.rar",
    "application/x-rar-compressed": "application/vnd.rar",
    "application/x-bzip": "application/x-bzip2",
    "application/bzip2": "application/x-bzip2",
    "application/xz": "application/x-xz",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "application/x-javascript": "text/javascript",
    "application/javascript": "text/javascript",
    "application/x-json": "application/json",
    "text/json": "application/json",
    "text/xml": "application/xml",
    "application/csv": "text/csv",
    "application/x-csv": "text/csv",
    "text/x-csv": "text/csv",
    "text/comma-separated-values": "text/csv",
    "text/rtf": "application/rtf",
    "application/font-woff": "font/woff",
    "application/font-woff2": "font/woff2",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/x-icon": "image/vnd.microsoft.icon",
    "image/tif": "image/tiff",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/x-mpeg": "audio/mpeg",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
    "audio/x-midi": "audio/midi",
    "video/avi": "video/x-msvideo",
}
# Claims that mean "I do not know" (MIME Sniffing Standard §7) or "please save it".
_NO_CLAIM: Final = frozenset(
    {
        OCTET_STREAM,
        "binary/octet-stream",
        "unknown/unknown",
        "application/unknown",
        "application/x-unknown",
        "application/x-download",
        "application/download",
        "application/force-download",
        "application/x-force-download",
    }
)

# MIME Sniffing Standard §7.1, with the elements that a bare fragment of a page often starts with.
_HTML: Final = re.compile(
    rb"<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|link)[\t\n\f\r />]|<!--",
    re.IGNORECASE,
)
_XML: Final = re.compile(rb"<\?xml[\t\n\r ]")
_JSON: Final = re.compile(
    rb'\{\s*(?:"|\})|\[\s*(?:\]|["{]|\[\s*["{\[\]\d-]|-?\d+(?:\.\d+)?\s*(?:,|\]\s*\Z)|(?:true|false|null)\s*[,\]])'
)
_BINARY: Final = re.compile(
    rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]"
)  # MIME Sniffing Standard §3, "binary data byte"
_BOM: Final = re.compile(rb"\xef\xbb\xbf|\xfe\xff|\xff\xfe")
_LOCAL_NAME: Final = 30  # offset of a file's name in a ZIP local header (APPNOTE §4.3.7)
_OFFICE_PARTS: Final = (
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
)
_OFFICE_START: Final = (b"[Content_Types].xml", b"_rels/", b"docProps/")
# puremagic knows 1,400 signatures, many of two bytes or of plain words: only long ones are believed.
_TRUSTED_SIGNATURE_BYTES: Final = 8


def essence(content_type: str | None) -> str | None:
    """The type/subtype that the header claims, in lower case; None where it is absent or cannot be read."""
    found = header.read((content_type,)) if content_type else None
    return found.essence if found else None


def shown_type(head: bytes) -> str | None:
    """The media type that a body's first bytes show beyond doubt; None for every text format and the unknown."""
    match = _MAGIC.match(head[:HEAD_BYTES])
    if match is None or match.lastindex is None:
        return None
    shown = _SIGNATURES[match.lastindex - 1][0]
    return _zip_type(head[:HEAD_BYTES]) if shown == ZIP else shown


def sniffed_type(head: bytes) -> str:
    """The best guess from the first bytes alone, for a body whose header says nothing."""
    return shown_type(head) or _sniffed_text(head[:HEAD_BYTES]) or _known_to_puremagic(head[:HEAD_BYTES])


def effective_type(content_type: str | None, head: bytes) -> str:
    """The media type to go by: what the bytes show where that is decisive, else the header's, else a guess."""
    claimed = essence(content_type)
    shown = shown_type(head)
    if shown is not None:
        return claimed if claimed is not None and _may_be_called(shown, claimed) else shown
    if claimed is None or claimed in _NO_CLAIM or _is_disproved(claimed, head):
        return sniffed_type(head)
    return claimed


def satisfies(wanted: str, content_type: str | None, head: bytes) -> bool:
    """Whether a body is of the wanted media type, or of the wanted kind as in `text/*`."""
    range_ = header.parse(wanted)
    if range_ is None:
        return False
    actual = effective_type(content_type, head)
    kind, _, subtype = range_.essence.partition("/")
    if subtype == "*":
        return kind in ("*", actual.partition("/")[0], _canonical(actual).partition("/")[0])
    if _canonical(range_.essence) == _canonical(actual):
        return True
    # A spreadsheet is a ZIP file too: asking for the container is answered by any of its formats.
    return _canonical(range_.essence) == ZIP and _is_zip(head)


def _canonical(media_type: str) -> str:
    """One name for types that go by several."""
    return _ALIASES.get(media_type, media_type)


def _may_be_called(shown: str, claimed: str) -> bool:
    """Whether the claim names a format that looks like the shown one from outside."""
    container = ZIP if _ZIP_BASED.fullmatch(shown) else shown
    held = _HELD_BY.get(container)
    return held is not None and held.fullmatch(claimed) is not None


def _is_disproved(claimed: str, head: bytes) -> bool:
    """Whether a claim is false because the signature that such a file must have is absent."""
    name = _canonical(claimed)
    if name == "application/pdf" and b"%PDF-" in head[:1024]:
        # ISO 32000-1 annex H.3.4.1: readers accept the signature anywhere in the first 1,024 bytes.
        return _sniffed_text(head[:HEAD_BYTES]) == "text/html"
    if name in _WITH_MAGIC or _ZIP_BASED.fullmatch(name) or _OLE_BASED.fullmatch(name):
        return True
    is_picture_or_sound = name.startswith(("image/", "audio/", "video/", "font/")) or name in _MAY_LACK_MAGIC
    return is_picture_or_sound and _sniffed_text(head[:HEAD_BYTES]) == "text/html"


def _is_zip(head: bytes) -> bool:
    shown = shown_type(head)
    return shown is not None and (shown == ZIP or _ZIP_BASED.fullmatch(shown) is not None)


def _zip_type(head: bytes) -> str:
    """Which ZIP-based format the first entries show: EPUB and OpenDocument name it, Office has its folders."""
    name = head[_LOCAL_NAME:]
    if name.startswith(b"mimetype"):
        # OpenDocument 1.3 part 2 §3.3 and EPUB OCF §4.3: stored uncompressed, first, without an extra field.
        size = int.from_bytes(head[18:22], "little")
        named = header.parse(name[8 : 8 + min(size, 128)].decode("latin-1"))
        return named.essence if named and _ZIP_BASED.fullmatch(named.essence) else ZIP
    if name.startswith(_OFFICE_START):
        return next((media_type for part, media_type in _OFFICE_PARTS if part in name), ZIP)
    return ZIP


def _sniffed_text(head: bytes) -> str | None:
    """Which kind of text it looks like; None for binary data and for nothing at all."""
    if not head:
        return None
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\t\n\f\r ")
    if _HTML.match(start):
        return "text/html"
    if _XML.match(start):
        return "text/xml"
    if _BINARY.search(head) and not _BOM.match(head):
        return None
    return "application/json" if _JSON.match(start) else "text/plain"


def _known_to_puremagic(head: bytes) -> str:
    """What the larger table says of binary data, where its signature is long enough to be believed."""
    try:
        matches = puremagic.magic_string(head)
    except (puremagic.PureError, ValueError):  # no match; nothing to look at
        return OCTET_STREAM
    trusted = (
        essence(match.mime_type)
        for match in matches
        if match.offset == 0 and len(match.byte_match) >= _TRUSTED_SIGNATURE_BYTES
    )
    return next(filter(None, trusted), OCTET_STREAM)
