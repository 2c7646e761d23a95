"""Small builders of values that many tests need."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import uuid_utils

from pravda.core.evidence import (
    Artifact,
    Content,
    Evidence,
    Phase,
    Response,
    Timings,
    Validators,
)
from pravda.core.outcome import Asked, Failure, Mark, Snapshot, Verdict
from pravda.core.ports import Contents
from pravda.core.rules import Rules
from pravda.core.states import FACTS, Reason, State
from pravda.core.urls import parse
from pravda.engines.spool import Bytes

URL = "https://example.org/list?page=1"
NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
PAGE = b"<!doctype html><title>List</title><table id=list><tr><td>One</td></tr></table>"

_TYPICAL = {
    State.LIVE: (200, None),
    State.BLOCKED: (403, Reason.ACCESS_DENIED),
    State.GONE: (404, Reason.NOT_FOUND),
    State.DOWN: (503, Reason.SERVICE_UNAVAILABLE),
    State.PARTIAL: (200, Reason.SELECTOR_MISSING),
}
_TYPES = {"body": "text/html", "payload": "application/gzip"}


def a_snapshot(
    url: str = URL,
    *,
    state: State = State.LIVE,
    body: bytes = PAGE,
    captured_at: datetime = NOON,
    snapshot_id: str | None = None,
    identity: str | None = None,
    key: str | None = None,
    capture_id: str | None = None,
    etag: str | None = None,
    expect: Rules | None = None,
    heads: Mapping[str, bytes] | None = None,
) -> tuple[Snapshot, dict[str, Contents]]:
    """A typical snapshot in a state, and the contents of its artifacts; without an identity, the page's own."""
    page = parse(url).page
    status, reason = _TYPICAL[state]
    if heads is None:
        heads = {
            "request": b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "response": b"HTTP/1.1 %d x\r\n\r\n" % status,
        }
    contents: dict[str, Contents] = {
        "body": Bytes(body),
        **{name: Bytes(data) for name, data in heads.items()},
    }
    headers = (("Content-Type", "text/html; charset=utf-8"), *((("ETag", etag),) if etag else ()))
    evidence = Evidence(
        url=url,
        final_url=page,
        engine="http",
        method="GET",
        requested_at=captured_at - timedelta(milliseconds=250),
        captured_at=captured_at,
        response=Response(status=status, version="1.1", headers=headers, remote_address="192.0.2.7:443"),
        content=Content(
            sha256=contents["body"].sha256,
            bytes=len(body),
            media_type="text/html",
            charset="utf-8",
            charset_from="header",
            wire_bytes=len(body),
        ),
        artifacts=tuple(an_artifact(name, part) for name, part in contents.items()),
        timings=Timings(dns_ms=1.5, connect_ms=12.0, first_byte_ms=80.25, total_ms=250.0),
    )
    snapshot = Snapshot(
        id=snapshot_id or new_id(),
        evidence=evidence,
        verdict=Verdict(state=state, failure=a_failure(reason) if reason else None),
        asked=Asked(
            page=page,
            identity=identity or hashlib.sha256((key or page).encode()).hexdigest(),
            capture_id=capture_id or new_id(),
            key=key,
            expect=expect or Rules(),
        ),
        validators=Validators(etag=etag),
        content_captured_at=captured_at,
    )
    return snapshot, contents


def a_failure(reason: Reason) -> Failure:
    """The failure that goes with a reason."""
    facts = FACTS[reason]
    return Failure(
        cause=facts.cause,
        reason=reason,
        fault=facts.fault,
        phase=Phase.RESPONSE,
        detail=facts.sentence,
        evidence=(Mark(where="status", matched="seen"),),
    )


def an_artifact(name: str, contents: Contents) -> Artifact:
    """The record of an artifact with these contents."""
    return Artifact(
        name=name,
        media_type=_TYPES.get(name, "message/http"),
        bytes=contents.size,
        sha256=contents.sha256,
    )


def new_id() -> str:
    """A fresh UUIDv7."""
    return str(uuid_utils.uuid7())
