"""The polite engine: robots.txt first, one request at a time per host, a pause after each."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from pravda.core.addresses import AddressPolicy
from pravda.core.classify import classify, subject_of
from pravda.core.evidence import Hop, Phase, Trouble
from pravda.core.hosts import HostFacts, MemoryBook, TooLong, from_json, to_json
from pravda.core.mistake import BadRequest
from pravda.core.ports import Observed, Order
from pravda.core.request import Request
from pravda.core.robots import LARGEST, Kind
from pravda.core.rules import Rules
from pravda.core.states import Reason, State
from pravda.core.urls import URL, join
from pravda.engines.http import HttpEngine, HttpOptions
from pravda.engines.polite import HostOptions, OnChallenge, PoliteEngine, PoliteOptions
from pravda.engines.turns import Door
from pravda.testing import START, FrozenClock, page, trouble
from tests.origin import HT, C, Origin, R, Script, header_of
from tests.virtual import LoopClock, run

HOST, SITE = "a.example", "https://a.example"
ALL, NONE = b"User-agent: *\nDisallow:", b"User-agent: *\nDisallow: /"
CHALLENGE = {"cf-mitigated": "challenge"}


Routes = Mapping[str, "Reply | list[Reply]"]


@dataclass(frozen=True)
class Reply:
    """What a server of the scripted world does."""

    body: bytes = b"<title>Page</title><p>Some words of a page.</p>"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    to: str | None = None
    seconds: float = 0.0
    reason: Reason | None = None
    raises: Exception | None = None


def text(body: bytes, **headers: str) -> Reply:
    """A robots.txt."""
    return Reply(body=body, headers={"Content-Type": "text/plain"} | headers)


def to(location: str) -> Reply:
    """A redirect."""
    return Reply(status=302, to=location)


class World:
    """An engine over scripted servers; redirects are followed as the HTTP engine does."""

    name = "http"

    def __init__(self, clock, spend, routes: Routes) -> None:
        self.clock, self.spend, self.routes = clock, spend, dict(routes)
        self.log: list[tuple[str, str, float, float]] = []
        self.orders: list[Order] = []
        self.closed = False
        self._inside: set[str] = set()

    @property
    def seen(self) -> list[str]:
        """URLs in the order they were asked for."""
        return [url for url, _, _, _ in self.log]

    async def observe(self, order: Order) -> Observed:
        self.orders.append(order)
        url = order.request.url
        hops: list[Hop] = []
        while True:
            reply = await self._visit(url)
            if reply.raises:
                raise reply.raises
            if reply.reason:
                return trouble(reply.reason)(order, self.clock.now())
            seen = page(reply.body, status=reply.status, headers=reply.headers)(order, self.clock.now())
            evidence = replace(seen.evidence, final_url=url.page, redirects=tuple(hops))
            if reply.to is None:
                return replace(seen, evidence=evidence)
            target = join(url, reply.to)
            if order.gate and (refusal := await order.gate(target)):
                return replace(seen, evidence=replace(evidence, trouble=refusal))
            hops.append(Hop(url=url.page, status=reply.status))
            url = target

    async def _visit(self, url: URL) -> Reply:
        assert url.hostname not in self._inside, f"two requests at once to {url.hostname}"
        self._inside.add(url.hostname)
        began = self.clock.monotonic()
        reply = self.routes.get(url.page, Reply(status=404))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        try:
            await self.spend(reply.seconds)
        finally:
            self._inside.discard(url.hostname)
            self.log.append((url.page, url.hostname, began, self.clock.monotonic()))
        return reply

    async def close(self) -> None:
        self.closed = True


class Table:
    """A polite engine over a scripted world in frozen time; sleeps are recorded."""

    def __init__(self, routes: Routes, book: MemoryBook | None = None, **options) -> None:
        self.clock = FrozenClock()
        self.sleeps: list[float] = []
        self.world = World(self.clock, self._spend, {f"{SITE}/robots.txt": text(ALL)} | dict(routes))
        self.book = book or MemoryBook()
        self.options = PoliteOptions(**({"user_agent": "pravda/1 (+https://x/cat)"} | options))
        self.engine = self.next_run()

    def next_run(self) -> PoliteEngine:
        """Another process with the same book."""
        self.engine = PoliteEngine(self.world, self.book, self.clock, self._sleep, self.options)
        return self.engine

    def get(self, url: str = f"{SITE}/page", *, robots: bool = True, **fields) -> Observed:
        """One order, from start to end."""
        return asyncio.run(self.engine.observe(an_order(url, **fields), robots=robots))

    async def _spend(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.clock.advance(seconds=seconds)


def an_order(url: str, gate=None, **fields) -> Order:
    return Order(request=Request.parse(url, **fields), budget=300, gate=gate)


def rest(table: Table, host: str = HOST) -> float:
    """Seconds that the host is still to be left alone."""
    facts = table.book.get(host)
    assert facts
    assert facts.not_before
    return (facts.not_before - table.clock.now()).total_seconds()


def status(observed: Observed) -> int | None:
    response = observed.evidence.response
    return response.status if response else None


def verdict(observed: Observed) -> tuple[State, Reason | None]:
    evidence, body = observed.evidence, observed.contents.get("body")
    found = classify(evidence, subject_of(evidence, body.read() if body else b""), expect=Rules())
    return found.state, found.failure.reason if found.failure else None


def problem(observed: Observed) -> Trouble:
    assert observed.evidence.trouble is not None
    return observed.evidence.trouble


# robots.txt


def test_robots_txt_is_asked_first_and_once():
    """The first order of an origin asks for robots.txt, in the same name; the others know the answer."""
    table = Table({f"{SITE}/page": Reply()})
    for _ in range(3):
        assert verdict(table.get(headers={"User-Agent": "pravda/2", "X-Secret": "s"})) == (State.LIVE, None)
    assert table.world.seen == [f"{SITE}/robots.txt", *[f"{SITE}/page"] * 3]
    asked = table.world.orders[0].request
    assert asked.headers == (("User-Agent", "pravda/2"),)
    assert asked.max_bytes == LARGEST
    assert table.world.orders[0].budget == 60


def test_a_forbidden_page_is_never_asked_for():
    """What robots.txt forbids is refused as blocked, says which rule, and takes no request and no turn."""
    table = Table({f"{SITE}/robots.txt": text(b"User-agent: pravda\nDisallow: /pri\nDisallow: /private")})
    for _ in range(2):
        observed = table.get("https://u:p@a.example/private/x#y", headers={"Accept": "*/*"})
        assert verdict(observed) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert table.world.seen == [f"{SITE}/robots.txt"]
    assert table.sleeps == []
    assert problem(observed).phase is Phase.CHECK
    assert '"Disallow: /private" to pravda' in problem(observed).detail
    evidence = observed.evidence
    assert (evidence.url, evidence.final_url) == (f"{SITE}/private/x#y", f"{SITE}/private/x")
    assert evidence.asked_headers == ("accept",)
    assert evidence.response is None
    assert not observed.contents


def test_a_name_in_our_address_opens_nothing():
    """R-C12: the rules for a stranger whose name is in our contact address are not ours."""
    table = Table({f"{SITE}/robots.txt": text(b"User-agent: cat\nAllow: /\n\nUser-agent: *\nDisallow: /")})
    assert verdict(table.get()) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert table.get(headers={"User-Agent": "Cat/9"}).evidence.trouble is None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(body=b"<html>Not found"), "something else in place of rules"),
        (Reply(status=503), "503 Service Unavailable: a server error"),
        (Reply(status=500), "500 Internal Server Error"),
        (Reply(status=403), "403 Forbidden: turned away without saying why"),
        (Reply(status=403, headers=CHALLENGE), "403 Forbidden: a challenge"),
        (Reply(status=200, headers=CHALLENGE), "200 OK: a challenge"),
        (Reply(status=401), "401 Unauthorized: a refusal"),
        (Reply(status=202, body=ALL), "202 Accepted"),
        (Reply(status=204, body=b""), "204 No Content"),
        (Reply(body=b"#" * (LARGEST + 1)), "not the whole file"),
        (Reply(reason=Reason.DNS_NOT_FOUND), "no answer"),
        (Reply(reason=Reason.CONNECT_TIMEOUT), "no answer in time"),
    ],
)
def test_what_is_no_rules_closes_the_host(reply, words):
    """R-C3 and its kin: whatever is neither rules nor word that there are none closes the host, and says as what."""
    table = Table({f"{SITE}/robots.txt": reply, f"{SITE}/page": Reply()})
    observed = table.get()
    assert verdict(observed) == (State.BLOCKED, Reason.ROBOTS_UNREADABLE)
    assert words in problem(observed).detail
    assert table.world.seen == [f"{SITE}/robots.txt"]


@pytest.mark.parametrize("reply", [Reply(status=404), Reply(status=410), text(b""), text(b" \n"), text(ALL)])
def test_what_opens_the_host(reply):
    """Rules, an empty file, and word that there is none open it."""
    assert verdict(Table({f"{SITE}/robots.txt": reply, f"{SITE}/page": Reply()}).get()) == (State.LIVE, None)


def test_a_fault_of_ours_is_not_held_against_the_site():
    """Where our own network fails on the way to robots.txt, the attempt says so, and the next one asks again."""
    table = Table(
        {f"{SITE}/robots.txt": [Reply(reason=Reason.LOCAL_NETWORK), text(ALL)], f"{SITE}/page": Reply()}
    )
    assert verdict(table.get()) == (State.DOWN, Reason.LOCAL_NETWORK)
    assert table.book.hosts[HOST].robots == ()
    assert verdict(table.get()) == (State.LIVE, None)


def test_robots_txt_itself_needs_no_leave():
    """robots.txt may be captured, whatever it says, and is not asked for twice because of that."""
    table = Table({f"{SITE}/robots.txt": text(NONE)})
    assert table.get(f"{SITE}/robots.txt").evidence.trouble is None
    assert table.world.seen == [f"{SITE}/robots.txt"]
    assert verdict(table.get())[1] is Reason.ROBOTS_DISALLOWED
    assert table.get(f"{SITE}/robots.txt").evidence.trouble is None


def test_without_robots_only_the_pauses_hold():
    """A source that is not bound by robots.txt is still one of those that take turns."""
    table = Table({f"{SITE}/robots.txt": text(NONE), f"{SITE}/page": Reply()})
    for _ in range(2):
        assert verdict(table.get(robots=False)) == (State.LIVE, None)
    assert table.world.seen == [f"{SITE}/page"] * 2
    assert table.sleeps == [2]


def test_each_origin_has_rules_of_its_own():
    """Another scheme or port is another origin, at the same host."""
    table = Table({f"{SITE}/page": Reply(), "http://a.example/robots.txt": text(NONE)})
    assert verdict(table.get("http://a.example/page")) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert verdict(table.get()) == (State.LIVE, None)


def test_a_challenge_may_be_settled_by_the_operator():
    """Where a person has read the rules behind a challenge, the host is open, and the evidence says on whose word."""
    hosts = {
        HOST: HostOptions(robots_on_challenge=OnChallenge.ASSUME_ALLOWED, note="read by Ada, 2026-01-01")
    }
    table = Table(
        {f"{SITE}/robots.txt": Reply(status=403, headers=CHALLENGE), f"{SITE}/page": Reply()}, hosts=hosts
    )
    observed = table.get()
    assert verdict(observed) == (State.LIVE, None)
    assert [note.code for note in observed.evidence.notes] == ["robots_assumed"]
    assert "read by Ada, 2026-01-01" in observed.evidence.notes[0].detail


def test_a_refusal_cannot_be_settled_so():
    """What the operator settled for a challenge holds for nothing else."""
    hosts = {HOST: HostOptions(robots_on_challenge=OnChallenge.ASSUME_ALLOWED)}
    table = Table({f"{SITE}/robots.txt": Reply(status=403), f"{SITE}/page": Reply()}, hosts=hosts)
    assert verdict(table.get()) == (State.BLOCKED, Reason.ROBOTS_UNREADABLE)


def test_a_very_long_path_is_held_against_the_rules_too():
    """A path so long that the rules are held against it aside is decided as any other."""
    table = Table({f"{SITE}/robots.txt": text(b"User-agent: *\nDisallow: /*b$")})
    assert verdict(table.get(f"{SITE}/{'a' * 9000}b")) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)


# across runs


def test_rules_are_kept_for_a_day():
    """Another run knows the rules from the book for 24 hours, and then asks again."""
    table = Table({f"{SITE}/robots.txt": [text(NONE), text(ALL)], f"{SITE}/page": Reply()})
    assert verdict(table.get())[1] is Reason.ROBOTS_DISALLOWED
    table.book = MemoryBook(from_json(to_json(table.book.hosts, table.clock.now()), table.clock.now()).hosts)
    table.next_run()
    table.clock.advance(hours=23, minutes=59)
    assert verdict(table.get())[1] is Reason.ROBOTS_DISALLOWED
    assert len(table.world.seen) == 1
    table.clock.advance(minutes=2)
    assert verdict(table.get()) == (State.LIVE, None)


def test_word_that_there_are_none_is_kept_too():
    """A 404 is an answer that the next run knows."""
    table = Table({f"{SITE}/robots.txt": Reply(status=404), f"{SITE}/page": Reply()})
    table.get()
    table.next_run()
    table.get()
    assert table.world.seen == [f"{SITE}/robots.txt", f"{SITE}/page", f"{SITE}/page"]


def test_a_passing_fault_closes_the_host_for_one_run():
    """An unreadable robots.txt is asked for once in a run, but again by the next one, and after an hour."""
    table = Table(
        {f"{SITE}/robots.txt": [Reply(status=503), Reply(status=503), text(ALL)], f"{SITE}/page": Reply()}
    )
    for _ in range(2):
        assert verdict(table.get())[1] is Reason.ROBOTS_UNREADABLE
    assert len(table.world.seen) == 1
    assert table.book.hosts[HOST].robots[0].kind is Kind.SERVER_ERROR
    table.next_run()
    assert verdict(table.get())[1] is Reason.ROBOTS_UNREADABLE
    table.clock.advance(hours=1)
    assert verdict(table.get()) == (State.LIVE, None)


def test_an_answer_from_the_future_counts_for_nothing():
    """A clock that was wrong does not keep rules alive."""
    table = Table({f"{SITE}/robots.txt": text(NONE)})
    table.get()
    table.clock.advance(days=-8)
    table.next_run()
    table.get()
    assert table.world.seen == [f"{SITE}/robots.txt"] * 2


def test_the_answers_at_hand_are_bounded(monkeypatch):
    """A process that sees very many origins forgets the oldest of them, and asks them again."""
    monkeypatch.setattr("pravda.engines.answers._MOST", 2)
    hosts = [f"h{number}.example" for number in range(3)]
    table = Table({f"https://{host}/robots.txt": Reply(status=503) for host in hosts})
    for host in (*hosts, hosts[2], hosts[0]):
        table.get(f"https://{host}/")
    assert len(table.world.seen) == 4


# spacing


def test_the_pause_is_measured_from_the_end_of_a_request():
    """The default pause of 2 seconds follows each request, the one for robots.txt included."""
    table = Table({f"{SITE}/robots.txt": replace(text(ALL), seconds=5), f"{SITE}/page": Reply(seconds=7)})
    table.get()
    table.get()
    assert table.sleeps == [2, 2]
    assert [(began, ended) for _, _, began, ended in table.world.log] == [(0, 5), (7, 14), (16, 23)]


def test_the_pause_holds_across_runs():
    """The next run waits out the pause of the last one."""
    table = Table({f"{SITE}/page": Reply()})
    table.get()
    table.clock.advance(seconds=0.5)
    table.next_run()
    table.get()
    assert table.sleeps == [2, 1.5]


def test_time_that_has_passed_is_not_waited_for():
    """Nobody sleeps when the pause is over."""
    table = Table({f"{SITE}/page": Reply()})
    table.get()
    table.clock.advance(seconds=3)
    table.get()
    assert table.sleeps == [2]


@pytest.mark.parametrize(("said", "pause"), [("0", 2), ("1", 2), ("10", 10), ("60", 60), ("x", 2)])
def test_crawl_delay(said, pause):
    """A Crawl-delay is waited for, never less than the default, after robots.txt as after a page."""
    robots = text(f"User-agent: *\nCrawl-delay: {said}".encode())
    table = Table({f"{SITE}/robots.txt": robots, f"{SITE}/page": Reply()})
    table.get()
    table.get()
    assert table.sleeps == [pause, pause]


@pytest.mark.parametrize("said", ["86400", "61", "9" * 500])
def test_an_absurd_crawl_delay_puts_the_next_one_off(said):
    """R-C14: the first page is asked for, the second is put off until its time, and nobody sleeps for a day."""
    robots = text(f"User-agent: *\nCrawl-delay: {said}".encode())
    table = Table({f"{SITE}/robots.txt": robots, f"{SITE}/page": Reply()})
    assert verdict(table.get()) == (State.LIVE, None)
    with pytest.raises(TooLong) as told:
        table.get()
    assert table.sleeps == [2]
    assert told.value.host == HOST
    assert (told.value.until - table.clock.now()).total_seconds() == min(float(said), 7 * 86400)
    assert len(table.world.seen) == 2


def test_the_gap_of_one_host():
    """The operator may settle a pause for one host, longer or shorter than elsewhere."""
    hosts = {HOST: HostOptions(gap=0.5), "b.example": HostOptions(gap=9)}
    table = Table({f"{SITE}/page": Reply()}, hosts=hosts)
    table.get()
    table.get("https://b.example/")
    assert table.sleeps == [0.5, 9]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("9999999999", 7 * 86400),
        ("-5", 2),
        ("Thu, 01 Jan 2026 15:00:00 GMT", 3 * 3600 - 2),
        ("Thu, 01 Jan 2026 09:00:00 GMT", 2),
        ("abc", 2),
        ("1.5", 2),
        ("1", 2),
        ("30", 30),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(status, value, seconds):
    """R-C15: a Retry-After moves the host's next time, a week at most; what is none changes nothing; nobody sleeps."""
    table = Table({f"{SITE}/page": Reply(status=status, headers={"Retry-After": value})})
    table.get()
    assert table.sleeps == [2]
    assert rest(table) == seconds


def test_retry_after_of_robots_txt():
    """A Retry-After that came with robots.txt holds for the host too, and the next run keeps to it."""
    table = Table({f"{SITE}/robots.txt": Reply(status=503, headers={"Retry-After": "7200"})})
    assert verdict(table.get())[1] is Reason.ROBOTS_UNREADABLE
    table.next_run()
    with pytest.raises(TooLong):
        table.get()
    assert len(table.world.seen) == 1


def test_retry_after_of_other_statuses_is_left_alone():
    """Only 429 and 503 ask for time."""
    table = Table({f"{SITE}/page": Reply(status=500, headers={"Retry-After": "7200"})})
    table.get()
    assert rest(table) == 2


def test_a_pause_that_cannot_be_true_counts_as_over():
    """A time more than a week ahead comes from a wrong clock."""
    book = MemoryBook({HOST: HostFacts(not_before=START.replace(year=2099))})
    table = Table({f"{SITE}/page": Reply()}, book)
    assert verdict(table.get()) == (State.LIVE, None)


def test_a_request_that_failed_is_followed_by_a_pause():
    """Whether the inner engine saw trouble or raised, the host has been asked."""
    for reply in (Reply(reason=Reason.CONNECTION_RESET), Reply(raises=BadRequest("url", "refused"))):
        table = Table({f"{SITE}/page": reply})
        try:
            table.get()
        except BadRequest:
            assert reply.raises
        assert rest(table) == 2


def test_robots_txt_at_a_refused_address_is_the_callers_mistake():
    """Where robots.txt is at an address that may not be asked, so is the page: the mistake is passed on."""
    table = Table({f"{SITE}/robots.txt": Reply(raises=BadRequest("url", "private"))})
    with pytest.raises(BadRequest):
        table.get()
    assert table.engine._being_asked == {}


# redirects


def test_a_redirect_target_is_checked():
    """R-C6: a target that robots.txt forbids is never asked for."""
    table = Table(
        {f"{SITE}/robots.txt": text(b"User-agent: *\nDisallow: /private"), f"{SITE}/p": to("/private")}
    )
    observed = table.get(f"{SITE}/p")
    assert verdict(observed) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert problem(observed).phase is Phase.REDIRECT
    assert table.world.seen == [f"{SITE}/robots.txt", f"{SITE}/p"]


def test_another_host_is_asked_for_its_rules():
    """A redirect to another host asks that host's robots.txt, keeps its pauses and is refused by its rules."""
    table = Table(
        {
            f"{SITE}/p": to("https://b.example/q"),
            f"{SITE}/r": to("https://b.example/s"),
            "https://b.example/robots.txt": text(b"User-agent: *\nDisallow: /s"),
            "https://b.example/q": Reply(),
        }
    )
    assert verdict(table.get(f"{SITE}/p")) == (State.LIVE, None)
    assert verdict(table.get(f"{SITE}/r")) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert table.world.seen == [
        f"{SITE}/robots.txt",
        f"{SITE}/p",
        "https://b.example/robots.txt",
        "https://b.example/q",
        f"{SITE}/r",
    ]
    assert table.sleeps == [2, 2]


def test_a_redirect_at_one_host_keeps_the_pause_but_no_absurd_delay():
    """A hop at the same host waits as any request; a delay that no run waits for does not break it in the middle."""
    robots = text(b"User-agent: *\nCrawl-delay: 86400")
    table = Table({f"{SITE}/robots.txt": robots, f"{SITE}/p": to("/q"), f"{SITE}/q": Reply()})
    assert verdict(table.get(f"{SITE}/p")) == (State.LIVE, None)
    assert table.sleeps == [2, 2]
    with pytest.raises(TooLong):
        table.get(f"{SITE}/p")


def test_a_refused_redirect_at_one_host_leaves_the_whole_pause():
    """Where the next hop is refused, the delay that was not held within the order is held after it."""
    robots = text(b"User-agent: *\nCrawl-delay: 86400\nDisallow: /q")
    table = Table({f"{SITE}/robots.txt": robots, f"{SITE}/p": to("/q")})
    assert verdict(table.get(f"{SITE}/p"))[1] is Reason.ROBOTS_DISALLOWED
    assert rest(table) == 86400


def test_a_redirect_to_a_host_at_rest_is_put_off():
    """A target whose host wants to be left alone for long is not asked for: the order is put off."""
    book = MemoryBook({"b.example": HostFacts(not_before=START.replace(hour=15))})
    table = Table({f"{SITE}/p": to("https://b.example/q")}, book)
    with pytest.raises(TooLong) as told:
        table.get(f"{SITE}/p")
    assert told.value.host == "b.example"
    assert status(table.get(f"{SITE}/p2")) == 404


def test_a_redirect_to_rules_at_a_refused_address():
    """A target whose robots.txt is at a refused address is refused as unsafe."""
    table = Table(
        {
            f"{SITE}/p": to("https://b.example/q"),
            "https://b.example/robots.txt": Reply(raises=BadRequest("url", "no")),
        }
    )
    assert problem(table.get(f"{SITE}/p")).reason is Reason.UNSAFE_ADDRESS


def test_the_callers_own_gate_is_asked_too():
    """A gate that came with the order still has its say, after ours."""
    asked = []

    async def gate(url):
        asked.append(url.page)
        return (
            Trouble(reason=Reason.UNSAFE_PORT, phase=Phase.REDIRECT, detail="no")
            if url.target == "/r"
            else None
        )

    table = Table({f"{SITE}/p": to("/q"), f"{SITE}/q": to("/r")})
    assert problem(table.get(f"{SITE}/p", gate=gate)).reason is Reason.UNSAFE_PORT
    assert asked == [f"{SITE}/q", f"{SITE}/r"]


def test_redirected_rules_are_read_where_they_are():
    """RFC 9309 §2.3.1.2: rules found after redirects, at other hosts too, hold for the host that was asked."""
    table = Table(
        {
            f"{SITE}/robots.txt": to("/rules"),
            f"{SITE}/rules": to("https://b.example/rules"),
            "https://b.example/rules": text(b"User-agent: *\nDisallow: /private"),
            f"{SITE}/page": Reply(),
        }
    )
    assert verdict(table.get()) == (State.LIVE, None)
    assert verdict(table.get(f"{SITE}/private"))[1] is Reason.ROBOTS_DISALLOWED
    assert table.book.hosts[HOST].robots[0].final_url == "https://b.example/rules"
    assert table.book.hosts["b.example"].not_before
    assert len(table.world.seen) == 4


def test_closing_closes_the_inner_engine():
    """The inner engine goes with the outer one, and lends it its name."""
    table = Table({})
    asyncio.run(table.engine.close())
    assert table.world.closed
    assert table.engine.name == "http"


# many at once, in virtual time


def crowd(routes: Routes, book: MemoryBook | None = None, **options) -> tuple[PoliteEngine, World]:
    clock = LoopClock()
    world = World(clock, asyncio.sleep, routes)
    chosen = PoliteOptions(**({"user_agent": "pravda/1"} | options))
    return PoliteEngine(world, book or MemoryBook(), clock, asyncio.sleep, chosen), world


def gaps(world: World) -> dict[str, list[float]]:
    """Seconds between the end of a request and the start of the next, by host."""
    times = defaultdict(list)
    for _, host, began, ended in world.log:
        times[host].append((began, ended))
    return {
        host: [after[0] - before[1] for before, after in zip(sorted(spans), sorted(spans)[1:], strict=False)]
        for host, spans in times.items()
    }


def test_a_thousand_orders_over_a_hundred_hosts():
    """One request at a time per host with its pause, robots.txt once each, and the hosts all at the same time."""
    rng = random.Random(9)
    urls = [f"https://h{number % 100}.example/{number}" for number in range(1000)]
    routes = {url: Reply(seconds=rng.choice([0.1, 1, 3])) for url in urls}
    routes |= {f"https://h{number}.example/robots.txt": text(ALL) for number in range(100)}
    rng.shuffle(urls)

    async def main():
        engine, world = crowd(routes)
        seen = await asyncio.gather(*(engine.observe(an_order(url)) for url in urls))
        return world, seen, asyncio.get_running_loop().time()

    world, seen, took = run(main())
    assert all(verdict(observed) == (State.LIVE, None) for observed in seen)
    assert sorted(world.seen) == sorted(routes)
    assert min(min(spans) for spans in gaps(world).values()) >= 2 - 1e-6
    assert took < 10 * (3 + 2) + 2


def test_orders_that_are_redirected_across_each_other():
    """Redirects between hosts in both directions neither lock each other out nor meet at a host."""
    routes = {
        f"https://{one}.example/{n}": to(f"https://{two}.example/end")
        for n in range(9)
        for one, two in ("ab", "ba", "cb")
    }
    routes |= {f"https://{name}.example/end": Reply(seconds=1) for name in "abc"}
    routes |= {
        "https://c.example/robots.txt": to("https://a.example/rules"),
        "https://a.example/rules": text(ALL),
    }

    async def main():
        engine, world = crowd(routes)
        urls = [f"https://{name}.example/{n}" for n in range(9) for name in "abc"]
        return world, await asyncio.gather(*(engine.observe(an_order(url)) for url in urls))

    world, seen = run(main())
    assert all(verdict(observed) == (State.LIVE, None) for observed in seen)
    assert min(min(spans) for spans in gaps(world).values()) >= 2 - 1e-6
    assert world.seen.count("https://c.example/robots.txt") == 1


def test_a_redirected_order_does_not_queue_again():
    """An order on its way goes before those that have not begun, so that its budget is not spent in the queue."""
    routes = {"https://a.example/go": to("https://b.example/end"), "https://b.example/end": Reply()}

    async def main():
        engine, world = crowd(routes)
        urls = [
            "https://b.example/0",
            "https://a.example/go",
            *(f"https://b.example/{n}" for n in range(1, 50)),
        ]
        await asyncio.gather(*(engine.observe(an_order(url)) for url in urls))
        return world.seen

    assert run(main()).index("https://b.example/end") < 6


@pytest.mark.parametrize("after", [0.5, 1.5, 3.5, 4.5, 6.5])
def test_a_cancelled_order_gives_its_turn_away(after):
    """An order cancelled while it waits or asks is evidence of that, and the others go on with their pauses."""
    routes = {f"{SITE}/robots.txt": replace(text(ALL), seconds=1), f"{SITE}/{1}": Reply(seconds=1)}
    routes |= {f"{SITE}/2": Reply(seconds=1)}

    async def main():
        engine, world = crowd(routes)
        tasks = [asyncio.create_task(engine.observe(an_order(f"{SITE}/{n}"))) for n in (1, 2)]
        await asyncio.sleep(after)
        tasks[0].cancel()
        tasks[1].add_done_callback(lambda _: None)
        seen = await asyncio.gather(*tasks, return_exceptions=True)
        return world, seen

    world, seen = run(main())
    assert verdict(seen[1]) == (State.LIVE, None)
    assert min(gaps(world)[HOST]) >= 2 - 1e-6
    if isinstance(seen[0], Observed) and after < 4:
        assert problem(seen[0]).reason is Reason.CANCELLED


def test_cancelled_in_the_middle_of_redirects():
    """An order cancelled while it waits at a redirect keeps what it saw, with the reason."""
    routes = {f"{SITE}/p": to("/q"), f"{SITE}/robots.txt": text(ALL)}

    async def main():
        engine, world = crowd(routes)
        task = asyncio.create_task(engine.observe(an_order(f"{SITE}/p")))
        await asyncio.sleep(3)
        task.cancel()
        return world, await task

    world, observed = run(main())
    assert problem(observed).reason is Reason.CANCELLED
    assert status(observed) == 302
    assert world.seen == [f"{SITE}/robots.txt", f"{SITE}/p"]


def test_cancelled_on_the_way_to_redirected_rules():
    """An order cancelled while it waits for a redirected robots.txt is cancelled, and holds nothing."""
    routes = {f"{SITE}/robots.txt": to("/rules"), f"{SITE}/rules": text(ALL), f"{SITE}/p": Reply()}

    async def main():
        engine, _ = crowd(routes)
        task = asyncio.create_task(engine.observe(an_order(f"{SITE}/p")))
        await asyncio.sleep(1)
        task.cancel()
        return await task, await engine.observe(an_order(f"{SITE}/p"))

    first, second = run(main())
    assert problem(first).reason is Reason.CANCELLED
    assert verdict(second) == (State.LIVE, None)


def test_a_door_handed_to_a_cancelled_visitor_is_handed_on():
    """Whoever is let in and cancelled in the same instant does not keep the door shut."""

    async def main():
        door = Door()
        await door.enter()
        waiting = [asyncio.create_task(door.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        door.leave()
        waiting[1].cancel()
        await asyncio.wait(waiting)
        door.leave()
        await door.enter()
        return [task.cancelled() for task in waiting]

    assert run(main()) == [True, True, False]


# over the real HTTP engine


def real(routes, book=None, **options):
    """What the real engine makes of `paths`, asked for one after the other without waiting."""

    async def main(origin: Origin, paths):
        clock = FrozenClock()

        async def sleep(seconds):
            clock.advance(seconds=seconds)

        inner = HttpEngine(HttpOptions(user_agent="pravda/1", policy=AddressPolicy.parse("127.0.0.1")), clock)
        engine = PoliteEngine(
            inner, book or MemoryBook(), clock, sleep, PoliteOptions(user_agent="pravda/1", **options)
        )
        seen = []
        for path in paths:
            observed = await engine.observe(an_order(origin.url(path)))
            seen.append((*verdict(observed), observed))
            for contents in observed.contents.values():
                contents.close()
        await engine.close()
        return seen

    def get(*paths):
        with Origin(routes=routes) as origin:
            return origin, asyncio.run(main(origin, paths))

    return get


def test_over_http_a_forbidden_redirect_target_is_never_requested():
    """R-C6 on the wire: the server never sees the forbidden target, and the 302 is evidence."""
    routes = {
        "/robots.txt": [R(b"200 OK", b"User-agent: *\nDisallow: /private", b"Content-Type: text/plain")],
        "/p": [R(b"302 Found", b"", b"Location: /private")],
        "/private": [R(b"200 OK", b"secret", HT)],
    }
    origin, [(state, reason, observed)] = real(routes)("/p")
    assert (state, reason) == (State.BLOCKED, Reason.ROBOTS_DISALLOWED)
    assert status(observed) == 302
    assert origin.targets() == ["/robots.txt", "/p"]
    assert header_of(origin.log[0], b"User-Agent") == b"pravda/1"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (R(b"200 OK", b"\xef\xbb\xbfUser-agent: *\nDisallow: /"), Reason.ROBOTS_DISALLOWED),
        (R(b"200 OK", b"User-agent: *\rDisallow: /"), Reason.ROBOTS_DISALLOWED),
        (R(b"200 OK", b"<html>Not found", HT), Reason.ROBOTS_UNREADABLE),
        (R(b"200 OK", b"User-agent: *\n", cl=500), Reason.ROBOTS_UNREADABLE),
        (
            R(b"200 OK", C(b"User-agent: *\n", end=False), b"Transfer-Encoding: chunked", cl=False),
            Reason.ROBOTS_UNREADABLE,
        ),
        (R(b"200 OK", b"#" * (LARGEST + 1)), Reason.ROBOTS_UNREADABLE),
        (R(b"302 Found", b"", b"Location: /robots.txt"), Reason.ROBOTS_UNREADABLE),
        (b"garbage\r\n\r\n", Reason.ROBOTS_UNREADABLE),
        (R(b"200 OK", b""), None),
        (R(b"200 OK", b"#" * LARGEST), None),
        (R(b"404 Not Found", b"nope"), None),
    ],
)
def test_over_http_answers_open_or_close(reply, expected):
    """R-C1, R-C3 and R-C8 on the wire, and the bodies that end too early or too late."""
    origin, [(_, reason, _)] = real({"/robots.txt": [reply], "/page": [R(b"200 OK", b"<p>Words</p>", HT)]})(
        "/page"
    )
    assert reason is expected
    assert ("/page" in origin.targets()) is (expected is None)


def test_over_http_a_challenge_is_told_from_a_refusal():
    """A challenge in place of robots.txt is named as one."""
    routes = {"/robots.txt": [R(b"403 Forbidden", b"x", HT, b"cf-mitigated: challenge")]}
    _, [(_, reason, observed)] = real(routes)("/page")
    assert reason is Reason.ROBOTS_UNREADABLE
    assert "a challenge" in problem(observed).detail


def test_over_http_orders_after_the_first_know_the_rules():
    """robots.txt goes over the wire once for many pages, redirects included."""
    routes = {
        "/robots.txt": Script([R(b"200 OK", ALL)], [R(b"200 OK", NONE)]),
        "/p": [R(b"301 Moved Permanently", b"", b"Location: /page")],
        "/page": [R(b"200 OK", b"<p>Words</p>", HT)],
    }
    origin, seen = real(routes)("/p", "/page")
    assert [(state, reason) for state, reason, _ in seen] == [(State.LIVE, None)] * 2
    assert origin.targets() == ["/robots.txt", "/p", "/page", "/page"]
