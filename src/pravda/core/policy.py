"""What to do next, decided from all attempts so far."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pravda.core.outcome import Newest, Snapshot
from pravda.core.request import Request
from pravda.core.states import FACTS, FaultSide, Reason
from pravda.core.statuses import RETRY_STATUSES

SHORTEST_TRY = 1.0
"""Seconds; a second try with less left would only time out."""

_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE", "OPTIONS", "QUERY"})
"""RFC 9110 §9.2.2: only these are sent again by ourselves, when the first may have been acted on."""

UNKNOWN: Final = "unknown"
Candidate = Snapshot | None | Literal["unknown"]
"""The newest usable snapshot under the request's rules: one, none, or not looked for yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Find the newest usable snapshot, then ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Make one attempt, then ask again."""

    budget: float
    """Seconds."""
    fresh_connection: bool = False
    held: Snapshot | None = None
    """Whose validators to send; None: ask unconditionally."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Answer with a snapshot that is young enough, without an attempt."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """Answer with the last attempt."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """Answer with an earlier snapshot in place of the failed attempt."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Answer that there is no usable snapshot."""


Step = Look | Run | Reuse | Serve | Fall | Finish


def next_step(
    request: Request, began: datetime, spent: float, attempts: tuple[Snapshot, ...], candidate: Candidate
) -> Step:
    """The next step; `spent` is the seconds since the capture began."""
    if not attempts:
        return _opening(request, began, candidate)
    last = attempts[-1]
    if last.usable:
        return Serve(snapshot=last)
    left = request.timeouts.total - spent
    if _retry_is_due(attempts) and left >= SHORTEST_TRY:
        held = candidate if isinstance(candidate, Snapshot) and request.conditional else None
        return Run(budget=left, fresh_connection=True, held=held)
    if candidate == UNKNOWN:
        return Look()
    if isinstance(candidate, Snapshot) and may_stand_in(request, began, last, candidate):
        return Fall(snapshot=candidate)
    return Finish()


def age_of(snapshot: Snapshot, began: datetime) -> float:
    """Seconds between a snapshot's capture and the start of the request, never below 0 (RFC 9111 §4.2.3 clamps too)."""
    return max(0.0, (began - snapshot.captured_at).total_seconds())


def newest_of(snapshot: Snapshot, began: datetime) -> Newest:
    """How an answer names the newest usable snapshot."""
    return Newest(id=snapshot.id, captured_at=snapshot.captured_at, age_seconds=age_of(snapshot, began))


def may_stand_in(request: Request, began: datetime, failed: Snapshot, candidate: Snapshot) -> bool:
    """Whether a usable snapshot is young enough, and the failure one that allows fallback."""
    if not request.max_stale_age or age_of(candidate, began) > request.max_stale_age:
        return False
    failure = failed.verdict.failure
    ours = failure is not None and failure.fault is FaultSide.LOCAL
    return ours or failed.state in request.stale_if


def _opening(request: Request, began: datetime, candidate: Candidate) -> Step:
    if candidate == UNKNOWN and (request.max_age or request.conditional):
        return Look()
    held = candidate if isinstance(candidate, Snapshot) else None
    if held and request.max_age and age_of(held, began) <= request.max_age:
        return Reuse(snapshot=held)
    return Run(budget=request.timeouts.total, held=held if request.conditional else None)


def _retry_is_due(attempts: tuple[Snapshot, ...]) -> bool:
    """One more try: only after the first, and only for faults that a fresh start may cure."""
    if len(attempts) != 1:
        return False
    seen, failure = attempts[0].evidence, attempts[0].verdict.failure
    if failure is None:
        return False
    if seen.response is not None and failure.reason is not Reason.BROWSER_CRASHED:
        # the server says that it has not acted on the request, whatever the method
        return seen.response.status in RETRY_STATUSES and failure.reason is Reason.SERVER_ERROR
    return FACTS[failure.reason].retry and seen.method in _IDEMPOTENT
