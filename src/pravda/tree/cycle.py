"""One source in one run: asked at most once, judged, and stored when it is accepted."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from pravda.core.classify import classify, subject_of
from pravda.core.evidence import Evidence, Note
from pravda.core.hosts import TooLong
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Verdict
from pravda.core.ports import Order
from pravda.core.states import FaultSide
from pravda.core.wire import time_text
from pravda.errors import PravdaError
from pravda.tree import attempt as law
from pravda.tree.attempt import Parsed, Usable
from pravda.tree.files import StoredPage, storage_reason
from pravda.tree.meta import Meta, may_confirm
from pravda.tree.results import Outcome, SourceResult
from pravda.tree.run import Attempt, ParserInput, Run
from pravda.tree.sources import Source
from pravda.tree.state import SourceState, due

ROBOTS_ASSUMED = "robots_assumed"
"""Code of the engine's note that leave was assumed."""

_THREAD_FROM = 1024 * 1024  # bytes from which judging a page would hold up the other sources
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A source that may be asked now."""

    source: Source
    state: SourceState
    stored: StoredPage
    usable: Usable | None
    """What the request may rest on; None: it is unconditional."""
    forced: bool
    warnings: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What an accepted answer changed in the tree."""

    meta: Meta | None = None
    """None: nothing was accepted."""
    changed: bool = False
    restored: bool = False
    """Whether a damaged page was made whole again."""
    written: tuple[str, ...] = ()
    confirms: bool = False

    def note(self, evidence: Evidence) -> str:
        """One line on what came."""
        if evidence.is_confirmation:
            return "not modified"
        size = f"{self.meta.size:,} bytes" if self.meta else ""
        if self.changed:
            return size
        return f"{size} as before" + (
            ", the stored page was damaged and is whole again" if self.restored else ""
        )


class Cycle:
    """What is done for one source at a time."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def plan(self, source: Source) -> SourceResult:
        """What a run would do with a source."""
        ready = self._look_up(source)
        if isinstance(ready, SourceResult):
            return ready
        held = ready.usable.held(source) if ready.usable else None
        how = "without validators"
        if held:
            pairs = (
                ("If-None-Match", held.validators.etag),
                ("If-Modified-Since", held.validators.last_modified),
            )
            how = "with " + ", ".join(f"{name}: {value}" for name, value in pairs if value)
        return SourceResult(
            source_id=source.id,
            outcome=Outcome.PLANNED,
            record=ready.state,
            state=ready.state.state,
            note=law.printable(f"would ask for {source.request.url.page} {how}"),
            forced=ready.forced,
            warnings=ready.warnings,
        )

    async def one(self, source: Source) -> SourceResult:
        """One source, whatever happens: what breaks costs the others nothing."""
        try:
            return await self._cycle(source)
        except BadRequest as problem:
            return self._broke_off(source, f"refused: {problem}")
        except Exception as problem:  # the rim of the run: one source wide, and it reports
            return self._broke_off(source, f"an error of ours: {problem!r}")

    async def _cycle(self, source: Source) -> SourceResult:
        """Interval, then robots and spacing and one GET by the engine, then the verdict, then the files."""
        started = self._run.clock.now()
        ready = await _in_thread(lambda: self._look_up(source))
        if isinstance(ready, SourceResult):
            return ready
        request = replace(source.request, timeouts=self._run.timeouts, max_bytes=self._run.max_bytes)
        order = Order(
            request=request,
            budget=request.timeouts.total,
            held=ready.usable.held(source) if ready.usable else None,
        )
        try:
            observed = await self._run.engine_for(source).observe(order)
        except TooLong as problem:
            note = f"the host is not to be asked before {time_text(problem.until)}"
            return _skipped(source, Outcome.SKIPPED_SPACING, ready.state, note, ready.warnings)
        try:
            result = await self._settle(
                ready, Attempt(source=source, request=request, observed=observed, started=started)
            )
        finally:
            for contents in observed.contents.values():
                contents.close()
        task = asyncio.current_task()
        if task and task.cancelling():
            raise asyncio.CancelledError  # the engine turned it into evidence, which is recorded by now
        return result

    def _look_up(self, source: Source) -> _Ready | SourceResult:
        """The source with what is stored of it, or the result that it is not due."""
        tree, now = self._run.tree, self._run.clock.now()
        state, damage = tree.state(source.id)
        turn = due(state, source.interval, now)
        warnings = [warning("clock", f"{turn.warning}.")] if turn.warning else []
        warnings += [warning("damaged", sentence) for sentence in damage]
        if not turn.due and not self._run.force:
            when = f"due at {time_text(turn.at)}" if turn.at else ""
            note = when + law.state_words(state.state, state.cause)
            return _skipped(source, Outcome.SKIPPED_INTERVAL, state, note, tuple(warnings))
        stored = tree.page(source.id, source.extension)
        warnings += [warning("damaged", sentence) for sentence in stored.damage]
        if stored.meta and stored.meta.fresh_at > now:
            warnings.append(warning("clock", "the stored page is dated in the future."))
        return _Ready(
            source=source,
            state=state,
            stored=stored,
            usable=law.usable(source, stored),
            forced=not turn.due,
            warnings=tuple(warnings),
        )

    async def _settle(self, ready: _Ready, attempt: Attempt) -> SourceResult:
        """Judge what was observed, keep it, store it, record it."""
        body = attempt.observed.contents.get("body")
        data = body.read(self._run.max_bytes) if body else b""
        verdict, items = await self._judged(ready, attempt.observed.evidence, data)
        told = (*ready.warnings, *await self._kept(replace(attempt, verdict=verdict)))
        evidence, started = attempt.observed.evidence, attempt.started
        return await _in_thread(
            lambda: self._write_down(replace(ready, warnings=told), evidence, verdict, items, data, started)
        )

    def _write_down(
        self,
        ready: _Ready,
        evidence: Evidence,
        verdict: Verdict,
        items: int | None,
        data: bytes,
        started: datetime,
    ) -> SourceResult:
        """Store a page that is accepted and record the attempt, also when storing fails."""
        stored = _Stored()
        if verdict.failure is None:
            try:
                stored = self._store(
                    ready, law.next_meta(ready.source, ready.stored, evidence, data, items), data
                )
            except OSError as problem:
                words = f"The page could not be stored: {problem.strerror or problem}."
                verdict = law.unstored_verdict(verdict, storage_reason(problem), words)
        record = law.next_state(ready.source, ready.state, evidence, verdict, started)
        result = _result(ready, evidence, verdict, items, stored, record)
        host = self._run.sources.host(ready.source.request.url.hostname)
        return replace(
            result,
            proxied=result.asked and host is not None and host.proxy is not None,
            warnings=result.warnings + self._record(ready.state, record),
        )

    async def _judged(self, ready: _Ready, evidence: Evidence, data: bytes) -> tuple[Verdict, int | None]:
        """The verdict with the parser's word, and the number of items."""
        source, held = ready.source, ready.usable
        expect = source.request.expect
        confirmed = held if held and evidence.is_confirmation else None

        def judge() -> Verdict:
            if confirmed:
                return classify(evidence, confirmed.subject, expect=expect)
            previous = held.previous(expect) if held else None
            return classify(evidence, subject_of(evidence, data), expect=expect, previous=previous)

        verdict = await asyncio.to_thread(judge) if len(data) >= _THREAD_FROM else judge()
        if confirmed:
            return verdict, confirmed.meta.item_count
        if verdict.failure is not None or source.parser is None:
            return verdict, None
        parsed = await self._parsed(source, evidence, data)
        return law.parser_verdict(verdict, parsed, source.min_items), parsed.items

    async def _parsed(self, source: Source, evidence: Evidence, data: bytes) -> Parsed:
        assert self._run.parser is not None  # checked before anything was asked
        page = ParserInput(
            source=source,
            body=data,
            charset=law.charset_of(evidence, data),
            final_url=evidence.final_url,
            captured_at=evidence.captured_at,
        )
        try:
            return await self._run.parser(page)
        except Exception as problem:  # a parser is anybody's code, and whatever it raises rejects the page
            return Parsed(items=None, problem=f"{type(problem).__name__}: {problem}")

    async def _kept(self, attempt: Attempt) -> tuple[Note, ...]:
        """Hand the attempt to the archive; trouble there is told and changes nothing here."""
        if self._run.keeper is None:
            return ()
        try:
            await self._run.keeper(attempt)
        except PravdaError as problem:
            return (warning("not_archived", str(problem)),)
        return ()

    def _store(self, ready: _Ready, new: Meta, data: bytes) -> _Stored:
        """Write what has changed; raises OSError."""
        source, old, tree = ready.source, ready.stored.meta, self._run.tree
        same_bytes = ready.stored.body_hash == new.content_hash
        changed = law.is_change(ready.stored, new.content_hash)
        body = None if same_bytes else data
        confirms = same_bytes and old is not None and new.only_confirms(old)
        if confirms and old and not may_confirm(old, new, self._run.sources.confirmations):
            return _Stored(meta=new, changed=changed)
        names = tree.store(new, body, source.extension)
        return _Stored(
            meta=new, changed=changed, restored=not (same_bytes or changed), written=names, confirms=confirms
        )

    def _record(self, old: SourceState, new: SourceState) -> tuple[Note, ...]:
        """Write down the attempt, unless it never went out."""
        if new is not old:
            try:
                self._run.tree.record(new)
            except OSError as problem:
                return (
                    warning("not_recorded", f"The attempt could not be written down: {problem.strerror}."),
                )
        return ()

    def _broke_off(self, source: Source, note: str) -> SourceResult:
        return SourceResult(
            source_id=source.id,
            outcome=Outcome.FAILED,
            record=self._run.tree.state(source.id)[0],
            fault=FaultSide.LOCAL,
            note=law.printable(note),
        )


def _result(
    ready: _Ready,
    evidence: Evidence,
    verdict: Verdict,
    items: int | None,
    stored: _Stored,
    record: SourceState,
) -> SourceResult:
    failure, source, warnings = verdict.failure, ready.source, ready.warnings
    asked = law.was_asked(evidence)
    if failure:
        outcome, note = law.outcome_of_failure(failure), law.note_of(evidence, failure)
    else:
        outcome, note = Outcome.FETCHED if stored.changed else Outcome.UNCHANGED, stored.note(evidence)
        drop = law.drop_warning(source, ready.stored.meta, stored.meta) if stored.meta else None
        warnings = (*warnings, drop) if drop else warnings
    return SourceResult(
        source_id=source.id,
        outcome=outcome,
        record=record,
        state=verdict.state,
        cause=failure.cause if failure else None,
        reason=failure.reason if failure else None,
        fault=failure.fault if failure else None,
        status=evidence.response.status if evidence.response else None,
        items=items,
        note=note,
        asked=asked,
        forced=ready.forced,
        assumed_robots=any(note.code == ROBOTS_ASSUMED for note in evidence.notes),
        written=stored.written,
        confirms=stored.confirms,
        warnings=warnings,
    )


def _skipped(
    source: Source, outcome: Outcome, record: SourceState, note: str, warnings: tuple[Note, ...]
) -> SourceResult:
    return SourceResult(
        source_id=source.id,
        outcome=outcome,
        record=record,
        state=record.state,
        cause=record.cause,
        reason=record.reason,
        status=record.last_status,
        note=law.printable(note),
        warnings=warnings,
    )


def warning(code: str, detail: str) -> Note:
    """Something to be told of a source, or of the run."""
    return Note(code=code, detail=law.printable(detail))


async def _in_thread(work: Callable[[], _T]) -> _T:
    """The result of blocking work, which is over before a cancellation goes on: the lock must outlast it."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
