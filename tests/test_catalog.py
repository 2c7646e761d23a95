"""Rows, queries and the schema."""

import gc
import itertools
import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravda.archive import connections, migrate, statements
from pravda.archive.catalog import Reader, insert, open_reader, open_writer
from pravda.archive.connections import Mode, connect, transaction
from pravda.archive.migrate import APPLICATION, FORMAT
from pravda.archive.rows import find_parameters, find_statement, row_hash, row_of, snapshot_of, sortable
from pravda.archive.trouble import is_locked, may_be_full, storage_trouble, unavailable
from pravda.core.digest import sha256
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import Reason, State
from pravda.errors import ArchiveUnavailable, Damaged
from tests.factories import NOON, a_snapshot, new_id

PAGES = ("https://a.example/", "https://b.example/")
KEYS = (None, "k", "l")


@pytest.fixture
def catalog(tmp_path):
    """The path of a new catalog."""
    path = tmp_path / "catalog.sqlite3"
    open_writer(path).close()
    return path


def many_snapshots() -> list[Snapshot]:
    """Every combination of page, key and state, at few times, so that ties are common."""
    return [
        a_snapshot(page, state=state, key=key, captured_at=NOON + timedelta(microseconds=step))[0]
        for page, key, state, step in itertools.product(PAGES, KEYS, State, (0, 1, 1, 2))
    ]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A reader on a catalog of many snapshots, and those snapshots."""
    path = tmp_path_factory.mktemp("home") / "catalog.sqlite3"
    snapshots = many_snapshots()
    writer = open_writer(path)
    insert(writer, [row_of(snapshot, {}) for snapshot in snapshots])
    reader = Reader(path)
    yield reader, snapshots, writer
    reader.close()
    writer.close()


MOMENTS = st.one_of(
    st.none(), st.builds(lambda step: NOON + timedelta(microseconds=step), st.integers(-1, 3))
)


QUERIES = st.builds(
    Query,
    page=st.sampled_from((None, *PAGES, "https://none.example/")),
    identity=st.sampled_from((None, *sorted({one.asked.identity for one in many_snapshots()}), "")),
    key=st.sampled_from((*KEYS, "none")),
    state=st.sampled_from((None, *State)),
    since=MOMENTS,
    until=MOMENTS,
    limit=st.sampled_from((-1, 0, 1, 2, 7, 1000, 2**70)),
)


def expected(snapshots: list[Snapshot], query: Query) -> list[Snapshot]:
    found = [
        snapshot
        for snapshot in snapshots
        if (query.page is None or snapshot.asked.page == query.page)
        and (query.identity is None or snapshot.asked.identity == query.identity)
        and (query.key is None or snapshot.asked.key == query.key)
        and (query.state is None or snapshot.state is query.state)
        and (query.since is None or snapshot.captured_at >= query.since)
        and (query.until is None or snapshot.captured_at <= query.until)
        and (query.before is None or snapshot.order < query.before)
    ]
    return sorted(found, key=lambda snapshot: snapshot.order, reverse=True)[: max(0, query.limit)]


@settings(max_examples=300, deadline=None)
@given(query=QUERIES, cursor=st.one_of(st.none(), st.integers(0, 10**6)))
def test_every_query_finds_what_it_says(filled, query, cursor):
    """For every combination of fields the catalog answers as a plain filter and sort does."""
    reader, snapshots, _ = filled
    if cursor is not None:
        query = replace(query, before=snapshots[cursor % len(snapshots)].order)
    wanted = expected(snapshots, query)
    assert [one.order for one in reader.find(query)] == [one.order for one in wanted]


def test_pages_of_a_listing_join_without_a_gap(filled):
    """Following the order of each page's last snapshot gives every snapshot once."""
    reader, snapshots, _ = filled
    seen: list[Snapshot] = []
    while page := reader.find(Query(limit=7, before=seen[-1].order if seen else None)):
        seen.extend(page)
    assert [one.id for one in seen] == [one.id for one in expected(snapshots, Query(limit=1000))]


@pytest.mark.parametrize("fields", list(itertools.product([False, True], repeat=7)))
def test_no_query_scans_or_sorts(filled, fields):
    """Every combination of fields is a seek in an index that has the order already."""
    _, snapshots, writer = filled
    names = ("page", "identity", "key", "state", "since", "until", "before")
    values = (PAGES[0], "i", "k", State.LIVE, NOON, NOON, snapshots[0].order)
    query = Query(**{name: value for name, value, used in zip(names, values, fields, strict=True) if used})
    plan = [
        row[3]
        for row in writer.execute(
            f"EXPLAIN QUERY PLAN {find_statement(query)}", find_parameters(query)
        ).fetchall()
    ]
    # without any condition the newest rows are simply the end of the index by time
    walk = "SEARCH snapshots USING INDEX" if any(fields) else "SCAN snapshots USING INDEX snapshots_by_time"
    assert len(plan) == 1, plan
    assert plan[0].startswith(walk), plan


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (Query(identity="i", state=State.LIVE), "snapshots_by_identity_state (identity=? AND state=?)"),
        (Query(identity="i"), "snapshots_by_identity (identity=?)"),
        (Query(page="p", state=State.LIVE), "snapshots_by_page_state (page=? AND state=?)"),
        (Query(page="p", since=NOON), "snapshots_by_page (page=? AND captured_at>?)"),
        (Query(key="k", state=State.LIVE), "snapshots_by_key_state (key=? AND state=?)"),
        (Query(key="k"), "snapshots_by_key (key=?)"),
        (Query(state=State.GONE), "snapshots_by_state (state=?)"),
        (Query(before=(NOON, "i")), "snapshots_by_time ((captured_at,id)<(?,?))"),
    ],
)
def test_each_question_has_its_index(filled, query, index):
    """What is looked up in every capture is sought by exactly its columns."""
    _, _, writer = filled
    plan = writer.execute(f"EXPLAIN QUERY PLAN {find_statement(query)}", find_parameters(query)).fetchall()
    assert plan[0][3] == f"SEARCH snapshots USING INDEX {index}"


@pytest.mark.parametrize("state", State)
def test_a_row_gives_its_snapshot_back(catalog, state):
    """A snapshot in any state comes back equal, with the microseconds of its time."""
    snapshot, _ = a_snapshot(
        state=state, captured_at=NOON.replace(microsecond=123_456), etag='W/"ü"', key="k"
    )
    writer, reader = open_writer(catalog), Reader(catalog)
    insert(writer, [row_of(snapshot, {})])
    found = reader.get(snapshot.id)
    assert found is not None
    assert found.captured_at == snapshot.captured_at
    assert (found.verdict, found.asked, found.validators) == (
        snapshot.verdict,
        snapshot.asked,
        snapshot.validators,
    )
    assert found.evidence.artifacts == snapshot.evidence.artifacts
    assert reader.get(new_id()) is None
    assert reader.get("\ud800") is None
    reader.close()
    writer.close()


def test_odd_text_fits_a_row(catalog):
    """Lone surrogates, which have no UTF-8 form, do not keep a snapshot out of the catalog."""
    snapshot, _ = a_snapshot()
    snapshot = replace(snapshot, evidence=replace(snapshot.evidence, url="https://example.org/\ud800\x00"))
    writer, reader = open_writer(catalog), Reader(catalog)
    insert(writer, [row_of(snapshot, {})])
    found = reader.get(snapshot.id)
    assert found is not None
    assert found.evidence.url == snapshot.evidence.url
    assert writer.execute("SELECT url FROM snapshots").fetchone() == ("https://example.org/?\x00",)
    reader.close()
    writer.close()


def test_the_hash_covers_every_fact():
    """The row's hash is that of its document in any layout, and changes with each fact and artifact."""
    snapshot, _ = a_snapshot()
    row = row_of(snapshot, {})
    document = str(row.snapshot["document"])
    assert row_hash(json.dumps(json.loads(document), indent=2)) == row.snapshot["row_hash"]
    for before, after in (
        ('"status":200', '"status":201'),
        (snapshot.evidence.artifacts[1].sha256, "0" * 64),
    ):
        assert before in document
        assert row_hash(document.replace(before, after)) != row.snapshot["row_hash"]


@pytest.mark.parametrize("document", ["", "{", "[]", "{}", '{"id":1}', "[" * 100_000])
def test_a_row_that_is_no_snapshot_is_damaged(document):
    """A document that nobody of ours wrote is named as damage, never a crash."""
    with pytest.raises(Damaged, match=r"snapshot S .*pravda verify"):
        snapshot_of("S", sortable(NOON), sha256(document.encode()), document)


@pytest.mark.parametrize(
    "change", [lambda text: text.replace('"status":200', '"status":201'), lambda text: text[1:]]
)
def test_a_row_with_other_facts_is_damaged(change):
    """A document that no longer has the row's hash is not handed out."""
    row = row_of(a_snapshot(snapshot_id="S")[0], {}).snapshot
    hashed, document = str(row["row_hash"]), str(row["document"])
    assert snapshot_of("S", sortable(NOON), hashed, document).id == "S"
    with pytest.raises(Damaged, match=r"snapshot S is (changed|unreadable).*pravda verify"):
        snapshot_of("S", sortable(NOON), hashed, change(document))


@pytest.mark.parametrize(("name", "moment"), [("T", NOON), ("S", NOON + timedelta(milliseconds=1))])
def test_a_row_whose_columns_lie_is_damaged(name, moment):
    """An id or a time beside the document that it contradicts is not believed."""
    row = row_of(a_snapshot(snapshot_id="S")[0], {}).snapshot
    with pytest.raises(Damaged, match="columns no longer say"):
        snapshot_of(name, sortable(moment), str(row["row_hash"]), str(row["document"]))


def test_damaged_rows_are_passed_over(catalog, caplog):
    """A listing leaves out rows that were changed in any way, says so, and still fills its limit with older ones."""
    writer, reader = open_writer(catalog), Reader(catalog)
    snapshots = [a_snapshot(captured_at=NOON + timedelta(seconds=step))[0] for step in range(8)]
    insert(writer, [row_of(snapshot, {}) for snapshot in snapshots])
    writer.execute("DROP TRIGGER snapshots_keep_values")
    for change, index in (
        ("document = replace(document, '200', '201')", 7),
        ("document = CAST(x'22ff' AS TEXT)", 5),
        ("state = 'live', captured_at = 'now'", 4),
        ("identity = 'x', row_hash = ''", 3),
    ):
        writer.execute(f"UPDATE snapshots SET {change} WHERE id = ?", (snapshots[index].id,))
    intact = [snapshots[index] for index in (6, 2, 1, 0)]
    assert reader.find(Query(limit=3)) == tuple(intact[:3])
    assert reader.find(Query(page=snapshots[0].asked.page)) == tuple(intact)
    assert f"passed over: The row of snapshot {snapshots[7].id} is changed" in caplog.text
    with pytest.raises(Damaged, match="changed"):
        reader.get(snapshots[7].id)
    writer.execute("UPDATE snapshots SET state = 'gone' WHERE id = ?", (snapshots[6].id,))
    assert reader.find(Query(state=State.GONE)) == ()
    assert "contradict" in caplog.text
    writer.execute("UPDATE snapshots SET captured_at = '2' WHERE id = ?", (snapshots[0].id,))
    assert len(reader.find(Query(since=NOON - timedelta(days=1)))) == 3
    reader.close()
    writer.close()


def test_times_sort_as_text():
    """Times of any zone and any year become texts that sort as they do."""
    zone = timezone(timedelta(hours=5, minutes=30))
    times = [
        datetime(1, 1, 1, tzinfo=UTC),
        NOON,
        NOON + timedelta(microseconds=1),
        NOON.astimezone(zone) + timedelta(seconds=1),
    ]
    assert sorted(map(sortable, reversed(times))) == list(map(sortable, times))
    assert {len(sortable(moment)) for moment in times} == {27}


def test_rows_are_append_only(catalog):
    """Neither snapshots nor artifacts can be changed or deleted."""
    writer = open_writer(catalog)
    insert(writer, [row_of(a_snapshot()[0], {})])
    for statement in (
        "UPDATE snapshots SET state = 'live'",
        "DELETE FROM snapshots",
        "UPDATE artifacts SET sha256 = ''",
        "DELETE FROM artifacts",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            writer.execute(statement)
    writer.close()


def test_a_reader_cannot_write(catalog):
    """A connection for reading refuses to write."""
    connection = connect(catalog, Mode.READ)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO meta VALUES ('x', 'y')")
    connection.close()


def test_a_new_catalog_describes_itself(catalog):
    """It has a secret of 32 bytes, a format, a mark of whose it is, and is durable and private."""
    writer, reader = open_writer(catalog), Reader(catalog)
    assert len(reader.secret()) == 32
    meta = dict(writer.execute("SELECT name, value FROM meta").fetchall())
    assert meta["format"] == FORMAT
    assert datetime.fromisoformat(meta["created_at"]) <= datetime.now(UTC)
    pragmas = ("user_version", "application_id", "journal_mode", "synchronous", "busy_timeout")
    found = [writer.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == [FORMAT, APPLICATION, "wal", 2, 30_000]
    assert catalog.stat().st_mode & 0o077 == 0
    reader.close()
    writer.close()


def test_a_secret_is_made_once(catalog):
    """Opening again, also by two at once, changes nothing."""
    reader = Reader(catalog)
    before = reader.secret()
    open_writer(catalog).close()
    assert reader.secret() == before
    reader.close()


def test_a_lost_secret_is_said(catalog):
    """Without its secret a catalog is not used, since every identity would change."""
    writer = open_writer(catalog)
    writer.execute("DELETE FROM meta")
    writer.close()
    reader = Reader(catalog)
    with pytest.raises(ArchiveUnavailable, match="secret"):
        reader.secret()
    reader.close()


def test_a_newer_catalog_is_left_alone(catalog):
    """A catalog of a newer Pravda is refused, and both formats are named."""
    connection = connect(catalog, Mode.CREATE)
    connection.execute(f"PRAGMA user_version = {FORMAT + 7}")
    connection.close()
    with pytest.raises(ArchiveUnavailable, match=rf"format {FORMAT + 7}, .* up to {FORMAT}"):
        open_writer(catalog)


@pytest.mark.parametrize("version", [0, 1])
def test_another_programs_database_is_left_alone(tmp_path, version):
    """A SQLite database that is no catalog is refused and stays as it was."""
    path = tmp_path / "catalog.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ArchiveUnavailable, match="another program's"):
        open_writer(path)
    assert path.read_bytes() == before


def test_what_is_no_database_is_left_alone(tmp_path):
    """A file that SQLite cannot read is refused and stays as it was."""
    path = tmp_path / "catalog.sqlite3"
    path.write_bytes(b"my precious notes" * 100)
    with pytest.raises(ArchiveUnavailable, match="no SQLite database"):
        open_writer(path)
    assert path.read_bytes() == b"my precious notes" * 100


def test_a_migration_is_all_or_nothing(tmp_path, monkeypatch):
    """A migration that fails in the middle leaves the catalog as it was."""
    path = tmp_path / "catalog.sqlite3"
    monkeypatch.setattr(migrate, "_MIGRATIONS", ((*statements.migrations()[0], "CREATE TABLE"),))
    with pytest.raises(ArchiveUnavailable, match="incomplete input"):
        open_writer(path)
    monkeypatch.undo()
    open_writer(path).close()


def test_a_migration_another_process_was_faster_with(catalog, monkeypatch):
    """Who finds under the lock that the work is done, does nothing."""
    answers = [FORMAT, 0]
    monkeypatch.setattr(migrate, "_known", lambda connection, catalog: answers.pop())
    connection = connect(catalog, Mode.CREATE)
    migrate.migrate(connection, catalog)
    assert connection.execute("SELECT count(*) FROM meta").fetchone() == (4,)
    connection.close()


def test_a_catalog_in_use_while_it_switches_to_its_log(tmp_path):
    """Opening waits for a transaction of another program, which SQLite's busy timeout does not cover."""
    path = tmp_path / "catalog.sqlite3"
    connection = connect(path, Mode.CREATE)
    migrate.migrate(connection, path)
    connection.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, connection.execute, ("COMMIT",))
    release.start()
    open_writer(path).close()
    release.join()
    connection.close()


def test_a_catalog_that_stays_locked(tmp_path, monkeypatch):
    """Waiting for the lock has an end, and the error says what to do."""
    path = tmp_path / "catalog.sqlite3"
    holder = connect(path, Mode.CREATE)
    migrate.migrate(holder, path)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    with pytest.raises(ArchiveUnavailable, match="locked"):
        open_writer(path)
    holder.close()


def test_a_failed_transaction_leaves_none_open(catalog):
    """Whether SQLite rolled back by itself or not, the next transaction can begin."""
    writer = open_writer(catalog)
    for statement in ("ROLLBACK", "SELECT 1"):
        with pytest.raises(KeyError), transaction(writer):  # noqa: PT012  # what happens inside is the case
            writer.execute(statement)
            raise KeyError
        assert not writer.in_transaction
    writer.close()


def test_a_known_id_is_answered_and_its_neighbours_are_kept(catalog):
    """A snapshot whose id is there already changes nothing, and does not hold up the rest."""
    writer, reader = open_writer(catalog), Reader(catalog)
    first, other = a_snapshot()[0], a_snapshot()[0]
    assert insert(writer, [row_of(first, {})], 5) == (set(), 5)
    assert insert(writer, [row_of(first, {}), row_of(other, {})]) == ({first.id}, 5)
    assert len(reader.find(Query())) == 2
    reader.close()
    writer.close()


def test_a_closed_reader_refuses(catalog):
    """After close no thread gets a connection again."""
    reader = Reader(catalog)
    reader.secret()
    reader.close()
    reader.close()
    with pytest.raises(ArchiveUnavailable, match="closed"):
        reader.get("x")


def test_a_catalog_that_went_away(tmp_path):
    """A reader whose file is not there says so, and makes none."""
    reader = Reader(tmp_path / "catalog.sqlite3")
    for use in (reader.secret, reader.refuse_older):
        with pytest.raises(ArchiveUnavailable, match="cannot be opened"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_troubles_without_a_code():
    """Errors that carry no number of SQLite's or the system's are reported as they are."""
    problem = sqlite3.ProgrammingError("odd")
    assert not is_locked(problem)
    assert "SQLite refused" in str(unavailable(problem, Path("c")))
    trouble = storage_trouble(OSError("odd"), Path("b"))
    assert trouble.reason is Reason.STORAGE_UNAVAILABLE
    assert "odd" in str(trouble)


def test_a_still_file_that_changes(catalog):
    """A reader without locks notices that its file changed, also several times, and reads it again as it is."""
    first, second, third = (a_snapshot(captured_at=NOON + timedelta(days=step))[0] for step in range(3))
    with closing(open_writer(catalog)) as writer:
        insert(writer, [row_of(first, {})])
    reader = Reader(catalog, immutable=True)
    assert reader.find(Query()) == (first,)
    assert not catalog.with_name(f"{catalog.name}-shm").exists()
    writer = open_writer(catalog)
    insert(writer, [row_of(second, {})])
    assert reader.find(Query()) == (second, first)
    writer.close()
    reader.close()
    reader = Reader(catalog, immutable=True)
    assert len(reader.find(Query())) == 2
    with closing(open_writer(catalog)) as writer:
        insert(writer, [row_of(third, {})])
    assert len(reader.find(Query())) == 3
    catalog.unlink()
    with pytest.raises(ArchiveUnavailable):
        reader.find(Query(limit=1))
    reader.close()


def test_a_still_file_that_breaks(catalog):
    """What a reader without locks cannot read is an error while the file stays as it is."""
    catalog.write_bytes(b"SQLite format 3\0" + bytes(8000))
    reader = Reader(catalog, immutable=True)
    with pytest.raises(ArchiveUnavailable):
        reader.find(Query())
    reader.close()


def test_a_reader_for_any_place(catalog):
    """A catalog is read with locks where that works; where it is no catalog, the reader lets go and says so."""
    reader = open_reader(catalog)
    assert reader.find(Query()) == ()
    reader.close()
    catalog.write_bytes(b"notes" * 2000)
    with pytest.raises(ArchiveUnavailable, match="no SQLite database"):
        open_reader(catalog)
    catalog.with_name(f"{catalog.name}-wal").write_bytes(b"x")
    with pytest.raises(ArchiveUnavailable):
        open_reader(catalog)
    gc.collect()


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(13, "Permission denied"), False),
        (sqlite3.OperationalError("x"), False),
        (ArchiveUnavailable("x"), False),
        (None, False),
    ],
)
def test_what_may_come_from_a_full_disk(problem, expected):
    """Errors that a full or failing disk raises are told apart from others, also behind one of ours."""
    assert may_be_full(problem) is expected
    outer = ArchiveUnavailable("y")
    outer.__cause__ = problem
    assert may_be_full(outer) is expected
