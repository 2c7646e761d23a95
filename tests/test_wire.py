"""The one JSON form of snapshots and answers, both ways."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravda.core.outcome import Answer, Newest, Result
from pravda.core.rules import Rules, evaluate
from pravda.core.states import State
from pravda.core.wire import (
    NotPravda,
    answer_from_json,
    answer_to_json,
    read_time,
    snapshot_from_json,
    snapshot_to_json,
    time_text,
)
from tests.factories import NOON, a_snapshot
from tests.strategies import answers, snapshots
from tests.test_classify import subject


def document(**changes):
    snapshot, _ = a_snapshot()
    return {**json.loads(json.dumps(snapshot_to_json(snapshot))), **changes}


@given(snapshots())
def test_snapshots_round_trip(snapshot):
    """A snapshot is the same after its way through JSON."""
    text = json.dumps(snapshot_to_json(snapshot), allow_nan=False)
    assert snapshot_from_json(json.loads(text)) == snapshot


@given(answers())
def test_answers_round_trip(answer):
    """An answer is the same after its way through JSON."""
    text = json.dumps(answer_to_json(answer), allow_nan=False)
    assert answer_to_json(answer_from_json(json.loads(text))) == json.loads(text)


def test_snapshot_has_the_documented_fields():
    """A snapshot has every field of the design, and those that make it whole again."""
    snapshot, _ = a_snapshot(state=State.DOWN)
    shape = snapshot_to_json(snapshot)
    assert list(shape) == [
        "id", "url", "final_url", "engine", "method", "requested_at", "captured_at", "state", "usable", "failure",
        "http", "content", "validators", "not_modified", "content_from", "content_captured_at", "request",
        "client_redirects", "artifacts", "checks", "warnings", "error", "timings",
    ]  # fmt: skip
    parts = {
        "failure": "cause reason fault phase detail evidence retry_after_seconds raw",
        "http": "status version headers redirects remote_address tls",
        "content": "sha256 bytes media_type charset charset_from ending wire_bytes declared_bytes",
        "validators": "etag last_modified",
        "request": "key expect conditional tls steps capture_id page identity artifacts headers sent_validators",
        "timings": "dns_ms connect_ms tls_ms first_byte_ms total_ms",
    }
    for name, fields in parts.items():
        part = shape[name]
        assert isinstance(part, dict)
        assert list(part) == fields.split()
    assert shape["usable"] is False
    assert document()["usable"] is True


def test_list_items():
    """Evidence, artifacts, redirects, checks and warnings have the shapes of the design."""
    shape = document()
    assert shape["artifacts"][0] == {
        "name": "body",
        "media_type": "text/html",
        "bytes": shape["content"]["bytes"],
        "sha256": shape["content"]["sha256"],
        "redacted": False,
        "href": f"/snapshots/{shape['id']}/artifacts/body",
    }
    assert shape["http"]["headers"] == [["Content-Type", "text/html; charset=utf-8"]]
    assert shape["captured_at"] == "2026-03-01T12:00:00.250Z"


def test_answer_has_the_documented_fields():
    """A usable answer is no problem, and has null where something is absent."""
    snapshot, _ = a_snapshot()
    answer = Answer(result=Result.REUSED, snapshot=snapshot, attempt=None, age_seconds=5.0)
    shape = answer_to_json(answer)
    assert list(shape) == [
        "result", "stale", "age_seconds", "max_stale_age_seconds", "snapshot", "attempt", "attempts", "newest_usable",
    ]  # fmt: skip
    assert (shape["result"], shape["stale"], shape["attempt"], shape["newest_usable"]) == (
        "reused",
        False,
        None,
        None,
    )


def test_failed_answer_is_a_problem():
    """A failed answer is an RFC 9457 problem at the same time."""
    attempt, _ = a_snapshot(state=State.DOWN)
    newest = Newest(id="0198", captured_at=NOON, age_seconds=90000)
    shape = answer_to_json(Answer(result=Result.FAILED, snapshot=None, attempt=attempt, newest_usable=newest))
    assert list(shape)[:5] == ["type", "title", "status", "detail", "result"]
    assert shape["type"] == "urn:pravda:problem:no-usable-snapshot"
    assert (shape["title"], shape["status"], shape["result"]) == ("No usable snapshot", 502, "failed")
    assert str(shape["detail"]).startswith("down, service_unavailable: ")
    assert shape["newest_usable"] == {
        "id": "0198",
        "captured_at": "2026-03-01T12:00:00.250Z",
        "age_seconds": 90000,
    }


def test_redirects_without_a_response():
    """Hops that were followed are kept when the last one gave no response."""
    snapshot, _ = a_snapshot(state=State.DOWN)
    bare = replace(snapshot, evidence=replace(snapshot.evidence, response=None))
    assert snapshot_to_json(bare)["http"] is None
    assert snapshot_from_json(snapshot_to_json(bare)) == bare


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T12:00:00.250Z", NOON),
        ("2026-03-01T13:00:00.25+01:00", NOON),
        ("2026-03-01T12:00:00.250-00:00", NOON),
    ],
)
def test_times(text, moment):
    """A time is read in any zone and written in UTC with milliseconds."""
    assert read_time(text) == moment
    assert time_text(moment.astimezone(timezone(timedelta(hours=5)))) == "2026-03-01T12:00:00.250Z"


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-03-01", "2026-03-01T12:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59",
     "9999-12-31T23:59:59-23:59", "\ud800", "1" * 10_000],
)  # fmt: skip
def test_bad_times(text):
    """What is no time with a zone, or none that the calendar holds, is not Pravda's."""
    with pytest.raises(NotPravda):
        read_time(text)


def test_seconds_before_the_calendar_begins():
    """The first moment of the calendar can still be written and read."""
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert read_time(time_text(first)) == first


STORED = {
    "selector": ["a[", "p"],
    "matches": "(",
    "final_url": "(",
    "json_path": "$[",
    "xpath": "//",
    "min_matches": 1,
}


def test_old_rules_stay_readable():
    """Rules that today's parser refuses keep their row readable, and fail with the reason why."""
    shape = document()
    shape["request"]["expect"] = {
        **STORED,
        "unheard_of": 5,
        "max_bytes": "many",
        "max_drop": True,
        "charset": [5],
    }
    rules = snapshot_from_json(shape).asked.expect
    assert rules == Rules(
        selector=("a[", "p"),
        matches=("(",),
        final_url=("(",),
        json_path=("$[",),
        xpath=("//",),
        min_matches=1,
    )
    checks = {(check.rule, check.expected): check for check in evaluate(rules, subject(b"<p>One"), None)}
    assert checks["selector", "p"].passed
    for rule in ("selector", "matches", "final_url", "json_path", "xpath"):
        refused = next(check for check in checks.values() if check.rule == rule)
        assert not refused.passed
        assert isinstance(refused.found, str)


def test_an_old_json_path_stays_readable():
    """A JSONPath that is refused today fails on a JSON page with the reason why."""
    page = subject(b"{}", content_type="application/json")
    (check,) = evaluate(Rules.stored({"json_path": "$["}), page, None)
    assert not check.passed
    assert check.found != "body is not JSON"


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def full_answer():
    attempt, _ = a_snapshot(state=State.PARTIAL, etag='"a"')
    stale, _ = a_snapshot(expect=Rules(selector=("p",)))
    newest = Newest(id="0198", captured_at=NOON, age_seconds=90000)
    answer = Answer(
        result=Result.STALE,
        snapshot=stale,
        attempt=attempt,
        attempts=("1",),
        age_seconds=5,
        newest_usable=newest,
    )
    return json.loads(json.dumps(answer_to_json(answer)))


JUNK = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from([[], {}, [[]], [{}], [[1, 2]], [["a", "b", "c"]], 10**400, -(10**400), "0001-01-01T00:00+23:59"])
)  # fmt: skip
PATHS = list(paths(full_answer()))


@settings(max_examples=400)
@given(st.sampled_from(PATHS), JUNK, st.booleans())
def test_hostile_json(path, junk, removed):
    """Junk in any place, or a missing part, is read or refused as not Pravda's, and nothing else happens."""
    shape = full_answer()
    inner = shape
    for key in path[:-1]:
        inner = inner[key]
    if removed:
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    try:
        answer = answer_from_json(shape)
    except NotPravda as refused:
        message = str(refused)
    else:
        message = json.dumps(answer_to_json(answer), allow_nan=False)[:1]
    assert len(message) < 300


@given(JUNK | st.lists(JUNK, max_size=3) | st.dictionaries(st.sampled_from(["id", "result", "state"]), JUNK))
def test_junk_is_no_answer(junk):
    """JSON of another kind is neither a snapshot nor an answer."""
    for read in (answer_from_json, snapshot_from_json):
        with pytest.raises(NotPravda):
            read(junk)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": None}, "id is None"),
        ({"id": 5}, "id is 5"),
        ({"state": "odd"}, "'odd' is not a valid State"),
        ({"state": "down"}, "a snapshot that is down lacks its failure"),
        ({"not_modified": 1}, "not_modified is 1"),
        ({"checks": [5]}, "5 is no object"),
        ({"client_redirects": [5]}, "5 is no text"),
        ({"timings": {"dns_ms": float("nan")}}, "nan is no number"),
        ({"timings": {"dns_ms": float("inf")}}, "inf is no number"),
        ({"timings": {"dns_ms": True}}, "dns_ms is True"),
        ({"content": {"sha256": "x", "bytes": True}}, "bytes is True"),
        ({"warnings": [{"code": "x", "detail": "y"}]}, "'by' is missing"),
        ({"checks": [{"rule": "x", "expected": {}, "passed": True}]}, "expected is {}"),
        ({"http": {"status": 200, "version": "2", "headers": ["ab"]}}, "'ab' is no pair"),
        ({"failure": {}}, "a snapshot that is live has a failure"),
    ],
)
def test_messages(change, words):
    """The message says which part is wrong."""
    with pytest.raises(NotPravda) as refused:
        snapshot_from_json(document(**change))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "change", [{"snapshot": None}, {"attempt": None}, {"result": "failed"}, {"result": "reused"}]
)
def test_contradicting_answers(change):
    """An answer that lacks its snapshot or attempt, or has one too many, is not Pravda's."""
    with pytest.raises(NotPravda):
        answer_from_json({**full_answer(), **change})
