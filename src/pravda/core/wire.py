"""The one JSON form of snapshots and answers, both ways."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar, cast

from pravda.core.digest import Json
from pravda.core.evidence import (
    Artifact,
    Content,
    Ending,
    Evidence,
    Hop,
    Note,
    Phase,
    Response,
    Timings,
    Tls,
    Trouble,
    Validators,
)
from pravda.core.outcome import Answer, Asked, Failure, Mark, Newest, Result, Snapshot, Verdict
from pravda.core.request import TlsMode
from pravda.core.rules import Check, Rules
from pravda.core.states import Cause, FaultSide, Reason, State

Object = Mapping[str, Json]
_T = TypeVar("_T")

NO_USABLE_SNAPSHOT = "urn:pravda:problem:no-usable-snapshot"


class NotPravda(ValueError):
    """The JSON is not what Pravda writes."""


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str) -> datetime:
    """The moment in an RFC 3339 text; raises NotPravda."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotPravda(f"{text!r:.60} is no RFC 3339 time") from None
    if moment.tzinfo is None:
        raise NotPravda(f"{text!r:.60} has no time zone")
    return moment.astimezone(UTC)


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
    redirects: list[Json] = [{"url": hop.url, "status": hop.status} for hop in seen.redirects]
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


def snapshot_from_json(value: Object) -> Snapshot:
    """The snapshot in its JSON form; raises NotPravda."""
    return _reading("snapshot", lambda: _read_snapshot(_Fields(value)))


def answer_from_json(value: Object) -> Answer:
    """The answer in its JSON form; raises NotPravda."""
    return _reading("answer", lambda: _read_answer(_Fields(value)))


def _reading(what: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except NotPravda:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise NotPravda(f"this JSON is no {what} of Pravda's: {problem!r:.200}") from problem


class _Fields:
    """Typed access to a JSON object."""

    def __init__(self, value: Json | Object) -> None:
        if not isinstance(value, Mapping):
            raise NotPravda(f"{value!r:.60} is no object")
        self._value = value

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def take(self, name: str, kind: type[_T] | tuple[type[_T], ...]) -> _T:
        value = self._value[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise NotPravda(f"{name} is {value!r:.60}")
        return value

    def maybe(self, name: str, kind: type[_T]) -> _T | None:
        return self.take(name, kind) if self.has(name) else None

    def text(self, name: str) -> str:
        return self.take(name, str)

    def number(self, name: str) -> float | None:
        return self.take(name, (int, float)) if self.has(name) else None

    def time(self, name: str) -> datetime:
        return read_time(self.text(name))

    def fields(self, name: str) -> "_Fields":
        return _Fields(self._value[name])

    def items(self, name: str) -> Iterable["_Fields"]:
        return (_Fields(item) for item in self.take(name, list))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(_text(item) for item in self.take(name, list))

    def raw(self, name: str) -> Json:
        return self._value[name]


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise NotPravda(f"{value!r:.60} is no text")
    return value


def _read_snapshot(top: _Fields) -> Snapshot:
    verdict = Verdict(
        state=State(top.text("state")),
        failure=_read_failure(top.fields("failure")) if top.has("failure") else None,
        checks=tuple(_read_check(item) for item in top.items("checks")),
        warnings=_read_notes(top, "law"),
    )
    return Snapshot(
        id=top.text("id"),
        evidence=_read_evidence(top),
        verdict=verdict,
        asked=_read_asked(top.fields("request")),
        validators=_read_validators(top.fields("validators")),
        not_modified=top.take("not_modified", bool),
        content_from=top.maybe("content_from", str),
        content_captured_at=top.time("content_captured_at") if top.has("content_captured_at") else None,
    )


def _read_evidence(top: _Fields) -> Evidence:
    http = top.fields("http") if top.has("http") else None
    timings = top.fields("timings")
    return Evidence(
        url=top.text("url"),
        final_url=top.text("final_url"),
        engine=top.text("engine"),
        method=top.text("method"),
        requested_at=top.time("requested_at"),
        captured_at=top.time("captured_at"),
        response=_read_response(http) if http and http.has("status") else None,
        content=_read_content(top.fields("content")) if top.has("content") else None,
        redirects=_read_hops(http) if http else (),
        client_redirects=top.texts("client_redirects"),
        trouble=_read_trouble(top.fields("error")) if top.has("error") else None,
        sent=_read_validators(top.fields("request").fields("sent_validators")),
        asked_headers=top.fields("request").texts("headers"),
        notes=_read_notes(top, "engine"),
        artifacts=tuple(_read_artifact(item) for item in top.items("artifacts")),
        timings=Timings(
            **{
                name: timings.number(name)
                for name in ("dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms")
            }
        ),
    )


def _read_failure(part: _Fields) -> Failure:
    return Failure(
        cause=Cause(part.text("cause")),
        reason=Reason(part.text("reason")),
        fault=FaultSide(part.text("fault")),
        phase=Phase(part.text("phase")),
        detail=part.text("detail"),
        evidence=tuple(
            Mark(where=item.text("where"), matched=item.text("matched")) for item in part.items("evidence")
        ),
        retry_after_seconds=part.number("retry_after_seconds"),
        raw=part.text("raw"),
    )


def _read_check(part: _Fields) -> Check:
    expected, found = part.raw("expected"), part.raw("found")
    if isinstance(expected, list):
        expected = cast(Json, tuple(expected))
    return Check(
        rule=part.text("rule"),
        expected=cast("str | int | float | tuple[str, ...]", expected),
        passed=part.take("passed", bool),
        found=cast("str | int | float | None", found),
        reason=part.text("reason"),
    )


def _read_notes(top: _Fields, by: str) -> tuple[Note, ...]:
    return tuple(
        Note(code=item.text("code"), detail=item.text("detail"))
        for item in top.items("warnings")
        if item.text("by") == by
    )


def _read_response(part: _Fields) -> Response:
    return Response(
        status=part.take("status", int),
        version=part.text("version"),
        headers=tuple((_text(name), _text(value)) for name, value in part.take("headers", list)),
        remote_address=part.maybe("remote_address", str),
        tls=_read_tls(part.fields("tls")) if part.has("tls") else None,
    )


def _read_tls(part: _Fields) -> Tls:
    return Tls(
        version=part.maybe("version", str),
        cipher=part.maybe("cipher", str),
        verified=part.take("verified", bool),
        problem=part.maybe("problem", str),
    )


def _read_hops(part: _Fields) -> tuple[Hop, ...]:
    return tuple(
        Hop(url=item.text("url"), status=item.take("status", int)) for item in part.items("redirects")
    )


def _read_content(part: _Fields) -> Content:
    return Content(
        sha256=part.text("sha256"),
        bytes=part.take("bytes", int),
        media_type=part.maybe("media_type", str),
        charset=part.maybe("charset", str),
        charset_from=part.maybe("charset_from", str),
        ending=Ending(part.text("ending")),
        wire_bytes=part.take("wire_bytes", int),
        declared_bytes=part.maybe("declared_bytes", int),
    )


def _read_validators(part: _Fields) -> Validators:
    return Validators(etag=part.maybe("etag", str), last_modified=part.maybe("last_modified", str))


def _read_asked(part: _Fields) -> Asked:
    return Asked(
        page=part.text("page"),
        identity=part.text("identity"),
        capture_id=part.text("capture_id"),
        key=part.maybe("key", str),
        expect=Rules.parse(cast("Mapping[str, object]", part.take("expect", dict))),
        conditional=part.take("conditional", bool),
        tls=TlsMode(part.text("tls")),
        artifacts=part.texts("artifacts"),
    )


def _read_artifact(part: _Fields) -> Artifact:
    return Artifact(
        name=part.text("name"),
        media_type=part.text("media_type"),
        bytes=part.take("bytes", int),
        sha256=part.text("sha256"),
        redacted=part.take("redacted", bool),
    )


def _read_trouble(part: _Fields) -> Trouble:
    return Trouble(
        reason=Reason(part.text("reason")),
        phase=Phase(part.text("phase")),
        detail=part.text("detail"),
        raw=part.text("raw"),
        errno=part.maybe("errno", int),
    )


def _read_answer(top: _Fields) -> Answer:
    return Answer(
        result=Result(top.text("result")),
        snapshot=_read_snapshot(top.fields("snapshot")) if top.has("snapshot") else None,
        attempt=_read_snapshot(top.fields("attempt")) if top.has("attempt") else None,
        attempts=top.texts("attempts"),
        age_seconds=top.number("age_seconds"),
        max_stale_age_seconds=top.number("max_stale_age_seconds"),
        newest_usable=_read_newest(top.fields("newest_usable")) if top.has("newest_usable") else None,
    )


def _read_newest(part: _Fields) -> Newest:
    return Newest(
        id=part.text("id"),
        captured_at=part.time("captured_at"),
        age_seconds=part.take("age_seconds", (int, float)),
    )
