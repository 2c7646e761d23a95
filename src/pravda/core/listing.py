"""Where a list goes on, and the moments that bound it, as callers write them."""

import uuid
from datetime import UTC, datetime, timedelta

from pravda.core.durations import seconds
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot


def cursor_of(last: Snapshot) -> str:
    """Where a list goes on that ended with this snapshot; microseconds count, or rows of one millisecond get lost."""
    return f"{last.captured_at.astimezone(UTC).isoformat(timespec='microseconds')}_{last.id}"


def read_cursor(text: str) -> tuple[datetime, str]:
    """The (captured_at, id) in a cursor; raises BadRequest."""
    try:
        when, _, last = text.partition("_")
        return datetime.fromisoformat(when).astimezone(UTC), str(uuid.UUID(last))
    except (ValueError, OverflowError):
        raise BadRequest("cursor", "is none that a list gave; take it from the list before") from None


def read_moment(field: str, text: str, now: datetime) -> datetime:
    """A time (UTC where no zone is given), a date's first moment, or so long ago; raises BadRequest."""
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return now - timedelta(seconds=seconds(field, text))
    except BadRequest:
        raise BadRequest(
            field, f"{text!r:.60} is no time; write 2026-03-01T12:00:00Z, a date, or 7d"
        ) from None
