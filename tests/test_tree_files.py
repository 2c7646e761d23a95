"""The files of a tree: their JSON, their times, how they are written, swept, locked and forgotten."""

import errno
import json
import multiprocessing
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.digest import sha256
from pravda.core.evidence import Validators
from pravda.core.hosts import HostFacts
from pravda.core.states import Cause, Reason, State
from pravda.testing import START, FrozenClock
from pravda.tree import layout
from pravda.tree.book import TreeBook
from pravda.tree.files import Tree, Unreadable, read_file, storage_reason
from pravda.tree.lock import TreeBusy, TreeUnavailable
from pravda.tree.meta import Meta, read_meta
from pravda.tree.standing import survey
from pravda.tree.state import SourceState, due, next_due, read_state
from tests.trees import ONE, sources

HOUR, DAY = 3600.0, 86400.0
BODY = b"<p>stored</p>"


def a_meta(source_id: str = "a", body: bytes = BODY, **fields: Any) -> Meta:
    """Metadata of a page stored at START."""
    return Meta(
        **{
            "source_id": source_id,
            "url": "https://example.org/a",
            "content_hash": sha256(body),
            "size": len(body),
            "charset": "utf-8",
            "validators": Validators(etag='"x"'),
            "content_changed_at": START,
            "last_confirmed_at": None,
            "item_count": None,
            **fields,
        }
    )


def a_tree(root: Path) -> Tree:
    """A tree with one stored page."""
    tree = Tree(root)
    with tree.locked(START):
        tree.store(a_meta(), BODY, "html")
        tree.record(SourceState(source_id="a", last_checked_at=START))
    return tree


def meta_of(text: str | bytes) -> Meta | None:
    """The metadata in a text."""
    return read_meta("a", text if isinstance(text, bytes) else text.encode())


# metadata


def test_metadata_of_a_new_page():
    """New metadata has its keys in the one order, two-space JSON, a final newline and times with milliseconds."""
    meta = a_meta(last_confirmed_at=START + timedelta(milliseconds=5), item_count=3)
    assert meta.to_file().decode() == (
        '{\n  "sourceId": "a",\n  "url": "https://example.org/a",\n'
        f'  "contentHash": "{sha256(BODY)}",\n  "bytes": 13,\n  "charset": "utf-8",\n'
        '  "etag": "\\"x\\"",\n  "lastModified": null,\n  "contentChangedAt": "2026-01-01T12:00:00.000Z",\n'
        '  "lastConfirmedAt": "2026-01-01T12:00:00.005Z",\n  "itemCount": 3\n}\n'
    )
    assert meta_of(meta.to_file()) == meta


OLD = (
    '{\n  "sourceId": "a",\n  "note": "ü\\ud800 \u2028",\n  "contentHash": "' + sha256(BODY) + '",\n'
    '  "bytes": 13,\n  "contentChangedAt": "2026-01-01T12:00:00Z",\n  "eventCount": 2,\n  "url": "https://example.org/a"\n}\n'
)


def test_metadata_that_exists_keeps_its_shape():
    """A file that is rewritten keeps key names, order, unknown keys and the spelling of times; new keys come last."""
    meta = meta_of(OLD)
    assert meta is not None
    assert (meta.item_count, meta.charset, meta.last_confirmed_at) == (2, "utf-8", None)
    assert meta.to_file().decode() == OLD.replace(
        'example.org/a"\n}',
        'example.org/a",\n  "charset": "utf-8",\n  "etag": null,\n  "lastModified": null,\n  "lastConfirmedAt": null\n}',
    )


def test_last_confirmation_is_adopted(tmp_path: Path):
    """Where metadata has no `lastConfirmedAt`, that of an old state file is taken; its own null is not replaced."""
    state = b'{"lastConfirmedAt": "2026-02-01T00:00:00.000Z"}'
    adopted = read_meta("a", OLD.encode(), state)
    assert adopted is not None
    assert adopted.last_confirmed_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert adopted.fresh_at == adopted.last_confirmed_at
    for damaged in (None, b"", b"[]"):
        meta = read_meta("a", OLD.encode(), damaged)
        assert meta is not None
        assert meta.last_confirmed_at is None
        assert meta.fresh_at == START
    tree = a_tree(tmp_path)
    (tree.folder / "a.meta.json").write_text(OLD)
    (tree.folder / "a.state.json").write_bytes(state)
    assert tree.page("a", "html").meta == adopted
    own = read_meta("a", OLD.replace('"note"', '"lastConfirmedAt": null, "note"').encode(), state)
    assert own is not None
    assert own.last_confirmed_at is None


def test_freshness_is_the_later_time():
    """A page is as fresh as the later of its last change and its last confirmation."""
    assert a_meta(last_confirmed_at=START + timedelta(days=1)).fresh_at == START + timedelta(days=1)
    assert a_meta(last_confirmed_at=START - timedelta(days=1)).fresh_at == START


@pytest.mark.parametrize(
    ("value", "name"),
    [('"UTF-8"', "utf-8"), ('"latin1"', "windows-1252"), ('"x-none"', "utf-8"), ("5", "utf-8")],
)
def test_charset_of_metadata(value: str, name: str):
    """Charsets read as WHATWG names in lower case; what is none reads as utf-8."""
    meta = meta_of(OLD.replace('"note"', f'"charset": {value}, "note"'))
    assert meta is not None
    assert meta.charset == name


@pytest.mark.parametrize(
    "value", ['""', '"  "', '"a\\r\\nX: y"', '"ü\u2028"', "5", "null", '"' + "x" * 9000 + '"']
)
def test_validators_that_cannot_be_sent(value: str):
    """A blank validator, or one that no header can carry, counts as none."""
    meta = meta_of(OLD.replace('"note"', f'"etag": {value}, "lastModified": {value}, "note"'))
    assert meta is not None
    assert not meta.validators


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"etag":',
        b"\0" * 400,
        b"[]",
        b"5",
        b"\xff",
        b"[" * 200_000,
        b"{}",
        b'{"contentHash": "abc", "contentChangedAt": "2026-01-01T12:00:00Z"}',
        OLD.replace("2026-01-01T12:00:00Z", "then").encode(),
        OLD.replace("2026-01-01T12:00:00Z", "2026-01-01T12:00:00").encode(),
        OLD.replace("2026-01-01T12:00:00Z", "0001-01-01T00:00:00+05:00").encode(),
        OLD.replace('"bytes": 13', '"bytes": NaN').encode(),
        OLD.replace('"bytes": 13', '"bytes": 1e999').encode(),
        OLD.replace('"bytes": 13', '"bytes": ' + "9" * 5000).encode(),
        b" " * (layout.LONGEST_JSON + 1),
    ],
)
def test_damaged_metadata(data: bytes):
    """Damaged metadata reads as none, whatever the bytes are."""
    assert meta_of(data) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _JSON, max_size=5))
def test_unknown_keys_survive(extra: dict[str, Any]):
    """Whatever else is in a file is there again after it is rewritten, and rewriting again changes nothing."""
    old = {**extra, "contentHash": sha256(BODY), "contentChangedAt": "2026-01-01T12:00:00.000Z"}
    meta = meta_of(layout.write_object(old))
    assert meta is not None
    once = meta.to_file()
    again = meta_of(once)
    assert again == meta
    assert again is not None
    assert again.to_file() == once
    ours = set(json.loads(a_meta().to_file())) | {"eventCount", "finalUrl"}
    assert {key: value for key, value in json.loads(once).items() if key not in ours} == {
        key: value for key, value in extra.items() if key not in ours
    }


@given(st.binary(max_size=300))
def test_any_bytes_are_metadata_or_damage(data: bytes):
    """No bytes do more than read as damaged."""
    assert meta_of(data) is None
    read_state("a", data)


# state


def test_state_round_trip():
    """A recorded attempt reads as it was written, an old file's own keys kept."""
    state = SourceState(
        source_id="a",
        last_checked_at=START,
        last_status=503,
        state=State.DOWN,
        cause=Cause.HTTP_ERROR,
        reason=Reason.SERVICE_UNAVAILABLE,
        failures=4,
        refusals=1,
        next_due_at=START + timedelta(hours=1),
        standing=b'{"lastConfirmedAt": "x", "sourceId": "a"}',
    )
    written = state.to_file()
    assert read_state("a", written) == state
    assert state.broken
    assert list(json.loads(written)) == [
        "lastConfirmedAt",
        "sourceId",
        "lastCheckedAt",
        "lastStatus",
        "state",
        "cause",
        "reason",
        "consecutiveFailures",
        "consecutiveRefusals",
        "nextDueAt",
    ]


def test_state_of_another_tool():
    """What cannot be read in a state file counts as absent."""
    odd = b'{"lastStatus": "ok", "state": "fine", "cause": 5, "consecutiveFailures": -1, "nextDueAt": 7}'
    assert read_state("a", odd) == SourceState(source_id="a")
    assert read_state("a", b"\0\0") is None


def at(hours: float) -> datetime:
    """Hours after START."""
    return START + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("last", "following", "now", "is_due", "warns"),
    [
        (None, None, 0, True, False),
        (0, 6, 5.99, False, False),
        (0, 6, 6, True, False),
        (0, None, 5.99, False, False),
        (0, None, 6, True, False),
        (0, 24 * 7, 24, False, False),
        (0, 24 * 30, 24, True, True),
        (1, 7, 0, True, True),
    ],
)
def test_due(last: float | None, following: float | None, now: float, is_due: bool, warns: bool):
    """A source is due at its recorded time; times in the future or beyond all reason do not count, with a warning."""
    state = SourceState(
        source_id="a",
        last_checked_at=None if last is None else at(last),
        next_due_at=None if following is None else at(following),
    )
    turn = due(state, 6 * HOUR, at(now))
    assert turn.due is is_due
    assert bool(turn.warning) is warns


def test_due_at_the_end_of_the_calendar():
    """Times at the end of the calendar break nothing."""
    end = datetime(9999, 12, 31, 23, tzinfo=UTC)
    state = SourceState(source_id="a", last_checked_at=end, next_due_at=end)
    assert not due(state, 100 * 366 * DAY, end - timedelta(0)).warning
    assert due(state, HOUR, START).due
    assert next_due(end, interval=DAY, failures=0) > end


@pytest.mark.parametrize(
    ("interval", "failures", "hours"),
    [
        (6, 0, 6),
        (6, 1, 6),
        (6, 2, 12),
        (6, 3, 24),
        (6, 4, 48),
        (6, 6, 24 * 7),
        (6, 10**6, 24 * 7),
        (0, 5, 0),
        (24 * 30, 3, 24 * 30),
    ],
)
def test_back_off(interval: float, failures: int, hours: float):
    """A streak doubles the interval with every failure, up to seven days, never below the interval; 0 stays 0."""
    assert next_due(START, interval=interval * HOUR, failures=failures) == at(hours)


@pytest.mark.parametrize(
    ("status", "wait", "hours"),
    [(429, 3, 6), (429, 9, 9), (503, 9, 9), (500, 9, 6), (429, None, 6), (429, 24 * 100, 24 * 7)],
)
def test_retry_after(status: int, wait: float | None, hours: float):
    """Retry-After on 429 and 503 puts a source off, by a week at most; it never brings one forward."""
    seconds = None if wait is None else wait * HOUR
    assert next_due(START, interval=6 * HOUR, failures=1, status=status, retry_after=seconds) == at(hours)


# writing


def test_new_files_have_the_usual_mode(tmp_path: Path):
    """A new file may be read as a plain open would have it, under the umask of the moment."""
    before = os.umask(0o027)
    try:
        a_tree(tmp_path)
    finally:
        os.umask(before)
    for name in ("a.html", "a.meta.json", "a.state.json"):
        assert stat.S_IMODE((tmp_path / "snapshots" / name).stat().st_mode) == 0o640


def test_rewritten_files_keep_their_mode(tmp_path: Path):
    """A file that is rewritten may be read by whom it could before."""
    tree = a_tree(tmp_path)
    (tree.folder / "a.html").chmod(0o604)
    tree.store(a_meta(body=b"new"), b"new", "html")
    assert stat.S_IMODE((tree.folder / "a.html").stat().st_mode) == 0o604


def test_a_link_is_replaced_not_followed(tmp_path: Path):
    """A symbolic link in a cloned tree is replaced; what it points at stays as it is."""
    tree, outside = a_tree(tmp_path), tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tree.folder / "a.html").unlink()
    (tree.folder / "a.html").symlink_to(outside)
    tree.store(a_meta(), BODY, "html")
    assert outside.read_bytes() == b"precious"
    assert (tree.folder / "a.html").read_bytes() == BODY


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, call: str, nth: int, number: int) -> Iterator[None]:
    """The nth call of a function of `os` fails."""
    real, count = getattr(os, call), iter(range(1, 1000))

    def fake(*arguments: Any, **named: Any) -> Any:
        if next(count) == nth:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fake)
        yield


@pytest.mark.parametrize(("call", "nth"), [("fsync", 1), ("fsync", 2), ("replace", 1)])
def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int):
    """A disk that fills up while a page is written leaves the old page whole and nothing aside."""
    tree = a_tree(tmp_path)
    before = {path.name: path.read_bytes() for path in tree.folder.iterdir()}
    with failing(monkeypatch, call, nth, errno.ENOSPC), pytest.raises(OSError, match="No space"):
        tree.store(a_meta(body=b"new"), b"new", "html")
    assert {path.name: path.read_bytes() for path in tree.folder.iterdir()} == before


def test_bytes_stand_before_the_metadata_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page is in place, and so is its folder entry, before its metadata is."""
    tree, log = a_tree(tmp_path), list[str]()
    replace, fsync = os.replace, os.fsync

    def logged_replace(source: Path, target: Path) -> None:
        log.append(target.name)
        replace(source, target)

    def logged_fsync(descriptor: int) -> None:
        log.append("sync")
        fsync(descriptor)

    monkeypatch.setattr(os, "replace", logged_replace)
    monkeypatch.setattr(os, "fsync", logged_fsync)
    tree.store(a_meta(body=b"new"), b"new", "html")
    assert log == ["sync", "sync", "a.html", "sync", "a.meta.json"]


def test_leftovers_are_swept(tmp_path: Path):
    """What a killed run left aside is removed, and nothing else."""
    tree = a_tree(tmp_path)
    others = {"notes.txt", "x.tmp-1", "README.tmp-1", "folder.html.tmp-1"}
    (tree.folder / "folder.html.tmp-1").mkdir()
    for name in {"a.html.tmp-1", "a.meta.json.tmp-12-ab", "_hosts.state.json.tmp-9", *others} - {
        "folder.html.tmp-1"
    }:
        (tree.folder / name).write_bytes(b"{}")
    tree.sweep()
    names = {path.name for path in tree.folder.iterdir()}
    assert names == {"a.html", "a.meta.json", "a.state.json", "_refresh.lock", *others}
    Tree(tmp_path / "nowhere").sweep()


def test_a_run_killed_between_the_two_renames_is_finished(tmp_path: Path):
    """Metadata that was written aside is moved into place when the bytes it names are there already."""
    tree, new = a_tree(tmp_path), b"<p>new</p>"
    (tree.folder / "a.html").write_bytes(new)
    (tree.folder / "a.meta.json.tmp-1-x").write_bytes(a_meta(body=new).to_file())
    assert not tree.page("a", "html").intact
    tree.sweep()
    assert tree.page("a", "html").intact
    assert not list(tree.folder.glob("*.tmp-*"))


def test_metadata_of_bytes_that_never_came_is_dropped(tmp_path: Path):
    """Metadata aside for bytes that are not there, or that is there already, is removed."""
    tree = a_tree(tmp_path)
    for body in (b"<p>never came</p>", BODY):
        (tree.folder / "a.meta.json.tmp-1-x").write_bytes(a_meta(body=body, charset="gbk").to_file())
        tree.sweep()
        meta = tree.page("a", "html").meta
        assert meta is not None
        assert meta.charset == "utf-8"
        assert not list(tree.folder.glob("*.tmp-*"))


# reading


def test_a_page_and_its_damage(tmp_path: Path):
    """What is wrong with a stored page is told, and bytes that are not what they should be are never intact."""
    tree = a_tree(tmp_path)
    page = tree.page("a", "html")
    assert (page.body, page.intact, page.damage) == (BODY, True, ())
    (tree.folder / "a.html").write_bytes(b"TRUNC")
    assert "hash differs" in tree.page("a", "html").damage[0]
    (tree.folder / "a.html").unlink()
    missing = tree.page("a", "html")
    assert (missing.body, missing.intact, missing.damage) == (None, False, ("a.html is missing",))
    (tree.folder / "a.meta.json").write_bytes(b'{"etag":')
    (tree.folder / "a.state.json").write_bytes(b"")
    assert tree.page("a", "html").damage == ("a.meta.json is damaged",)
    assert tree.state("a") == (SourceState(source_id="a"), ("a.state.json is damaged",))
    assert tree.page("b", "html").damage == ()


def test_what_is_no_file(tmp_path: Path):
    """A folder, a pipe, a loop of links or an endless file is told as damage and holds nobody up."""
    tree = a_tree(tmp_path)
    target = tree.folder / "a.html"
    target.unlink()
    os.mkfifo(target)
    assert tree.page("a", "html").damage[0] == "a.html cannot be read: it is no file"
    target.unlink()
    target.mkdir()
    assert not tree.page("a", "html").intact
    target.rmdir()
    target.symlink_to(target)
    assert "cannot be read" in tree.page("a", "html").damage[0]
    with pytest.raises(Unreadable, match="longer than 3 bytes"):
        read_file(tree.folder / "a.meta.json", 3)
    with pytest.raises(Unreadable):
        read_file(Path("/proc/self/mem"), 3)


def test_ids_and_retired_ids(tmp_path: Path):
    """The ids of a tree are those with metadata or state; retired are those that no source names."""
    tree = a_tree(tmp_path)
    tree.record(SourceState(source_id="old.one"))
    (tree.folder / "README.md").write_text("x")
    (tree.folder / "_hosts.state.json").write_text("{}")
    assert tree.ids() == ("a", "old.one")
    assert tree.retired(["a"]) == ("old.one",)


def test_forget(tmp_path: Path):
    """A forgotten id loses page, metadata and state, under every extension; its neighbours stay."""
    tree = a_tree(tmp_path)
    for name in ("a.json", "a.b.html", "ab.html", "a.b.meta.json"):
        (tree.folder / name).write_bytes(b"x")
    assert tree.forget("a") == ("a.meta.json", "a.html", "a.json", "a.state.json")
    assert {path.name for path in tree.folder.iterdir()} == {
        "_refresh.lock", "a.b.html", "a.b.meta.json", "ab.html"
    }  # fmt: skip
    assert tree.forget("a") == ()


def test_survey(tmp_path: Path):
    """A tree tells freshness, streaks, damage and retired ids without asking anybody."""
    tree = a_tree(tmp_path)
    tree.record(SourceState(source_id="gone"))
    text = ONE + '[[source]]\nid = "b"\nurl = "https://example.org/b"\n'
    seen = survey(tree, sources(text), at(1))
    stored, never = seen.sources
    assert (stored.fresh_at, stored.intact, stored.turn.due) == (START, True, False)
    assert (never.fresh_at, never.intact, never.turn.due, never.damage) == (None, False, True, ())
    assert seen.retired == ("gone",)
    assert seen.damaged == ()
    (tree.folder / "a.html").write_bytes(b"TRUNC")
    seen = survey(tree, sources(text), at(1))
    assert seen.damaged == ("a",)
    assert seen.sources[0].fresh_at is None


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, Reason.DISK_FULL),
        (errno.EROFS, Reason.STORAGE_DENIED),
        (errno.EMFILE, Reason.RESOURCE_EXHAUSTED),
        (errno.EIO, Reason.STORAGE_UNAVAILABLE),
        (None, Reason.STORAGE_UNAVAILABLE),
    ],
)
def test_storage_reasons(number: int | None, reason: Reason):
    """The operating system's word becomes a reason of ours."""
    assert storage_reason(OSError(number, "x") if number else OSError("x")) is reason


# lock


def hold(root: str, taken: Event, leave: Event) -> None:
    """Hold a tree's lock in another process."""
    with Tree(Path(root)).locked(START):
        taken.set()
        leave.wait(20)


def test_the_lock_says_who_holds_it(tmp_path: Path):
    """A tree that another process works on is refused with its number, machine and time; a killed one holds nothing."""
    spawn = multiprocessing.get_context("spawn")
    taken, leave = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(str(tmp_path), taken, leave))
    other.start()
    assert taken.wait(20)
    with pytest.raises(TreeBusy) as caught, Tree(tmp_path).locked(START):
        pass
    assert caught.value.holder.pid == other.pid
    assert f"process {other.pid} on {os.uname().nodename} since 2026-01-01T12:00:00.000Z" in str(caught.value)
    other.kill()
    other.join()
    with Tree(tmp_path).locked(START):
        pass
    assert (tmp_path / "snapshots" / "_refresh.lock").read_bytes() == b""


@pytest.mark.parametrize("said", [b"", b"\xff", b'{"pid": "x", "host": 5, "since": "\\u001b[31m"}'])
def test_a_holder_that_says_nothing_readable(tmp_path: Path, said: bytes):
    """Whatever stands in a lock file, the message about it is printable."""
    tree = Tree(tmp_path)
    with tree.locked(START):
        (tree.folder / "_refresh.lock").write_bytes(said)
        with pytest.raises(TreeBusy, match="another process") as caught, tree.locked(START):
            pass
    assert str(caught.value).isprintable()


def test_a_tree_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A root that is absent, a lock that is a link, and a file system without locks are told."""
    with (
        pytest.raises(TreeUnavailable, match="cannot be made"),
        Tree(tmp_path / "no" / "where").locked(START),
    ):
        pass
    tree = Tree(tmp_path)
    tree.folder.mkdir()
    (tree.folder / "_refresh.lock").symlink_to(tmp_path / "x")
    with pytest.raises(TreeUnavailable, match="cannot be opened"), tree.locked(START):
        pass
    (tree.folder / "_refresh.lock").unlink()

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(TreeUnavailable, match="No locks"), tree.locked(START):
        pass


# hosts


def test_the_book_of_hosts_outlives_a_run(tmp_path: Path):
    """What is learnt of hosts is there in the next run; damage is left out and told."""
    tree, clock = a_tree(tmp_path), FrozenClock()
    book = TreeBook(tree, clock)
    assert book.load() == ()
    book.save()
    assert tree.hosts() is None
    assert not book.due()
    book.put("example.org", HostFacts(not_before=at(1)))
    assert not book.due()
    clock.advance(seconds=31)
    assert book.due()
    book.save()
    assert not book.due()
    again = TreeBook(tree, clock)
    assert again.load() == ()
    assert again.get("example.org") == HostFacts(not_before=at(1))
    assert again.get("other.example") is None
    (tree.folder / layout.HOSTS).write_bytes(b"\0")
    assert [note.code for note in again.load()] == ["hosts_damaged"]
