"""A refresh, cycle by cycle, on scripted evidence and still time."""

import asyncio
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pravda.core.digest import sha256
from pravda.core.evidence import Artifact, Content, Ending, Hop, Note, Phase, Trouble, Validators
from pravda.core.hosts import HostFacts, TooLong
from pravda.core.mistake import BadRequest
from pravda.core.ports import Observed, Order
from pravda.core.states import FACTS, Cause, FaultSide, Reason, State
from pravda.errors import StorageTrouble
from pravda.testing import START, FrozenClock, Scene, ScriptedEngine, page, trouble
from pravda.tree import files
from pravda.tree.attempt import Parsed
from pravda.tree.book import TreeBook
from pravda.tree.lock import TreeBusy
from pravda.tree.results import Outcome, RunResult, SourceResult
from pravda.tree.run import Attempt, ParserInput, Progress
from pravda.tree.state import SourceState
from tests.conformance import SUITES
from tests.trees import ONE, URL, World, by_host, sources, two

PAGES = SUITES.parent / "cases" / "pages"
LIST = b"<title>List</title><ul><li>One<li>Two</ul>"
OTHER = b"<title>List</title><ul><li>One<li>Two<li>Three</ul>"
MODIFIED = "Friday, 14-Aug-26 09:00:00 GMT"
TAGGED = page(LIST, headers={"ETag": '"a"', "Last-Modified": MODIFIED})
NOT_MODIFIED = page(b"", status=304)
DOWN = page(b"oops", status=503)
REJECTED = FACTS[Reason.PARSER_REJECTED].sentence
PARSED = ONE + 'parser = "parsers:items"\n'


def at(**span: float) -> str:
    """A time after START as files say it."""
    return (START + timedelta(**span)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seen(scene: Scene, **changes: Any) -> Scene:
    """A scene whose evidence is otherwise in some fields."""

    def changed(order: Order, now: datetime) -> Observed:
        observed = scene(order, now)
        return replace(observed, evidence=replace(observed.evidence, **changes))

    return changed


def redirected(scene: Scene, final_url: str) -> Scene:
    """A scene at the end of a redirect; validators go out only to the URL that they came from."""

    def changed(order: Order, now: datetime) -> Observed:
        observed = scene(order, now)
        sent = order.held.validators if order.held and order.held.url == final_url else Validators()
        evidence = replace(
            observed.evidence, final_url=final_url, redirects=(Hop(url=URL, status=301),), sent=sent
        )
        return replace(observed, evidence=evidence)

    return changed


def refused(reason: Reason = Reason.ROBOTS_DISALLOWED) -> Scene:
    """A scene in which robots.txt forbids the page, so that it is not asked for."""
    return seen(
        trouble(reason),
        trouble=Trouble(reason=reason, phase=Phase.CHECK, detail='robots.txt says "Disallow: /"'),
    )


def resting(order: Order, now: datetime) -> Observed:
    """A scene in which the host wants a longer pause than a run waits for."""
    raise TooLong(order.request.url.host, now + timedelta(hours=1))


# first page, same page, new page


def test_the_first_page(tmp_path: Path):
    """A first page is stored byte for byte, with metadata and the record of the attempt."""
    world = World(tmp_path, TAGGED, text=PARSED)
    result = world.one()
    assert (result.outcome, result.state, result.status, result.items) == (
        Outcome.FETCHED,
        State.LIVE,
        200,
        2,
    )
    assert (result.asked, result.note) == (True, "42 bytes")
    assert world.body() == LIST
    assert world.meta() == {
        "sourceId": "a",
        "url": URL,
        "contentHash": sha256(LIST),
        "bytes": len(LIST),
        "charset": "utf-8",
        "etag": '"a"',
        "lastModified": MODIFIED,
        "contentChangedAt": at(hours=6),
        "lastConfirmedAt": at(hours=6),
        "itemCount": 2,
    }
    assert world.state() == {
        "sourceId": "a",
        "lastCheckedAt": at(hours=6),
        "lastStatus": 200,
        "state": "live",
        "cause": None,
        "reason": None,
        "consecutiveFailures": 0,
        "consecutiveRefusals": 0,
        "nextDueAt": at(hours=12),
    }


def test_a_304_moves_only_the_time_of_confirmation(tmp_path: Path):
    """A 304 to our validators touches one line of one tracked file."""
    world = World(tmp_path, TAGGED)
    world.one()
    before = world.tracked()
    result = world.one(NOT_MODIFIED)
    assert (result.outcome, result.confirms, result.written) == (Outcome.UNCHANGED, True, ("a.meta.json",))
    after = world.tracked()
    assert after["a.html"] == before["a.html"]
    old, new = before["a.meta.json"].splitlines(), after["a.meta.json"].splitlines()
    different = [line for line, other in zip(new, old, strict=True) if line != other]
    assert different == [f'  "lastConfirmedAt": "{at(hours=12)}",'.encode()]
    assert world.state()["lastStatus"] == 304


def test_the_same_bytes_move_only_the_time_of_confirmation(tmp_path: Path):
    """A 200 with the stored bytes leaves the body's file and `contentChangedAt` alone."""
    world = World(tmp_path, TAGGED)
    world.one()
    inode = world.path("a.html").stat().st_ino
    result = world.run()
    assert (result.results[0].outcome, result.changed) == (Outcome.SKIPPED_INTERVAL, 0)
    one = world.one()
    assert (one.outcome, one.confirms, one.note) == (Outcome.UNCHANGED, True, "42 bytes as before")
    assert world.path("a.html").stat().st_ino == inode
    assert (world.meta()["contentChangedAt"], world.meta()["lastConfirmedAt"]) == (at(hours=6), at(hours=12))


@pytest.mark.parametrize(
    ("confirmations", "hours", "touched"),
    [("always", 6, True), ("daily", 1, False), ("daily", 24, True), ("never", 24, False)],
)
def test_confirmations(tmp_path: Path, confirmations: str, hours: float, touched: bool):
    """`confirmations` says how often a change of nothing but `lastConfirmedAt` may touch the tracked file."""
    text = f'[defaults]\nconfirmations = "{confirmations}"\ninterval = "0s"\n{ONE}'
    world = World(tmp_path, TAGGED, text=text)
    world.run()
    before = world.tracked()
    world.clock.advance(hours=hours)
    result = world.run(NOT_MODIFIED)
    assert result.confirmed == 1
    assert (result.dirty, result.confirms_only, world.tracked() != before) == (touched, touched, touched)


def test_confirmations_do_not_hold_back_news(tmp_path: Path):
    """Where the metadata changes anyway, the time of confirmation is told with it, whatever `confirmations` says."""
    world = World(tmp_path, TAGGED, text=f'[defaults]\nconfirmations = "never"\n{ONE}')
    world.one()
    result = world.one(page(LIST, headers={"ETag": '"b"'}))
    assert (result.outcome, result.confirms) == (Outcome.UNCHANGED, False)
    assert (world.meta()["etag"], world.meta()["lastConfirmedAt"]) == ('"b"', at(hours=12))


def test_daily_confirmation_of_a_page_never_confirmed(tmp_path: Path):
    """A page without `lastConfirmedAt` is confirmed at the first occasion."""
    world = World(tmp_path, TAGGED, text=f'[defaults]\nconfirmations = "daily"\n{ONE}')
    world.one()
    text = (
        world.path("a.meta.json")
        .read_text()
        .replace(f'"lastConfirmedAt": "{at(hours=6)}"', '"lastConfirmedAt": null')
    )
    world.path("a.meta.json").write_text(text)
    assert world.one(NOT_MODIFIED).confirms


def test_new_bytes_under_the_old_etag(tmp_path: Path):
    """A 200 with new bytes under the old ETag is a change: the bytes win."""
    world = World(tmp_path, TAGGED)
    world.one()
    result = world.one(page(OTHER, headers={"ETag": '"a"', "Last-Modified": MODIFIED}))
    assert result.outcome is Outcome.FETCHED
    assert world.body() == OTHER
    assert world.meta()["contentChangedAt"] == world.meta()["lastConfirmedAt"] == at(hours=12)


def test_rotated_validators_are_stored(tmp_path: Path):
    """An ETag that rotates over the same bytes is stored, and nothing counts as changed (R-A1)."""
    world = World(tmp_path, TAGGED)
    world.one()
    result = world.one(page(LIST, headers={"ETag": '"b"', "Last-Modified": MODIFIED}))
    assert (result.outcome, result.confirms, result.written) == (Outcome.UNCHANGED, False, ("a.meta.json",))
    assert world.meta()["contentChangedAt"] == at(hours=6)
    world.one(NOT_MODIFIED)
    assert world.sent() == {"etag": '"b"', "modified": MODIFIED}


def test_a_changed_charset_header(tmp_path: Path):
    """A header that names another charset over the same bytes updates the metadata alone (R-D8)."""
    world = World(tmp_path, TAGGED)
    world.one()
    result = world.one(page(LIST, headers={"Content-Type": "text/html; charset=windows-1252"}))
    assert (result.outcome, world.meta()["charset"]) == (Outcome.UNCHANGED, "windows-1252")
    assert world.meta()["contentChangedAt"] == at(hours=6)


# validators


def test_validators_go_out_as_they_came(tmp_path: Path):
    """Validators are sent byte for byte; those that never came are not invented (R-A11, R-A15, R-A19)."""
    world = World(tmp_path, page(LIST, headers={"ETag": 'W/"abc-gzip"', "Last-Modified": MODIFIED}))
    world.one()
    assert world.sent() is None
    world.one(page(LIST, headers={"ETag": ""}))
    assert world.sent() == {"etag": 'W/"abc-gzip"', "modified": MODIFIED}
    world.one(page(LIST, headers={"Last-Modified": MODIFIED}))
    assert world.sent() is None
    world.one(NOT_MODIFIED)
    assert world.sent() == {"etag": None, "modified": MODIFIED}


def test_a_304_without_validators_keeps_the_stored_ones(tmp_path: Path):
    """A 304 or an error that names no ETag takes none away (R-A3, R-A17)."""
    world = World(tmp_path, TAGGED)
    world.one()
    for scene in (NOT_MODIFIED, DOWN, NOT_MODIFIED):
        world.one(scene)
        assert world.sent() == {"etag": '"a"', "modified": MODIFIED}
        assert world.meta()["etag"] == '"a"'


def test_new_validators_of_a_304_are_adopted(tmp_path: Path):
    """Validators that come with a 304 are adopted when they belong to the same bytes."""
    world = World(tmp_path, TAGGED)
    world.one()
    result = world.one(page(b"", status=304, headers={"ETag": 'W/"a"', "Last-Modified": "later"}))
    assert (result.outcome, result.confirms) == (Outcome.UNCHANGED, False)
    assert (world.meta()["etag"], world.meta()["lastModified"]) == ('W/"a"', "later")


def test_a_foreign_etag_in_a_304(tmp_path: Path):
    """An ETag in a 304 that is not the one sent is not adopted, and the next request is unconditional."""
    world = World(tmp_path, TAGGED)
    world.one()
    assert world.one(page(b"", status=304, headers={"ETag": '"z"'})).outcome is Outcome.UNCHANGED
    assert (world.meta()["etag"], world.meta()["lastModified"]) == (None, None)
    world.one(TAGGED)
    assert world.sent() is None
    assert world.meta()["etag"] == '"a"'


def test_a_304_nobody_asked_for(tmp_path: Path):
    """A 304 to an unconditional request is a failure and confirms nothing (R-A6)."""
    world = World(tmp_path, NOT_MODIFIED)
    result = world.one()
    assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.UNEXPECTED_NOT_MODIFIED)
    assert world.state()["consecutiveFailures"] == 1
    assert world.tracked() == {}


@pytest.mark.parametrize("damage", [b"TRUNC", b"", None])
def test_a_damaged_body_is_had_anew(tmp_path: Path, damage: bytes | None):
    """A stored body that is not what its metadata says is asked for without validators and restored (R-A8)."""
    world = World(tmp_path, TAGGED)
    world.one()
    if damage is None:
        world.path("a.html").unlink()
    else:
        world.path("a.html").write_bytes(damage)
    result = world.one()
    assert world.sent() is None
    assert world.body() == LIST
    assert (result.outcome, result.confirms) == (Outcome.UNCHANGED, False)
    assert result.written == ("a.html", "a.meta.json")
    assert "whole again" in result.note
    assert [note.code for note in result.warnings] == ["damaged"]
    assert world.meta()["contentChangedAt"] == at(hours=6)


@pytest.mark.parametrize("damage", [b'{"etag":', b"", b"\0" * 300])
def test_damaged_metadata_costs_one_source_one_request(tmp_path: Path, damage: bytes):
    """Damaged metadata makes one source unconditional and disturbs no other; exit 0 (R-E1)."""
    world = World(tmp_path, TAGGED, text=two())
    world.run()
    world.path("a.meta.json").write_bytes(damage)
    world.path("a.state.json").write_bytes(damage)
    world.clock.advance(hours=6)
    run = world.run(by_host({"one.example": TAGGED, "two.example": NOT_MODIFIED}))
    bare = {order.request.url.host: order.held is None for order in world.engine.orders[-2:]}
    assert bare == {"one.example": True, "two.example": False}
    assert [result.outcome for result in run.results] == [Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert (run.exit_code, run.changed) == (0, 0)
    assert world.meta()["etag"] == '"a"'


def test_another_url_gets_no_validators(tmp_path: Path):
    """A source that points elsewhere today sends no validators of the old place (R-A9)."""
    world = World(tmp_path, TAGGED)
    world.one()
    world.sources = sources(ONE.replace("/a", "/moved"))
    world.one()
    assert world.sent() is None
    assert world.meta()["url"] == "https://example.org/moved"
    world.one()
    assert world.sent() is not None


def test_another_spelling_of_the_url_is_no_other_page(tmp_path: Path):
    """A URL that is only written differently keeps its validators; one that cannot be read does not."""
    world = World(tmp_path, TAGGED)
    world.one()
    world.sources = sources(ONE.replace("https://example.org/a", "HTTPS://Example.org/a#top"))
    world.one()
    assert world.sent() is not None
    path = world.path("a.meta.json")
    path.write_bytes(path.read_bytes().replace(b"HTTPS://Example.org/a#top", b"no url"))
    world.one()
    assert world.sent() is None


def test_credentials_of_a_url_are_not_stored(tmp_path: Path):
    """A password in a source's URL stands in no file of the tree."""
    world = World(tmp_path, TAGGED, text=ONE.replace("https://", "https://user:secret@"))
    world.one()
    assert world.meta()["url"] == URL
    assert not any(b"secret" in path.read_bytes() for path in world.tree.folder.iterdir())


def test_validators_of_a_redirects_target(tmp_path: Path):
    """Validators belong to where a redirect led, across runs, and go nowhere else (R-A22)."""
    world = World(tmp_path, redirected(page(LIST, headers={"ETag": '"f"'}), "https://example.org/q"))
    world.one()
    assert world.meta()["etag"] == '"f"'
    result = world.one(redirected(NOT_MODIFIED, "https://example.org/q"))
    assert result.outcome is Outcome.UNCHANGED
    held = world.engine.orders[-1].held
    assert held is not None
    assert held.url == "https://example.org/q"
    result = world.one(redirected(page(OTHER), "https://example.org/r"))
    assert result.outcome is Outcome.FETCHED
    world.one(page(OTHER, headers={"ETag": '"g"'}))
    assert world.meta()["finalUrl"] is None
    world.one(NOT_MODIFIED)
    held = world.engine.orders[-1].held
    assert held is not None
    assert held.url == URL


def test_a_page_that_fails_todays_rules_is_had_anew(tmp_path: Path):
    """A stored page that the rules of today would not take is not asked to be confirmed."""
    world = World(tmp_path, TAGGED)
    world.one()
    world.sources = sources(ONE + 'expect = { selector = "table" }')
    result = world.one()
    assert world.sent() is None
    assert (result.outcome, result.reason) == (Outcome.REJECTED, Reason.SELECTOR_MISSING)


@pytest.mark.parametrize("rule", ['media_type = "text/html"', 'media_type = "text/*"', 'charset = "utf-8"'])
def test_rules_on_the_header_hold_for_a_stored_page(tmp_path: Path, rule: str):
    """A stored page keeps its validators under rules on a header that a tree does not keep."""
    world = World(tmp_path, TAGGED, text=ONE + f"expect = {{ {rule} }}")
    world.one()
    assert world.one(NOT_MODIFIED).outcome is Outcome.UNCHANGED
    assert world.sent() is not None


# what is not accepted


@pytest.mark.parametrize(
    ("scene", "outcome", "state", "reason"),
    [
        (page(b"<title>x</title><p>No list today, words enough."), Outcome.REJECTED, State.PARTIAL, Reason.PARSER_REJECTED),
        (page(LIST + b"boom"), Outcome.REJECTED, State.PARTIAL, Reason.PARSER_REJECTED),
        (page(b"<ul><li>One</ul>"), Outcome.REJECTED, State.PARTIAL, Reason.TEXT_MISSING),
        (page(b""), Outcome.FAILED, State.PARTIAL, Reason.EMPTY_CONTENT),
        (page(b"no", status=404), Outcome.FAILED, State.GONE, Reason.NOT_FOUND),
        (page(b"no", status=429), Outcome.FAILED, State.BLOCKED, Reason.RATE_LIMITED),
        (DOWN, Outcome.FAILED, State.DOWN, Reason.SERVICE_UNAVAILABLE),
        (trouble(Reason.CONNECTION_REFUSED), Outcome.FAILED, State.DOWN, Reason.CONNECTION_REFUSED),
        (refused(), Outcome.SKIPPED_ROBOTS, State.BLOCKED, Reason.ROBOTS_DISALLOWED),
        (refused(Reason.ROBOTS_UNREADABLE), Outcome.SKIPPED_ROBOTS, State.BLOCKED, Reason.ROBOTS_UNREADABLE),
    ],
)  # fmt: skip
def test_the_good_page_stays(tmp_path: Path, scene: Scene, outcome: Outcome, state: State, reason: Reason):
    """A failed, refused or rejected attempt leaves body, metadata and validators exactly as they were (R-F1, R-F2)."""
    world = World(tmp_path, TAGGED, text=PARSED + 'expect = { text_absent = "gone", text_present = "w" }')
    world.one()
    before = world.tracked()
    result = world.one(scene)
    assert (result.outcome, result.state, result.reason) == (outcome, state, reason)
    assert (result.written, result.fault) == ((), FaultSide.SOURCE)
    assert world.tracked() == before
    assert world.one(NOT_MODIFIED).outcome in (Outcome.UNCHANGED, Outcome.SKIPPED_INTERVAL)
    assert world.body() == LIST


def test_a_cut_body_is_no_page(tmp_path: Path):
    """A page whose end did not come is a failure."""

    def cut(order: Order, now: datetime) -> Observed:
        observed = page(OTHER)(order, now)
        content = observed.evidence.content
        assert isinstance(content, Content)
        return replace(
            observed, evidence=replace(observed.evidence, content=replace(content, ending=Ending.CUT))
        )

    world = World(tmp_path, TAGGED)
    world.one()
    assert world.one(cut).reason is Reason.TRUNCATED_BODY
    assert world.body() == LIST


def test_an_error_page_is_never_confirmed(tmp_path: Path):
    """A 404 between two good answers is no change, and the 304 after it confirms the page (R-A25)."""
    world = World(tmp_path, TAGGED)
    outcomes = [world.one(scene).outcome for scene in (TAGGED, page(b"no", status=404), NOT_MODIFIED)]
    assert outcomes == [Outcome.FETCHED, Outcome.FAILED, Outcome.UNCHANGED]
    assert world.body() == LIST


def test_the_parsers_word(tmp_path: Path):
    """What a parser raises, and too few items, reject the page with one printable line."""
    world = World(tmp_path, page(LIST + b"boom"), text=PARSED + "min_items = 3\n")
    result = world.one()
    assert result.note == f"{REJECTED} RuntimeError: boom ::error::forged"
    assert (result.items, world.state()["consecutiveFailures"]) == (None, 1)
    world.run(TAGGED, force=True)
    result = world.run(TAGGED, force=True).results[0]
    assert (result.items, result.note) == (
        2,
        f"{REJECTED} 2 items, at least 3 are demanded",
    )
    assert world.tracked() == {}


def test_what_a_parser_says_cannot_forge_a_line(tmp_path: Path):
    """The verdict that goes to the archive has the parser's words on one printable line."""
    details: list[str] = []

    async def keep(attempt: Attempt) -> None:
        assert attempt.verdict is not None
        assert attempt.verdict.failure is not None
        details.append(attempt.verdict.failure.detail)

    World(tmp_path, page(LIST + b"boom"), text=PARSED).one(keeper=keep)
    assert details == [f"{REJECTED} RuntimeError: boom ::error::forged"]


def test_a_count_outlives_its_parser(tmp_path: Path):
    """Without a parser the count of the same bytes stays, and new bytes have none."""
    world = World(tmp_path, TAGGED, text=PARSED)
    world.one()
    world.sources = sources(ONE)
    assert world.one().outcome is Outcome.UNCHANGED
    assert world.meta()["itemCount"] == 2
    world.one(page(OTHER))
    assert world.meta()["itemCount"] is None


def test_a_parsers_own_rejection(tmp_path: Path):
    """A parser may reject a page in its own words, and zero items may be allowed."""

    async def fussy(page: ParserInput) -> Parsed:
        return Parsed(items=0, problem=None if page.body == LIST else "not this one")

    world = World(tmp_path, TAGGED, text=PARSED + "min_items = 0\n")
    assert world.one(parser=fussy).outcome is Outcome.FETCHED
    assert world.meta()["itemCount"] == 0
    result = world.one(page(OTHER), parser=fussy)
    assert (result.outcome, result.note[-12:]) == (Outcome.REJECTED, "not this one")


def test_what_a_parser_is_given(tmp_path: Path):
    """A parser gets the bytes as served with their charset, where they came from and when."""
    body = "<meta charset=shift_jis><li>イベント".encode("shift_jis")
    world = World(
        tmp_path,
        redirected(page(body, headers={"Content-Type": "text/html"}), "https://example.org/q"),
        text=PARSED,
    )
    world.one()
    (given,) = world.parsed
    assert (given.body, given.charset, given.final_url) == (body, "shift_jis", "https://example.org/q")
    assert (given.captured_at, given.source.id) == (world.clock.now(), "a")


def test_a_304_is_not_parsed_again(tmp_path: Path):
    """A 304 tells the stored number of items without the parser."""
    world = World(tmp_path, TAGGED, text=PARSED)
    world.one()
    assert (world.one(NOT_MODIFIED).items, len(world.parsed)) == (2, 1)


def test_a_big_drop_is_stored_and_told(tmp_path: Path):
    """Losing more than `warn_drop` of the items is stored, with a warning; half is none yet."""
    world = World(tmp_path, page(LIST * 2), text=PARSED)
    world.one()
    assert world.one(page(LIST)).warnings == ()
    result = world.one(page(b"<title>List</title><li>"))
    assert result.outcome is Outcome.FETCHED
    assert result.warnings == ()
    world.one(page(LIST * 5))
    (note,) = world.one(page(LIST)).warnings
    assert (note.code, note.detail) == ("drop", "2 items, 10 before.")
    assert world.meta()["itemCount"] == 2


def test_a_big_drop_in_bytes(tmp_path: Path):
    """Where nobody counts items, the bytes are compared."""
    world = World(tmp_path, page(LIST * 10))
    world.one()
    (note,) = world.one(page(LIST)).warnings
    assert note.detail == "42 bytes, 420 before."


def test_max_drop_is_judged_against_the_stored_page(tmp_path: Path):
    """The rule `max_drop` compares with the stored page and rejects; a damaged one is nothing to compare with."""
    text = ONE + 'expect = { selector = "li", max_drop = 0.4 }\n'
    world = World(tmp_path, page(OTHER), text=text)
    world.one()
    few = page(b"<title>x</title><li>One")
    result = world.one(few)
    assert (result.outcome, result.reason) == (Outcome.REJECTED, Reason.COUNT_DROP)
    world.path("a.html").write_bytes(b"TRUNC")
    assert world.one(few).outcome is Outcome.FETCHED


def test_a_long_page_is_judged_and_kept(tmp_path: Path):
    """A page of over a megabyte is stored like any other; one over the limit is not."""
    long = LIST + b"<p>words</p>" * 100_000
    world = World(tmp_path, page(long))
    assert world.one().outcome is Outcome.FETCHED
    assert world.body() == long
    assert world.engine.orders[-1].request.max_bytes == 64 * 1024 * 1024


# what is told of a failure


def test_the_note_of_a_failure(tmp_path: Path):
    """The note says what turned us away: status, Server, CF-RAY, Retry-After, trimmed to printable ASCII."""
    headers = {"Server": "a%0Ab\x07ü" + "x" * 200, "CF-RAY": "secret-ray", "Retry-After": " 7 \x00"}
    world = World(tmp_path, page(b"no", status=503, headers=headers))
    note = world.one().note
    assert note == f"503 Service Unavailable; Server: a%0Ab{'x' * 75}; CF-RAY present; Retry-After: 7"


def test_the_note_names_a_status_that_the_verdict_does_not(tmp_path: Path):
    """The status stands in the note also where a marker decided."""
    challenge = page(b"<title>x</title>", status=403, headers={"cf-mitigated": "challenge"})
    note = World(tmp_path, challenge).one().note
    assert "; 403" in note


# streaks, back-off, Retry-After


def test_streaks_back_off_and_end(tmp_path: Path):
    """Failures in a row double the interval; a good answer ends the streak; three make a source broken."""
    world = World(tmp_path, DOWN)
    due = []
    for _ in range(4):
        world.run(force=True)
        due.append((world.state()["consecutiveFailures"], world.state()["nextDueAt"]))
    assert due == [(1, at(hours=6)), (2, at(hours=12)), (3, at(hours=24)), (4, at(hours=48))]
    skipped = world.run()
    assert (skipped.results[0].outcome, skipped.broken) == (Outcome.SKIPPED_INTERVAL, ("a",))
    assert "last down (http_error)" in skipped.results[0].note
    assert (skipped.results[0].state, skipped.results[0].cause) == (State.DOWN, Cause.HTTP_ERROR)
    assert skipped.exit_code == 0
    good = world.run(TAGGED, force=True)
    assert (good.broken, world.state()["consecutiveFailures"]) == ((), 0)


def test_no_interval_no_back_off(tmp_path: Path):
    """A source with interval 0 is asked by every run, whatever its streak."""
    world = World(tmp_path, DOWN, text=ONE + 'interval = "0s"\n')
    for streak in (1, 2, 3, 4):
        assert world.run().attempted == 1
        assert world.state()["consecutiveFailures"] == streak


@pytest.mark.parametrize(
    ("value", "hours"),
    [
        ("9999999999", 168),
        ("-5", 6),
        ("Thu, 01 Jan 2026 21:00:00 GMT", 9),
        ("Thu, 01 Jan 2026 15:00:00 GMT", 6),
        ("Thu, 01 Jan 2015 15:00:00 GMT", 6),
        ("abc", 6),
        ("1.5", 6),
        ("28800", 8),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_moves_the_next_attempt(tmp_path: Path, status: int, value: str, hours: float):
    """Retry-After puts a source off where it is readable, within a week, and nothing waits for it (R-C15)."""
    world = World(tmp_path, page(b"no", status=status, headers={"Retry-After": value}))
    world.run()
    assert world.state()["nextDueAt"] == at(hours=hours)


def test_robots_refusals_have_a_streak_of_their_own(tmp_path: Path):
    """A refusal counts as refused, holds the interval, and leaves the streak of failures alone."""
    world = World(tmp_path, DOWN)
    world.run(force=True)
    for _ in range(3):
        run = world.run(refused(), force=True)
    assert (world.state()["consecutiveRefusals"], world.state()["consecutiveFailures"]) == (3, 1)
    assert (run.refused, run.broken, run.attempted, run.hard_failure) == (("a",), (), 0, True)
    assert run.results[0].note == 'robots.txt says "Disallow: /"'
    assert world.run().refused == ("a",)
    world.run(DOWN, force=True)
    assert (world.state()["consecutiveRefusals"], world.state()["consecutiveFailures"]) == (0, 2)
    assert world.run(TAGGED, force=True).refused == ()


def test_a_redirect_that_robots_forbids(tmp_path: Path):
    """A page that redirects to where robots.txt does not let us is refused, and was asked for."""
    forbidden = seen(refused(), redirects=(Hop(url=URL, status=302),))
    run = World(tmp_path, forbidden).run()
    assert (run.results[0].outcome, run.attempted) == (Outcome.SKIPPED_ROBOTS, 1)


def test_a_host_that_wants_a_long_pause(tmp_path: Path):
    """A host that is not to be asked yet is put off; nothing is recorded, and others go on."""
    world = World(tmp_path, by_host({"one.example": resting, "two.example": TAGGED}), text=two())
    run = world.run()
    first, second = run.results
    assert (first.outcome, second.outcome) == (Outcome.SKIPPED_SPACING, Outcome.FETCHED)
    assert first.note == f"the host is not to be asked before {at(hours=1)}"
    assert (run.hard_failure, run.attempted) == (False, 1)
    assert not world.path("a.state.json").exists()


# the clock


def test_times_in_the_future_count_as_due(tmp_path: Path):
    """After a clock that ran ahead the source is asked, with a warning, and the record is right again."""
    world = World(tmp_path, TAGGED)
    world.clock.advance(days=400)
    world.run()
    world.clock = FrozenClock()
    world.engine = ScriptedEngine(TAGGED, clock=world.clock)
    result = world.run().results[0]
    assert (result.outcome, result.forced) == (Outcome.UNCHANGED, False)
    assert [note.code for note in result.warnings] == ["clock", "clock"]
    assert world.state()["lastCheckedAt"] == at()


# faults of ours


LOCAL = trouble(Reason.LOCAL_NETWORK)


def went_out(reason: Reason) -> Scene:
    """A fault of ours after the request had gone out."""
    head = (Artifact(name="request", media_type="message/http", bytes=1, sha256="0" * 64),)
    return seen(trouble(reason), artifacts=head)


def test_a_fault_of_ours_before_the_request(tmp_path: Path):
    """Without a network nothing is recorded of the source: neither streak nor interval moves."""
    world = World(tmp_path, DOWN)
    world.run()
    before = world.state()
    world.clock.advance(hours=6)
    run = world.run(LOCAL)
    (result,) = run.results
    assert (result.outcome, result.fault, result.cause) == (
        Outcome.FAILED,
        FaultSide.LOCAL,
        Cause.LOCAL_ERROR,
    )
    assert (run.attempted, run.exit_code) == (0, 1)
    assert world.state() == before
    assert world.run(TAGGED).attempted == 1


def test_a_fault_of_ours_after_the_request(tmp_path: Path):
    """A disk that was full when the answer came holds the interval and leaves the streak."""
    world = World(tmp_path, DOWN)
    world.run()
    world.clock.advance(hours=6)
    result = world.run(went_out(Reason.DISK_FULL)).results[0]
    assert (result.cause, result.asked) == (Cause.STORAGE_ERROR, True)
    assert world.state()["consecutiveFailures"] == 1
    assert world.state()["nextDueAt"] == at(hours=12)


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, "disk_full"), (errno.EACCES, "storage_denied")]
)
def test_a_page_that_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
):
    """The attempt is recorded, the interval held, the streak left, nothing stays aside, others proceed (R-E4)."""
    world = World(tmp_path, TAGGED, text=two())
    real = os.open

    def full(path: Any, *arguments: Any, **named: Any) -> int:
        if Path(path).name.startswith("a.html.tmp-"):
            raise OSError(number, os.strerror(number))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", full)
    run = world.run()
    first, second = run.results
    assert (first.outcome, first.cause, first.reason) == (Outcome.FAILED, Cause.STORAGE_ERROR, reason)
    assert (first.state, first.fault, first.status) == (State.PARTIAL, FaultSide.LOCAL, 200)
    assert second.outcome is Outcome.FETCHED
    assert run.exit_code == 0
    state = world.state()
    assert (state["lastCheckedAt"], state["nextDueAt"]) == (at(), at(hours=6))
    assert (state["consecutiveFailures"], state["cause"], state["lastStatus"]) == (0, "storage_error", 200)
    assert set(world.tracked()) == {"b.html", "b.meta.json"}


def test_an_attempt_that_cannot_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A record that cannot be written is a warning; the page is stored all the same."""
    world = World(tmp_path, TAGGED)
    real = os.open

    def full(path: Any, *arguments: Any, **named: Any) -> int:
        if Path(path).name.startswith("a.state.json.tmp-"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", full)
    result = world.run().results[0]
    assert (result.outcome, [note.code for note in result.warnings]) == (Outcome.FETCHED, ["not_recorded"])
    assert world.body() == LIST


def breaking(error: Exception) -> Scene:
    """A scene in which the engine itself breaks."""

    def scene(order: Order, now: datetime) -> Observed:
        raise error

    return scene


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BadRequest("url", "10.0.0.1 is private"), "refused: url: 10.0.0.1"),
        (KeyError("x"), "an error of ours: KeyError('x')"),
    ],
)
def test_what_breaks_costs_one_source(tmp_path: Path, error: Exception, words: str):
    """An address that is refused, or an error of ours, fails one source, is reported, and is not held against it."""
    world = World(tmp_path, by_host({"one.example": breaking(error), "two.example": TAGGED}), text=two())
    first, second = world.run().results
    assert (first.outcome, first.fault, second.outcome) == (Outcome.FAILED, FaultSide.LOCAL, Outcome.FETCHED)
    assert first.note.startswith(words)
    assert not world.path("a.state.json").exists()


# the run as a whole


def test_which_sources(tmp_path: Path):
    """`only` names the sources; the others are neither asked nor reported."""
    world = World(tmp_path, TAGGED, text=two())
    assert [result.source_id for result in world.run(only=("b",)).results] == ["b"]
    assert len(world.engine.orders) == 1
    with pytest.raises(BadRequest, match="'c' is no source"):
        world.run(only=("b", "c"))


def test_a_parser_needs_somebody_to_run_it(tmp_path: Path):
    """A source with a parser is refused before any request where no parser can be run."""
    world = World(tmp_path, TAGGED, text=PARSED)
    with pytest.raises(BadRequest, match="parser: a names a parser"):
        world.run(parser=None)
    assert world.engine.orders == []


def test_force(tmp_path: Path):
    """`force` asks what is not due and names it; what was due is not called forced."""
    world = World(tmp_path, TAGGED, text=two())
    world.run(only=("a",))
    run = world.run(NOT_MODIFIED, TAGGED, force=True)
    assert run.forced == ("a",)
    assert run.attempted == 2


def test_a_dry_run(tmp_path: Path):
    """A dry run asks nothing, writes nothing, and says what would be asked with which validators."""
    world = World(tmp_path, TAGGED, text=two())
    assert world.run(dry_run=True).results[0].note == "would ask for https://one.example/a without validators"
    assert list(tmp_path.iterdir()) == []
    world.run(only=("a",))
    count = len(world.engine.orders)
    first, second = world.run(dry_run=True).results
    assert (first.outcome, second.outcome) == (Outcome.SKIPPED_INTERVAL, Outcome.PLANNED)
    before = {path.name: path.read_bytes() for path in world.tree.folder.iterdir()}
    run = world.run(dry_run=True, force=True)
    assert run.results[0].note == (
        f'would ask for https://one.example/a with If-None-Match: "a", If-Modified-Since: {MODIFIED}'
    )
    assert (run.attempted, run.dirty, run.hard_failure, run.forced) == (0, False, False, ("a",))
    assert {path.name: path.read_bytes() for path in world.tree.folder.iterdir()} == before
    assert len(world.engine.orders) == count


def test_progress_is_told(tmp_path: Path):
    """Every source is told when it begins and when it ends, with how far the run has come."""
    told: list[Progress] = []
    World(tmp_path, TAGGED, text=two("one.example", "one.example")).run(progress=told.append)
    assert [(step.source_id, step.result is not None, step.done, step.total) for step in told] == [
        ("a", False, 0, 2),
        ("a", True, 1, 2),
        ("b", False, 1, 2),
        ("b", True, 2, 2),
    ]


class Crowd:
    """An engine that notes how many requests run at the same time."""

    name = "http"

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.all_at_once = 0

    async def observe(self, order: Order) -> Observed:
        host = order.request.url.host
        self.now[host] = self.now.get(host, 0) + 1
        self.most[host] = max(self.most.get(host, 0), self.now[host])
        self.all_at_once = max(self.all_at_once, sum(self.now.values()))
        for _ in range(20):
            await asyncio.sleep(0.001)
        self.now[host] -= 1
        return TAGGED(order, START)

    async def close(self) -> None:
        """Nothing to let go of."""


@pytest.mark.parametrize(("parallel", "most"), [(100, 10), (3, 3)])
def test_hosts_run_in_parallel_and_one_host_never_twice(tmp_path: Path, parallel: int, most: int):
    """Different hosts are asked at the same time, as many as allowed; one host is asked once at a time."""
    text = "".join(
        f'[[source]]\nid = "s{number}"\nurl = "https://host{number % 10}.example/{number}"\n'
        for number in range(30)
    )
    crowd = Crowd()
    run = World(tmp_path, text=text).run(engine=crowd, parallel=parallel)
    assert run.changed == 30
    assert set(crowd.most.values()) == {1}
    assert most - 1 <= crowd.all_at_once <= most
    assert [result.source_id for result in run.results] == [f"s{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("scenes", "exit_code"),
    [
        ((DOWN, DOWN), 1),
        ((refused(), DOWN), 1),
        ((page(b""), refused()), 1),
        ((TAGGED, DOWN), 0),
        ((resting, DOWN), 0),
    ],
)
def test_exit_code(tmp_path: Path, scenes: tuple[Scene, Scene], exit_code: int):
    """A run fails when every selected source failed or was refused, and only then."""
    world = World(tmp_path, by_host({"one.example": scenes[0], "two.example": scenes[1]}), text=two())
    run = world.run()
    assert (run.exit_code, run.hard_failure) == (exit_code, bool(exit_code))


def test_an_empty_run_is_no_failure(tmp_path: Path):
    """No sources, no failure; and nothing new is no failure either (R-F8)."""
    assert World(tmp_path, TAGGED, text="").run().exit_code == 0
    world = World(tmp_path, TAGGED)
    world.run()
    run = world.run(NOT_MODIFIED, force=True)
    assert (run.exit_code, run.changed, run.confirmed) == (0, 0, 1)


def test_the_report(tmp_path: Path):
    """The JSON report has the results and the sums that a workflow acts on."""
    scenes = {"one.example": TAGGED, "two.example": page(b"no", status=404)}
    world = World(tmp_path, by_host(scenes), text=two())
    run = world.run()
    assert json.loads(json.dumps(run.to_json())) == {
        "results": [
            {
                "sourceId": "a",
                "result": "fetched",
                "state": "live",
                "cause": None,
                "reason": None,
                "status": 200,
                "items": None,
                "note": "42 bytes",
            },
            {
                "sourceId": "b",
                "result": "failed",
                "state": "gone",
                "cause": "http_error",
                "reason": "not_found",
                "status": 404,
                "items": None,
                "note": "404 Not Found",
            },
        ],
        "changed": 1,
        "attempted": 2,
        "confirmed": 0,
        "dirty": True,
        "broken": [],
        "refused": [],
        "forced": [],
        "assumedRobots": [],
        "warnings": [],
        "hardFailure": False,
    }
    assert (run.written, run.confirms_only) == (("a.html", "a.meta.json"), False)


def test_warnings_are_told_with_their_source():
    """Warnings of the run and of its sources stand in one list."""
    note = Note(code="x", detail="y")
    result = SourceResult(
        source_id="a", outcome=Outcome.PLANNED, record=SourceState(source_id="a"), warnings=(note,)
    )
    run = RunResult(results=(result,), warnings=(note,))
    assert run.all_warnings() == ((None, note), ("a", note))
    assert run.to_json()["warnings"] == [
        {"sourceId": None, "code": "x", "detail": "y"},
        {"sourceId": "a", "code": "x", "detail": "y"},
    ]


def test_assumed_robots_and_proxies_are_named(tmp_path: Path):
    """Every use of an assumed leave and of a host's own proxy is named."""
    text = two() + '[[host]]\nname = "one.example"\nproxy = "http://proxy.example:8080"\n'
    assumed = seen(TAGGED, notes=(Note(code="robots_assumed", detail="x"),))
    world = World(tmp_path, by_host({"one.example": TAGGED, "two.example": assumed}), text=text)
    run = world.run()
    assert (run.assumed_robots, run.proxied) == (("b",), ("a",))


def test_a_second_refresh_at_the_same_time(tmp_path: Path):
    """Two refreshes of one tree at once are one: the second asks nothing and says who is at work (R-C22)."""
    world = World(tmp_path, TAGGED)
    with world.tree.locked(START), pytest.raises(TreeBusy, match=f"process {os.getpid()}"):
        world.run()
    assert world.engine.orders == []
    assert world.run().changed == 1


def test_leftovers_of_a_killed_run_are_swept(tmp_path: Path):
    """What a killed run left aside is gone after the next (R-E7)."""
    world = World(tmp_path, TAGGED)
    world.tree.folder.mkdir()
    world.path("x.html.tmp-1").write_bytes(b"half")
    world.run()
    assert not world.path("x.html.tmp-1").exists()


def test_a_run_that_is_cut_short(tmp_path: Path):
    """A cancelled run records what its engine saw, asks for nothing more, and lets the lock go."""
    world = World(tmp_path, TAGGED, text=two("one.example", "one.example"))
    began = asyncio.Event()
    asked: list[str] = []

    class Slow:
        name = "http"

        async def observe(self, order: Order) -> Observed:
            asked.append(order.request.url.target)
            try:
                began.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return went_out(Reason.CANCELLED)(order, START)
            raise AssertionError

        async def close(self) -> None:
            """Nothing to let go of."""

    async def cut_short() -> None:
        runner = asyncio.create_task(world.refreshed(engine=Slow()))
        await began.wait()
        runner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await runner

    asyncio.run(cut_short())
    assert asked == ["/a"]
    assert world.state()["reason"] == "cancelled"
    assert world.state()["consecutiveFailures"] == 0
    with world.tree.locked(START):
        pass


def test_writing_is_over_before_a_cancellation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that is cancelled while it writes lets the lock go only after the last byte."""
    world = World(tmp_path, TAGGED)
    loop_of: list[asyncio.AbstractEventLoop] = []
    runner: list[asyncio.Task[RunResult]] = []
    real = files.Tree.store

    def slow(self: files.Tree, *arguments: Any) -> tuple[str, ...]:
        loop_of[0].call_soon_threadsafe(runner[0].cancel)
        with pytest.raises(TreeBusy), world.tree.locked(START):
            pass
        return real(self, *arguments)

    monkeypatch.setattr(files.Tree, "store", slow)

    async def cut_short() -> None:
        loop_of.append(asyncio.get_running_loop())
        runner.append(asyncio.create_task(world.refreshed()))
        with pytest.raises(asyncio.CancelledError):
            await runner[0]
        assert world.body() == LIST

    asyncio.run(cut_short())


# archive and hosts


def test_every_attempt_is_handed_to_the_archive(tmp_path: Path):
    """A keeper gets every attempt with its verdict, good or bad, while its bytes can be read."""
    kept: list[tuple[State, bytes]] = []

    async def keep(attempt: Attempt) -> None:
        assert attempt.verdict is not None
        kept.append((attempt.verdict.state, attempt.observed.contents["body"].read()))

    world = World(tmp_path, TAGGED, text=PARSED)
    for scene in (TAGGED, NOT_MODIFIED, DOWN, page(LIST + b"boom")):
        world.clock.advance(days=2)
        world.run(scene, keeper=keep)
    assert kept == [
        (State.LIVE, LIST),
        (State.LIVE, b""),
        (State.DOWN, b"oops"),
        (State.PARTIAL, LIST + b"boom"),
    ]


def test_an_archive_that_cannot_keep_is_a_warning(tmp_path: Path):
    """An archive that is in trouble changes nothing in the tree and is told."""

    async def keep(attempt: Attempt) -> None:
        raise StorageTrouble(Reason.DISK_FULL, "The disk is full.")

    result = World(tmp_path, TAGGED).one(keeper=keep)
    assert (result.outcome, [note.code for note in result.warnings]) == (Outcome.FETCHED, ["not_archived"])


class Remembering:
    """An engine that writes into a book of hosts."""

    name = "http"

    def __init__(self, book: TreeBook, clock: FrozenClock) -> None:
        self._book, self._clock = book, clock

    async def observe(self, order: Order) -> Observed:
        self._clock.advance(seconds=40)
        self._book.put(order.request.url.host, HostFacts(not_before=self._clock.now() + timedelta(hours=1)))
        return TAGGED(order, self._clock.now())

    async def close(self) -> None:
        """Nothing to let go of."""


def test_the_book_of_hosts_is_kept_across_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the engine learns of hosts is written while the run goes on and at its end; trouble there is a warning."""
    world = World(tmp_path, text=two("one.example", "one.example"))
    book = TreeBook(world.tree, world.clock)
    saved: list[int] = []
    real = files.Tree.put_hosts

    def put(self: files.Tree, data: bytes) -> None:
        saved.append(len(data))
        real(self, data)

    monkeypatch.setattr(files.Tree, "put_hosts", put)
    assert world.run(engine=Remembering(book, world.clock), book=book).warnings == ()
    assert len(saved) == 2
    again = TreeBook(world.tree, world.clock)
    world.run(engine=Remembering(again, world.clock), book=again)
    assert again.get("one.example") is not None

    def full(self: files.Tree, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.Tree, "put_hosts", full)
    world.clock.advance(days=1)
    run = world.run(engine=Remembering(again, world.clock), book=again)
    assert {note.code for note in run.warnings} == {"hosts_not_written"}


# an existing tree


def existing() -> Mapping[str, tuple[bytes, bytes]]:
    """Pages and metadata of a tree that another tool wrote, by id."""
    if not PAGES.is_dir():
        pytest.skip("the cases of an existing tree are not beside the project")
    ids = sorted(path.name.removesuffix(".meta.json") for path in PAGES.glob("*.meta.json"))
    return {
        name: ((PAGES / f"{name}.html").read_bytes(), (PAGES / f"{name}.meta.json").read_bytes())
        for name in ids
    }


def test_an_existing_tree_works_as_it_is(tmp_path: Path):
    """A tree that another tool wrote is confirmed with its own validators; only `lastConfirmedAt` is added."""
    tree = existing()
    text = ""
    (tmp_path / "snapshots").mkdir()
    for name, (body, meta) in tree.items():
        (tmp_path / "snapshots" / f"{name}.html").write_bytes(body)
        (tmp_path / "snapshots" / f"{name}.meta.json").write_bytes(meta)
        text += f'[[source]]\nid = "{name}"\nurl = "{json.loads(meta)["url"]}"\n'

    def answer(order: Order, now: datetime) -> Observed:
        if order.held:
            return NOT_MODIFIED(order, now)
        body = next(body for body, meta in tree.values() if json.loads(meta)["url"] == order.request.url.page)
        return page(body)(order, now)

    world = World(tmp_path, answer, text=text)
    world.clock.advance(days=300)
    run = world.run()
    assert (run.changed, run.confirmed, run.confirms_only) == (0, len(tree), True)
    sent = {order.request.url.page: order.held for order in world.engine.orders}
    for name, (body, meta) in tree.items():
        old = json.loads(meta)
        held = sent[old["url"]]
        assert (held.validators.last_modified if held else None) == old["lastModified"]
        assert world.body(name) == body
        now = world.path(f"{name}.meta.json").read_bytes()
        # nothing but a comma and one line; the next confirmation changes that line alone
        stamp = f',\n  "lastConfirmedAt": "{at(days=300)}"\n}}\n'.encode()
        assert now == meta.removesuffix(b"\n}\n") + stamp
