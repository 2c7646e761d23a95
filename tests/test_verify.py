"""Looking through an archive for what is damaged or needed by nobody, and what it takes of the disk."""

import asyncio
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravda.archive import verify as verifying
from pravda.archive.blobs import Blobs, Harm
from pravda.archive.findings import Finding, What
from pravda.archive.local import LocalArchive
from pravda.archive.usage import HostUsage, usage
from pravda.archive.verify import Counts, verify
from pravda.cli.main import cli
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents
from pravda.core.states import Exit
from pravda.engines.spool import Bytes
from pravda.errors import ArchiveUnavailable, NotFound
from tests.disks import read_only, small_disk
from tests.factories import NOON, PAGE, a_snapshot

OLD = 2 * 3600.0  # seconds
LARGE = b"x" * 20_000
ROOT = Path(__file__).resolve().parent.parent


def keep(home: Path, *snapshots: tuple[Snapshot, dict[str, Contents]]) -> list[Snapshot]:
    """Keep snapshots in order."""

    async def run() -> None:
        archive = LocalArchive.open(home)
        for snapshot, contents in snapshots:
            await archive.keep(snapshot, contents)
        await archive.close()

    asyncio.run(run())
    return [snapshot for snapshot, _ in snapshots]


@pytest.fixture
def home(tmp_path):
    """The folder of an archive that holds three pages, one of them large heads, and a 304."""
    return tmp_path / "home"


@pytest.fixture
def kept(home):
    """Its snapshots: two with one body, one with another body and a head in a blob, and a 304 that points at the first."""
    first, second = a_snapshot(), a_snapshot(captured_at=NOON + timedelta(days=1))
    third = a_snapshot("https://other.example/", body=b"<p>other", heads={"response": LARGE})
    fourth, contents = a_snapshot(captured_at=NOON + timedelta(days=2))
    bare = replace(fourth.evidence, artifacts=fourth.evidence.artifacts[1:])
    confirmed = replace(fourth, evidence=bare, not_modified=True, content_from=first[0].id)
    contents.pop("body")
    return keep(home, first, second, third, (confirmed, contents))


def look(home: Path, *, repair: bool = False) -> list[Finding]:
    return list(verify(home, repair=repair))


def words(findings: list[Finding]) -> list[tuple[What, Harm | None, str]]:
    return [(found.what, found.harm, found.name) for found in findings]


def blob(home: Path, snapshot: Snapshot, index: int = 0) -> Path:
    return Blobs(home).path(snapshot.evidence.artifacts[index].sha256)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def age(path: Path, seconds: float = OLD) -> Path:
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def tamper(home: Path, *statements: str) -> None:
    """Change rows as only somebody who bypasses the archive can."""
    with closing(sqlite3.connect(home / "catalog.sqlite3", isolation_level=None)) as connection:
        for trigger in (
            "snapshots_keep_values",
            "snapshots_keep_rows",
            "artifacts_keep_values",
            "artifacts_keep_rows",
        ):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)


def pravda(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--home", str(home)])


def test_a_sound_archive(home, kept):
    """An archive as it was written has no finding, and every row and blob was looked at."""
    counts, ticks = Counts(), []
    assert list(verify(home, counts=counts, tick=lambda: ticks.append(counts.rows))) == []
    assert (counts.rows, counts.all_rows) == (4, 4)
    assert (counts.blobs, counts.all_blobs) == (3, 3)
    assert counts.bytes == len(PAGE) + len(b"<p>other") + len(LARGE)
    assert (counts.damaged, counts.orphans, counts.moved) == (0, 0, 0)
    assert ticks[0] == 0
    assert ticks[-1] == 4
    result = pravda(home, "verify")
    assert result.exit_code == Exit.OK
    assert result.output == "No damage in 4 snapshots and 3 blobs with 20.1 kB of content.\n"


def test_an_empty_archive(home):
    """An archive without rows is sound."""
    keep(home)
    assert look(home) == []


def test_no_archive(tmp_path):
    """A folder without an archive is not found, and nothing is made in it."""
    with pytest.raises(NotFound, match="no archive in"):
        look(tmp_path)
    for command in ("verify", "du"):
        assert pravda(tmp_path / "none", command).exit_code == Exit.NOT_FOUND
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "harm"),
    [(flip, Harm.CHANGED), (Path.unlink, Harm.MISSING), (lambda path: path.write_bytes(b""), Harm.CHANGED)],
)
def test_damaged_blobs_have_words_of_their_own(home, kept, damage, harm):
    """W-I6: a changed and a missing blob are named with different words, and who needs them."""
    damage(blob(home, kept[0]))
    (found,) = look(home)
    assert words([found]) == [(What.BLOB, harm, kept[0].evidence.artifacts[0].sha256)]
    assert found.snapshot in {kept[0].id, kept[1].id}
    assert f"{found.snapshot} and 1 more are {harm}" in found.detail
    result = pravda(home, "verify")
    assert result.exit_code == Exit.DAMAGED
    assert result.output.startswith(f"{harm} blob {found.name}: The bytes of snapshot")
    assert "1 damaged: these bytes and rows are not handed out" in result.output


@contextmanager
def as_an_ordinary_user(home: Path) -> Iterator[None]:
    """The archive's folder belongs to a user who is not root, and so does what is done with it."""
    if os.geteuid() != 0:
        yield
        return
    for path in (home.parent, home, *home.rglob("*")):
        os.chown(path, 65_534, 65_534)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_blob(kept, home):
    """W-I6: a blob that this user may not read is unreadable, another word than changed; it is not handed out either."""
    with tempfile.TemporaryDirectory() as folder:  # a place that any user can enter, which pytest's is not
        copy = Path(folder) / "home"
        shutil.copytree(home, copy)
        unreadable, changed = blob(copy, kept[0]), blob(copy, kept[2])
        flip(changed)
        unreadable.chmod(0)
        assert pravda(home, "cat", kept[2].id).exit_code == Exit.OK  # imports what another user cannot
        with as_an_ordinary_user(copy):
            assert {(found.harm, found.name) for found in look(copy, repair=True)} == {
                (Harm.UNREADABLE, kept[0].evidence.artifacts[0].sha256),
                (Harm.CHANGED, kept[2].evidence.artifacts[0].sha256),
            }
            result = pravda(copy, "cat", kept[0].id)
            assert result.exit_code == Exit.ARCHIVE
            assert "is unreadable: Permission denied" in result.output
        assert unreadable.exists()
        assert not changed.exists()


def test_what_cannot_be_read_stays_where_it_is(home, kept):
    """A repair does not move what may be intact once its rights or the disk are mended."""
    path = blob(home, kept[0])
    path.unlink()
    path.mkdir()
    (found,) = look(home, repair=True)
    assert (found.harm, found.moved_to) == (Harm.UNREADABLE, None)
    assert path.is_dir()


def set_document(before: str, after: str) -> str:
    return f"UPDATE snapshots SET document = replace(document, '{before}', '{after}')"


ROW_DAMAGE: dict[str, tuple[str, Harm, str]] = {
    "a changed fact": (set_document('"status":200', '"status":201'), Harm.CHANGED, "hash under which"),
    "a document that is no JSON": ("UPDATE snapshots SET document = 'x'", Harm.UNREADABLE, "unreadable"),
    "a document that is no text": (
        "UPDATE snapshots SET document = CAST(x'22ff22' AS TEXT)", Harm.CHANGED, "hash under which"),
    "another hash": ("UPDATE snapshots SET row_hash = upper(row_hash)", Harm.CHANGED, "hash under which"),
    "a column": ("UPDATE snapshots SET state = 'gone', reason = 'gone'", Harm.CHANGED, "columns state, reason no"),
    "a time": ("UPDATE snapshots SET captured_at = '2030-01-01T00:00:00.000000Z'", Harm.CHANGED, "columns"),
    "an artifact's row": ("UPDATE artifacts SET redacted = 1", Harm.CHANGED, "its artifacts no longer say"),
    "an artifact's row that is gone": ("DELETE FROM artifacts", Harm.MISSING, "artifacts body, request, response are"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_DAMAGE)
def test_changed_rows(home, name):
    """A row whose facts, columns or artifacts are not what was written is named."""
    (snapshot,) = keep(home, a_snapshot())
    statement, harm, detail = ROW_DAMAGE[name]
    tamper(home, statement)
    found = look(home)[0]
    assert words([found]) == [(What.ROW, harm, snapshot.id)]
    assert detail in found.detail
    assert pravda(home, "verify").exit_code == Exit.DAMAGED


def test_a_changed_head(home, kept):
    """Bytes that live in the catalog are held against their hash."""
    tamper(home, "UPDATE artifacts SET inline = x'00' WHERE name = 'request' AND inline IS NOT NULL")
    found = look(home)
    assert {(one.what, one.harm) for one in found} == {(What.HEAD, Harm.CHANGED)}
    assert {one.name for one in found} == {kept[0].id, kept[1].id, kept[3].id}


def test_a_head_that_lost_its_bytes(home, kept):
    """A small head whose bytes are gone from the catalog is looked for among the blobs, and missing."""
    tamper(
        home, f"UPDATE artifacts SET inline = NULL WHERE name = 'request' AND snapshot_id = '{kept[0].id}'"
    )
    (found,) = look(home)
    assert (found.what, found.harm, found.snapshot) == (What.BLOB, Harm.MISSING, kept[0].id)


@pytest.mark.parametrize(
    ("change", "harm", "detail"),
    [
        ("DELETE FROM snapshots WHERE id = '{holder}'", Harm.MISSING, "that holds its bytes is gone"),
        (
            "UPDATE snapshots SET content_from = id WHERE id = '{holder}'",
            Harm.CHANGED,
            "holds no bytes itself",
        ),
        ("UPDATE snapshots SET content_sha256 = '' WHERE id = '{holder}'", Harm.CHANGED, "holds other bytes"),
    ],
)
def test_a_confirmation_leads_to_its_bytes(home, kept, change, harm, detail):
    """A 304 points in one step at a snapshot that is there and holds the bytes it confirmed."""
    tamper(home, change.format(holder=kept[0].id))
    assert [(found.harm, detail in found.detail) for found in look(home) if found.name == kept[3].id] == [
        (harm, True)
    ]


def test_artifacts_without_a_snapshot(home, kept):
    """The rows of artifacts whose snapshot is gone tell that it was there."""
    tamper(home, f"DELETE FROM snapshots WHERE id = '{kept[2].id}'")
    assert (What.ROW, Harm.MISSING, kept[2].id) in words(look(home))


def test_a_damaged_catalog(home, kept):
    """What SQLite itself finds is told; then no file is called an orphan, and none is moved."""
    orphan = home / "blobs" / "note"
    orphan.write_bytes(b"x")
    age(orphan)
    with closing(sqlite3.connect(home / "catalog.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, '(state, captured_at, id)', '(state, id, captured_at)') "
            "WHERE name = 'snapshots_by_state'"
        )
    found = look(home, repair=True)
    assert {(one.what, one.harm) for one in found} == {(What.CATALOG, Harm.CHANGED)}
    assert "SQLite says" in found[0].detail
    assert orphan.exists()


def test_a_catalog_that_breaks_off(home, kept):
    """A catalog that cannot be read to its end is damage; one that is no database at all is unavailable."""
    catalog = home / "catalog.sqlite3"
    whole = catalog.read_bytes()
    catalog.write_bytes(whole[:8192] + b"\xff" * 4096 * 20 + whole[8192 + 4096 * 20 :])
    result = pravda(home, "verify")
    assert result.exit_code in (Exit.DAMAGED, Exit.ARCHIVE)
    assert "catalog" in result.output
    catalog.write_bytes(b"notes" * 2000)
    with pytest.raises(ArchiveUnavailable):
        look(home)
    assert pravda(home, "verify").exit_code == Exit.ARCHIVE


def test_orphans_are_no_damage(home, kept):
    """Files that no row names are told with exit code 0, as soon as they are old enough to be sure."""
    folder = Blobs(home)
    staged = folder.stage(Bytes(b"nobody"), Bytes(b"nobody").sha256, 6)
    folder.publish([staged])
    strange = home / "blobs" / "zz"
    strange.mkdir()
    for path in (home / "blobs" / "note.txt", strange / "page.zst", strange / f"{'0' * 64}.zst"):
        path.write_bytes(b"x")
    names = {staged.sha256: folder.path(staged.sha256)}
    assert look(home) == []
    for path in (*names.values(), home / "blobs" / "note.txt", *strange.iterdir()):
        age(path)
    counts = Counts()
    found = list(verify(home, counts=counts))
    assert {(one.what, one.harm) for one in found} == {(What.ORPHAN, None)}
    assert {Path(one.name).name for one in found} == {
        "note.txt", "page.zst", f"{'0' * 64}.zst", f"{staged.sha256}.zst"
    }  # fmt: skip
    assert counts.orphan_bytes == 3 + names[staged.sha256].stat().st_size
    result = pravda(home, "verify")
    assert result.exit_code == Exit.OK
    assert "4 files of 18 B that nothing needs; `pravda verify --repair`" in result.output


def test_leftovers(home, kept):
    """Half-written files of dead processes are told; young ones and those that are being written are not."""
    aside = home / "tmp"
    for name in ("old", "held", "young"):
        (aside / name).write_bytes(b"x")
    age(aside / "old")
    (aside / "link").symlink_to(age(aside / "held"))
    os.utime(aside / "link", (0, 0), follow_symlinks=False)
    with (aside / "held").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert words(look(home)) == [(What.LEFTOVER, None, "tmp/old")]


def test_a_repair_moves_and_never_deletes(home, kept):
    """Changed blobs, orphans and leftovers end in quarantine as they are; rows stay, and what is lost is missing then."""
    changed = blob(home, kept[0])
    flip(changed)
    for name in ("blobs/note", "tmp/half"):
        (home / name).write_bytes(name.encode())
        age(home / name)
    before = changed.read_bytes()
    counts = Counts()
    found = list(verify(home, repair=True, counts=counts))
    assert (counts.damaged, counts.orphans, counts.moved) == (1, 2, 3)
    moved = {one.moved_to for one in found}
    assert sorted(path.read_bytes() for path in moved if path) == sorted([before, b"blobs/note", b"tmp/half"])
    assert all(path and path.is_relative_to(home / "quarantine") for path in moved)
    assert words(look(home)) == [(What.BLOB, Harm.MISSING, kept[0].evidence.artifacts[0].sha256)]
    assert pravda(home, "verify", "--repair").exit_code == Exit.DAMAGED
    keep(home, a_snapshot(captured_at=NOON + timedelta(days=9)))
    assert look(home) == []


def test_a_repair_names_what_it_moved(home, kept):
    """On the command line a repair says where each file went, and hints at no further repair."""
    age_of = home / "blobs" / "note"
    age_of.write_bytes(b"x")
    age(age_of)
    result = pravda(home, "verify", "--repair")
    assert result.exit_code == Exit.OK
    assert f"Moved to {home / 'quarantine'}" in result.output
    assert "--repair" not in result.output


def test_two_files_of_one_name_in_quarantine(home, kept, monkeypatch):
    """A second file of the same name is put beside the first, never over it."""
    path = home / "blobs" / "note"
    moment = type("Clock", (), {"now": staticmethod(lambda zone: NOON)})
    monkeypatch.setattr(verifying, "datetime", moment)
    for data in (b"one", b"two", b"three"):
        path.write_bytes(data)
        age(path)
        look(home, repair=True)
    names = sorted((home / "quarantine").rglob("note*"))
    assert [name.read_bytes() for name in names] == [b"one", b"two", b"three"]


def test_a_repair_gives_back_what_a_capture_needs(home, kept, monkeypatch):
    """A blob that is healed, named or made young between the look and the move is put back."""
    changed, orphan = blob(home, kept[0]), home / "blobs" / "note"
    intact = changed.read_bytes()
    flip(changed)
    orphan.write_bytes(b"x")
    age(orphan)
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> Path:
        if path == changed:
            path.write_bytes(intact)
        if path == orphan:
            os.utime(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", meanwhile)
    found = look(home, repair=True)
    monkeypatch.undo()
    assert [one.moved_to for one in found] == [None, None]
    assert changed.read_bytes() == intact
    assert orphan.exists()


def test_a_repair_that_cannot_move(home, kept):
    """Where nothing may be moved, a repair says so and finds the same."""
    flip(blob(home, kept[0]))
    with read_only(home):
        (found,) = look(home, repair=True)
    assert found.moved_to is None
    assert "could not be moved" in found.detail


def test_naming_an_orphan_again_keeps_it_from_repair(home):
    """A blob without a row that a capture is about to name looks young from then on, so that no repair takes it."""
    blobs = Blobs(home)
    blobs.prepare()
    contents = Bytes(PAGE)
    blobs.publish([blobs.stage(contents, contents.sha256, contents.size)])
    keep(home)
    age(blobs.path(contents.sha256))
    assert len(look(home)) == 1
    assert blobs.stage(contents, contents.sha256, contents.size).aside is None
    assert look(home, repair=True) == []


def test_a_read_only_archive(home, kept):
    """An archive that may not be written can be looked through and counted all the same."""
    flip(blob(home, kept[0]))
    with read_only(home):
        assert [found.harm for found in look(home)] == [Harm.CHANGED]
        assert usage(home).snapshots == 4


def test_while_others_capture(home):
    """Looking through an archive into which another process keeps finds nothing amiss, repair or not."""
    code = """
import asyncio, sys
from pathlib import Path
from pravda.archive.local import LocalArchive
from tests.factories import a_snapshot

async def main():
    archive = LocalArchive.open(Path(sys.argv[1]))
    print("open", flush=True)
    for number in range(100_000):
        await asyncio.gather(*(archive.keep(*a_snapshot(body=b"%d %d" % (number, one))) for one in range(8)))

asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "open\n"
            counts, deadline = Counts(), time.monotonic() + 30
            while counts.rows < 200 and time.monotonic() < deadline:
                for repair in (False, True):
                    counts = Counts()
                    assert list(verify(home, repair=repair, counts=counts)) == []
            assert counts.rows >= 200
        finally:
            process.kill()
    assert look(home) == []


def test_json(home, kept):
    """As JSON: one object with every finding and the sums, whatever is found."""
    flip(blob(home, kept[0]))
    note = home / "blobs" / "note"
    note.write_bytes(b"x")
    age(note)
    result = pravda(home, "verify", "--json", "--repair")
    found = json.loads(result.output)
    assert result.exit_code == Exit.DAMAGED
    assert {(one["what"], one["harm"]) for one in found["findings"]} == {
        ("blob", "changed"),
        ("orphan", None),
    }
    assert all(Path(one["moved_to"]).exists() for one in found["findings"])
    assert {name: found[name] for name in ("damaged", "orphans", "moved", "snapshots", "blobs")} == {
        "damaged": 1, "orphans": 1, "moved": 2, "snapshots": 4, "blobs": 3
    }  # fmt: skip


def test_a_hash_that_is_none(home, kept):
    """A row that names its bytes by what is no hash leads to no file, repair or not."""
    tamper(home, "UPDATE artifacts SET sha256 = '../../x' WHERE name = 'body'")
    assert (What.BLOB, Harm.CHANGED, "../../x") in words(look(home, repair=True))


def test_many_blobs_and_rows(home, monkeypatch):
    """However small the pages in which rows and blobs are read, each is looked at once, also equal hashes of two sizes."""
    for name, value in (("_ROWS", 2), ("_BLOBS", 2)):
        monkeypatch.setattr(verifying, name, value)
    keep(home, *(a_snapshot(body=b"%d" % number) for number in range(40)))
    counts = Counts()
    assert list(verify(home, counts=counts)) == []
    assert (counts.rows, counts.blobs) == (40, 40)


def test_a_terminal_is_safe(home):
    """Whatever stands in a damaged row reaches the terminal escaped."""
    keep(home, a_snapshot())
    tamper(home, "UPDATE snapshots SET id = 'x' || char(27) || '[31m'")
    result = pravda(home, "verify")
    assert "\x1b[31mx" not in result.output
    assert "x\\x1b[31m" in result.output


def test_usage(home, kept):
    """The count of an archive: rows, content, what sharing saves, files on the disk, and the largest hosts."""
    (home / "tmp" / "half").write_bytes(b"12345")
    heads = sum(
        artifact.bytes for one in kept for artifact in one.evidence.artifacts if artifact.name != "body"
    )
    bodies = 2 * len(PAGE) + len(b"<p>other")
    found = usage(home)
    assert (found.snapshots, found.artifacts, found.blobs) == (4, 10, 3)
    assert found.content_bytes == heads + bodies
    assert found.shared_bytes == len(PAGE)
    assert found.blob_bytes == sum(path.stat().st_size for path in (home / "blobs").rglob("*.zst"))
    assert (found.aside_bytes, found.quarantine_bytes) == (5, 0)
    assert found.disk_bytes == found.blob_bytes + found.catalog_bytes + 5
    assert [host.host for host in found.hosts] == ["other.example", "example.org"]
    assert found.hosts[1] == HostUsage(
        host="example.org", snapshots=3, content_bytes=heads - len(LARGE) + 2 * len(PAGE)
    )
    assert [host.host for host in usage(home, 1).hosts] == ["other.example"]


def test_usage_of_odd_rows(home):
    """A page that is no URL any more is counted without a host."""
    keep(home, a_snapshot())
    tamper(home, "UPDATE snapshots SET page = 'http://['")
    assert [host.host for host in usage(home).hosts] == [""]


def test_usage_on_the_command_line(home, kept, monkeypatch):
    """`pravda du` prints the count for people and as JSON, with the limit that is set."""
    (home / "tmp" / "half").write_bytes(b"12345")
    monkeypatch.setenv("PRAVDA_MAX_BYTES", "20GB")
    text = pravda(home, "du").output
    assert "4, with 10 artifacts" in text
    assert "of 20.0 GB allowed" in text
    assert "aside" in text
    assert "other.example" in text
    flip(blob(home, kept[0]))
    look(home, repair=True)
    assert "quarantine" in pravda(home, "du", "--top", "0").output
    found = json.loads(pravda(home, "du", "--json").output)
    assert found["snapshots"] == 4
    assert found["max_bytes"] == 20_000_000_000
    assert found["hosts"][0]["host"] == "other.example"


def test_usage_of_an_empty_archive(home):
    """An archive without rows is counted too."""
    keep(home)
    assert "packed 1.0 times" in pravda(home, "du").output


def test_on_a_full_disk(tmp_path):
    """A full disk keeps nobody from looking through what is on it."""
    with small_disk(tmp_path) as home:
        (snapshot,) = keep(home, a_snapshot())
        flip(blob(home, snapshot))
        (home / "ballast").write_bytes(bytes(1_000_000))
        assert [found.harm for found in look(home)] == [Harm.CHANGED]
