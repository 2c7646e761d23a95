"""Every operation as the API's description tells it."""

from collections.abc import Mapping
from typing import Any

from pravda.core.digest import Json
from pravda.core.states import State
from pravda.server.examples import ANSWERS
from pravda.server.problems import MEDIA_TYPE, Kind
from pravda.server.shapes import ID, SCHEMAS, TEXT, Schema, ref, words

Operation = dict[str, Any]
"""Keyword arguments of FastAPI's `add_api_route`, which have no narrower type."""

_ALWAYS = (
    Kind.MALFORMED_REQUEST,
    Kind.UNAUTHORIZED,
    Kind.FORBIDDEN,
    Kind.MISDIRECTED,
    Kind.BAD_REQUEST,
    Kind.RATE_LIMITED,
    Kind.HEADERS_TOO_LARGE,
    Kind.INTERNAL,
)
_READING = (Kind.NOT_FOUND, Kind.ARCHIVE_UNAVAILABLE)
_BINARY: Schema = {"type": "string", "format": "binary"}
_CONDITIONAL = ("If-Match", "If-None-Match", "Range", "If-Range")


def _json(name: str, description: str, headers: Mapping[str, str] | None = None) -> Operation:
    return _reply(description, {"application/json": {"schema": ref(name)}}, headers)


def _reply(
    description: str, content: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Operation:
    told: Operation = {"description": description}
    if content:
        told["content"] = dict(content)
    if headers:
        told["headers"] = {name: {"description": text, "schema": TEXT} for name, text in headers.items()}
    return told


def _problems(*kinds: Kind) -> dict[int | str, Operation]:
    by_status: dict[int, list[Kind]] = {}
    for kind in (*_ALWAYS, *kinds):
        by_status.setdefault(kind.status, []).append(kind)
    return {
        status: _reply(
            "; ".join(f"`{kind.slug}`: {kind.title}" for kind in dict.fromkeys(same)),
            {MEDIA_TYPE: {"schema": ref("Problem")}},
            {"Retry-After": "Seconds until it is worth another try."} if status in (429, 503) else None,
        )
        for status, same in by_status.items()
    }


def _operation(
    name: str,
    summary: str,
    replies: Mapping[int, Operation],
    *kinds: Kind,
    parameters: tuple[Operation, ...] = (),
    body: Operation | None = None,
    is_open: bool = False,
) -> Operation:
    extra: Operation = {"parameters": list(parameters), "security": [] if is_open else [{"key": []}]}
    if body:
        extra["requestBody"] = body
    first, *_ = replies
    return {
        "operation_id": name,
        "summary": summary,
        "status_code": first,
        "response_model": None,
        "responses": {**_problems(*kinds), **replies},
        "openapi_extra": extra,
    }


def _query(name: str, description: str, schema: Schema, *, required: bool = False) -> Operation:
    return {"name": name, "in": "query", "description": description, "required": required, "schema": schema}


def _path(name: str, description: str, schema: Schema) -> Operation:
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}


def _header(name: str, description: str, schema: Schema = TEXT) -> Operation:
    return {"name": name, "in": "header", "description": description, "required": False, "schema": schema}


_URL: Schema = {"type": "string", "format": "pravda-url"}
_ID = _path("id", "The snapshot's id.", ID)
_CAPTURE_ID = _path("id", "The capture's id.", ID)
_AGE = {"Age": "Seconds since the snapshot was captured."}
_CACHE = {**_AGE, "Cache-Status": "How the answer came about (RFC 9211)."}
_ATTEMPT = {"Link": 'The failed attempt, rel="attempt".'}
_APPLIED = {"Preference-Applied": "What of Prefer was heeded."}


def _examples(*names: str) -> dict[str, Json]:
    return {name: {"value": ANSWERS[name]} for name in names}


POST_SNAPSHOTS = _operation(
    "capture",
    "Capture a page now, and answer with the best evidence allowed",
    {
        201: _reply(
            "Fresh: the attempt is usable.",
            {"application/json": {"schema": ref("Answer"), "examples": _examples("fresh")}},
            {"Location": "The snapshot.", **_APPLIED},
        ),
        200: _reply(
            'Stale: an earlier snapshot stands in. Reused: it is young enough. With `on_failure: "return"` also failed.',
            {
                "application/json": {
                    "schema": ref("Answer"),
                    "examples": _examples("stale", "reused", "failed"),
                }
            },
            {**_CACHE, **_ATTEMPT, **_APPLIED},
        ),
        202: _json("Capture", "It goes on; ask at Location.", {"Location": "The capture.", **_APPLIED}),
        502: _reply(
            "Failed: the attempt is not usable and nothing may stand in. The attempt is kept.",
            {MEDIA_TYPE: {"schema": ref("Failed"), "examples": _examples("failed")}},
            _ATTEMPT,
        ),
    },
    Kind.REQUEST_TIMEOUT,
    Kind.IN_PROGRESS,
    Kind.TOO_LARGE,
    Kind.UNSUPPORTED_MEDIA_TYPE,
    Kind.QUEUE_FULL,
    Kind.DAMAGED,
    Kind.ARCHIVE_UNAVAILABLE,
    Kind.INTERRUPTED,
    parameters=(
        _header(
            "Prefer",
            "`respond-async`, `wait=SECONDS` (RFC 7240).",
            {"type": "string", "format": "pravda-prefer"},
        ),
        _header(
            "Idempotency-Key",
            "The same request under the same key is answered by one capture, for a day.",
            {"type": "string", "format": "pravda-idempotency-key", "minLength": 1, "maxLength": 255},
        ),
    ),
    body={"required": True, "content": {"application/json": {"schema": ref("Request")}}},
)
LIST = _operation(
    "list_snapshots",
    "List what is kept, newest first, good and bad attempts alike",
    {200: _json("Snapshots", "A part of the list.", {"Link": 'The next part, rel="next".'})},
    Kind.ARCHIVE_UNAVAILABLE,
    parameters=(
        _query("url", "Only of this page.", _URL),
        _query("key", "Only of captures that were given this key.", TEXT),
        _query("state", "Only in this state.", words(State)),
        _query(
            "since",
            "Captured then or later: a time, a date, or an age as 7d.",
            {"type": "string", "format": "pravda-moment"},
        ),
        _query("until", "Captured then or earlier.", {"type": "string", "format": "pravda-moment"}),
        _query(
            "limit", "The most that are listed (100).", {"type": "integer", "minimum": 1, "maximum": 1000}
        ),
        _query("cursor", "`next` of the part before.", {"type": "string", "format": "pravda-cursor"}),
    ),
)
LATEST = _operation(
    "latest_snapshot",
    "The newest usable snapshot of a page, without capturing",
    {
        200: _json(
            "AgedSnapshot",
            "The snapshot, with its age.",
            {**_AGE, "Content-Location": "The snapshot itself."},
        )
    },
    *_READING,
    parameters=(
        _query("url", "The page.", _URL, required=True),
        _query(
            "max_age",
            "How old it may be: seconds, or as 7d.",
            {"type": "string", "format": "pravda-duration"},
        ),
        _query(
            "key",
            "The key its capture was given.",
            {"type": "string", "format": "pravda-key", "maxLength": 1024},
        ),
    ),
)
SNAPSHOT = _operation(
    "get_snapshot",
    "Everything that is known of one snapshot",
    {200: _json("Snapshot", "The snapshot.", {"ETag": "Its version."}), 304: _reply("It is the same.")},
    *_READING,
    Kind.DAMAGED,
    parameters=(_ID, _header("If-None-Match", "Entity tags that are held.")),
)
_ARTIFACT_HEADERS = {
    "ETag": "The SHA-256 of the bytes, strong.",
    "Repr-Digest": "The same (RFC 9530).",
    "Content-Disposition": "Always an attachment.",
    "Content-Security-Policy": "Captured pages are never rendered as pages of this service.",
}
_ARTIFACT = {
    200: _reply("The bytes.", {"*/*": {"schema": _BINARY}}, _ARTIFACT_HEADERS),
    206: _reply(
        "A part of them.", {"*/*": {"schema": _BINARY}}, {**_ARTIFACT_HEADERS, "Content-Range": "Which."}
    ),
    304: _reply("They are the same."),
}
_ARTIFACT_PARAMETERS = (
    _ID,
    _path(
        "name",
        "As listed in the snapshot: body, payload, request, response, …",
        {"type": "string", "minLength": 1},
    ),
    *(_header(name, "RFC 9110.") for name in _CONDITIONAL),
)
_ARTIFACT_KINDS = (*_READING, Kind.PRECONDITION_FAILED, Kind.RANGE_NOT_SATISFIABLE, Kind.DAMAGED)
ARTIFACT = _operation(
    "get_artifact", "The bytes of one artifact", _ARTIFACT, *_ARTIFACT_KINDS, parameters=_ARTIFACT_PARAMETERS
)
ARTIFACT_HEAD = _operation(
    "head_artifact", "What would be sent", _ARTIFACT, *_ARTIFACT_KINDS, parameters=_ARTIFACT_PARAMETERS
)
DIFF = _operation(
    "diff_snapshots",
    "What differs between two snapshots",
    {200: _json("Difference", "Facts, headers and text.")},
    *_READING,
    Kind.DAMAGED,
    parameters=(_ID, _path("other", "The later snapshot's id.", ID)),
)
CAPTURE = _operation(
    "get_capture",
    "How far a capture has come, and its answer",
    {200: _json("Capture", "The capture.")},
    *_READING,
    parameters=(_CAPTURE_ID,),
)
EVENTS = _operation(
    "follow_capture",
    "The same as server-sent events: `progress`, then `end`",
    {200: _reply("The events; the data of each is a capture.", {"text/event-stream": {"schema": TEXT}})},
    *_READING,
    Kind.QUEUE_FULL,
    parameters=(_CAPTURE_ID,),
)
HEALTHZ = _operation(
    "healthz", "Whether the process answers", {200: _json("Health", "It does.")}, is_open=True
)
READYZ = _operation(
    "readyz",
    "Whether captures can be taken",
    {200: _json("Health", "They can.")},
    Kind.NOT_READY,
    is_open=True,
)
METRICS = _operation(
    "metrics", "Numbers for Prometheus", {200: _reply("The text format.", {"text/plain": {"schema": TEXT}})}
)


def described(made: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's document with our schemas, and without what it adds by itself."""
    made["components"] = {
        "schemas": SCHEMAS,
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "`pravda keys add`"}},
    }
    return made
