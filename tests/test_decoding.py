"""Content decoding: what a body holds once its codings are removed, and how that ended."""

import gzip
import random
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import brotli
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pravda.engines.codings import FORMS
from pravda.engines.decoding import MAX_LAYERS, Decoded, Decoder, Ending, codings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BODY = b"<!DOCTYPE html><html><title>A page</title>" + b"<p>Some text that repeats.</p>" * 40 + b"</html>"
NOISE = random.Random(7).randbytes(300_000)
MIB = 1024 * 1024


def deflate(data: bytes) -> bytes:
    return zlib.compress(data)


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


CODERS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": deflate,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstd.compress,
}


def encode(data: bytes, *names: str) -> bytes:
    """Apply the codings in the order listed."""
    for name in names:
        data = CODERS[name](data)
    return data


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def run(
    values: Sequence[str],
    chunks: bytes | Iterable[bytes],
    *,
    complete: bool = True,
    content_type: str | None = "text/html",
    max_bytes: int | None = None,
) -> tuple[Decoded, bytes]:
    """Decode the chunks, and return the findings with the content."""
    content: list[bytes] = []
    decoder = Decoder(values, content.append, content_type=content_type, max_bytes=max_bytes)
    for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
        if not decoder.feed(chunk):
            break
    decoded = decoder.finish(complete=complete)
    joined = b"".join(content)
    assert decoded.decoded_bytes == len(joined)
    assert (decoded.ending is Ending.COMPLETE) == (decoded.detail == "")
    return decoded, joined


def codes(decoded: Decoded) -> list[str]:
    return [note.code for note in decoded.notes]


def fine(decoded: Decoded, *notes: str) -> bool:
    """Whether a coding was removed to its end, with these notes."""
    return decoded.ending is Ending.COMPLETE and decoded.coded and codes(decoded) == list(notes)


def as_served(decoded: Decoded, *notes: str) -> bool:
    """Whether the bytes were kept as they came, with these notes."""
    return decoded.ending is Ending.COMPLETE and not decoded.coded and codes(decoded) == list(notes)


# The header


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([], ()),
        ([""], ()),
        ([" , ,"], ()),
        (["GZIP"], ("gzip",)),
        (["x-gzip, X-Compress"], ("gzip", "compress")),
        (["deflate,br", "zstd"], ("deflate", "br", "zstd")),
        (["identity"], ("identity",)),
    ],
)
def test_codings(values, names):
    """All header lines are one list of names in lower case, with aliases resolved and blanks dropped."""
    assert codings(values) == names


# Codings as declared


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", CODERS)
def test_each_coding(name, size):
    """Every coding is removed, however its bytes arrive, without a note."""
    for body in (BODY, NOISE[:40_000], b""):
        decoded, content = run([name], cut(encode(body, name), size))
        assert fine(decoded)
        assert content == body


@pytest.mark.parametrize("size", [1, 5, 100_000])
def test_raw_deflate(size):
    """Deflate without its zlib wrapping is understood, and is nothing to remark on."""
    decoded, content = run(["deflate"], cut(raw_deflate(BODY), size))
    assert fine(decoded)
    assert content == BODY


def test_x_gzip():
    """The name x-gzip means gzip."""
    decoded, content = run(["x-gzip"], encode(BODY, "gzip"))
    assert fine(decoded)
    assert content == BODY


def test_stacked():
    """Several codings are removed in the reverse of the order listed, over header lines too."""
    decoded, content = run(["deflate, gzip", "br"], encode(BODY, "deflate", "gzip", "br"))
    assert fine(decoded)
    assert content == BODY


def test_no_header():
    """Without the header nothing is decoded: gzip bytes may be the content itself."""
    archive = encode(BODY, "gzip")
    for kind in ("application/gzip", "text/html", None):
        decoded, content = run([], archive, content_type=kind)
        assert as_served(decoded)
        assert content == archive


def test_archive_with_header():
    """An archive that is declared as coded is decoded once, as the header says."""
    decoded, content = run(["gzip"], gzip.compress(encode(BODY, "gzip")), content_type="application/gzip")
    assert fine(decoded)
    assert content == encode(BODY, "gzip")


def test_chunks_pass_untouched():
    """Without a coding the sink receives the very chunks that came."""
    received: list[bytes] = []
    decoder = Decoder(["identity"], received.append)
    chunk = bytes(100_000)
    assert decoder.feed(chunk)
    assert received[0] is chunk
    assert as_served(decoder.finish())


@pytest.mark.parametrize("name", [*CODERS, "foo", "gzip, br", ""])
def test_empty_body(name):
    """A body without bytes, as of a HEAD or 304, is complete and was not coded, whatever the header says."""
    assert as_served(run([name], [])[0], *(["unknown_content_encoding"] if name == "foo" else []))
    assert as_served(run([name], b"")[0], *(["unknown_content_encoding"] if name == "foo" else []))


# Several streams, and what follows them


@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_gzip_members(size):
    """The members of a gzip file are one content."""
    decoded, content = run(
        ["gzip"], cut(gzip.compress(b"<html>first ") + gzip.compress(b"second</html>"), size)
    )
    assert fine(decoded)
    assert content == b"<html>first second</html>"


@pytest.mark.parametrize("size", [1, 100_000])
def test_gzip_padding(size):
    """Zeros after a gzip member are padding, and another member may still follow."""
    padded = gzip.compress(b"first ") + bytes(500) + gzip.compress(b"second") + bytes(30_000)
    decoded, content = run(["gzip"], cut(padded, size))
    assert fine(decoded)
    assert content == b"first second"


@pytest.mark.parametrize("size", [1, 100_000])
def test_zstd_frames(size):
    """Zstandard frames are one content, and skippable frames hold none of it."""
    skippable = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    body = skippable + zstd.compress(b"first ") + skippable + zstd.compress(b"second") + skippable
    decoded, content = run(["zstd"], cut(body, size))
    assert fine(decoded)
    assert content == b"first second"


@pytest.mark.parametrize("size", [1, 9, 100_000])
@pytest.mark.parametrize("body", [b"", b"ok", BODY, NOISE], ids=len)
@pytest.mark.parametrize("name", CODERS)
def test_trailing_bytes(name, body, size):
    """Bytes behind the end of the coded data are counted in a note and kept out of the content."""
    if size == 1 and body is NOISE:
        body = NOISE[:5000]
    tail = b"\x07<!-- served by x -->\n"
    decoded, content = run([name], cut(encode(body, name) + tail, size))
    assert fine(decoded, "trailing_bytes")
    assert content == body
    assert decoded.notes[0].detail.startswith(f"{len(tail)} bytes behind the end of the {name} data")


def test_long_tail():
    """A long tail is no reason to doubt a stream that is nothing like text."""
    decoded, content = run(["br"], cut(encode(BODY, "br") + b"\n" * 5000, 100))
    assert fine(decoded, "trailing_bytes")
    assert content == BODY
    decoded, content = run(["br"], cut(brotli.compress(b"ok") + b"\n" * 5000, 100))
    assert fine(decoded, "trailing_bytes")
    assert content == b"ok"


def test_many_members_stay_cheap():
    """Endless empty frames, each of which costs a decoder, are stopped."""
    empty = b"\x50\x2a\x4d\x18" + bytes(4)
    decoded, content = run(["zstd"], cut(zstd.compress(b"page") + empty * 20_000, 16_384))
    assert decoded.ending is Ending.TOO_LARGE
    assert "members" in decoded.detail
    assert content == b"page"


# Cut and damaged


@pytest.mark.parametrize("name", CODERS)
def test_truncated(name):
    """Coded data without its end is truncated, even when the length was as promised; the prefix is kept."""
    coded = encode(NOISE, name)
    decoded, content = run([name], cut(coded[:-20], 8192))
    assert decoded.ending is Ending.TRUNCATED
    assert decoded.coded
    assert len(content) > 100_000
    assert NOISE.startswith(content)
    assert decoded.detail == f"The {name} data ends too early, after {len(content)} decoded bytes."


@pytest.mark.parametrize("name", CODERS)
def test_truncated_page(name):
    """A page cut short by its server under a matching length is truncated, and its prefix is there."""
    decoded, content = run([name], encode(BODY, name)[:-20])
    assert decoded.ending is Ending.TRUNCATED
    assert content or name == "zstd"  # which decodes whole blocks only
    assert BODY.startswith(content)


def test_cut_by_the_transfer():
    """Where the transfer was cut, the detail says so; data that came whole is complete all the same."""
    coded = encode(BODY, "gzip")
    decoded, _ = run(["gzip"], coded[:-9], complete=False)
    assert decoded.ending is Ending.TRUNCATED
    assert "cut with the transfer" in decoded.detail
    assert fine(run(["gzip"], coded, complete=False)[0])
    assert as_served(run([], BODY, complete=False)[0])


def test_outer_layer_cut():
    """The cut of the outer coding is told, not those it causes within, and what came is kept."""
    decoded, content = run(["br, gzip"], encode(BODY, "br", "gzip")[:-3])
    assert decoded.ending is Ending.TRUNCATED
    assert "gzip" in decoded.detail
    assert BODY.startswith(content)


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_bad_checksum(name):
    """A wrong checksum at the very end is damage, and all that was decoded is kept."""
    coded = encode(BODY, name)
    if name == "zstd":
        coded = zstd.compress(BODY, options={zstd.CompressionParameter.checksum_flag: 1})
    last = {"gzip": -5, "deflate": -1, "zstd": -1}[name]
    damaged = bytearray(coded)
    damaged[last] ^= 0x55
    decoded, content = run([name], bytes(damaged))
    assert decoded.ending is Ending.CORRUPT
    assert decoded.coded
    assert content == BODY


@pytest.mark.parametrize("name", CODERS)
def test_damage_in_the_middle(name):
    """Damage after a good part is damage, and the good part is kept; nothing more is wanted then."""
    body = NOISE.hex().encode()
    coded = encode(body, name)
    received: list[bytes] = []
    decoder = Decoder([name], received.append)
    assert decoder.feed(coded[:250_000])
    assert not decoder.feed(NOISE)
    assert not decoder.feed(coded[250_000:])
    decoded = decoder.finish()
    content = b"".join(received)
    assert decoded.ending is Ending.CORRUPT
    assert len(content) > 100_000
    assert content[:100_000] == body[:100_000]


def test_damage_far_in():
    """Damage beyond what is kept for a second try costs at most the failing step."""
    noise = random.Random(1).randbytes(3 * MIB)
    coded = bytearray(gzip.compress(noise, 1))
    coded[-6] ^= 1
    decoded, content = run(["gzip"], cut(bytes(coded), 16_384))
    assert decoded.ending is Ending.CORRUPT
    assert len(content) > len(noise) - 65_536
    assert noise.startswith(content)


def test_damage_within():
    """Damage of an inner layer ends the whole, and the outer one stops too."""
    inner = encode(BODY, "gzip")[:60] + NOISE
    decoded, content = run(["gzip, br"], brotli.compress(inner) + b"tail")
    assert decoded.ending is Ending.CORRUPT
    assert "gzip" in decoded.detail
    assert content.startswith(b"<!DOCTYPE html>")


# Declared, but not so


@pytest.mark.parametrize("size", [1, 100, 100_000])
@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize(
    "body",
    [
        BODY,
        b'{"a":1,"b":[1,2,3],"c":"x"}' * 60,
        b"[1,2,3,4,5,6,7,8,9,10,11]",
        b"x^2 + y^2 = z^2 and so on",
        "Köln, Zürich und Übersee, noch ein wenig mehr".encode(),
        b"User-agent: *\nDisallow: /private\n",
    ],
    ids=lambda body: body[:6].decode(),
)
def test_mismatch(name, body, size):
    """A page that was never coded is kept as it came, with a note, whatever its header says."""
    decoded, content = run([name], cut(body, size))
    assert content == body
    assert as_served(decoded, "content_encoding_mismatch")


def test_mismatch_of_a_picture():
    """A picture that was never coded is known by what its content type claims."""
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + NOISE[:2000]
    for name in CODERS:
        decoded, content = run([name], png, content_type="image/png")
        assert as_served(decoded, "content_encoding_mismatch")
        assert content == png


def test_mismatch_by_chance_end():
    """Text that a decoder takes for a whole stream with a tail is still text."""
    # 0x03 0x00 would be an empty deflate stream; a brotli stream may end in its first byte, here ";".
    text = b"; configuration of the thing\nkey = value\n"
    for body in (text, text * 30):
        for size in (1, 50, 5000):
            decoded, content = run(["br"], cut(body, size))
            assert as_served(decoded, "content_encoding_mismatch")
            assert content == body


def test_coded_once_declared_twice():
    """A coding that is declared twice but was applied once is removed once."""
    for values in (["gzip", "gzip"], ["gzip, br"], ["gzip, deflate"], ["gzip, zstd"]):
        decoded, content = run(values, encode(BODY, "gzip"))
        assert fine(decoded, "content_encoding_mismatch")
        assert content == BODY


def test_first_bytes_only():
    """The first bytes of a coding and nothing else are truncated data."""
    for name, head in (("gzip", b"\x1f"), ("zstd", b"\x28\xb5\x2f"), ("deflate", b"\x78"), ("br", b"\x8b")):
        decoded, content = run([name], head)
        assert decoded.ending is Ending.TRUNCATED
        assert decoded.coded
        assert content == b""


def test_signed_but_broken():
    """Data with a coding's own first bytes is that coding, and broken."""
    for name, head in (
        ("gzip", b"\x1f\x8b\x63"),
        ("zstd", b"\x28\xb5\x2f\xfd\xff"),
        ("deflate", b"\x78\x9c"),
    ):
        decoded, content = run([name], head + b"\xff" * 40)
        assert decoded.ending in (Ending.CORRUPT, Ending.UNSUPPORTED)
        assert decoded.coded
        assert content == b""


def test_long_silence():
    """A stream that yields nothing for longer than is kept is believed to be one."""
    frame = b"\x50\x2a\x4d\x18" + struct.pack("<I", 2 * MIB)
    decoded, content = run(["zstd"], [*cut(frame + bytes(2 * MIB), 65_536), b"\x28\xb5\x2f\xfd\xff\xff" * 4])
    assert decoded.ending is Ending.UNSUPPORTED
    assert content == b""


# Names that are no codings


def test_none_and_identity():
    """The name none is a mistake worth a note, identity is not; both change nothing."""
    decoded, content = run(["none"], BODY)
    assert as_served(decoded, "content_encoding_none")
    assert content == BODY
    assert as_served(run(["identity"], BODY)[0])
    assert fine(run(["identity, gzip, none"], encode(BODY, "gzip"))[0], "content_encoding_none")


@pytest.mark.parametrize("name", ["foo", "compress", "utf-8", "x" * 9000])
def test_unknown_over_plain(name):
    """An unknown coding over what reads as plain content is noted, and the content kept."""
    for body in (
        BODY,
        "日本語のページ。".encode("shift_jis"),
        BODY.decode().encode("utf-16"),
        b"%PDF-1.7\n\0\0",
    ):
        kind = "application/pdf" if body.startswith(b"%PDF") else "text/html"
        decoded, content = run([name], cut(body, 100), content_type=kind)
        assert as_served(decoded, "unknown_content_encoding")
        assert len(decoded.notes[0].detail) < 100
        assert content == body


def test_unknown_over_binary():
    """An unknown coding over bytes that are no plain content is unsupported; they are kept."""
    for name in ("foo", "compress", "utf-8"):
        decoded, content = run([name], NOISE)
        assert decoded.ending is Ending.UNSUPPORTED
        assert repr(name) in decoded.detail
        assert not decoded.coded
        assert content == NOISE


def test_unknown_among_known():
    """An unknown coding beside a known one is judged by the content within."""
    decoded, content = run(["gzip, utf-8"], encode(BODY, "gzip"))
    assert fine(decoded, "unknown_content_encoding")
    assert content == BODY
    assert run(["foo, gzip"], encode(NOISE, "gzip"))[0].ending is Ending.UNSUPPORTED


def test_aws_chunked():
    """The framing of an upload to a store is long gone, and is only noted."""
    decoded, content = run(["aws-chunked"], NOISE)
    assert as_served(decoded, "unknown_content_encoding")
    assert content == NOISE
    assert fine(run(["gzip,aws-chunked"], encode(NOISE, "gzip"))[0], "unknown_content_encoding")


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("value", ["", "  ", ","])
def test_blank_header(value, size):
    """A blank header over gzip bytes of a page means gzip, with a note."""
    for kind in ("text/html; charset=utf-8", "image/svg+xml", None):
        decoded, content = run([value], cut(encode(BODY, "gzip"), size), content_type=kind)
        assert fine(decoded, "blank_content_encoding")
        assert content == BODY


@pytest.mark.parametrize("kind", ["application/gzip", "application/x-tar", "application/octet-stream; x=y"])
def test_blank_header_over_an_archive(kind):
    """A blank header over a file that may itself be gzip means nothing."""
    decoded, content = run([""], encode(BODY, "gzip"), content_type=kind)
    assert as_served(decoded)
    assert content == encode(BODY, "gzip")


@pytest.mark.parametrize("body", [BODY, b"\x1f", b"\x1f\x8a"])
def test_blank_header_over_plain(body):
    """A blank header over anything else means nothing and is not worth a note."""
    decoded, content = run([""], cut(body, 1))
    assert as_served(decoded)
    assert content == body


# Limits


def test_too_many_layers():
    """More codings in a row than any server uses are not decoded."""
    most = ["gzip"] * MAX_LAYERS
    assert fine(run(most, encode(BODY, *most))[0])
    coded = encode(BODY, *most, "gzip")
    decoded, content = run([*most, "gzip"], coded)
    assert decoded.ending is Ending.UNSUPPORTED
    assert not decoded.coded
    assert content == coded
    assert as_served(run(["gzip," * 100_000], [])[0])


@pytest.mark.parametrize("name", ["", *CODERS])
def test_cap(name):
    """The sink receives exactly the cap of a larger content, and all of one that is as large."""
    body = NOISE[:100_000]
    coded = CODERS[name](body) if name else body
    decoded, content = run([name], cut(coded, 7000), max_bytes=len(body))
    assert decoded.ending is Ending.COMPLETE
    assert content == body
    decoded, content = run([name], cut(coded, 7000), max_bytes=len(body) - 1)
    assert decoded.ending is Ending.TOO_LARGE
    assert content == body[:-1]
    assert run([name], coded, max_bytes=0)[0].ending is Ending.TOO_LARGE


def bomb(name: str, mebibytes: int) -> bytes:
    """Code so many mebibytes of one letter without holding them at once."""
    letters = b"a" * MIB
    if name == "br":
        compressor = brotli.Compressor(quality=3)
        return b"".join([compressor.process(letters) for _ in range(mebibytes)]) + bytes(compressor.finish())
    squeezer = (
        zstd.ZstdCompressor()
        if name == "zstd"
        else zlib.compressobj(1, wbits={"gzip": 31, "deflate": -15}[name])
    )
    return b"".join([squeezer.compress(letters) for _ in range(mebibytes)]) + squeezer.flush()


class Gauge:
    """A sink that only measures."""

    def __init__(self) -> None:
        self.total = 0
        self.largest = 0

    def __call__(self, data: bytes) -> None:
        self.total += len(data)
        self.largest = max(self.largest, len(data))


@pytest.mark.parametrize("name", CODERS)
def test_bomb_stops_at_the_cap(name):
    """A bomb fills the sink to the cap in small pieces and stops there."""
    gauge = Gauge()
    decoder = Decoder([name], gauge, max_bytes=20 * MIB)
    assert not decoder.feed(bomb(name, 200))
    decoded = decoder.finish()
    assert decoded.ending is Ending.TOO_LARGE
    assert gauge.total == decoded.decoded_bytes == 20 * MIB
    assert gauge.largest <= 128 * 1024


@pytest.mark.parametrize("name", CODERS)
def test_bomb_stops_by_its_ratio(name):
    """A bomb without a cap stops soon after 32 MiB; as much repetitive text as that is no bomb."""
    gauge = Gauge()
    decoder = Decoder([name], gauge)
    assert not decoder.feed(bomb(name, 200))
    decoded = decoder.finish()
    assert decoded.ending is Ending.TOO_LARGE
    assert "times" in decoded.detail
    assert 31 * MIB < gauge.total <= 32 * MIB

    gauge = Gauge()
    decoder = Decoder([name], gauge)
    assert decoder.feed(bomb(name, 32))
    assert decoder.finish().ending is Ending.COMPLETE
    assert gauge.total == 32 * MIB


def test_bomb_within():
    """A bomb that a second coding hides is stopped in the layer where it goes off."""
    gauge = Gauge()
    decoder = Decoder(["zstd, gzip"], gauge, max_bytes=MIB)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 8 * MIB) + bytes(8 * MIB)
    assert not decoder.feed(gzip.compress(skippable, 1))
    decoded = decoder.finish()
    assert decoded.ending is Ending.TOO_LARGE
    assert "gzip" in decoded.detail
    assert gauge.total == 0


def test_ratio_is_adjustable():
    """The caller may allow a higher ratio."""
    decoder = Decoder(["gzip"], Gauge(), max_ratio=2000)
    assert decoder.feed(bomb("gzip", 40))
    assert decoder.finish().ending is Ending.COMPLETE


def zstd_frame(*, window_log: int, sized: bool) -> bytes:
    options: Mapping[int, int] = {
        zstd.CompressionParameter.window_log: window_log,
        zstd.CompressionParameter.content_size_flag: sized,
    }
    if sized:
        return zstd.compress(bytes(9 * MIB), options=options)
    squeezer = zstd.ZstdCompressor(options=options)
    return squeezer.compress(bytes(9 * MIB)) + squeezer.flush()


@pytest.mark.parametrize("size", [1, 100_000])
def test_zstd_window(size):
    """A Zstandard window of 8 MiB is decoded and a larger one is not, as the RFC has it."""
    assert fine(run(["zstd"], cut(zstd_frame(window_log=23, sized=False), size))[0])
    for sized in (True, False):
        decoded, content = run(["zstd"], cut(zstd_frame(window_log=24, sized=sized), size))
        assert decoded.ending is Ending.UNSUPPORTED
        assert "8 MiB" in decoded.detail
        assert content == b""


def test_zstd_dictionary():
    """A Zstandard frame that needs a dictionary is unsupported."""
    frame = b"\x28\xb5\x2f\xfd\x21\x2a\x03\x19\x00\x00abc"
    decoded, _ = run(["zstd"], frame)
    assert decoded.ending is Ending.UNSUPPORTED
    assert "dictionary" in decoded.detail


def test_later_frame_refused():
    """A refused frame behind a good one is unsupported, and the good one is kept."""
    decoded, content = run(["zstd"], zstd.compress(b"good") + zstd_frame(window_log=24, sized=False))
    assert decoded.ending is Ending.UNSUPPORTED
    assert content == b"good"


def test_sink_errors_are_the_callers():
    """An error of the sink reaches the caller, even one that looks like a decoder's."""

    def full(data: bytes) -> None:
        raise zlib.error("not a decoder's")

    with pytest.raises(zlib.error, match="not a decoder's"):
        Decoder(["gzip"], full).feed(encode(BODY, "gzip"))


def test_finish_twice():
    """Asking again how it ended gives the same answer and no more content."""
    for values, body in ((["gzip"], encode(BODY, "gzip")[:-3] + b"x"), ([""], b"\x1f"), (["br"], BODY[:30])):
        gauge = Gauge()
        decoder = Decoder(values, gauge)
        decoder.feed(body)
        first, total = decoder.finish(), gauge.total
        assert decoder.finish() == first
        assert gauge.total == total


# Properties

unhurried = settings(deadline=None)  # a busy machine is no failure

payloads = st.one_of(
    st.binary(max_size=3000),
    st.text(max_size=1000).map(str.encode),
    st.builds(lambda piece, count: piece * count, st.binary(max_size=30), st.integers(0, 9000)),
    st.integers(0, 200_000).map(lambda size: NOISE[:size]),
)
stacks = st.lists(st.sampled_from(sorted(CODERS)), max_size=3)


def chunked(data: bytes, places: list[int]) -> list[bytes]:
    """Cut the data at places given as thousandths of its length."""
    marks = [0, *sorted(place * len(data) // 1000 for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@unhurried
@given(payload=payloads, stack=stacks, places=st.lists(st.integers(0, 1000), max_size=12))
def test_any_stack_in_any_chunks(payload, stack, places):
    """Whatever was coded comes back, complete, for any codings and any chunks."""
    decoded, content = run([", ".join(stack)] if stack else [], chunked(encode(payload, *stack), places))
    assert decoded.ending is Ending.COMPLETE
    assert decoded.coded == bool(stack)
    assert decoded.notes == ()
    assert content == payload


@unhurried
@given(
    payload=payloads,
    name=st.sampled_from(sorted(CODERS)),
    cut_at=st.floats(0, 1),
    size=st.integers(1, 20_000),
)
def test_no_prefix_passes_for_the_whole(payload, name, cut_at, size):
    """A coded body cut anywhere is truncated, and what it gives is a prefix of the content."""
    coded = encode(payload, name)
    prefix = coded[: min(int(cut_at * len(coded)), len(coded) - 1)]
    decoded, content = run([name], cut(prefix, max(size, len(prefix) // 50)))
    assert decoded.ending is (Ending.TRUNCATED if prefix else Ending.COMPLETE)
    assert payload.startswith(content)


@unhurried
@given(
    values=st.lists(
        st.one_of(
            st.sampled_from(["gzip", "br", "zstd", "deflate", "", "foo", "none", "gzip,br", "compress"]),
            st.text(max_size=20),
        ),
        max_size=3,
    ),
    head=st.sampled_from(
        [b"", *(magic for forms in FORMS.values() for form in forms for magic in form.magics)]
    ),
    chunks=st.lists(st.binary(max_size=700), max_size=6),
    kind=st.one_of(st.none(), st.text(max_size=20)),
    complete=st.booleans(),
)
@example(values=["br"], head=b"", chunks=[b"\x06" + NOISE[:2000]], kind=None, complete=True)
def test_arbitrary_bytes(values, head, chunks, kind, complete):
    """No header and no bytes make it raise or forget its limits."""
    decoded, content = run(values, [head, *chunks], content_type=kind, complete=complete, max_bytes=50_000)
    assert len(content) <= 50_000
    assert decoded.coded or head + b"".join(chunks) == content


@unhurried
@given(payload=payloads, name=st.sampled_from(sorted(CODERS)), at=st.floats(0, 1), flip=st.integers(1, 255))
def test_damage_anywhere(payload, name, at, flip):
    """One damaged byte never makes it raise, and never hides behind a good ending with a wrong gzip content."""
    coded = bytearray(encode(payload, name))
    coded[min(int(at * len(coded)), len(coded) - 1)] ^= flip
    decoded, content = run([name], bytes(coded), max_bytes=4 * MIB)
    if name == "gzip" and decoded.ending is Ending.COMPLETE and decoded.coded and not decoded.notes:
        assert content == payload


@unhurried
@given(
    payload=payloads,
    name=st.sampled_from(["", *sorted(CODERS)]),
    at=st.floats(0, 1),
    damage=st.binary(max_size=3),
    tail=st.binary(max_size=40),
    places=st.lists(st.integers(0, 1000), max_size=12),
)
def test_chunks_do_not_matter(payload, name, at, damage, tail, places):
    """However damaged the bytes, the answer and the content are the same for any chunks."""
    coded = CODERS[name](payload) if name else payload
    spot = int(at * len(coded))
    body = coded[:spot] + damage + coded[spot + len(damage) :] + tail
    for declared in [name] if name else sorted(CODERS):
        assert run([declared], chunked(body, places)) == run([declared], body)
