"""What robots.txt of each origin said: in this run, and in the book of earlier ones."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pravda.core.classify import classify, subject_of
from pravda.core.hosts import ROBOTS_AGE, HostBook, HostFacts, RobotsFacts
from pravda.core.outcome import Failure
from pravda.core.ports import Clock, Observed
from pravda.core.robots import LARGEST, READABLE, Kind, Robots, RobotsAnswer, judge
from pravda.core.rules import Rules
from pravda.core.states import Cause, FaultSide
from pravda.core.urls import parse

UNREADABLE_AGE: Final = 3600.0
"""Seconds that an answer which closes its host holds; only in this run, so that a passing fault is not kept for a day."""

_MOST: Final = 4096  # answers at hand
_SKEW: Final = 60.0  # seconds, between the clocks of machines that share a book


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An answer and when and where it was had."""

    facts: RobotsFacts
    answer: RobotsAnswer


class Answers:
    """The answers at hand, by origin."""

    def __init__(self, book: HostBook, clock: Clock) -> None:
        self._book, self._clock = book, clock
        self._at_hand: dict[str, Known] = {}

    def known(self, origin: str) -> Known | None:
        """The answer in force; None: robots.txt is to be asked for."""
        known = self._at_hand.get(origin)
        if known is None:
            known = self._written(origin)
        return known if known and self._is_in_force(known.facts) else None

    def judged(self, origin: str, observed: Observed) -> Known | Failure:
        """What was observed means; a Failure where it is our own and says nothing of the site."""
        evidence, contents = observed.evidence, observed.contents.get("body")
        body = contents.read(LARGEST + 1) if contents else b""
        failure = classify(evidence, subject_of(evidence, body), expect=Rules()).failure
        if failure and failure.fault is FaultSide.LOCAL and failure.cause is not Cause.UNSAFE_ADDRESS:
            return failure
        status, content_type = None, None
        if evidence.response:
            status, content_type = evidence.response.status, evidence.response.value("content-type")
        answer = judge(status, content_type, body, failure=failure)
        facts = RobotsFacts(
            origin=origin,
            fetched_at=at_wire_precision(self._clock.now()),
            kind=answer.kind,
            status=answer.status,
            final_url=evidence.final_url,
            detail=answer.detail,
            body=body if answer.kind is Kind.RULES else b"",
        )
        return Known(facts=facts, answer=answer)

    def remember(self, host: str, known: Known) -> None:
        """Hold an answer for this run, and write it into the book for the next."""
        self._hold(known)
        self._book.put(host, (self._book.get(host) or HostFacts()).with_robots(known.facts))

    def _written(self, origin: str) -> Known | None:
        host = self._book.get(parse(origin).hostname)
        facts = host.robots_of(origin) if host else None
        if facts is None or facts.kind not in READABLE:
            return None
        rules = Robots.parse(facts.body) if facts.kind is Kind.RULES else Robots()
        answer = RobotsAnswer(kind=facts.kind, status=facts.status, detail=facts.detail, rules=rules)
        return self._hold(Known(facts=facts, answer=answer))

    def _is_in_force(self, facts: RobotsFacts) -> bool:
        age = (self._clock.now() - facts.fetched_at).total_seconds()
        return -_SKEW < age < (ROBOTS_AGE if facts.kind in READABLE else UNREADABLE_AGE)

    def _hold(self, known: Known) -> Known:
        self._at_hand.pop(known.facts.origin, None)
        if len(self._at_hand) >= _MOST:
            del self._at_hand[next(iter(self._at_hand))]
        self._at_hand[known.facts.origin] = known
        return known


def at_wire_precision(moment: datetime) -> datetime:
    """The moment as the wire form can say it: in UTC, to the millisecond."""
    moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
