"""The book of hosts: what of it outlives a run, and what damage does to it."""

import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.hosts import HostFacts, MemoryBook, RobotsFacts, TooLong, from_json, to_json
from pravda.core.robots import Kind

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
HOST, ORIGIN = "example.org", "https://example.org"


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def answer(origin: str = ORIGIN, *, fetched_at: datetime = NOW, body: bytes = b"Allow: /") -> RobotsFacts:
    return RobotsFacts(
        origin=origin,
        fetched_at=fetched_at,
        kind=Kind.RULES,
        status=200,
        final_url=f"{origin}/robots.txt",
        detail="200 OK: rules",
        body=body,
    )


def facts(seconds: float = 30, *robots: RobotsFacts) -> HostFacts:
    return HostFacts(not_before=NOW + timedelta(seconds=seconds), robots=robots or (answer(),))


def written(**changes: Any) -> bytes:
    """A book of one host, its robots answer changed."""
    book = json.loads(to_json({HOST: facts()}, NOW))
    book["hosts"][HOST]["robots"][ORIGIN].update(changes)
    return json.dumps(book).encode()


@given(st.binary(max_size=100))
def test_a_book_is_read_as_it_was_written(body):
    """Every byte of a robots.txt and every moment survive being written down."""
    hosts = {
        HOST: facts(30, answer(body=body)),
        "other.example": HostFacts(not_before=NOW + timedelta(days=1)),
    }
    loaded = from_json(to_json(hosts, NOW), NOW)
    assert loaded.hosts == hosts
    assert loaded.warnings == ()


def test_only_what_is_of_use_is_written():
    """Pauses that are over and answers older than a day are left out, and hosts without anything else with them."""
    hosts = {
        "over.example": HostFacts(not_before=ago(seconds=1)),
        "old.example": HostFacts(robots=(answer(fetched_at=ago(hours=24)),)),
        HOST: HostFacts(not_before=ago(days=9), robots=(answer(fetched_at=ago(hours=23)),)),
    }
    assert list(json.loads(to_json(hosts, NOW))["hosts"]) == [HOST]


def test_the_file_is_for_people_too():
    """The file is indented, sorted and ends with a line end; times are UTC with milliseconds."""
    text = to_json({"b.example": facts(), "a.example": facts()}, NOW).decode()
    assert text.startswith(
        '{\n  "hosts": {\n    "a.example": {\n      "notBefore": "2026-01-01T12:00:30.000Z"'
    )
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 50, b"{", b"[]", b"null", b'{"hosts": []}', b'{"hosts": 5}', b"[" * 100_000, b"\xff\xfe"],
)
def test_a_damaged_file_reads_as_empty(data):
    """A book that is no book is empty, with a warning."""
    loaded = from_json(data, NOW)
    assert loaded.hosts == {}
    assert [note.code for note in loaded.warnings] == ["hosts_damaged"]


@pytest.mark.parametrize(
    "changes",
    [
        {"fetchedAt": None},
        {"fetchedAt": "yesterday"},
        {"fetchedAt": "2026-01-01T11:00:00"},
        {"fetchedAt": "0001-01-01T00:00:00+23:59"},
        {"kind": "permission"},
        {"status": "200"},
        {"status": True},
        {"body": None},
        {"body": "\ud800"},
        {"finalUrl": 5},
    ],
)
def test_a_damaged_answer_costs_only_itself(changes):
    """An answer that cannot be read is left out with a warning; the rest of the host stays."""
    loaded = from_json(written(**changes), NOW)
    assert loaded.hosts[HOST] == HostFacts(not_before=NOW + timedelta(seconds=30))
    assert [note.code for note in loaded.warnings] == ["hosts_damaged"]


@pytest.mark.parametrize(
    "entry", [5, {"robots": 5}, {"notBefore": 5}, {"notBefore": "soon"}, {"robots": {"x": 5}}]
)
def test_a_damaged_host_costs_only_itself(entry):
    """A host that cannot be read is known as nothing, with a warning; the others stay."""
    book = json.loads(to_json({HOST: facts()}, NOW))
    book["hosts"]["bad.example"] = entry
    loaded = from_json(json.dumps(book).encode(), NOW)
    assert loaded.hosts == {HOST: facts(), "bad.example": HostFacts()}
    assert [note.code for note in loaded.warnings] == ["hosts_damaged"]


def test_a_date_in_the_future_counts_as_due():
    """An answer from tomorrow and a pause longer than anyone can ask for are left out, with a warning each."""
    tomorrow = NOW + timedelta(days=1)
    data = to_json({HOST: facts(3600, answer(fetched_at=tomorrow))}, NOW)
    loaded = from_json(data, ago(days=8))
    assert loaded.hosts[HOST] == HostFacts()
    assert [note.code for note in loaded.warnings] == ["hosts_in_future"] * 2


def test_a_pause_ends():
    """A host rests until its time has come, and not at all where that time cannot be true."""
    assert facts(30).resting_until(NOW) == NOW + timedelta(seconds=30)
    assert facts(0).resting_until(NOW) is None
    assert facts(8 * 86400).resting_until(NOW) is None
    assert HostFacts().resting_until(NOW) is None


def test_a_host_has_few_origins():
    """One host's answers are held for its last origins only, one for each."""
    host = HostFacts()
    for port in (*range(8001, 8020), 8019):
        host = host.with_robots(answer(f"http://example.org:{port}"))
    assert len(host.robots) == 8
    assert host.robots_of("http://example.org:8019") == answer("http://example.org:8019")
    assert host.robots_of("http://example.org:8001") is None


def test_a_memory_book_can_be_written_down():
    """A book in memory gives back what was put, and shows it all."""
    book = MemoryBook({"a.example": facts()})
    book.put("b.example", facts())
    assert book.get("b.example") == book.get("a.example")
    assert book.get("c.example") is None
    assert set(book.hosts) == {"a.example", "b.example"}


def test_too_long_survives_pickling():
    """The refusal to wait names host and time, also after a trip to another process."""
    told = pickle.loads(pickle.dumps(TooLong("example.org", NOW)))
    assert (told.host, told.until) == ("example.org", NOW)
    assert str(told) == "example.org is not to be asked again before 2026-01-01T12:00:00+00:00"


def test_times_of_other_zones_are_read():
    """A time with another zone is the same moment."""
    there = NOW.astimezone(timezone(timedelta(hours=5))).isoformat()
    assert from_json(written(fetchedAt=there), NOW).hosts[HOST].robots == (answer(),)
