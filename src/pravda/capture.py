"""The capture operation: attempts are made, judged and kept, and the answer is the best evidence allowed."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self, assert_never

from pravda.core import policy, snapshots
from pravda.core.classify import classify, subject_of
from pravda.core.digest import identity
from pravda.core.durations import seconds
from pravda.core.evidence import Evidence, Phase, Trouble
from pravda.core.hosts import TooLong
from pravda.core.outcome import Answer, Newest, Result, Snapshot, Verdict
from pravda.core.ports import Archive, Clock, Contents, Engine, Observed, Order, Query
from pravda.core.request import DEFAULT_MAX_BYTES, OnFailure, Request, RobotsMode, Timeouts, TlsMode
from pravda.core.rules import Previous, Rules, Subject, count_matches, evaluate
from pravda.core.states import Reason, State
from pravda.core.urls import redact
from pravda.errors import ArchiveUnavailable, BadRequest, Damaged, NotFound, NoUsableSnapshot, StorageTrouble

log = logging.getLogger("pravda")

DEFAULT_READ_LIMIT = 64 * 1024 * 1024
"""Bytes of a body that rules and signatures may read; a longer body fails the rules that read it."""

_THREAD_FROM, _THREAD_WITH_RULES_FROM = 1024 * 1024, 64 * 1024
"""Bytes of a page from which judging it would hold up the other captures: bare, and with rules that search it."""

_PAGE = 20  # rows looked at together when searching for a usable snapshot


@dataclass(slots=True)
class _Flight:
    """One attempt that several captures wait for."""

    task: "asyncio.Task[Snapshot]"
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    """A usable snapshot with its page, whose bytes were just found intact."""

    snapshot: Snapshot
    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One capture operation."""

    request: Request
    identity: str
    capture_id: str
    began: datetime


class Pravda:
    """Captures pages and reads what is kept of them."""

    def __init__(
        self,
        *,
        engine: Engine,
        polite: Engine | None = None,
        archive: Archive,
        clock: Clock,
        new_id: Callable[[], str],
        read_limit: int = DEFAULT_READ_LIMIT,
        timeouts: Timeouts | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        """`polite` asks robots.txt first and spaces its requests (None: no request may ask for that).

        `timeouts` and `max_bytes` hold for requests that name none.
        """
        self._timeouts, self._max_bytes = timeouts or Timeouts(), max_bytes
        self._engine, self._polite = engine, polite
        self._archive, self._clock = archive, clock
        self._new_id, self._read_limit = new_id, read_limit
        self._flights: dict[object, _Flight] = {}
        self._running: set[asyncio.Task[Snapshot]] = set()  # also those that nobody waits for any more

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End running attempts, which are kept as cancelled, and let go of engine and archive."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._engine.close()
        await self._archive.close()

    async def capture(self, url: str, **fields: object) -> Answer:
        """Capture a page; the fields are those of `Request`.

        Raises BadRequest for a request that cannot be taken, NoUsableSnapshot when there is nothing to use
        (unless `on_failure="return"`), ArchiveUnavailable when the attempt cannot be kept.
        """
        return await self.run(self.request(url, **fields))

    def request(self, url: str, **fields: object) -> Request:
        """A checked request, with this Pravda's budgets where none are named; raises BadRequest."""
        fields["timeouts"] = self._timeouts.but(fields.get("timeouts"))
        if fields.get("max_bytes") is None:
            fields["max_bytes"] = self._max_bytes
        return Request.parse(url, **fields)

    async def run(self, request: Request) -> Answer:
        """Capture what a checked request asks for."""
        began, started = self._clock.now(), self._clock.monotonic()
        case = _Case(
            request=request,
            identity=identity(request, self._archive.secret),
            capture_id=self._new_id(),
            began=began,
        )
        attempts: tuple[Snapshot, ...] = ()
        candidate: policy.Candidate = policy.UNKNOWN
        usable: _Usable | None = None
        while True:
            spent = self._clock.monotonic() - started
            step = policy.next_step(request, began, spent, attempts, candidate)
            match step:
                case policy.Look():
                    usable = await self._newest_usable(request, case.identity)
                    candidate = usable.snapshot if usable else None
                case policy.Run(held=held):
                    attempts += (await self._shared(case, step, usable if held else None),)
                case policy.Reuse(snapshot=snapshot):
                    return self._answer(case, Result.REUSED, snapshot, attempts, snapshot)
                case policy.Serve(snapshot=snapshot):
                    return self._answer(case, Result.FRESH, snapshot, attempts, snapshot)
                case policy.Fall(snapshot=snapshot):
                    return self._answer(case, Result.STALE, snapshot, attempts, snapshot)
                case policy.Finish():
                    newest = candidate if isinstance(candidate, Snapshot) else None
                    return self._answer(case, Result.FAILED, None, attempts, newest)
                case _:
                    assert_never(step)

    def _answer(
        self,
        case: _Case,
        result: Result,
        snapshot: Snapshot | None,
        attempts: tuple[Snapshot, ...],
        newest: Snapshot | None,
    ) -> Answer:
        answer = Answer(
            result=result,
            snapshot=snapshot,
            attempt=attempts[-1] if attempts else None,
            attempts=tuple(attempt.id for attempt in attempts),
            age_seconds=policy.age_of(snapshot, case.began) if snapshot else None,
            max_stale_age_seconds=case.request.max_stale_age,
            newest_usable=policy.newest_of(newest, case.began) if newest else None,
        )
        if result is Result.FAILED and case.request.on_failure is OnFailure.RAISE:
            raise NoUsableSnapshot(answer)
        return answer

    # attempts

    async def _shared(self, case: _Case, step: policy.Run, held: _Usable | None) -> Snapshot:
        """The attempt, made once for all identical captures that run at the same time."""
        request = case.request
        key = (
            case.identity,
            request.engine,
            request.expect,
            request.artifacts,
            request.conditional,
            request.tls,
            request.timeouts,
            request.max_bytes,
            request.robots,
            step.fresh_connection,
            held.snapshot.id if held else None,
        )
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(self._attempt(case, step, held)))
            self._running.add(flight.task)
            flight.task.add_done_callback(self._running.discard)
            flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._land(key, flight)
                flight.task.cancel()
                await asyncio.wait({flight.task})  # what it saw is kept before the cancellation goes on
                if not flight.task.cancelled():
                    flight.task.exception()  # asked for, lest the loop complain that nobody heard of it

    def _land(self, key: object, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _attempt(self, case: _Case, step: policy.Run, held: _Usable | None) -> Snapshot:
        """Observe, judge and keep."""
        order = Order(
            request=case.request,
            budget=step.budget,
            held=snapshots.held_by(held.snapshot) if held else None,
            fresh_connection=step.fresh_connection,
        )
        observed = await self._observed(order)
        storing = asyncio.create_task(self._stored(case, observed, held))
        try:
            snapshot = await asyncio.shield(storing)
        finally:
            await asyncio.wait({storing})  # what was seen is kept, whoever goes away meanwhile
            storing.exception()  # asked for, lest the loop complain that nobody heard of it
        trouble = snapshot.evidence.trouble
        if trouble is not None and trouble.reason is Reason.CANCELLED:
            raise asyncio.CancelledError
        return snapshot

    async def _observed(self, order: Order) -> Observed:
        request = order.request
        if request.robots is not RobotsMode.OBEY:
            return await self._engine.observe(order)
        if self._polite is None:
            raise BadRequest("robots", "this Pravda was made without an engine that asks robots.txt")
        asked_at = self._clock.now()
        try:
            return await self._polite.observe(order)
        except TooLong as problem:
            trouble = Trouble(reason=Reason.ROBOTS_DISALLOWED, phase=Phase.CHECK, detail=f"{problem}.")
            return Observed(
                evidence=Evidence(
                    url=redact(request.url.href),
                    final_url=request.url.page,
                    engine=self._polite.name,
                    method=request.method,
                    requested_at=asked_at,
                    captured_at=self._clock.now(),
                    trouble=trouble,
                )
            )

    async def _stored(self, case: _Case, observed: Observed, held: _Usable | None) -> Snapshot:
        try:
            snapshot = await self._judged(case, observed, held)
            return await self._kept(case, snapshot, observed.contents)
        finally:
            for contents in observed.contents.values():
                contents.close()

    async def _judged(self, case: _Case, observed: Observed, held: _Usable | None) -> Snapshot:
        evidence = observed.evidence
        confirmed: Snapshot | None = None
        if held and evidence.is_confirmation:
            confirmed, subject = held.snapshot, held.subject
            evidence = snapshots.confirming(evidence, confirmed)
        else:
            body = observed.contents.get("body")
            subject = subject_of(evidence, body.read(self._read_limit) if body else b"")
        verdict = await self._verdict(case.request, case.identity, evidence, subject)
        asked = snapshots.asked_of(case.request, case.identity, case.capture_id)
        return snapshots.make(self._new_id(), evidence, verdict, asked, confirmed)

    async def _verdict(self, request: Request, ident: str, evidence: Evidence, subject: Subject) -> Verdict:
        expect = request.expect
        previous = await self._previous(request, ident) if expect.max_drop is not None else None

        def judge() -> Verdict:
            return classify(evidence, subject, expect=expect, previous=previous, artifacts=request.artifacts)

        return await asyncio.to_thread(judge) if _is_long_work(expect, subject) else judge()

    async def _previous(self, request: Request, ident: str) -> Previous | None:
        """What the last usable snapshot had, for `max_drop`."""
        last = await self._newest_usable(request, ident)
        if last is None:
            return None
        return Previous(bytes=last.subject.size, matches=count_matches(request.expect, last.subject.page))

    async def _kept(self, case: _Case, snapshot: Snapshot, contents: Mapping[str, Contents]) -> Snapshot:
        try:
            try:
                await self._archive.keep(snapshot, _contents_of(snapshot, contents))
            except StorageTrouble as problem:
                snapshot = snapshots.without_bytes(
                    snapshot, problem.reason, str(problem), repr(problem.__cause__ or problem)
                )
                await self._archive.keep(snapshot, _contents_of(snapshot, contents))
        except (ArchiveUnavailable, StorageTrouble) as problem:
            raise ArchiveUnavailable(str(problem), await self._newest_readable(case)) from problem
        return snapshot

    async def _newest_readable(self, case: _Case) -> Newest | None:
        try:
            newest = await self._newest_usable(case.request, case.identity)
        except ArchiveUnavailable:
            return None
        return policy.newest_of(newest.snapshot, case.began) if newest else None

    # what is kept

    async def get(self, snapshot_id: str) -> Snapshot:
        """One snapshot; raises NotFound."""
        snapshot = await self._archive.get(snapshot_id)
        if snapshot is None:
            raise NotFound(f"there is no snapshot {snapshot_id[:60]!r} in this archive")
        return snapshot

    async def history(self, query: Query) -> tuple[Snapshot, ...]:
        """Snapshots, newest first."""
        return await self._archive.find(query)

    async def latest(self, url: str, *, max_age: object = None, **fields: object) -> Snapshot | None:
        """The newest usable snapshot without capturing; None: there is none that young."""
        request = self.request(url, **fields)
        began = self._clock.now()
        newest = await self._newest_usable(request, identity(request, self._archive.secret))
        limit = None if max_age is None else seconds("max_age", max_age)
        if newest is None or (limit is not None and policy.age_of(newest.snapshot, began) > limit):
            return None
        return newest.snapshot

    async def read(self, snapshot: Snapshot, name: str = "body", limit: int | None = None) -> bytes:
        """An artifact's bytes, checked against their hash; raises NotFound and Damaged."""
        holder = await self._bytes_of(snapshot, name)
        data = await self._archive.read(holder, name, limit)
        if data is None:
            raise _no_artifact(holder, snapshot, name)
        return data

    async def stream(self, snapshot: Snapshot, name: str = "body") -> Iterator[bytes]:
        """An artifact in pieces, all checked before the first; raises NotFound and Damaged."""
        holder = await self._bytes_of(snapshot, name)
        pieces = await asyncio.to_thread(self._archive.stream, holder, name)
        if pieces is None:
            raise _no_artifact(holder, snapshot, name)
        return pieces

    async def reclassify(self, snapshot: Snapshot) -> Verdict:
        """What today's law says of stored evidence; the stored verdict stays."""
        subject = await self._subject(snapshot)
        expect = snapshot.asked.expect
        return classify(
            snapshot.evidence, subject, expect=expect, artifacts=snapshot.asked.artifacts, judge_drop=False
        )

    async def _bytes_of(self, snapshot: Snapshot, name: str) -> Snapshot:
        return await self._holder(snapshot) if name in ("body", "payload") else snapshot

    async def _holder(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot that holds the bytes."""
        if snapshot.content_from is None:
            return snapshot
        holder = await self._archive.get(snapshot.content_from)
        if holder is None:
            raise Damaged(
                f"snapshot {snapshot.id} points at {snapshot.content_from}, which is not in this archive"
            )
        return holder

    async def _subject(self, snapshot: Snapshot) -> Subject:
        """A stored page as the law reads it; raises Damaged when its bytes are not what was kept."""
        holder = await self._holder(snapshot)
        body = await self._archive.read(holder, "body", self._read_limit)
        return subject_of(holder.evidence, body or b"")

    async def _newest_usable(self, request: Request, ident: str) -> _Usable | None:
        """The newest live snapshot that is intact and passes the request's rules today."""
        refused: set[object] = set()
        before: tuple[datetime, str] | None = None
        limit = 1  # nearly always the newest one will do
        while found := await self._archive.find(
            Query(identity=ident, state=State.LIVE, limit=limit, before=before)
        ):
            for snapshot in found:
                alike = snapshots.alike(snapshot)
                if alike in refused:
                    continue  # the same page again: it may have been confirmed a thousand times
                if subject := await self._usable(snapshot, request):
                    return _Usable(snapshot=snapshot, subject=subject)
                refused.add(alike)
            before, limit = found[-1].order, _PAGE
        return None

    async def _usable(self, snapshot: Snapshot, request: Request) -> Subject | None:
        """The page of a snapshot that may be used for a request; None: it may not."""
        if request.tls is TlsMode.VERIFY and snapshot.asked.tls is TlsMode.INSECURE:
            return None  # evidence taken over an unverified connection answers only those who asked for that
        try:
            holder = await self._holder(snapshot)
            if not snapshots.has_artifacts(snapshot, holder, request.artifacts):
                return None
            subject = await self._subject(holder)
        except Damaged as problem:
            log.warning("passed over: %s", problem)
            return None
        return subject if await self._passes(request.expect, subject) else None

    async def _passes(self, expect: Rules, subject: Subject) -> bool:
        # max_drop compares a new page with the held one; a held page has nothing to be compared with
        def judge() -> bool:
            return all(check.passed for check in evaluate(expect, subject, None, drop=False))

        return await asyncio.to_thread(judge) if _is_long_work(expect, subject) else judge()


def _is_long_work(expect: Rules, subject: Subject) -> bool:
    if expect.xpath:
        return True  # whose time grows with the square of even a small page, or worse
    return len(subject.page.body) >= (_THREAD_WITH_RULES_FROM if expect.needs_body else _THREAD_FROM)


def _no_artifact(holder: Snapshot, snapshot: Snapshot, name: str) -> NotFound:
    names = ", ".join(artifact.name for artifact in holder.evidence.artifacts) or "none"
    return NotFound(f"snapshot {snapshot.id} has no artifact {name[:60]!r}; it has: {names}")


def _contents_of(snapshot: Snapshot, contents: Mapping[str, Contents]) -> Mapping[str, Contents]:
    return {artifact.name: contents[artifact.name] for artifact in snapshot.evidence.artifacts}
