"""An answer and a snapshot, as lines for a person."""

import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pravda.cli.words import ago, badge, exactly, program, safe, size, span
from pravda.core.evidence import Content, Response, Timings
from pravda.core.outcome import Answer, Failure, Newest, Result, Snapshot, Verdict
from pravda.core.rules import Check
from pravda.core.states import FACTS, FaultSide
from pravda.core.wire import time_text

_INDENT = "  "
_LABEL = 11  # characters

Lines = Iterator[str]


def line(label: str, text: str) -> str:
    """A fact with its label; the text is made safe."""
    return f"{_INDENT}{label:<{_LABEL}} {safe(text)}"


def answer_lines(answer: Answer, now: datetime, home: Path | None, *, brief: bool = False) -> Lines:
    """What a capture gave back."""

    def about(snapshot: Snapshot) -> Lines:
        return brief_lines(snapshot, now) if brief else snapshot_lines(snapshot, now, home)

    match answer.result, answer.snapshot, answer.attempt:
        case Result.STALE, Snapshot() as used, Snapshot() as attempt:
            yield f"{badge(used.state)} stale: the refresh failed, so this earlier snapshot stands in"
            yield from about(used)
            yield line("age", _age(answer))
            yield f"{badge(attempt.state)} the attempt that failed"
            yield from about(attempt)
        case Result.REUSED, Snapshot() as used, _:
            yield f"{badge(used.state)} reused: young enough, so nothing was fetched"
            yield from about(used)
            yield line("age", _age(answer))
        case _, Snapshot() as used, _:
            yield f"{badge(used.state)} fresh: captured now"
            yield from about(used)
        case _, None, Snapshot() as attempt:
            yield f"{badge(attempt.state)} failed, and no earlier snapshot may stand in"
            yield from about(attempt)
            yield line("fallback", _fallback(attempt, answer.newest_usable, answer.max_stale_age_seconds))
    if len(answer.attempts) > 1:
        yield line("attempts", ", ".join(answer.attempts))


def _age(answer: Answer) -> str:
    age, most = answer.age_seconds or 0.0, answer.max_stale_age_seconds
    text = f"{span(age)} ({int(age)} s)" if age >= 60 else span(age)
    return f"{text}, at most {exactly(most)} allowed" if answer.stale and most is not None else text


def _fallback(attempt: Snapshot, newest: Newest | None, most: float | None) -> str:
    if newest is None:
        demands = attempt.asked.expect.to_wire() or attempt.asked.artifacts
        return f"none, no usable snapshot is kept{' that fulfils these demands' if demands else ''}"
    why = (
        "not asked for, see --max-stale-age"
        if not most
        else "older than --max-stale-age allows"
        if newest.age_seconds > most
        else "not allowed for this state by --stale-if"
    )
    return f"none: {newest.id}, {span(newest.age_seconds)} old, is usable but {why}"


def brief_lines(snapshot: Snapshot, now: datetime) -> Lines:
    """The fewest facts that tell what happened."""
    seen, failure = snapshot.evidence, snapshot.verdict.failure
    yield line("captured", f"{time_text(snapshot.captured_at)}, {ago(snapshot.captured_at, now)}")
    if failure:
        yield line("reason", f"{failure.reason}: {FACTS[failure.reason].sentence}")
    if seen.response:
        yield line("status", _status(seen.response))
    yield line("snapshot", snapshot.id)


def snapshot_lines(snapshot: Snapshot, now: datetime, home: Path | None) -> Lines:
    """The facts of one snapshot that help to judge it, and how to see the rest."""
    seen = snapshot.evidence
    yield line("url", seen.url)
    if seen.final_url != seen.url:
        yield line("final url", seen.final_url)
    for hop in seen.redirects:
        yield line("redirect", f"{hop.status} at {hop.url}")
    yield line("captured", f"{time_text(snapshot.captured_at)}, {ago(snapshot.captured_at, now)}")
    yield from verdict_lines(snapshot.verdict)
    if seen.response:
        yield line("status", _status(seen.response))
    if seen.content:
        yield line("content", _content(seen.content))
    if snapshot.not_modified:
        yield line("unchanged", f"confirmed by a 304; the bytes are those of {snapshot.content_from}")
    for target in seen.client_redirects:
        yield line("page leads", f"to {target} (recorded, not followed)")
    for note in seen.notes:
        yield line("warning", f"{note.code}: {note.detail}")
    yield line("timings", _timings(seen.timings))
    yield line("snapshot", snapshot.id)
    option = f" --home {shlex.quote(str(home))}" if home else ""
    yield line("see", f"{program()} show {snapshot.id}{option}")
    if snapshot.content_from or any(artifact.name == "body" for artifact in seen.artifacts):
        yield line("", f"{program()} cat {snapshot.id}{option}")


def verdict_lines(verdict: Verdict) -> Lines:
    """Why it is not live, and how each rule was judged."""
    if verdict.failure:
        yield from _failure_lines(verdict.failure)
    for check in verdict.checks:
        yield line("rule", _check(check))
    for note in verdict.warnings:
        yield line("warning", f"{note.code}: {note.detail}")


def _failure_lines(failure: Failure) -> Lines:
    sentence = FACTS[failure.reason].sentence
    yield line("reason", f"{failure.reason}: {sentence}")
    if failure.detail != sentence:
        yield line("detail", failure.detail)
    if failure.fault is FaultSide.LOCAL:
        yield line("fault", "ours: this machine or its settings, not the source")
    for mark in failure.evidence:
        if mark.where == "status" or mark.matched in (failure.detail, failure.raw):
            continue  # has a line of its own
        yield line("because", f"{mark.where}: {mark.matched}")
    if failure.retry_after_seconds is not None:
        yield line("retry after", span(failure.retry_after_seconds))
    if failure.raw and failure.raw not in (failure.detail, "None"):
        yield line("engine says", failure.raw)


def _check(check: Check) -> str:
    expected = ", ".join(map(str, check.expected)) if isinstance(check.expected, tuple) else check.expected
    found = "" if check.found is None else f" (found: {check.found})"
    return f"{'passed' if check.passed else 'FAILED'} {check.rule} = {expected}{found}"


def _status(response: Response) -> str:
    parts = [str(response.status), f"HTTP/{response.version}"]
    if response.remote_address:
        parts.append(f"from {response.remote_address}")
    if response.tls:
        parts.append(response.tls.version or "TLS")
        if not response.tls.verified:
            parts.append(f"certificate NOT verified ({response.tls.problem or 'as asked'})")
    return ", ".join(parts)


def _content(content: Content) -> str:
    kind = content.media_type or "of no declared type"
    charset = f", {content.charset} (from {content.charset_from})" if content.charset else ""
    amount = size(content.bytes) if content.bytes < 1000 else f"{size(content.bytes)} ({content.bytes} bytes)"
    return f"{kind}{charset}, {amount}, {content.ending}"


def _timings(timings: Timings) -> str:
    named = (
        ("dns", timings.dns_ms),
        ("connect", timings.connect_ms),
        ("tls", timings.tls_ms),
        ("first byte", timings.first_byte_ms),
        ("total", timings.total_ms),
    )
    return ", ".join(f"{name} {value:.0f} ms" for name, value in named if value is not None) or "none taken"
