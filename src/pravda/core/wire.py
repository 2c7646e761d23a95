"""The one JSON form of snapshots and answers, both ways."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar, cast

from pravda.core.digest import Json
from pravda.core.evidence import (
    Artifact,
    Content,
    Evidence,
    Hop,
    Note,
    Tls,
    Trouble,
    Validators,
)
from pravda.core.outcome import Answer, Asked, Failure, Newest, Result, Snapshot
from pravda.core.rules import Check
from pravda.core.wire_read import NotPravda, Object, answer_from_json, read_time, snapshot_from_json

__all__ = [
    "NO_USABLE_SNAPSHOT",
    "NotPravda",
    "Object",
    "answer_from_json",
    "answer_to_json",
    "read_time",
    "snapshot_from_json",
    "snapshot_to_json",
    "time_text",
]

_T = TypeVar("_T")

NO_USABLE_SNAPSHOT = "urn:pravda:problem:no-usable-snapshot"


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Json]:
    """A snapshot as every surface shows it and as the catalog keeps it."""
    seen, verdict = snapshot.evidence, snapshot.verdict
    return {
        "id": snapshot.id,
        "url": seen.url,
        "final_url": seen.final_url,
        "engine": seen.engine,
        "method": seen.method,
        "requested_at": time_text(seen.requested_at),
        "captured_at": time_text(seen.captured_at),
        "state": verdict.state.value,
        "usable": snapshot.usable,
        "failure": _maybe(verdict.failure, _failure),
        "http": _http(seen),
        "content": _maybe(seen.content, _content),
        "validators": _validators(snapshot.validators),
        "not_modified": snapshot.not_modified,
        "content_from": snapshot.content_from,
        "content_captured_at": _maybe(snapshot.content_captured_at, time_text),
        "request": _asked(snapshot.asked, seen),
        "client_redirects": list(seen.client_redirects),
        "artifacts": [_artifact(snapshot.id, artifact) for artifact in seen.artifacts],
        "checks": [_check(check) for check in verdict.checks],
        "warnings": [*_notes(seen.notes, "engine"), *_notes(verdict.warnings, "law")],
        "error": _maybe(seen.trouble, _trouble),
        "timings": {
            "dns_ms": seen.timings.dns_ms,
            "connect_ms": seen.timings.connect_ms,
            "tls_ms": seen.timings.tls_ms,
            "first_byte_ms": seen.timings.first_byte_ms,
            "total_ms": seen.timings.total_ms,
        },
    }


def answer_to_json(answer: Answer) -> dict[str, Json]:
    """An answer; a failed one is an RFC 9457 problem at the same time."""
    problem: dict[str, Json] = {}
    if answer.result is Result.FAILED:
        problem = {
            "type": NO_USABLE_SNAPSHOT,
            "title": "No usable snapshot",
            "status": 502,
            "detail": answer.problem,
        }
    return problem | {
        "result": answer.result.value,
        "stale": answer.stale,
        "age_seconds": answer.age_seconds,
        "max_stale_age_seconds": answer.max_stale_age_seconds,
        "snapshot": _maybe(answer.snapshot, snapshot_to_json),
        "attempt": _maybe(answer.attempt, snapshot_to_json),
        "attempts": list(answer.attempts),
        "newest_usable": _maybe(answer.newest_usable, _newest),
    }


def _maybe(value: _T | None, form: Callable[[_T], Json | dict[str, Json]]) -> Json:
    return None if value is None else form(value)


def _newest(newest: Newest) -> Json:
    return {
        "id": newest.id,
        "captured_at": time_text(newest.captured_at),
        "age_seconds": newest.age_seconds,
    }


def _notes(notes: tuple[Note, ...], by: str) -> list[Json]:
    return [{"code": note.code, "detail": note.detail, "by": by} for note in notes]


def _failure(failure: Failure) -> Json:
    return {
        "cause": failure.cause.value,
        "reason": failure.reason.value,
        "fault": failure.fault.value,
        "phase": failure.phase.value,
        "detail": failure.detail,
        "evidence": [{"where": mark.where, "matched": mark.matched} for mark in failure.evidence],
        "retry_after_seconds": failure.retry_after_seconds,
        "raw": failure.raw,
    }


def _http(seen: Evidence) -> Json:
    response = seen.response
    redirects: list[Json] = [_hop(hop) for hop in seen.redirects]
    if response is None:
        empty: dict[str, Json] = dict.fromkeys(("status", "version", "remote_address", "tls"))
        return empty | {"headers": [], "redirects": redirects} if redirects else None
    return {
        "status": response.status,
        "version": response.version,
        "headers": [[name, value] for name, value in response.headers],
        "redirects": redirects,
        "remote_address": response.remote_address,
        "tls": _maybe(response.tls, _tls),
    }


def _tls(tls: Tls) -> Json:
    return {"version": tls.version, "cipher": tls.cipher, "verified": tls.verified, "problem": tls.problem}


def _hop(hop: Hop) -> Json:
    return {
        "url": hop.url,
        "status": hop.status,
        "received_at": _maybe(hop.received_at, time_text),
        "remote_address": hop.remote_address,
    }


def _content(content: Content) -> Json:
    return {
        "sha256": content.sha256,
        "bytes": content.bytes,
        "media_type": content.media_type,
        "charset": content.charset,
        "charset_from": content.charset_from,
        "ending": content.ending.value,
        "wire_bytes": content.wire_bytes,
        "declared_bytes": content.declared_bytes,
    }


def _validators(validators: Validators) -> Json:
    return {"etag": validators.etag, "last_modified": validators.last_modified}


def _asked(asked: Asked, seen: Evidence) -> Json:
    return {
        "key": asked.key,
        "expect": cast(Json, asked.expect.to_wire()),
        "conditional": asked.conditional,
        "tls": asked.tls.value,
        "steps": None,
        "capture_id": asked.capture_id,
        "page": asked.page,
        "identity": asked.identity,
        "artifacts": list(asked.artifacts),
        "headers": list(seen.asked_headers),
        "sent_validators": _validators(seen.sent),
    }


def _artifact(snapshot_id: str, artifact: Artifact) -> Json:
    return {
        "name": artifact.name,
        "media_type": artifact.media_type,
        "bytes": artifact.bytes,
        "sha256": artifact.sha256,
        "redacted": artifact.redacted,
        "href": f"/snapshots/{snapshot_id}/artifacts/{artifact.name}",
    }


def _check(check: Check) -> Json:
    expected = list(check.expected) if isinstance(check.expected, tuple) else check.expected
    return {
        "rule": check.rule,
        "expected": cast(Json, expected),
        "passed": check.passed,
        "found": check.found,
        "reason": check.reason,
    }


def _trouble(trouble: Trouble) -> Json:
    return {
        "reason": trouble.reason.value,
        "phase": trouble.phase.value,
        "detail": trouble.detail,
        "raw": trouble.raw,
        "errno": trouble.errno,
    }
