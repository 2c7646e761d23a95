"""The capture operation, on scripted evidence and still time, over both archives."""

import asyncio
import errno
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pravda.archive.local import LocalArchive
from pravda.capture import Pravda
from pravda.core.outcome import Result, Snapshot
from pravda.core.ports import Archive, Contents, Observed, Order, Query
from pravda.core.states import FaultSide, Reason, State
from pravda.errors import (
    ArchiveUnavailable,
    BadRequest,
    Damaged,
    NotFound,
    NoUsableSnapshot,
    StorageTrouble,
)
from pravda.testing import START, FrozenClock, MemoryArchive, Scene, ScriptedEngine, page, trouble

URL = "https://example.org/list"
GOOD = page(b"<title>List</title><table id=list><tr><td>One<td>Two</table>")
WEAK = page(b"<title>List</title><p>No table today, but words enough to be a page.</p>")
DOWN = page(b"oops", status=503)
MISSING = page(b"no", status=404)
TABLE = {"selector": "table#list"}


class World:
    """A Pravda whose engine, clock and archive a test can reach."""

    def __init__(self, archive: Archive, *scenes: Scene) -> None:
        self.clock = FrozenClock()
        self.engine = ScriptedEngine(*scenes, clock=self.clock)
        self.archive = archive
        numbers = itertools.count(1)
        self.pravda = Pravda(
            engine=self.engine,
            archive=archive,
            clock=self.clock,
            new_id=lambda: f"00000000-0000-7000-8000-{next(numbers):012}",
        )

    async def capture(self, url: str = URL, **fields: object) -> Any:
        """As Pravda.capture, failures as answers."""
        return await self.pravda.capture(url, **({"on_failure": "return"} | fields))


Make = Callable[..., Any]


@pytest.fixture(params=["memory", "local"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A context manager that makes a world over one kind of archive."""

    @asynccontextmanager
    async def make(*scenes: Scene) -> AsyncIterator[World]:
        archive = MemoryArchive() if request.param == "memory" else LocalArchive.open(tmp_path / "home")
        made = World(archive, *scenes)
        async with made.pravda:
            yield made

    return make


def run(work: Any) -> None:
    asyncio.run(work)


def test_fresh_success(world: Make) -> None:
    """A usable page is the answer and its own attempt, with age 0."""

    async def story() -> None:
        async with world(GOOD) as w:
            answer = await w.capture(max_stale_age="7d")
            assert answer.result is Result.FRESH
            assert answer.snapshot == answer.attempt
            assert (answer.age_seconds, answer.stale, answer.max_stale_age_seconds) == (0, False, 604_800)
            assert answer.newest_usable.id == answer.snapshot.id
            assert await w.pravda.get(answer.snapshot.id) == answer.snapshot

    run(story())


def test_failed_refresh_falls_back(world: Make) -> None:
    """A stale answer carries the older snapshot with its own id and time, its age, and the failed attempt."""

    async def story() -> None:
        async with world(GOOD) as w:
            first = (await w.capture()).snapshot
            w.clock.advance(hours=24)
            w.engine.then(DOWN)
            answer = await w.capture(max_stale_age="7d")
            assert answer.result is Result.STALE
            assert answer.snapshot == first
            assert answer.age_seconds == 86_400
            assert answer.attempt.state is State.DOWN
            assert answer.attempts == (answer.attempt.id,)
            assert await w.pravda.read(await w.pravda.get(answer.attempt.id)) == b"oops"

    run(story())


@pytest.mark.parametrize("allowed", [None, 0, "0s"])
def test_without_allowance_nothing_stale_is_returned(world: Make, allowed: object) -> None:
    """R-B3, W-D1: `max_stale_age` absent or 0 never returns an earlier snapshot."""

    async def story() -> None:
        async with world(GOOD) as w:
            first = await w.capture()
            w.engine.then(DOWN)
            answer = await w.capture(max_stale_age=allowed)
            assert (answer.result, answer.snapshot) == (Result.FAILED, None)
            assert answer.newest_usable.id == first.snapshot.id

    run(story())


def test_expired_fallback(world: Make) -> None:
    """R-B1: a snapshot one millisecond over the limit is named, not returned; at the limit it is returned."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture()
            w.engine.then(DOWN)
            w.clock.advance(seconds=10)
            assert (await w.capture(max_stale_age=10)).result is Result.STALE
            w.clock.advance(milliseconds=1)
            with pytest.raises(NoUsableSnapshot) as caught:
                await w.pravda.capture(URL, max_stale_age=10)
            assert caught.value.newest_usable is not None
            assert caught.value.newest_usable.age_seconds == 10.001
            assert caught.value.attempt is not None
            assert "service_unavailable" in str(caught.value)

    run(story())


def test_no_usable_history(world: Make) -> None:
    """With nothing usable kept, the failure says so and names nothing."""

    async def story() -> None:
        async with world(WEAK, DOWN) as w:
            await w.capture(expect=TABLE)
            answer = await w.capture(expect=TABLE, max_stale_age="100d")
            assert answer.result is Result.FAILED
            assert answer.newest_usable is None
            assert "No earlier snapshot is kept" in answer.problem

    run(story())


def test_age_is_not_reset_by_failures(world: Make) -> None:
    """R-B10: failed attempts leave the age of the good snapshot alone."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture()
            w.engine.then(DOWN)
            for hours in (1, 21):
                w.clock.advance(hours=hours)
                answer = await w.capture(max_stale_age="7d")
            assert answer.snapshot.captured_at == START
            assert answer.age_seconds == 22 * 3600

    run(story())


def test_slow_failure_does_not_age_the_snapshot(world: Make) -> None:
    """The age counts to the moment the request began, however long the failure takes."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture()
            w.clock.advance(seconds=9)

            def slow(order: Order, now: object) -> Observed:
                w.clock.advance(seconds=200)
                return DOWN(order, w.clock.now())

            w.engine.then(slow)
            answer = await w.capture(max_stale_age=10)
            assert (answer.result, answer.age_seconds) == (Result.STALE, 9)

    run(story())


def test_weak_capture_never_satisfies_a_strict_caller(world: Make) -> None:
    """A page accepted under weak rules neither answers a strict caller nor hides an older page that does."""

    async def story() -> None:
        async with world(GOOD) as w:
            good = (await w.capture()).snapshot
            w.clock.advance(hours=1)
            w.engine.then(WEAK)
            weak = (await w.capture()).snapshot
            assert weak.state is State.LIVE
            w.engine.then(DOWN)
            strict = await w.capture(expect=TABLE, max_stale_age="1d")
            assert strict.snapshot == good
            assert (await w.capture(max_stale_age="1d")).snapshot == weak
            assert (await w.capture(expect=TABLE, max_age="1d")).snapshot == good

    run(story())


def test_rejected_refresh_keeps_the_cap(world: Make) -> None:
    """R-B15: a malformed page is rejected; inside the cap the good one answers, outside nothing does."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture(expect=TABLE)
            w.engine.then(WEAK)
            w.clock.advance(seconds=5)
            answer = await w.capture(expect=TABLE, max_stale_age=10)
            assert answer.result is Result.STALE
            assert answer.attempt.verdict.failure.reason is Reason.SELECTOR_MISSING
            w.clock.advance(seconds=6)
            assert (await w.capture(expect=TABLE, max_stale_age=10)).result is Result.FAILED

    run(story())


def test_partial_is_no_fallback(world: Make) -> None:
    """Neither partial nor blocked, gone or down snapshots ever stand in."""

    async def story() -> None:
        async with world(page(b""), page(b"no", status=403), MISSING, DOWN) as w:
            for _ in range(3):
                await w.capture()
            assert (await w.capture(max_stale_age="9d")).newest_usable is None

    run(story())


def test_max_age_reuses_without_an_attempt(world: Make) -> None:
    """A usable snapshot within `max_age` is the answer and the engine is not asked."""

    async def story() -> None:
        async with world(GOOD) as w:
            first = (await w.capture()).snapshot
            w.clock.advance(seconds=60)
            answer = await w.capture(max_age=60)
            assert (answer.result, answer.attempt, answer.attempts) == (Result.REUSED, None, ())
            assert (answer.snapshot, answer.age_seconds) == (first, 60)
            assert len(w.engine.orders) == 1
            w.clock.advance(seconds=1)
            assert (await w.capture(max_age=60)).result is Result.FRESH

    run(story())


def test_stale_if_narrows_fallback(world: Make) -> None:
    """`stale_if` names the states that allow fallback; a fault of our own always does."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture()
            w.engine.then(MISSING)
            answer = await w.capture(max_stale_age="1d", stale_if=["down", "blocked"])
            assert (answer.result, answer.attempt.state) == (Result.FAILED, State.GONE)
            assert (await w.capture(max_stale_age="1d", stale_if="gone")).result is Result.STALE
            w.engine.then(trouble(Reason.LOCAL_NETWORK))
            ours = await w.capture(max_stale_age="1d", stale_if=["gone"])
            assert ours.result is Result.STALE
            assert ours.attempt.verdict.failure.fault is FaultSide.LOCAL

    run(story())


def test_not_modified_is_a_live_snapshot_that_points_at_its_bytes(world: Make) -> None:
    """W-D5, R-B12: a 304 has its own time, names the holder of the bytes, and counts as the newest usable page."""

    async def story() -> None:
        tagged = page(b"<h1>Tagged</h1><p>words</p>", headers={"ETag": '"v1"'})
        async with world(tagged) as w:
            first = (await w.capture()).snapshot
            w.engine.then(page(b"", status=304, headers={"ETag": '"v1"'}))
            w.clock.advance(days=5)
            second = (await w.capture(conditional=True)).snapshot
            assert w.engine.orders[-1].held.validators.etag == '"v1"'
            assert second.not_modified
            assert second.state is State.LIVE
            assert (second.content_from, second.content_captured_at) == (first.id, START)
            assert second.evidence.content == first.evidence.content
            assert await w.pravda.read(second) == b"<h1>Tagged</h1><p>words</p>"
            third = (await w.capture(conditional=True)).snapshot
            assert third.content_from == first.id, "never a chain"
            w.engine.then(DOWN)
            w.clock.advance(days=1)
            answer = await w.capture(max_stale_age="2d")
            assert answer.snapshot == third
            assert answer.age_seconds == 86_400
            assert await w.pravda.reclassify(third) == third.verdict

    run(story())


def test_conditional_sends_nothing_that_does_not_satisfy_the_rules(world: Make) -> None:
    """Validators go out only for held bytes that pass the rules at hand."""

    async def story() -> None:
        async with world(page(b"<p>words of a page</p>", headers={"ETag": '"v1"'})) as w:
            await w.capture()
            await w.capture(conditional=True, expect=TABLE)
            assert w.engine.orders[-1].held is None
            await w.capture()
            assert w.engine.orders[-1].held is None, "unconditional unless asked"
            w.engine.then(page(b"<p>words of a page</p>"))
            for _ in range(2):
                w.clock.advance(seconds=1)
                await w.capture(conditional=True)
            assert w.engine.orders[-1].held is None, "the newest page came without validators"

    run(story())


@pytest.mark.parametrize("status", [500, 503])
def test_failed_conditional_request_falls_back(world: Make, status: int) -> None:
    """R-B4: an error in answer to a conditional request is covered like any other."""

    async def story() -> None:
        async with world(page(b"<p>words of a page</p>", headers={"ETag": '"a"'})) as w:
            await w.capture()
            for scene in (
                trouble(Reason.CONNECTION_RESET),
                page(b"", status=status),
                trouble(Reason.RESPONSE_TIMEOUT),
            ):
                w.engine.then(scene)
                answer = await w.capture(conditional=True, max_stale_age="1d")
                assert answer.result is Result.STALE

    run(story())


def test_retry_on_a_fresh_connection(world: Make) -> None:
    """A reset before any header is tried once more on a fresh connection, and both tries are kept."""

    async def story() -> None:
        async with world(trouble(Reason.CONNECTION_RESET), GOOD) as w:
            answer = await w.capture()
            assert answer.result is Result.FRESH
            assert len(answer.attempts) == 2
            assert [order.fresh_connection for order in w.engine.orders] == [False, True]
            kept = await w.pravda.history(Query())
            assert [row.state for row in kept] == [State.LIVE, State.DOWN]
            assert len({row.asked.capture_id for row in kept}) == 1

    run(story())


def test_max_drop_compares_with_the_last_usable_snapshot(world: Make) -> None:
    """A page that lost most of its rows is partial/count_drop, and the next one is still held against the good one."""

    def rows(count: int) -> Scene:
        return page(b"<table id=list>" + b"<tr><td>x</td></tr>" * count + b"</table>")

    async def story() -> None:
        rules = {"selector": "#list tr", "max_drop": 0.5}
        async with world(rows(10)) as w:
            assert (await w.capture(expect=rules)).result is Result.FRESH
            w.engine.then(rows(4))
            for _ in range(2):
                answer = await w.capture(expect=rules)
                assert answer.attempt.verdict.failure.reason is Reason.COUNT_DROP
            w.engine.then(rows(5))
            assert (await w.capture(expect=rules)).result is Result.FRESH

    run(story())


def test_key_replaces_url_and_body(world: Make) -> None:
    """Two URLs with one `key` share their history; without it they do not."""

    async def story() -> None:
        async with world(GOOD, DOWN) as w:
            await w.capture(URL + "?t=1", key="list")
            answer = await w.capture(URL + "?t=2", key="list", max_stale_age="1d")
            assert answer.result is Result.STALE
            assert (await w.capture(URL + "?t=1", max_stale_age="1d")).result is Result.FAILED

    run(story())


def test_fragments_share_one_history(world: Make) -> None:
    """W-G3: `#a` and `#b` are one page; W-G1: the order of a query is not."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture(URL + "#a")
            assert (await w.capture(URL + "#b", max_age=9)).result is Result.REUSED
            await w.capture(URL + "?b=2&a=1")
            assert (await w.capture(URL + "?a=1&b=2", max_age=9)).result is Result.FRESH

    run(story())


def test_insecure_evidence_answers_no_verifying_caller(world: Make) -> None:
    """A page captured without verification is no fallback for a caller who verifies."""

    async def story() -> None:
        async with world(GOOD) as w:
            await w.capture(tls="insecure")
            assert (await w.capture(max_age=9, tls="insecure")).result is Result.REUSED
            w.engine.then(DOWN)
            assert (await w.capture(max_stale_age=9)).newest_usable is None

    run(story())


def test_identical_captures_share_one_attempt(world: Make) -> None:
    """Fifty identical captures at once are one attempt; another rule or budget makes one of its own."""

    async def story() -> None:
        async with world(GOOD) as w:
            same = [w.capture() for _ in range(50)]
            other = [w.capture(expect=TABLE), w.capture(timeouts={"total": 5}), w.capture(conditional=True)]
            answers = await asyncio.gather(*same, *other)
            assert len(w.engine.orders) == 4
            assert len({answer.snapshot.id for answer in answers[:50]}) == 1
            assert len({answer.snapshot.id for answer in answers}) == 4

    run(story())


def test_bad_requests_fetch_and_store_nothing(world: Make) -> None:
    """A bad field raises a ValueError naming it before anything is fetched or stored."""

    async def story() -> None:
        async with world(GOOD) as w:
            for url, fields, name in (
                ("ftp://example.org/", {}, "url"),
                (URL, {"max_stale_age": -1}, "max_stale_age"),
                (URL, {"max_age": "soon"}, "max_age"),
                (URL, {"expect": {"selector": ":::"}}, "expect.selector"),
                (URL, {"colour": "red"}, "colour"),
            ):
                with pytest.raises(BadRequest) as caught:
                    await w.pravda.capture(url, **fields)
                assert caught.value.field == name
                assert isinstance(caught.value, ValueError)
            assert w.engine.orders == []
            assert await w.pravda.history(Query()) == ()

    run(story())


def test_latest_reads_without_capturing(world: Make) -> None:
    """`latest` gives the newest usable snapshot within `max_age`, or None."""

    async def story() -> None:
        async with world(GOOD) as w:
            first = (await w.capture()).snapshot
            w.clock.advance(hours=2)
            assert await w.pravda.latest(URL) == first
            assert await w.pravda.latest(URL, max_age="1h") is None
            assert await w.pravda.latest(URL, expect={"text_present": "Three"}) is None
            assert len(w.engine.orders) == 1

    run(story())


def test_missing_things_are_named(world: Make) -> None:
    """An unknown id and an unknown artifact raise NotFound, the latter saying what there is."""

    async def story() -> None:
        async with world(GOOD) as w:
            snapshot = (await w.capture()).snapshot
            with pytest.raises(NotFound, match="no snapshot"):
                await w.pravda.get("nope")
            with pytest.raises(NotFound, match="it has: body"):
                await w.pravda.read(snapshot, "screenshot")

    run(story())


def test_reclassify_leaves_the_stored_verdict(world: Make) -> None:
    """A stored snapshot is judged again without a fetch, and what is stored stays."""

    async def story() -> None:
        async with world(WEAK) as w:
            snapshot = (await w.capture(expect=TABLE)).attempt
            assert await w.pravda.reclassify(snapshot) == snapshot.verdict
            assert await w.pravda.get(snapshot.id) == snapshot

    run(story())


class Breaking(MemoryArchive):
    """An archive whose keeps can be made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies_fail: Reason | None = None
        self.rows_fail = False
        self.damaged: set[str] = set()

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        if self.rows_fail:
            raise ArchiveUnavailable("the disk is gone")
        if self.bodies_fail and "body" in contents:
            raise StorageTrouble(self.bodies_fail, "no room") from OSError(errno.ENOSPC, "full")
        await super().keep(snapshot, contents)

    async def read(self, snapshot: Snapshot, name: str, limit: int | None = None) -> bytes | None:
        if snapshot.id in self.damaged:
            raise Damaged(f"{snapshot.id} is damaged")
        return await super().read(snapshot, name, limit)


def test_unwritable_body_is_a_storage_fault_of_our_own() -> None:
    """Where the bytes cannot be written but the row can, the attempt is kept as storage_error and fallback works."""

    async def story() -> None:
        archive = Breaking()
        w = World(archive, GOOD)
        first = (await w.capture()).snapshot
        archive.bodies_fail = Reason.DISK_FULL
        answer = await w.capture(max_stale_age="1d", stale_if=["gone"])
        assert (answer.result, answer.snapshot) == (Result.STALE, first)
        failure = answer.attempt.verdict.failure
        assert (failure.reason, failure.fault, answer.attempt.state) == (
            Reason.DISK_FULL,
            FaultSide.LOCAL,
            State.PARTIAL,
        )
        assert answer.attempt.evidence.artifacts == ()
        response = (await w.pravda.get(answer.attempt.id)).evidence.response
        assert response is not None
        assert response.status == 200

    run(story())


def test_unwritable_row_acknowledges_nothing() -> None:
    """Where the row cannot be written, ArchiveUnavailable names the newest usable snapshot and reads go on."""

    async def story() -> None:
        archive = Breaking()
        w = World(archive, GOOD)
        first = (await w.capture()).snapshot
        archive.rows_fail = True
        with pytest.raises(ArchiveUnavailable, match="disk is gone") as caught:
            await w.capture(max_stale_age="1d")
        assert caught.value.newest_usable is not None
        assert caught.value.newest_usable.id == first.id
        assert await w.pravda.latest(URL) == first

    run(story())


def test_damaged_bytes_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """W-I6: a snapshot whose bytes are damaged is never served; the next older usable one is."""

    async def story() -> None:
        archive = Breaking()
        w = World(archive, GOOD)
        older = (await w.capture()).snapshot
        w.clock.advance(hours=1)
        w.engine.then(page(b"<table id=list><tr><td>Newer words</table>"))
        newer = (await w.capture()).snapshot
        archive.damaged.add(newer.id)
        assert (await w.capture(max_age="1d")).snapshot == older
        w.engine.then(DOWN)
        assert (await w.capture(max_stale_age="1d")).snapshot == older

    run(story())
    assert "is damaged" in caplog.text


class Hanging(ScriptedEngine):
    """An engine that hangs until cancelled, then says so."""

    async def observe(self, order: Order) -> Observed:
        self.orders.append(order)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return trouble(Reason.CANCELLED)(order, self._clock.now())
        raise AssertionError


def test_cancelled_capture_is_kept() -> None:
    """A cancelled capture raises CancelledError after its attempt was kept as cancelled, a local fault."""

    async def story() -> None:
        archive = MemoryArchive()
        w = World(archive, GOOD)
        w.pravda._engine = Hanging(GOOD, clock=w.clock)
        task = asyncio.create_task(w.capture())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (kept,) = await w.pravda.history(Query())
        assert kept.verdict.failure is not None
        assert (kept.verdict.failure.reason, kept.verdict.failure.fault) == (
            Reason.CANCELLED,
            FaultSide.LOCAL,
        )

    run(story())


def test_a_capture_cancelled_while_it_is_stored_is_kept() -> None:
    """Whoever goes away after the page was seen, and before it is stored, costs no evidence."""

    async def story() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        class Slow(MemoryArchive):
            async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
                begun.set()
                await gate.wait()
                await super().keep(snapshot, contents)

        w = World(Slow(), GOOD)
        task = asyncio.create_task(w.capture())
        await begun.wait()
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, gate.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        (kept,) = await w.pravda.history(Query())
        assert kept.state is State.LIVE

    run(story())


def test_one_impatient_caller_does_not_end_the_attempt_of_others() -> None:
    """Of two captures that share an attempt, the one that is cancelled leaves; the other gets its answer."""

    async def story() -> None:
        w = World(MemoryArchive(), GOOD)
        gate = asyncio.Event()

        class Gated(ScriptedEngine):
            async def observe(self, order: Order) -> Observed:
                await gate.wait()
                return await super().observe(order)

        w.pravda._engine = Gated(GOOD, clock=w.clock)
        impatient, patient = asyncio.create_task(w.capture()), asyncio.create_task(w.capture())
        await asyncio.sleep(0.01)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        gate.set()
        assert (await patient).result is Result.FRESH

    run(story())


def test_close_ends_running_captures_and_keeps_them() -> None:
    """Closing while a capture runs keeps its attempt as cancelled."""

    async def story() -> None:
        archive = MemoryArchive()
        w = World(archive, GOOD)
        w.pravda._engine = Hanging(GOOD, clock=w.clock)
        task = asyncio.create_task(w.capture())
        await asyncio.sleep(0.01)
        await w.pravda.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await archive.find(Query())) == 1

    run(story())
