"""One answer of each kind, for the API's description."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pravda.core.digest import Json, sha256
from pravda.core.evidence import Artifact, Content, Evidence, Phase, Response, Timings
from pravda.core.outcome import Answer, Asked, Failure, Mark, Newest, Result, Snapshot, Verdict
from pravda.core.states import FACTS, Reason, State
from pravda.core.wire import answer_to_json, snapshot_to_json

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_PAGE = b"<!doctype html><title>Notices</title><table id=list><tr><td>Notice 42</table>"
_URL = "https://example.org/notices"
_AGE = timedelta(days=1, seconds=12)


def _live(captured_at: datetime, snapshot_id: str) -> Snapshot:
    body = Artifact(name="body", media_type="text/html", bytes=len(_PAGE), sha256=sha256(_PAGE))
    return Snapshot(
        id=snapshot_id,
        evidence=Evidence(
            url=_URL,
            final_url=_URL,
            engine="http",
            method="GET",
            requested_at=captured_at - timedelta(milliseconds=180),
            captured_at=captured_at,
            response=Response(
                status=200,
                version="1.1",
                headers=(("Content-Type", "text/html; charset=utf-8"),),
                remote_address="203.0.113.7",
            ),
            content=Content(
                sha256=body.sha256,
                bytes=body.bytes,
                media_type="text/html",
                charset="utf-8",
                charset_from="header",
                wire_bytes=body.bytes,
                declared_bytes=body.bytes,
            ),
            artifacts=(body,),
            timings=Timings(dns_ms=4.0, connect_ms=20.5, tls_ms=41.0, first_byte_ms=160.0, total_ms=201.5),
        ),
        verdict=Verdict(state=State.LIVE),
        asked=Asked(
            page=_URL, identity=sha256(_URL.encode()), capture_id="019c8f0b-5a00-7000-8000-0000000000c1"
        ),
        content_captured_at=captured_at,
    )


def _down() -> Snapshot:
    live, facts = _live(_NOON, "019ca43c-8a00-7000-8000-0000000000a2"), FACTS[Reason.SERVICE_UNAVAILABLE]
    failure = Failure(
        cause=facts.cause,
        reason=Reason.SERVICE_UNAVAILABLE,
        fault=facts.fault,
        phase=Phase.RESPONSE,
        detail=facts.sentence,
        evidence=(Mark(where="status", matched="503"),),
        retry_after_seconds=120.0,
    )
    assert live.evidence.response is not None
    answered = replace(live.evidence.response, status=503, headers=(("Retry-After", "120"),))
    evidence = replace(live.evidence, response=answered, content=None, artifacts=())
    return replace(
        live, evidence=evidence, verdict=Verdict(state=State.DOWN, failure=failure), content_captured_at=None
    )


def _newest(snapshot: Snapshot, age: timedelta) -> Newest:
    return Newest(id=snapshot.id, captured_at=snapshot.captured_at, age_seconds=age.total_seconds())


_FRESH = _live(_NOON, "019ca43c-8a00-7000-8000-0000000000a1")
_OLD = _live(_NOON - _AGE, "019c9f15-f0e0-7000-8000-0000000000a0")
_FAILED = _down()

SNAPSHOT: dict[str, Json] = snapshot_to_json(_FRESH)
ANSWERS: dict[str, dict[str, Json]] = {
    "fresh": answer_to_json(
        Answer(
            result=Result.FRESH,
            snapshot=_FRESH,
            attempt=_FRESH,
            attempts=(_FRESH.id,),
            age_seconds=0.0,
            max_stale_age_seconds=604800.0,
            newest_usable=_newest(_FRESH, timedelta()),
        )
    ),
    "stale": answer_to_json(
        Answer(
            result=Result.STALE,
            snapshot=_OLD,
            attempt=_FAILED,
            attempts=(_FAILED.id,),
            age_seconds=_AGE.total_seconds(),
            max_stale_age_seconds=604800.0,
            newest_usable=_newest(_OLD, _AGE),
        )
    ),
    "reused": answer_to_json(
        Answer(
            result=Result.REUSED,
            snapshot=_OLD,
            attempt=None,
            age_seconds=_AGE.total_seconds(),
            newest_usable=_newest(_OLD, _AGE),
        )
    ),
    "failed": answer_to_json(
        Answer(
            result=Result.FAILED,
            snapshot=None,
            attempt=_FAILED,
            attempts=(_FAILED.id,),
            max_stale_age_seconds=3600.0,
            newest_usable=_newest(_OLD, _AGE),
        )
    ),
}
"""By result."""
