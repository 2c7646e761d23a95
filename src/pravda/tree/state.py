"""The last attempt at a source, and when the next one is due: the state file that git does not see."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from pravda.core.digest import Json
from pravda.core.headers import LONGEST_RETRY_AFTER
from pravda.core.states import Cause, Reason, State
from pravda.tree.layout import count_or_none, merged, moment, moment_text, read_object, write_object

LONGEST_PAUSE: Final = 7 * 86400.0
"""Seconds; a streak never waits longer, unless the interval itself is longer."""
BROKEN_FROM: Final = 3
"""Failures in a row from which a source counts as broken."""

_MOST_DOUBLINGS: Final = 40
_WAITING: Final = (429, 503)
"""Statuses whose Retry-After is obeyed (RFC 9110 §15.6.4, RFC 6585 §4)."""
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What the last attempts at a source came to."""

    source_id: str
    last_checked_at: datetime | None = None
    """Start of the last attempt; None: there was none."""
    last_status: int | None = None
    """HTTP status of the last attempt; None: no answer came, or nothing was asked."""
    state: State | None = None
    """None: there was no attempt."""
    cause: Cause | None = None
    """None: the last attempt was accepted."""
    reason: Reason | None = None
    """None: the last attempt was accepted."""
    failures: int = 0
    """Failed or rejected attempts in a row, faults of ours left out."""
    refusals: int = 0
    """Attempts in a row that robots.txt did not allow."""
    next_due_at: datetime | None = None
    """None: at once."""
    standing: bytes = field(default=b"", repr=False, compare=False)
    """The file as it was read, whose keys and order are kept."""

    @property
    def broken(self) -> bool:
        """Whether the source has failed too often in a row."""
        return self.failures >= BROKEN_FROM

    def to_file(self) -> bytes:
        """The bytes of the state file."""
        new: dict[str, Json] = {
            "sourceId": self.source_id,
            "lastCheckedAt": moment_text(self.last_checked_at),
            "lastStatus": self.last_status,
            "state": self.state,
            "cause": self.cause,
            "reason": self.reason,
            "consecutiveFailures": self.failures,
            "consecutiveRefusals": self.refusals,
            "nextDueAt": moment_text(self.next_due_at),
        }
        return write_object(merged(read_object(self.standing) or {}, new))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Whether a source may be asked now."""

    due: bool
    at: datetime | None = None
    """When it will be; None: it is due, and was whenever anybody looked."""
    warning: str = ""
    """What is wrong with the recorded times; "" where nothing is."""


def read_state(source_id: str, data: bytes) -> SourceState | None:
    """The state in a file; None: it is damaged. What cannot be read in a whole file counts as absent."""
    read = read_object(data)
    if read is None:
        return None
    status = count_or_none(read.get("lastStatus"))
    return SourceState(
        source_id=source_id,
        last_checked_at=moment(read.get("lastCheckedAt")),
        last_status=status,
        state=_word(State, read.get("state")),
        cause=_word(Cause, read.get("cause")),
        reason=_word(Reason, read.get("reason")),
        failures=count_or_none(read.get("consecutiveFailures")) or 0,
        refusals=count_or_none(read.get("consecutiveRefusals")) or 0,
        next_due_at=moment(read.get("nextDueAt")),
        standing=data,
    )


def due(state: SourceState, interval: float, now: datetime) -> Due:
    """Whether the interval, the back-off and Retry-After let a source be asked."""
    last, following = state.last_checked_at, state.next_due_at
    if last is None:
        return Due(due=True)
    if last > now:
        return Due(due=True, warning="the last attempt lies in the future, so it does not count")
    if following is None:
        following = _after(last, interval)
    elif following > _after(last, max(interval, LONGEST_PAUSE, LONGEST_RETRY_AFTER) + 86400):
        # an attempt lasts minutes, so a day is margin enough for a Retry-After counted from its end
        return Due(due=True, warning="the next attempt is set beyond all reason, so that does not count")
    return Due(due=following <= now, at=following)


def next_due(
    started: datetime,
    *,
    interval: float,
    failures: int,
    status: int | None = None,
    retry_after: float | None = None,
    answered: datetime | None = None,
) -> datetime:
    """When a source is due after an attempt; `retry_after` counts from the moment it was answered."""
    pause = interval
    if failures:
        doubled = interval * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        pause = max(interval, min(doubled, LONGEST_PAUSE))
    due_at = _after(started, pause)
    if retry_after is not None and status in _WAITING:
        due_at = max(due_at, _after(answered or started, min(retry_after, LONGEST_RETRY_AFTER)))
    return due_at


def _after(when: datetime, seconds: float) -> datetime:
    try:
        return when + timedelta(seconds=seconds)
    except OverflowError:  # a recorded time at the end of the calendar
        return datetime.max.replace(tzinfo=when.tzinfo)


def _word(kind: Callable[[str], _Word], value: Json) -> _Word | None:
    if not isinstance(value, str):
        return None
    try:
        return kind(value)
    except ValueError:
        return None
