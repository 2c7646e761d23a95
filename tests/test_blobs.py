"""The folder of blobs."""

import errno
import fcntl
import hashlib
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.archive import blobs as module
from pravda.archive.blobs import Blobs, Harm, Harmed, Staged, make_folder
from pravda.archive.quota import Limits, Quota
from pravda.core.ports import Contents
from pravda.engines.spool import Bytes
from tests.disks import fill, small_disk

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = b"<p>evidence</p>" * 1000


def a_folder(home: Path) -> Blobs:
    blobs = Blobs(home)
    blobs.prepare()
    return blobs


def stage(blobs: Blobs, data: bytes) -> Staged:
    contents = Bytes(data)
    return blobs.stage(contents, contents.sha256, contents.size)


def store(blobs: Blobs, data: bytes = DATA) -> Path:
    staged = stage(blobs, data)
    assert blobs.publish([staged]).failed == {}
    return blobs.path(staged.sha256)


def read(blobs: Blobs, data: bytes = DATA) -> bytes:
    return b"".join(blobs.pieces(hashlib.sha256(data).hexdigest(), len(data)))


def harm(blobs: Blobs, data: bytes = DATA) -> Harm | None:
    return blobs.check(hashlib.sha256(data).hexdigest(), len(data))


def files(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("data", [b"", b"x", DATA, os.urandom(700_000), bytes(3_000_000)])
def test_bytes_come_back(tmp_path, data):
    """Empty, small, incompressible and well compressible content comes back as it was."""
    blobs = a_folder(tmp_path)
    store(blobs, data)
    assert read(blobs, data) == data


@given(data=st.binary(max_size=2000))
def test_any_bytes_come_back(tmp_path_factory, data):
    """Whatever the bytes, what is read is what was stored."""
    blobs = a_folder(tmp_path_factory.mktemp("home"))
    store(blobs, data)
    assert read(blobs, data) == data


def test_the_name_is_the_hash_of_the_content(tmp_path):
    """A blob stands under the SHA-256 of its uncompressed bytes, private to this user, with nothing beside it."""
    path = store(a_folder(tmp_path))
    sha256 = hashlib.sha256(DATA).hexdigest()
    assert files(tmp_path) == [f"blobs/{sha256[:2]}/{sha256}.zst"]
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0
    assert path.stat().st_size < len(DATA) / 10


def test_equal_content_is_written_once(tmp_path):
    """Content that is there already is neither compressed nor written again."""
    blobs = a_folder(tmp_path)
    before = store(blobs).stat()
    assert stage(blobs, DATA).aside is None
    after = store(blobs).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_equal_content_staged_at_the_same_time(tmp_path):
    """Of equal content in one batch or in two one file remains, and no leftover."""
    blobs = a_folder(tmp_path)
    before = open_files()
    staged = [stage(blobs, DATA) for _ in range(3)]
    assert blobs.publish(staged[:2]).failed == {}
    assert blobs.publish(staged[2:]).failed == {}
    assert len(files(tmp_path)) == 1
    assert open_files() == before


def test_a_batch_shares_its_folder_syncs(tmp_path, monkeypatch):
    """However many blobs a batch brings, each folder is synced once, after every file."""
    blobs, synced = a_folder(tmp_path), []
    monkeypatch.setattr(module, "sync_folder", lambda folder: synced.append(folder.name))
    by_prefix: dict[str, list[bytes]] = {}
    for number in range(2000):
        data = b"%d" % number
        by_prefix.setdefault(hashlib.sha256(data).hexdigest()[:2], []).append(data)
    prefix, group = max(by_prefix.items(), key=lambda item: len(item[1]))
    assert blobs.publish([stage(blobs, data) for data in group[:4]]).failed == {}
    assert synced == [prefix, "blobs"]
    assert blobs.publish([stage(blobs, group[4])]).failed == {}
    assert synced == [prefix, "blobs", prefix]


@pytest.mark.parametrize("damage", [b"", b"\x00", b"x" * 400])
def test_a_damaged_blob_is_healed(tmp_path, damage):
    """Keeping content again whose blob is empty or broken puts an intact one in its place."""
    blobs = a_folder(tmp_path)
    store(blobs).write_bytes(damage)
    assert harm(blobs) is Harm.CHANGED
    store(blobs)
    assert read(blobs) == DATA


def test_a_flipped_bit_is_found(tmp_path):
    """A changed bit makes the blob changed, save in the frame header where it leaves the content as it was."""
    blobs = a_folder(tmp_path)
    data = os.urandom(50)
    path = store(blobs, data)
    whole = path.read_bytes()
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        if harm(blobs, data) is None:
            assert bit // 8 in (4, 5), "descriptor and window size (RFC 8878 §3.1.1.1)"
            assert read(blobs, data) == data


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: data * 2])
def test_bytes_missing_or_added_are_found(tmp_path, change):
    """A file that is cut, or has something behind its end, is changed."""
    blobs = a_folder(tmp_path)
    path = store(blobs)
    path.write_bytes(change(path.read_bytes()))
    assert harm(blobs) is Harm.CHANGED


def test_other_content_under_the_name(tmp_path):
    """A well-formed file with other content of the same size is changed."""
    blobs = a_folder(tmp_path)
    store(blobs).write_bytes(store(blobs, b"other" * 3000).read_bytes())
    with pytest.raises(Harmed, match="changed"):
        read(blobs)


def test_a_bomb_is_not_unpacked(tmp_path):
    """A tampered blob that would unpack to far more than was stored is stopped at once."""
    blobs = a_folder(tmp_path)
    store(blobs).write_bytes(zstd.compress(bytes(200_000_000)))
    out = 0
    with pytest.raises(Harmed, match="changed"):  # noqa: PT012  # the sum is what is tested
        for piece in blobs.pieces(hashlib.sha256(DATA).hexdigest(), len(DATA)):
            out += len(piece)
    assert out <= len(DATA)


def test_a_huge_window_is_refused(tmp_path):
    """A frame that asks for a window of a gigabyte is refused before it gets any."""
    blobs = a_folder(tmp_path)
    option = zstd.CompressionParameter
    frame = zstd.ZstdCompressor(
        options={int(option.window_log): 27, int(option.enable_long_distance_matching): 1}
    )
    store(blobs).write_bytes(frame.compress(DATA) + frame.flush())
    assert harm(blobs) is Harm.CHANGED


def test_missing_and_unreadable_are_told_apart(tmp_path):
    """A blob that is gone is missing; one that cannot be read is unreadable."""
    blobs = a_folder(tmp_path)
    path = store(blobs)
    path.unlink()
    assert harm(blobs) is Harm.MISSING
    path.mkdir()
    assert harm(blobs) is Harm.UNREADABLE


def test_what_is_no_hash_leads_nowhere(tmp_path):
    """A name out of a tampered row never becomes a path."""
    (tmp_path / "secret.zst").write_bytes(zstd.compress(b"x"))
    assert Blobs(tmp_path).check("../../secret", 1) is Harm.CHANGED


@pytest.mark.parametrize(
    "claim", [(hashlib.sha256(b"other").hexdigest(), len(DATA)), (hashlib.sha256(DATA).hexdigest(), 1)]
)
def test_contents_must_be_what_they_claim(tmp_path, claim):
    """Contents that do not have the hash and size of their record are refused, and leave nothing."""
    blobs, before = a_folder(tmp_path), open_files()
    with pytest.raises(ValueError, match="another SHA-256"):
        blobs.stage(Bytes(DATA), *claim)
    assert files(tmp_path) == []
    assert open_files() == before


def test_a_full_disk_leaves_nothing(tmp_path):
    """Content that no longer fits raises, and its beginning is taken away again."""
    with small_disk(tmp_path) as disk:
        blobs = Blobs(disk, Quota(disk, Limits(spare=0)))
        blobs.prepare()
        store(blobs)
        with pytest.raises(OSError, match="No space left"):
            stage(blobs, os.urandom(4_000_000))
        assert len(files(disk)) == 1
        fill(disk)
        assert read(blobs) == DATA


def test_a_failed_sync_fails_only_its_own(tmp_path, monkeypatch):
    """One file whose sync fails is named, and its neighbours become durable."""
    blobs = a_folder(tmp_path)
    staged = [stage(blobs, b"one"), stage(blobs, b"two")]
    sync, broken = module.sync, os.fstat(staged[0].descriptor).st_ino

    def failing(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == broken:
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(module, "sync", failing)
    assert blobs.publish(staged).failed.keys() == {staged[0].sha256}
    assert read(blobs, b"two") == b"two"
    assert len(files(tmp_path)) == 1


def test_a_failed_folder_sync_fails_what_is_in_it(tmp_path, monkeypatch):
    """A blob whose name may not survive a crash has failed."""
    blobs = a_folder(tmp_path)
    staged = [stage(blobs, b"one"), stage(blobs, b"two")]
    sync_folder = module.sync_folder

    def failing(folder: Path) -> None:
        if folder.name == staged[1].sha256[:2]:
            raise OSError(errno.EIO, "Input/output error")
        sync_folder(folder)

    monkeypatch.setattr(module, "sync_folder", failing)
    assert blobs.publish(staged).failed.keys() == {staged[1].sha256}


def test_a_name_that_is_taken_by_a_folder(tmp_path):
    """A blob that cannot be renamed into place has failed, and leaves nothing aside."""
    blobs = a_folder(tmp_path)
    store(blobs).unlink()
    staged = stage(blobs, DATA)
    blobs.path(staged.sha256).mkdir()
    heals = stage(blobs, DATA)
    assert blobs.publish([heals]).failed.keys() == {staged.sha256}
    staged.discard()
    assert files(tmp_path) == []


def test_forgotten_files_are_swept(tmp_path):
    """Opening takes away what a dead process left aside over a day ago, and nothing that is young or being written."""
    blobs = a_folder(tmp_path)
    aside = tmp_path / "tmp"
    for name, age in (("old", 2 * 86_400), ("held", 2 * 86_400), ("young", 3600)):
        (aside / name).write_bytes(b"x")
        os.utime(aside / name, (time.time() - age,) * 2)
    with (aside / "held").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        blobs.prepare()
    assert sorted(path.name for path in aside.iterdir()) == ["held", "young"]


def test_folders_are_made_with_their_parents(tmp_path):
    """Missing parents are made too, all private to this user."""
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_discarding_what_is_in_place_is_nothing(tmp_path):
    """A staged blob that was there already has nothing to let go of."""
    contents: Contents = Bytes(b"x")
    Staged(sha256=contents.sha256).discard()
