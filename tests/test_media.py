import io
import tarfile
import time
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.content_type import ContentType, parse, read
from pravda.core.media import effective_type, essence, satisfies, shown_type, sniffed_type

PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
HTML = b"<!DOCTYPE html><title>x</title>"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(24)
MP4 = b"\0\0\0\x18ftypisom\0\0\2\0"
XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT_TYPE = "application/vnd.oasis.opendocument.text"


def zip_of(*names, first=None):
    """A ZIP file; `first` is the content of a leading member called mimetype."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        if first is not None:
            archive.writestr("mimetype", first)
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return file.getvalue()


ZIP = zip_of("a.txt")
XLSX = zip_of("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html", "text/html"),
        (" TEXT/HTML ; charset=x", "text/html"),
        ("text/html, text/plain", "text/plain"),
        ("text/html, */*", "text/html"),
        ('text/html;x=",text/plain', "text/html"),
        ("text", None),
        ("text/", None),
        ("/html", None),
        ("text/html charset=x", None),
        ("téxt/html", None),
        ("", None),
        (None, None),
    ],
)
def test_what_a_header_claims(value, expected):
    """The essence is the last readable media type in lower case, without parameters."""
    assert essence(value) == expected


@pytest.mark.parametrize(
    ("value", "charset"),
    [
        ("a/b", None),
        ("a/b;", None),
        ("a/b;charset", None),
        ("a/b;charset=", None),
        ("a/b;charset=;charset=x", "x"),
        ('a/b;charset="";charset=x', ""),
        ('a/b;charset="a;b,\\"c"junk;charset=x', 'a;b,"c'),
        ('a/b;charset="x', "x"),
        ('a/b;charset="x\\', "x\\"),
        ("a/b;charset=x\u0100", None),
        ("a/b;ch arset=x", None),
    ],
)
def test_the_charset_parameter(value, charset):
    """The first well-formed charset parameter counts, quoted or not."""
    assert parse(value) == ContentType(essence="a/b", charset=charset)


def test_several_header_lines_are_read_together():
    """The last type counts, and keeps the charset of an earlier line of the same type."""
    assert read(["a/b;charset=x", "nonsense", "a/b"]) == ContentType(essence="a/b", charset="x")
    assert read(["a/b;charset=x", "c/d"]) == ContentType(essence="c/d")
    assert read([]) is None


@pytest.mark.parametrize(
    "value",
    ['"\\' * 50_000, "a/b;" + 'charset="' * 20_000, "," * 50_000, "a/b;" * 20_000, "a/b;x=" + " " * 50_000],
)
def test_a_long_header_is_read_in_no_time(value):
    """No header makes reading slow."""
    started = time.perf_counter()
    read((value,))
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        (PDF, "application/pdf"),
        (b"\xef\xbb\xbf\r\n%PDF-1.7", "application/pdf"),
        (b"%!PS-Adobe-3.0", "application/postscript"),
        (b"{\\rtf1\\ansi", "application/rtf"),
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\1\2\3\4WEBPVP8 ", "image/webp"),
        (b"BM" + bytes(12) + b"\x28\0\0\0", "image/bmp"),
        (b"II*\0\x08\0", "image/tiff"),
        (b"\0\0\1\0\1\0", "image/vnd.microsoft.icon"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"\0\0\0\x1cftypheic", "image/heic"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
        (MP4, "video/mp4"),
        (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x84webm", "video/webm"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x88matroska", "video/x-matroska"),
        (b"RIFF\1\2\3\4AVI LIST", "video/x-msvideo"),
        (b"RIFF\1\2\3\4WAVEfmt ", "audio/wav"),
        (b"ID3\3\0\0", "audio/mpeg"),
        (b"OggS\0\2", "application/ogg"),
        (ZIP, "application/zip"),
        (b"PK\5\6" + bytes(18), "application/zip"),
        (XLSX, XLSX_TYPE),
        (zip_of("_rels/.rels", "word/document.xml"), DOCX_TYPE),
        (zip_of("[Content_Types].xml", "other"), "application/zip"),
        (zip_of("xl/not-an-office-file"), "application/zip"),
        (zip_of("content.xml", first=ODT_TYPE), ODT_TYPE),
        (zip_of("x", first="application/epub+zip"), "application/epub+zip"),
        (zip_of("x", first="text/html"), "application/zip"),
        (zip_of("x", first="\0" * 9), "application/zip"),
        (GZIP, "application/gzip"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "application/x-7z-compressed"),
        (b"Rar!\x1a\7\1\0", "application/vnd.rar"),
        (b"BZh91AY&SY", "application/x-bzip2"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (tar(), "application/x-tar"),
        (OLE, "application/x-ole-storage"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"wOF2\0\1\0\0", "font/woff2"),
    ],
)
def test_bytes_that_show_what_they_are(head, shown):
    """A signature that no text begins with is decisive."""
    assert shown_type(head) == shown
    assert sniffed_type(head) == shown
    assert effective_type("text/html", head) == shown


@pytest.mark.parametrize(
    ("head", "sniffed"),
    [
        (HTML, "text/html"),
        (b"\xef\xbb\xbf\n <HTML>", "text/html"),
        (b"<!-- note --><p>", "text/html"),
        (b"<meta charset=utf-8>", "text/html"),
        (b"<bogus>", "text/plain"),
        (b'<?xml version="1.0"?><rss>', "text/xml"),
        (b' {"a": 1}', "application/json"),
        (b"{}", "application/json"),
        (b"[]", "application/json"),
        (b'["a"]', "application/json"),
        (b"[[1, 2]]", "application/json"),
        (b"[1, 2]", "application/json"),
        (b"[1]", "application/json"),
        (b"[null]", "application/json"),
        (b"{x} is a variable", "text/plain"),
        (b"[1] A reference", "text/plain"),
        (b"[[Main page]]", "text/plain"),
        (b"a,b\n1,2\n", "text/plain"),
        (b"BM is a brand", "text/plain"),
        (b"ID3 tags explained", "text/plain"),
        (b"GIF is a format", "text/plain"),
        (b"OTTO is a man", "text/plain"),
        (b"MOVIES of the year", "text/plain"),
        (b"\xff\xfeh\0i\0", "text/plain"),
        (b"h\0i", "application/octet-stream"),
        (b"", "application/octet-stream"),
        (b"\0\1\2\3", "application/octet-stream"),
        (b"\0\0\x1a\0\0\x10\4\0\0\0\0\0", "application/vnd.lotus-1-2-3"),
    ],
)
def test_bytes_that_only_hint(head, sniffed):
    """Text is never decisive; where no header says anything it is guessed, and binary data is looked up."""
    assert shown_type(head) is None
    assert sniffed_type(head) == sniffed
    assert effective_type(None, head) == sniffed
    assert effective_type("application/octet-stream", head) == sniffed
    assert effective_type("text/markdown", head) == "text/markdown"


@pytest.mark.parametrize(
    "content_type",
    ["application/pdf", "application/octet-stream", "text/html", None, "nonsense", "application/x-pdf"],
)
def test_a_pdf_is_a_pdf_whatever_the_header_says(content_type):
    """PDF bytes are a PDF under any header (case W-E1)."""
    assert effective_type(content_type, PDF) == "application/pdf"
    assert satisfies("application/pdf", content_type, PDF)
    assert not satisfies("text/html", content_type, PDF)


@pytest.mark.parametrize(
    ("content_type", "head", "effective"),
    [
        (XLSX_TYPE, ZIP, XLSX_TYPE),
        ("application/java-archive", ZIP, "application/java-archive"),
        ("application/epub+zip", ZIP, "application/epub+zip"),
        ("application/vnd.apple.pages", ZIP, "application/vnd.apple.pages"),
        ("application/vnd.api+json", ZIP, "application/zip"),
        ("application/octet-stream", XLSX, XLSX_TYPE),
        ("application/zip", XLSX, XLSX_TYPE),
        ("application/x-zip-compressed", ZIP, "application/zip"),
        ("application/msword", OLE, "application/msword"),
        ("application/vnd.ms-excel", OLE, "application/vnd.ms-excel"),
        ("application/vnd.ms-excel", XLSX, "application/vnd.ms-excel"),
        ("application/msword", ZIP, "application/zip"),
        ("application/x-gzip", GZIP, "application/gzip"),
        ("application/x-tgz", GZIP, "application/x-tgz"),
        ("text/csv", GZIP, "application/gzip"),
        ("image/jpg", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("audio/mp4", MP4, "audio/mp4"),
        ("image/png", MP4, "video/mp4"),
        ("video/ogg", b"OggS\0\2", "video/ogg"),
    ],
)
def test_a_container_goes_by_the_name_in_the_header(content_type, head, effective):
    """Where one signature stands for many formats the header may say which, and nothing else."""
    assert effective_type(content_type, head) == effective


@pytest.mark.parametrize(
    ("content_type", "head", "effective"),
    [
        ("application/pdf", HTML, "text/html"),
        ("application/pdf", b"Error", "text/plain"),
        ("application/pdf", b"", "application/octet-stream"),
        ("application/pdf", b"\0junk\n%PDF-1.4", "application/pdf"),
        ("application/pdf", HTML + b"about %PDF-1.4", "text/html"),
        ("image/png", b'{"error": 1}', "application/json"),
        ("application/zip", b"Error", "text/plain"),
        (XLSX_TYPE, HTML, "text/html"),
        ("application/vnd.ms-excel", HTML, "text/html"),
        ("application/x-gzip", b"a,b\n", "text/plain"),
        ("audio/mpeg", b"\xff\xfb\x90\x64", "audio/mpeg"),
        ("audio/mpeg", HTML, "text/html"),
        ("video/mp2t", b"G@\0\x10", "video/mp2t"),
        ("application/x-tar", HTML, "text/html"),
        ("image/svg+xml", b"<svg>", "image/svg+xml"),
        ("application/vnd.oasis.opendocument.text-flat-xml", b"<?xml ?>", None),
        ("application/vnd.geo+json", b"{}", None),
        ("application/json", HTML, None),
        ("text/csv", HTML, None),
    ],
)
def test_a_claim_without_its_signature_is_not_believed(content_type, head, effective):
    """A type whose files always begin alike cannot be claimed by other bytes; text types are taken at their word."""
    assert effective_type(content_type, head) == (effective or content_type)


@pytest.mark.parametrize(
    ("wanted", "content_type", "head", "met"),
    [
        ("text/html", "text/html; charset=utf-8", HTML, True),
        ("TEXT/HTML; charset=x", "text/html", HTML, True),
        ("text/html", "application/xhtml+xml", HTML, False),
        ("text/*", "text/html", HTML, True),
        ("text/*", "application/json", b"{}", False),
        ("text/*", "text/xml", b"<?xml ?>", True),
        ("application/*", "text/xml", b"<?xml ?>", True),
        ("application/xml", "text/xml", b"<?xml ?>", True),
        ("text/xml", None, b"<?xml ?>", True),
        ("application/xml", None, b"<?xml ?>", True),
        ("*/*", None, b"", True),
        ("image/*", "text/html", PNG, True),
        ("image/png", "image/png", HTML, False),
        ("image/jpg", "image/jpeg", b"\xff\xd8\xff\xe0", True),
        ("application/x-gzip", "application/gzip", GZIP, True),
        ("application/gzip", "application/x-gzip", GZIP, True),
        ("text/csv", "application/csv", b"a,b", True),
        ("application/json", None, b"{}", True),
        (XLSX_TYPE, XLSX_TYPE, ZIP, True),
        (XLSX_TYPE, None, XLSX, True),
        (XLSX_TYPE, XLSX_TYPE, HTML, False),
        ("application/zip", XLSX_TYPE, XLSX, True),
        ("application/zip", "application/java-archive", ZIP, True),
        ("application/zip", "application/zip", GZIP, False),
        ("application/zip", "application/zip", HTML, False),
        (ODT_TYPE, "application/zip", zip_of(first=ODT_TYPE), True),
        ("nonsense", "nonsense", HTML, False),
    ],
)
def test_whether_a_rule_is_met(wanted, content_type, head, met):
    """A rule names a type, by any of its names, or a kind of types."""
    assert satisfies(wanted, content_type, head) is met


def test_ordinary_pages_cost_little():
    """Judging HTML, JSON and text takes microseconds, not a search through a thousand signatures."""
    bodies = [
        ("text/html", HTML * 100),
        ("application/json", b'{"a":1}' * 500),
        ("text/plain", b"words " * 700),
    ]
    started = time.perf_counter()
    for _ in range(300):
        for content_type, body in bodies:
            effective_type(content_type, body)
    assert (time.perf_counter() - started) / 900 < 1e-4


@given(st.one_of(st.none(), st.text(max_size=30)), st.binary(max_size=300), st.text(max_size=30))
def test_any_body_has_a_media_type(content_type, head, wanted):
    """No header, bytes or rule make the judgement fail, and its result is a media type."""
    assert essence(effective_type(content_type, head)) is not None
    assert satisfies(wanted, content_type, head) in (True, False)


@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "Z")), max_size=60))
def test_prose_is_never_decisive(text):
    """Letters, digits and punctuation alone show no binary format, save the three that are written in them."""
    shown = shown_type(text.encode())
    assert shown in (None, "application/pdf", "application/postscript", "image/gif")
