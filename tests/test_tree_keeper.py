"""Attempts of a refresh kept as snapshots, and engines chosen by host."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pravda.core.hosts import MemoryBook
from pravda.core.ports import Engine, Held, Observed, Order, Query
from pravda.core.request import Request
from pravda.core.states import Reason, State
from pravda.engines.polite import PoliteEngine, PoliteOptions
from pravda.engines.routes import Routes, WithoutRobots
from pravda.errors import Damaged
from pravda.testing import FrozenClock, MemoryArchive, ScriptedEngine, page, trouble
from pravda.tree.keeper import Keeper, KeptEngine
from tests.trees import ONE, World

TAG = {"ETag": '"v1"'}


class Closing:
    """An engine that notices being closed."""

    name = "http"

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.closed = 0

    async def observe(self, order: Order) -> Observed:
        """As the engine inside."""
        return await self._inner.observe(order)

    async def close(self) -> None:
        """Count."""
        self.closed += 1


def ids() -> Iterator[str]:
    """Ids that sort in order."""
    return (f"{number:036}" for number in count())


class Kept(World):
    """A tree with an archive behind it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, page(headers=TAG), text=ONE)
        self.archive, made = MemoryArchive(), ids()
        self.keeper = Keeper(self.archive, lambda: next(made))
        self.kept_engine = KeptEngine(self.engine, self.keeper)

    def again(self, *scenes):
        """One refresh, six hours after the last, kept."""
        self.clock.advance(hours=6)
        (result,) = self.run(*scenes, engine=self.kept_engine, keeper=self.keeper).results
        return result

    def sends(self) -> bool:
        """Whether the last request carried validators."""
        return self.engine.orders[-1].held is not None

    def all(self):
        """What is kept, oldest first."""
        return asyncio.run(self.archive.find(Query()))[::-1]


def test_good_and_bad_attempts_are_kept(tmp_path):
    """Each attempt is a snapshot with the refresh's own verdict."""
    world = Kept(tmp_path)
    world.again()
    world.again(trouble(Reason.CONNECT_TIMEOUT))
    first, second = world.all()
    assert (first.state, second.state) == (State.LIVE, State.DOWN)
    assert first.content_captured_at == first.captured_at
    assert second.content_captured_at is None
    assert first.asked.conditional


def test_a_304_points_at_the_bytes(tmp_path):
    """Never at another 304; the validators in force are repeated."""
    world = Kept(tmp_path)
    world.again()
    world.again(page(b"", status=304))
    world.again(page(b"", status=304))
    first, second, third = world.all()
    assert (second.content_from, third.content_from) == (first.id, first.id)
    assert third.not_modified
    assert third.validators == first.validators
    assert third.content_captured_at == first.captured_at
    assert third.evidence.content == first.evidence.content
    assert [artifact.name for artifact in third.evidence.artifacts] == []


def test_validators_are_sent_only_for_what_the_archive_holds(tmp_path):
    """A page that came before the archive did, or with other validators, is asked for whole."""
    world = Kept(tmp_path)
    world.one()
    world.again()
    assert not world.sends()
    world.again()
    assert world.sends()
    world.one(page(b"<p>others, and quite different ones</p>", headers={"ETag": '"v2"'}))
    world.again()
    assert not world.sends()


def test_bytes_that_are_gone_hold_nothing(tmp_path, monkeypatch):
    """Where the archive cannot give the bytes no validator is sent."""
    world = Kept(tmp_path)
    world.again()

    async def damaged(*_: object) -> bytes:
        raise Damaged("changed")

    monkeypatch.setattr(world.archive, "read", damaged)
    world.again()
    assert not world.sends()


def test_a_304_without_its_page_is_told(tmp_path):
    """An archive that lost the page between question and answer keeps nothing, and the tree goes on."""
    world = Kept(tmp_path)
    world.again()
    world.archive._rows.clear()
    world.engine.then(page(b"", status=304))
    world.clock.advance(hours=6)
    (result,) = world.run(keeper=world.keeper).results
    assert result.outcome == "unchanged"
    assert [note.code for note in result.warnings] == ["not_archived"]
    assert world.all() == ()


def test_a_holder_needs_the_same_url(tmp_path):
    """Validators of another address are none of this page's."""
    world = Kept(tmp_path)
    world.again()
    (kept,) = world.all()
    request = world.sources.sources[0].request
    held = Held(url=kept.evidence.final_url, validators=kept.validators)
    elsewhere = Held(url="https://example.org/b", validators=kept.validators)
    assert asyncio.run(world.keeper.holder(request, held)) == kept
    assert asyncio.run(world.keeper.holder(request, elsewhere)) is None


def test_engines_by_host():
    """An order goes to its host's engine, else to the usual one; each is closed once."""
    clock = FrozenClock()
    usual, own = (ScriptedEngine(page(), clock=clock) for _ in range(2))
    outer, other = Closing(usual), Closing(own)
    routes = Routes(outer, {"one.example": other, "two.example": other})

    async def go() -> None:
        for host in ("one.example", "two.example", "three.example"):
            await routes.observe(Order(request=Request.parse(f"https://{host}/"), budget=1.0))
        await KeptEngine(routes, Keeper(MemoryArchive(), lambda: "x")).close()

    asyncio.run(go())
    assert [order.request.url.host for order in own.orders] == ["one.example", "two.example"]
    assert len(usual.orders) == 1
    assert (outer.closed, other.closed) == (1, 1)


def test_a_polite_engine_without_robots():
    """The page is asked for at once, and closing closes what is inside."""
    clock = FrozenClock()
    inner = ScriptedEngine(page(), clock=clock)
    closing = Closing(inner)
    polite = PoliteEngine(closing, MemoryBook(), clock, asyncio.sleep, PoliteOptions(user_agent="x"))

    async def go() -> None:
        engine = WithoutRobots(polite)
        await engine.observe(Order(request=Request.parse("https://example.org/a"), budget=1.0))
        await engine.close()

    asyncio.run(go())
    assert [order.request.url.target for order in inner.orders] == ["/a"]
    assert closing.closed == 1
