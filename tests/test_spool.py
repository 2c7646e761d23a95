"""Contents in memory and in temporary files."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.ports import Contents
from pravda.engines import spool as module
from pravda.engines.spool import Bytes, Spool
from tests.disks import small_disk


def a_spool(folder: Path | None, *chunks: bytes, memory: int = 10) -> Spool:
    spool = Spool(folder, memory)
    for chunk in chunks:
        spool.write(chunk)
    return spool


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@given(chunks=st.lists(st.binary(max_size=40), max_size=8), memory=st.integers(0, 60))
def test_what_goes_in_comes_out(chunks, memory):
    """Whatever the pieces and wherever memory ends, the bytes, their size and hash are those written."""
    spool, whole = a_spool(None, *chunks, memory=memory), b"".join(chunks)
    try:
        assert spool.read() == whole
        assert b"".join(spool.chunks()) == whole
        assert spool.size == len(whole)
        assert spool.sha256 == hashlib.sha256(whole).hexdigest()
    finally:
        spool.close()


@pytest.mark.parametrize("memory", [4, 100])
def test_a_limit_is_kept(tmp_path, memory):
    """A limited read gives the beginning, and nothing for limits of 0 and below."""
    spool = a_spool(tmp_path, b"abc", b"defgh", memory=memory)
    assert spool.head(4) == b"abcd"
    assert spool.read(100) == b"abcdefgh"
    assert spool.read(0) == spool.read(-1) == b""
    spool.close()


def test_many_bytes_come_in_bounded_pieces(tmp_path):
    """Chunks are of bounded size however large the writes were."""
    spool = a_spool(tmp_path, b"x" * (3 * module.PIECE + 1))
    assert [len(piece) for piece in spool.chunks()] == [module.PIECE] * 3 + [1]
    spool.close()


def test_no_file_is_ever_named(tmp_path):
    """Not even while bytes are in a file does the folder list one, so no crash can leave any."""
    spool = a_spool(tmp_path, b"x" * 11)
    assert spool.read() == b"x" * 11
    assert list(tmp_path.iterdir()) == []
    spool.close()


def test_close_lets_go_of_the_file(tmp_path):
    """Closing frees the descriptor, may be repeated, and leaves size and hash to be read."""
    before = open_files()
    spool = a_spool(tmp_path, b"x" * 11)
    assert open_files() == before + 1
    spool.close()
    spool.close()
    assert open_files() == before
    assert (spool.size, spool.sha256) == (11, hashlib.sha256(b"x" * 11).hexdigest())


@pytest.mark.parametrize("use", [Spool.read, lambda spool: spool.write(b"x"), lambda spool: spool.head(1)])
def test_a_closed_spool_refuses(tmp_path, use):
    """Neither reading nor writing works after close."""
    spool = a_spool(tmp_path, b"abc")
    spool.close()
    with pytest.raises(ValueError, match="closed"):
        use(spool)


def test_no_folder_for_the_file(tmp_path):
    """The system's error passes through, and what was there before is whole."""
    spool = a_spool(tmp_path / "missing", b"abc")
    with pytest.raises(FileNotFoundError):
        spool.write(b"x" * 20)
    assert spool.read() == b"abc"
    assert spool.sha256 == hashlib.sha256(b"abc").hexdigest()
    spool.close()


@pytest.mark.parametrize("first", [b"abc", b"x" * 4096])
def test_a_full_disk_takes_nothing_back(tmp_path, first):
    """A write that no longer fits fails, and everything written before stays readable and hashed."""
    before = open_files()
    with small_disk(tmp_path) as disk:
        spool = a_spool(disk, first)
        with pytest.raises(OSError, match="No space left"):
            spool.write(b"x" * 4_000_000)
        assert spool.read() == first
        assert spool.sha256 == hashlib.sha256(first).hexdigest()
        spool.close()
    assert open_files() == before


def test_a_disk_that_fills_while_memory_is_moved(tmp_path):
    """When not even the bytes in memory fit into the file, they stay in memory."""
    with small_disk(tmp_path) as disk:
        spool = a_spool(disk, b"x" * 3_000_000, memory=3_000_000)
        with pytest.raises(OSError, match="No space left"):
            spool.write(b"y")
        assert spool.size == len(spool.read()) == 3_000_000
        spool.close()


def test_a_file_cut_by_somebody_else(tmp_path):
    """A temporary file that lost its bytes is an error, not a shorter page."""
    spool = a_spool(tmp_path, b"x" * 100)
    assert spool._file is not None
    spool._file.truncate(10)
    with pytest.raises(OSError, match="lost bytes"):
        spool.read()
    spool.close()


def test_without_a_folder_the_systems_is_used():
    """A spool without a folder of its own spills all the same."""
    spool = Spool(memory=1)
    spool.write(b"abc")
    assert spool.read() == b"abc"
    spool.close()


def test_bytes_are_contents_too():
    """Bytes in memory answer like a spool."""
    data = b"abcdefgh"
    contents: Contents = Bytes(data)
    assert contents.sha256 == contents.sha256 == hashlib.sha256(data).hexdigest()
    assert (contents.size, contents.read(), contents.read(3), contents.read(-1)) == (8, data, b"abc", b"")
    assert list(contents.chunks()) == [data]
    contents.close()
    contents.close()
