"""Looks at one page with the real HTTP engine, and lays out all that it saw."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pravda.core.addresses import AddressPolicy
from pravda.core.classify import classify, subject_of
from pravda.core.evidence import Evidence, Response
from pravda.core.outcome import Failure, Verdict
from pravda.core.ports import Held, Observed, Order
from pravda.core.request import Request
from pravda.core.rules import Previous
from pravda.core.states import Reason, State
from pravda.engines.http import HttpEngine, HttpOptions


class Clock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True)
class Look:
    """One attempt: evidence, verdict, and the bytes of every artifact."""

    evidence: Evidence
    verdict: Verdict
    kept: dict[str, bytes]
    seconds: float

    @property
    def state(self) -> State:
        return self.verdict.state

    @property
    def failure(self) -> Failure:
        assert self.verdict.failure is not None, "the page is live"
        return self.verdict.failure

    @property
    def reason(self) -> Reason | None:
        return self.verdict.failure.reason if self.verdict.failure else None

    @property
    def outcome(self) -> tuple[str, str | None]:
        """State and reason; None: live."""
        return self.state.value, self.reason.value if self.reason else None

    @property
    def response(self) -> Response:
        assert self.evidence.response is not None, f"no response: {self.evidence.trouble}"
        return self.evidence.response

    @property
    def body(self) -> bytes:
        return self.kept["body"]

    @property
    def hops(self) -> list[tuple[str, int]]:
        """Path and status of every redirect that was followed."""
        return [("/" + hop.url.split("/", 3)[3], hop.status) for hop in self.evidence.redirects]

    @property
    def notes(self) -> list[str]:
        return [note.code for note in (*self.evidence.notes, *self.verdict.warnings)]


def options(**given: Any) -> HttpOptions:
    """Engine options that let loopback through, unless said otherwise."""
    given.setdefault("policy", AddressPolicy.parse("127.0.0.0/8, ::1"))
    return HttpOptions(user_agent="pravda/test", **given)


@asynccontextmanager
async def engine(**given: Any) -> AsyncIterator[HttpEngine]:
    """An engine that is closed at the end."""
    made = HttpEngine(options(**given), Clock())
    try:
        yield made
    finally:
        await made.close()


async def look_with(
    made: HttpEngine,
    url: str,
    *,
    held: Held | None = None,
    budget: float | None = None,
    fresh_connection: bool = False,
    previous: Previous | None = None,
    **fields: Any,
) -> Look:
    """One attempt with a given engine."""
    request = Request.parse(url, **fields)
    started = time.monotonic()
    observed = await made.observe(
        Order(
            request=request,
            budget=budget or request.timeouts.total,
            held=held,
            fresh_connection=fresh_connection,
        )
    )
    return laid_out(observed, request, time.monotonic() - started, previous)


def laid_out(
    observed: Observed, request: Request, seconds: float = 0.0, previous: Previous | None = None
) -> Look:
    """What was observed, judged and read; its contents are closed."""
    kept = {name: contents.read() for name, contents in observed.contents.items()}
    for contents in observed.contents.values():
        contents.close()
    evidence = observed.evidence
    assert [artifact.name for artifact in evidence.artifacts] == list(kept)
    subject = subject_of(evidence, kept.get("body", b""))
    verdict = classify(
        evidence, subject, expect=request.expect, previous=previous, artifacts=request.artifacts
    )
    return Look(evidence=evidence, verdict=verdict, kept=kept, seconds=seconds)


def look(url: str, *, using: dict[str, Any] | None = None, **fields: Any) -> Look:
    """One attempt with an engine of its own; `using` are its options."""

    async def run() -> Look:
        async with engine(**using or {}) as made:
            return await look_with(made, url, **fields)

    return asyncio.run(run())


def looks(*urls: str, using: dict[str, Any] | None = None, **fields: Any) -> list[Look]:
    """Attempts one after the other with one engine."""

    async def run() -> list[Look]:
        async with engine(**using or {}) as made:
            return [await look_with(made, url, **fields) for url in urls]

    return asyncio.run(run())
