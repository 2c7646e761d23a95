"""Header values that decide something, read as their RFCs say."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pravda.core.evidence import Validators

LONGEST_RETRY_AFTER = 7 * 86400.0
"""Seconds; a larger Retry-After is clamped to it."""

_DELAY = re.compile(r"[0-9]{1,20}", re.ASCII)
# RFC 9110 §14.1: names of range units are case-insensitive
_RANGE = re.compile(r"bytes +([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})", re.ASCII | re.IGNORECASE)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait (RFC 9110 §10.2.3), never below 0 nor above a week; None: absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if _DELAY.fullmatch(text):
        return min(float(text), LONGEST_RETRY_AFTER)
    if not text[:1].isalpha() or len(text) > 64:
        return None
    try:
        moment = parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(max((moment - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER)
    except (ValueError, OverflowError):  # no date; a date that no calendar holds
        return None


def covers_whole(content_range: str | None) -> bool:
    """Whether a Content-Range (RFC 9110 §14.4) names the complete representation."""
    found = _RANGE.fullmatch((content_range or "").strip())
    if not found:
        return False
    first, last, size = (int(number) for number in found.groups())
    return first == 0 and last + 1 == size


def after_not_modified(sent: Validators, received: Validators, held: Validators) -> Validators:
    """The validators in force after a 304: new ones are adopted, absent ones stay (RFC 9111 §4.3.4).

    An ETag which is neither the one sent nor weakly equal to it belongs to other bytes: nothing is kept,
    so that the next request is unconditional.
    """
    if received.etag and sent.etag and _weak(received.etag) != _weak(sent.etag):
        return Validators()
    return Validators(
        etag=received.etag or held.etag, last_modified=received.last_modified or held.last_modified
    )


def _weak(etag: str) -> str:
    """An ETag without its weakness mark, for weak comparison (RFC 9110 §8.8.3.2)."""
    return etag.removeprefix("W/")
