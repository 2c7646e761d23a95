"""An engine around an engine that asks robots.txt first and never hurries a host."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final

from pravda.core.evidence import Evidence, Note, Phase, Trouble
from pravda.core.headers import retry_after
from pravda.core.hosts import HostBook
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Failure
from pravda.core.ports import Clock, Engine, Observed, Order
from pravda.core.request import Request, Timeouts
from pravda.core.robots import LARGEST, PATH, Kind, product_token
from pravda.core.states import Reason
from pravda.core.urls import URL, parse, redact
from pravda.engines.answers import Answers, Known, at_wire_precision
from pravda.engines.turns import Sleep, Turns, Visit

_BUDGETS: Final = Timeouts(connect=20, first_byte=30, idle=15, body=30, total=60)
_RETRY_STATUSES: Final = frozenset({429, 503})
_LONG_PATH: Final = 4096  # characters from which many rules take long enough to hold up others


class OnChallenge(StrEnum):
    """What a bot check in place of robots.txt means."""

    REFUSE = "refuse"
    ASSUME_ALLOWED = "assume-allowed"
    """A person has read the rules in a browser and says so in the note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What the operator has settled for one host."""

    gap: float | None = None
    """Seconds between two requests; None: as everywhere."""
    robots_on_challenge: OnChallenge = OnChallenge.REFUSE
    note: str = ""
    """Who read the rules and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliteOptions:
    """How polite to be."""

    user_agent: str
    """The inner engine's; a request may bring another."""
    gap: float = 2.0
    """Seconds between the end of a request and the next one to the same host, at least."""
    longest_wait: float = 60.0
    """Seconds; a host that wants a longer pause is put off (TooLong)."""
    hosts: Mapping[str, HostOptions] = field(default_factory=dict)
    """By host name as it stands in URLs."""

    def of(self, host: str) -> HostOptions:
        """What holds for one host."""
        return self.hosts.get(host, _NOTHING_SETTLED)


_NOTHING_SETTLED: Final = HostOptions()


@dataclass(slots=True, kw_only=True)
class _Trip:
    """One order on its way."""

    order: Order
    visit: Visit
    agent: str
    obeys: bool
    url: URL
    """Where it has arrived last."""
    phase: Phase = Phase.CHECK
    notes: dict[str, Note] = field(default_factory=dict)
    """By the origin whose rules were assumed."""


class PoliteEngine:
    """Makes an order's requests only where robots.txt allows them, one at a time per host and with a pause between.

    Robots refusals are evidence; a host that wants a longer pause than a run waits for raises TooLong.
    """

    def __init__(
        self, inner: Engine, book: HostBook, clock: Clock, sleep: Sleep, options: PoliteOptions
    ) -> None:
        self.name = inner.name
        self._inner, self._clock, self._options = inner, clock, options
        self._turns = Turns(book, clock, sleep, options.longest_wait)
        self._answers = Answers(book, clock)
        self._being_asked: dict[str, asyncio.Event] = {}

    async def observe(self, order: Order, *, robots: bool = True) -> Observed:
        """One attempt, whose budget begins when its turn has come; without `robots` only the pauses hold.

        Raises TooLong when the host is to be left alone for longer, and BadRequest as the inner engine does.
        """
        trip = self._trip(order, obeys=robots)
        try:
            if refusal := await self._arrive(trip, trip.url, first=False):
                return self._refused(trip, refusal)
            observed = await self._inner.observe(replace(order, gate=partial(self._gate, trip)))
            self._end(trip.visit, self._pause(trip.url, trip.agent), observed.evidence)
            notes = (*observed.evidence.notes, *trip.notes.values())
            return replace(observed, evidence=replace(observed.evidence, notes=notes))
        finally:
            try:
                trip.visit.end(self._pause(trip.url, trip.agent))
            finally:
                trip.visit.leave()

    async def close(self) -> None:
        """Close the inner engine."""
        await self._inner.close()

    def _trip(self, order: Order, *, obeys: bool) -> _Trip:
        given = (value for name, value in order.request.headers if name.lower() == "user-agent")
        return _Trip(
            order=order,
            visit=Visit(self._turns),
            agent=product_token(next(given, self._options.user_agent)),
            obeys=obeys,
            url=order.request.url,
        )

    # on the way

    async def _gate(self, trip: _Trip, target: URL) -> Trouble | None:
        """Asked by the inner engine before it follows a redirect."""
        trip.phase = Phase.REDIRECT
        same = trip.visit.host == target.hostname
        trip.visit.end(self._pause(trip.url, trip.agent, within=same))
        if not same:
            trip.visit.leave()
        try:
            refusal = await self._arrive(trip, target, first=True)
        except BadRequest as problem:  # the target's robots.txt is at an address that is refused
            refusal = Trouble(reason=Reason.UNSAFE_ADDRESS, phase=trip.phase, detail=problem.problem)
        if refusal and same:  # no hop follows after which the whole pause would begin
            self._turns.rest(target.hostname, self._pause(target, trip.agent))
        outer = trip.order.gate
        return refusal or (await outer(target) if outer else None)

    async def _arrive(self, trip: _Trip, url: URL, *, first: bool) -> Trouble | None:
        """Be at the URL's host with the right to ask for it now; else why not."""
        try:
            known = self._answers.known(url.origin) if trip.obeys else None
            if known and (refusal := await self._refusal(trip, url, known)):
                return refusal  # it takes no turn to hear a known no
            await trip.visit.enter(url.hostname, first=first)
            trip.url = url
            if trip.obeys and url.target != PATH:  # RFC 9309 §2.2.2: robots.txt itself is always allowed
                answered = await self._ask(trip, url)
                if isinstance(answered, Trouble):
                    return answered
                if refusal := await self._refusal(trip, url, answered):
                    return refusal
            await trip.visit.begin()
        except asyncio.CancelledError:
            return Trouble(
                reason=Reason.CANCELLED, phase=trip.phase, detail="The capture was cancelled while it waited."
            )
        return None

    def _pause(self, url: URL, agent: str, *, within: bool = False) -> float:
        """Seconds to leave the host alone; `within` one order a delay that no run waits for is not held."""
        own = self._options.of(url.hostname).gap
        gap = self._options.gap if own is None else own
        known = self._answers.known(url.origin)
        delay = (known.answer.rules.crawl_delay(agent) if known else None) or 0.0
        return gap if within and delay > self._options.longest_wait else max(gap, delay)

    def _end(self, visit: Visit, pause: float, evidence: Evidence) -> None:
        response, host = evidence.response, visit.host
        visit.end(pause)
        if response and response.status in _RETRY_STATUSES:
            wait = retry_after(response.value("retry-after"), self._clock.now())
            self._turns.rest(host, wait or 0.0)

    # robots.txt

    async def _refusal(self, trip: _Trip, url: URL, known: Known) -> Trouble | None:
        answer, where = known.answer, f"{url.origin}{PATH}"
        settled = self._options.of(url.hostname)
        if url.target == PATH:
            return None
        if answer.kind is Kind.CHALLENGE and settled.robots_on_challenge is OnChallenge.ASSUME_ALLOWED:
            detail = f"{where} gave {answer.detail}; taken to allow everything, as settled: {settled.note or 'no note'}"
            trip.notes[url.origin] = Note(code="robots_assumed", detail=detail)
            return None
        if not answer.opens:
            return Trouble(
                reason=Reason.ROBOTS_UNREADABLE,
                phase=trip.phase,
                detail=f"{where} gave {answer.detail.rstrip('.')}.",
            )
        if len(url.target) < _LONG_PATH:
            rule = answer.rules.rule_against(trip.agent, url.page)
        else:
            rule = await asyncio.to_thread(answer.rules.rule_against, trip.agent, url.page)
        if rule is None:
            return None
        return Trouble(
            reason=Reason.ROBOTS_DISALLOWED,
            phase=trip.phase,
            detail=f'{where} says "{rule[:200]}" to {trip.agent or "everyone"}, so {url.page[:500]} was not asked for.',
        )

    async def _ask(self, trip: _Trip, url: URL) -> Known | Trouble:
        """The answer for the URL's origin, asked for at most once at a time; the trip is inside its host's door."""
        while not (known := self._answers.known(url.origin)):
            if not (asked := self._being_asked.get(url.origin)):
                return await self._ask_once(trip, url)
            trip.visit.leave()  # the one who asks was redirected and needs to come back in
            await asked.wait()
            await trip.visit.enter(url.hostname, first=True)
        return known

    async def _ask_once(self, trip: _Trip, url: URL) -> Known | Trouble:
        answered = self._being_asked[url.origin] = asyncio.Event()
        try:
            return await self._fetch(trip, url)
        finally:
            del self._being_asked[url.origin]
            answered.set()

    async def _fetch(self, trip: _Trip, url: URL) -> Known | Trouble:
        visit, gap = trip.visit, partial(self._pause, url, trip.agent, within=True)
        await visit.begin()
        try:
            observed = await self._inner.observe(self._robots_order(trip, url))
            self._end(visit, gap(), observed.evidence)
        finally:
            visit.end(gap())
        try:
            known = self._answers.judged(url.origin, observed)
        finally:
            for contents in observed.contents.values():
                contents.close()
        if isinstance(known, Failure):
            return _ours(known, trip.phase)
        self._answers.remember(url.hostname, known)
        self._turns.rest(url.hostname, gap())  # by now a Crawl-delay is known
        await visit.enter(url.hostname, first=True)
        return known

    def _robots_order(self, trip: _Trip, url: URL) -> Order:
        request = trip.order.request
        return Order(
            request=Request(
                url=parse(url.origin + PATH),
                headers=tuple(pair for pair in request.headers if pair[0].lower() == "user-agent"),
                timeouts=_BUDGETS,
                max_bytes=LARGEST,
                tls=request.tls,
            ),
            budget=min(_BUDGETS.total, trip.order.budget),
            gate=partial(self._robots_gate, trip),
        )

    async def _robots_gate(self, trip: _Trip, target: URL) -> Trouble | None:
        """RFC 9309 §2.3.1.2: a redirected robots.txt is read where it is; there, too, in turn."""
        here = self._options.of(trip.visit.host).gap
        trip.visit.end(self._options.gap if here is None else here)
        try:
            await trip.visit.enter(target.hostname, first=True)
            await trip.visit.begin()
        except asyncio.CancelledError:
            return Trouble(
                reason=Reason.CANCELLED,
                phase=Phase.REDIRECT,
                detail="Cancelled while it waited for robots.txt.",
            )
        return None

    # evidence of a request that was not made

    def _refused(self, trip: _Trip, refusal: Trouble) -> Observed:
        request, now = trip.order.request, at_wire_precision(self._clock.now())
        evidence = Evidence(
            url=redact(request.url.href),
            final_url=request.url.page,
            engine=self.name,
            method=request.method,
            requested_at=now,
            captured_at=now,
            trouble=refusal,
            asked_headers=tuple(sorted({name.lower() for name, _ in request.headers})),
            notes=tuple(trip.notes.values()),
        )
        return Observed(evidence=evidence)


def _ours(failure: Failure, phase: Phase) -> Trouble:
    """Our own fault on the way to robots.txt: it must not be held against the site."""
    return Trouble(
        reason=failure.reason,
        phase=phase,
        detail=f"On the way to robots.txt: {failure.detail}",
        raw=failure.raw,
    )
