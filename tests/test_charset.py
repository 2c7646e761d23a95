import base64

import pytest
import webencodings
from hypothesis import example, given
from hypothesis import strategies as st

from pravda.core.charset import (
    Charset,
    CharsetSource,
    decode,
    detect,
    from_content_type,
    label_to_name,
    sniff,
)
from tests.conformance import cases

NAMES = sorted(set(webencodings.LABELS.values()))
HTML = ("text/html",)


def bytes_of(case, key):
    return base64.b64decode(case[key])


def found(name, source):
    return Charset(name=name, source=CharsetSource(source))


def text_of(body, *content_type):
    return decode(body, detect(body, content_type).name)


def same(got, want):
    return got == (want.lower() if want else want)


def test_every_conformance_label_is_known():
    """A label means the encoding that the Encoding Standard gives it, or none."""
    wrong = [
        case["label"]
        for case in cases("charset.json", "label", "not-label")
        if not same(label_to_name(case["label"]), case["expect"])
    ]
    assert wrong == []


def test_every_conformance_header_is_read():
    """Content-Type headers, one line or several, name the encoding that browsers take from them."""
    wrong = [
        case["headers"]
        for case in cases("charset.json", "header", "header-multi")
        if not same(from_content_type(case["headers"]), case["expect"])
    ]
    assert wrong == []


def test_every_conformance_page_is_sniffed():
    """Mark, header and declaration are found as the HTML Standard's prescan finds them."""
    wrong = [
        case["id"]
        for case in cases("charset.json", "prescan")
        if not same(sniff(bytes_of(case, "body_b64"), case["header"], case["default"]), case["expect"])
    ]
    assert wrong == []


def test_conformance_texts_are_decoded():
    """No fewer texts than before come out letter by letter as the Encoding Standard has them."""
    every = cases("charset.json", "decode-inline")
    right = [
        case for case in every if decode(bytes_of(case, "bytes_b64"), case["encoding"]) == case["expect"]
    ]
    assert len(right) >= 160


@pytest.mark.parametrize(
    ("text", "stored_as", "start", "content_type", "expected"),
    [
        (
            "<meta charset=Shift_JIS><title>日本語</title>",
            "shift_jis",
            b"",
            "text/html",
            ("shift_jis", "meta"),
        ),
        ("<title>café</title>", "utf-16-le", b"\xff\xfe", "text/html; charset=utf-8", ("utf-16le", "bom")),
        ("<title>€ “x”</title>", "cp1252", b"", "text/html; charset=ISO-8859-1", ("windows-1252", "header")),
        ("<title>标题</title>", "gbk", b"", "text/html; charset=GB2312", ("gbk", "header")),
        ("Привет", "utf-8", b"\xef\xbb\xbf", "text/html; charset=cp1251", ("utf-8", "bom")),
        ("<meta charset=utf-16><title>é</title>", "utf-8", b"", "text/html", ("utf-8", "meta")),
        ("イベント", "shift_jis", b"", "text/html; charset=Shift_JIS", ("shift_jis", "header")),
    ],
)
def test_pages_from_the_wild_are_read(text, stored_as, start, content_type, expected):
    """Cases W-A25, R-D1, R-D3 and R-D6: the right encoding, its source, and every letter."""
    body = start + text.encode(stored_as)
    assert detect(body, (content_type,)) == found(*expected)
    assert text_of(body, content_type) == text


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"", (), ("utf-8", "default")),
        (b"<p>", HTML, ("utf-8", "default")),
        (b"<meta charset=koi8-r>", ("text/html; charset=nonsense",), ("koi8-r", "meta")),
        (b"<meta charset=nonsense>", HTML, ("utf-8", "default")),
        (b"<meta charset=nonsense><meta charset=koi8-r>", HTML, ("koi8-r", "meta")),
        (b"<!--" + b" " * 1024 + b"--><meta charset=koi8-r>", HTML, ("utf-8", "default")),
        (b"<meta charset=x-user-defined>", HTML, ("windows-1252", "meta")),
        (b"<meta charset=koi8-r>", ("text/html", "text/html; charset=big5"), ("big5", "header")),
        (b"<meta charset=koi8-r>", ("nonsense",), ("koi8-r", "meta")),
        (b"\xfe\xff\0<", ("text/html; charset=big5",), ("utf-16be", "bom")),
        (b"<?xml version='1.0' encoding='koi8-r'?>", ("application/rss+xml",), ("koi8-r", "meta")),
        (b'<?xml version="1.0" encoding = "koi8-r" ?>', ("text/xml",), ("koi8-r", "meta")),
        (b'<?xml encoding="koi8-r"?>', (), ("koi8-r", "meta")),
        (b'<?xml encoding="koi8-r"?><meta charset=big5>', HTML, ("big5", "meta")),
        (b'<?xml encoding="koi8-r"?>', HTML, ("koi8-r", "meta")),
        (b'<?xml encoding="utf-16"?>', ("text/xml",), ("utf-8", "meta")),
        (b'<?xml encoding="nonsense"?>', ("text/xml",), ("utf-8", "default")),
        (b'<?xmlish encoding="koi8-r"?>', ("text/xml",), ("utf-8", "default")),
        (b"<?xml version='1.0'?><meta charset=big5>", ("text/xml",), ("utf-8", "default")),
        (b"<\0?\0x\0m\0l\0", ("text/xml",), ("utf-16le", "meta")),
        (b"\0<\0?\0x\0m\0l", ("application/xhtml+xml",), ("utf-16be", "meta")),
        (b'{"a":"<meta charset=big5>"}', ("application/json",), ("utf-8", "default")),
        (b'{"a":"<meta charset=big5>"}', ("application/ld+json",), ("utf-8", "default")),
        (b"a,<meta charset=big5>", ("text/csv",), ("utf-8", "default")),
    ],
)
def test_the_order_of_what_says_the_encoding(body, content_type, expected):
    """Mark, header, the document's own declaration as its type allows it, UTF-8; an unknown label is passed over."""
    assert detect(body, content_type) == found(*expected)


@pytest.mark.parametrize("label", sorted(webencodings.LABELS))
def test_every_label_in_a_declaration_is_read(label):
    """No label makes the scan of a page fail."""
    declared = detect(f'<meta charset="{label}">'.encode(), HTML)
    name = label_to_name(label)
    corrected = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}
    assert name is not None
    assert declared == found(corrected.get(name, name), "meta")


@pytest.mark.parametrize("label", ["\ud800", "utf-8\xa0", "K", "ütf-8", "", " ", "x" * 100_000])
def test_a_label_that_means_nothing(label):
    """Only ASCII white space is stripped and only ASCII letters are folded."""
    assert label_to_name(label) is None


def test_a_default_that_means_nothing_is_utf_8():
    """Sniffing always names an encoding."""
    assert sniff(b"", "nonsense", "nonsense") == "utf-8"


@pytest.mark.parametrize(
    ("data", "name", "text"),
    [
        (b"\xef\xbb\xbfa\xef\xbb\xbf", "utf-8", "a\ufeff"),
        (b"\xff\xfea\0", "utf-16le", "a"),
        (b"\xfe\xff\0a", "UTF-16BE", "a"),
        (b"a\0\0\xd8b\0\0", "utf-16le", "a\ufffdb\ufffd"),
        (b"a\xe2\x82b\xff", "utf-8", "a\ufffdb\ufffd"),
        (b"\x80\x81\x9f", "iso-8859-1", "€\x81Ÿ"),
        (b"\x81\xaa\xd2", "windows-1253", "\x81\ufffd\ufffd"),
        (b"\xca", "windows-1255", "\u05ba"),
        (b"\xae\xbe", "koi8-u", "ўЎ"),
        (b"\xdb", "macintosh", "€"),
        (b"\xa1\xdb", "windows-874", "ก\ufffd"),
        (b"\xe0", "iso-8859-8-i", "א"),
        (b"a\xff", "x-user-defined", "a\uf7ff"),
        (b"anything", "replacement", "\ufffd"),
        (b"", "iso-2022-kr", ""),
        (b"\x87\x40\x80\xa0\xfd", "shift_jis", "①\x80\ufffd\ufffd"),
        (b"\x81<\x81\xff", "shift_jis", "\ufffd<\ufffd"),
        (b"\xad\xa1\xad\xea\xa1\xc1", "euc-jp", "①㈱～"),
        (b"\x8e\xb1\x8f\xb0\xa1", "euc-jp", "ｱ丂"),
        (b"\x8f\xa1", "euc-jp", "\ufffd"),
        (b"\x8f\xa2\xff<\x8e\xff\xff\xa1", "euc-jp", "\ufffd<\ufffd\ufffd\ufffd"),
        (b"\xfe\xfe\xa9\xa1a", "euc-jp", "\ufffd\ufffda"),
        (b"\x1b$B!A\x1b(B\x1b(I1\x1b(B", "iso-2022-jp", "～ｱ"),
        (b"\x80\xa3\xa0\xff\x81\xff<", "gbk", "€\u3000\ufffd\ufffd<"),
        (b"\x81\x30\x84\x36", "gb18030", "¥"),
        (b"\xa1<\xa1\xff", "euc-kr", "\ufffd<\ufffd"),
        (b"\xa4\xa4\x87\x40", "big5", "中䏰"),
        (b"\xe9", "nonsense", "\ufffd"),
    ],
)
def test_text_is_decoded_as_browsers_decode_it(data, name, text):
    """Each encoding gives the letters of the Encoding Standard, and one error for a broken pair."""
    assert decode(data, name) == text


@given(st.binary(max_size=80), st.sampled_from(NAMES))
@example(b"\x8f\xa1", "euc-jp")
def test_decoding_never_fails(data, name):
    """Any bytes are text in any encoding."""
    assert isinstance(decode(data, name), str)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=40), st.sampled_from(NAMES))
def test_ascii_is_ascii(text, name):
    """Encodings that contain ASCII decode it as such."""
    if name not in {"utf-16le", "utf-16be", "replacement", "iso-2022-jp"}:
        assert decode(text.encode(), name) == text


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                b"< > meta <meta_ charset= \" ' / = _ content= <!-- --> http-equiv=content-type_ koi8-r <?xml_ encoding= A".split()
            ),
            max_size=40,
        ).map(lambda pieces: b"".join(pieces).replace(b"_", b" ")),
    ),
    st.lists(st.text(alphabet='ab/;,=" \\charsetutf-8\n\xff\ud800', max_size=30), max_size=3),
)
def test_any_page_has_an_encoding(head, content_type):
    """No bytes and no header make detection fail, and what it names can be decoded."""
    charset = detect(head, content_type)
    assert label_to_name(charset.name) == charset.name
    assert isinstance(decode(head, charset.name), str)
