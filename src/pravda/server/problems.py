"""Every way a request can end badly, as RFC 9457 problems."""

import dataclasses
from collections.abc import Mapping
from enum import Enum

from pravda.core.digest import Json
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Newest
from pravda.core.wire import time_text
from pravda.errors import ArchiveUnavailable, Damaged, NotFound

URN = "urn:pravda:problem:"
MEDIA_TYPE = "application/problem+json"


class Kind(Enum):
    """A type of problem: its name, its status, its title."""

    MALFORMED_REQUEST = ("malformed-request", 400, "The request cannot be read")
    UNAUTHORIZED = ("unauthorized", 401, "A valid API key is needed")
    FORBIDDEN = ("forbidden", 403, "This key does not allow that")
    NOT_FOUND = ("not-found", 404, "Not found")
    METHOD_NOT_ALLOWED = ("method-not-allowed", 405, "The method is not allowed here")
    REQUEST_TIMEOUT = ("request-timeout", 408, "The request took too long to arrive")
    IN_PROGRESS = ("in-progress", 409, "A request with this Idempotency-Key is still running")
    PRECONDITION_FAILED = ("precondition-failed", 412, "Precondition failed")
    TOO_LARGE = ("too-large", 413, "The request is too large")
    UNSUPPORTED_MEDIA_TYPE = ("unsupported-media-type", 415, "The request's body must be application/json")
    RANGE_NOT_SATISFIABLE = ("range-not-satisfiable", 416, "The range lies outside the artifact")
    MISDIRECTED = ("misdirected", 421, "This service is not known under that host name")
    BAD_REQUEST = ("bad-request", 422, "A field of the request cannot be taken")
    RATE_LIMITED = ("rate-limited", 429, "Too many requests")
    QUEUE_FULL = ("queue-full", 429, "Too many captures are waiting")
    HEADERS_TOO_LARGE = ("headers-too-large", 431, "Too many header fields")
    INTERNAL = ("internal", 500, "Internal error")
    DAMAGED = ("damaged", 500, "Stored bytes are damaged")
    ARCHIVE_UNAVAILABLE = ("archive-unavailable", 503, "The archive cannot be used")
    NOT_READY = ("not-ready", 503, "The service is not ready")
    INTERRUPTED = ("interrupted", 503, "The service was stopped meanwhile")

    def __init__(self, slug: str, status: int, title: str) -> None:
        self.slug, self.status, self.title = slug, status, title

    @property
    def type(self) -> str:
        """The problem's type, a URI."""
        return f"{URN}{self.slug}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One answer that is an error."""

    kind: Kind
    detail: str
    """One sentence for people; nothing of the inside."""
    field: str | None = None
    """The part of the request that is wrong; None: no single one."""
    retry_after: int | None = None
    """Seconds."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    """What this problem tells beyond the usual (RFC 9457 §3.2)."""

    def to_json(self) -> dict[str, Json]:
        """The body."""
        told: dict[str, Json] = {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        }
        if self.field is not None:
            told["field"] = self.field
        return told | dict(self.members)

    def all_headers(self) -> dict[str, str]:
        """The headers that go with it."""
        retry = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {**retry, **self.headers}


class Refused(Exception):
    """Ends the handling of a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_of(raised: Exception) -> Problem:
    """What an exception is to the caller; only our own words go out."""
    match raised:
        case Refused():
            return raised.problem
        case BadRequest():
            return Problem(
                kind=Kind.BAD_REQUEST, detail=f"{raised.field}: {raised.problem}", field=raised.field
            )
        case NotFound():
            return Problem(kind=Kind.NOT_FOUND, detail=f"{str(raised)[:1].upper()}{str(raised)[1:]}.")
        case Damaged():
            return Problem(
                kind=Kind.DAMAGED,
                detail="What is stored there is missing or no longer what was kept; it is not handed out as evidence.",
            )
        case ArchiveUnavailable():
            return Problem(
                kind=Kind.ARCHIVE_UNAVAILABLE,
                detail="The archive cannot be used as asked, so nothing is acknowledged; earlier evidence is safe.",
                retry_after=30,
                members={"newest_usable": _newest(raised.newest_usable)},
            )
        case _:
            return Problem(
                kind=Kind.INTERNAL, detail="Something broke here; the log has it under this request's id."
            )


def _newest(newest: Newest | None) -> Json:
    if newest is None:
        return None
    return {"id": newest.id, "captured_at": time_text(newest.captured_at), "age_seconds": newest.age_seconds}
