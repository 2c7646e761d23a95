"""Snapshots and answers out of their JSON form; whatever is wrong with it raises NotPravda, nothing else."""

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

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
from pravda.core.mistake import shown
from pravda.core.outcome import Answer, Asked, Failure, Mark, Newest, Result, Snapshot, Verdict
from pravda.core.request import TlsMode
from pravda.core.rules import Check, Rules
from pravda.core.states import Cause, FaultSide, Reason, State

Object = Mapping[str, Json]
_T = TypeVar("_T")


class NotPravda(ValueError):
    """The JSON is not what Pravda writes."""


def read_time(text: str) -> datetime:
    """The moment in an RFC 3339 text; raises NotPravda."""
    try:
        moment = datetime.fromisoformat(text)
        in_utc = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):  # no time; one that the calendar does not hold in UTC
        raise NotPravda(f"{shown(text)} is no RFC 3339 time") from None
    if in_utc is None:
        raise NotPravda(f"{shown(text)} has no time zone")
    return in_utc


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
    except KeyError as problem:
        raise NotPravda(f"this JSON is no {what} of Pravda's: {problem} is missing") from None
    except ValueError as problem:
        raise NotPravda(f"this JSON is no {what} of Pravda's: {problem!s:.200}") from None


class _Fields:
    """Typed access to a JSON object."""

    def __init__(self, value: Json | Object) -> None:
        if not isinstance(value, Mapping):
            raise NotPravda(f"{shown(value)} is no object")
        self._value = value

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def is_list(self, name: str) -> bool:
        return isinstance(self._value[name], list)

    def take(self, name: str, kind: type[_T] | tuple[type[_T], ...]) -> _T:
        value = self._value[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise NotPravda(f"{name} is {shown(value)}")
        return value

    def maybe(self, name: str, kind: type[_T]) -> _T | None:
        return self.take(name, kind) if self.has(name) else None

    def text(self, name: str) -> str:
        return self.take(name, str)

    def number(self, name: str) -> float | None:
        return _finite(self.take(name, (int, float))) if self.has(name) else None

    def time(self, name: str) -> datetime:
        return read_time(self.text(name))

    def fields(self, name: str) -> "_Fields":
        return _Fields(self._value[name])

    def items(self, name: str) -> Iterable["_Fields"]:
        return (_Fields(item) for item in self.take(name, list))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(_text(item) for item in self.take(name, list))

    def scalar(self, name: str) -> str | int | float:
        value = self._value[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise NotPravda(f"{name} is {shown(value)}")
        return value if isinstance(value, str) else _finite(value)


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise NotPravda(f"{shown(value)} is no text")
    return value


def _finite(value: float) -> float:
    if not abs(value) <= sys.float_info.max:  # so is NaN refused, which JSON does not have (RFC 8259 §6)
        raise NotPravda(f"{shown(value)} is no number")
    return value


def _pair(value: Json) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise NotPravda(f"{shown(value)} is no pair")
    return _text(value[0]), _text(value[1])


def _read_snapshot(top: _Fields) -> Snapshot:
    state = State(top.text("state"))
    if top.has("failure") is (state is State.LIVE):
        raise NotPravda(
            f"a snapshot that is {state} {'has a' if top.has('failure') else 'lacks its'} failure"
        )
    verdict = Verdict(
        state=state,
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
    return Check(
        rule=part.text("rule"),
        expected=part.texts("expected") if part.is_list("expected") else part.scalar("expected"),
        passed=part.take("passed", bool),
        found=part.scalar("found") if part.has("found") else None,
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
        headers=tuple(_pair(item) for item in part.take("headers", list)),
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
        Hop(
            url=item.text("url"),
            status=item.take("status", int),
            received_at=item.time("received_at") if item.has("received_at") else None,
            remote_address=item.maybe("remote_address", str),
        )
        for item in part.items("redirects")
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
        expect=Rules.stored(part.take("expect", dict)),
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
    result = Result(top.text("result"))
    if top.has("snapshot") is (result is Result.FAILED) or top.has("attempt") is (result is Result.REUSED):
        raise NotPravda(f"a {result} answer has other parts")
    return Answer(
        result=result,
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
        age_seconds=_finite(part.take("age_seconds", (int, float))),
    )
