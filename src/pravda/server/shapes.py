"""The JSON Schemas of what goes in and out."""

from collections.abc import Iterable, Mapping

from pravda.core.digest import Json
from pravda.core.outcome import Result
from pravda.core.request import ENGINES, HTTP_ARTIFACTS, METHODS, OnFailure, RobotsMode, TlsMode
from pravda.core.rule_values import INTEGER_RULES, TEXT_RULES, Rule
from pravda.core.states import Cause, FaultSide, Reason, State
from pravda.server.desk import Status
from pravda.server.examples import ANSWERS, SNAPSHOT

Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ID: Schema = {"type": "string", "format": "uuid"}


def words(values: Iterable[str]) -> Schema:
    """One of a closed set."""
    return {"type": "string", "enum": [str(value) for value in values]}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """A list of them."""
    return {"type": "array", "items": schema}


def record(members: Mapping[str, Schema], *, description: str = "", optional: Iterable[str] = ()) -> Schema:
    """An object; all members are there unless they are named as optional."""
    left_out = set(optional)
    told: Schema = {"description": description} if description else {}
    required: list[Json] = [name for name in members if name not in left_out]
    return {**told, "type": "object", "properties": dict(members), "required": required}


def ref(name: str) -> Schema:
    """A schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


# going in

DURATION: Schema = {
    "description": 'Seconds, or as "90s", "36h", "7d", "P7D".',
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 3162240000},
        {"type": "string", "format": "pravda-duration"},
    ],
}
_BUDGET: Schema = {
    "description": "Seconds above 0, or as text.",
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": 600},
        {"type": "string", "format": "pravda-budget"},
    ],
}
_PAIRS_HELP = "An object, name → value, or a list of [name, value] pairs."


def _pairs(kind: str) -> Schema:
    name: Schema = {"type": "string", "format": f"pravda-{kind}-name"}
    value: Schema = {"type": "string", "format": f"pravda-{kind}-value"}
    pair: Schema = {
        "type": "array",
        "prefixItems": [name, value],
        "items": False,
        "minItems": 2,
        "maxItems": 2,
    }
    return {
        "description": _PAIRS_HELP,
        "anyOf": [
            {"type": "object", "propertyNames": name, "additionalProperties": value, "maxProperties": 150},
            {"type": "array", "items": pair, "maxItems": 150},
        ],
    }


def _one_or_many(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "maxItems": 50}]}


def _rule(rule: Rule) -> Schema:
    if rule in TEXT_RULES:
        return _one_or_many({"type": "string", "format": f"pravda-rule-{rule}"})
    if rule in INTEGER_RULES:
        return _one_or_many({"type": "integer", "minimum": 0, "maximum": 2**53 - 1})
    return _one_or_many({"type": "number", "minimum": 0, "maximum": 1})


EXPECT: Schema = {
    "type": "object",
    "description": "What a usable page must fulfil. Counts count `selector`, else `xpath`, else `json_path`.",
    "properties": {rule.value: _rule(rule) for rule in Rule},
    "additionalProperties": False,
    # a count needs something to count
    "dependentSchemas": {
        name: {"anyOf": [{"required": [counted]} for counted in ("selector", "xpath", "json_path")]}
        for name in ("min_matches", "max_matches")
    },
}


def _request() -> Schema:
    members: dict[str, Schema] = {
        "url": {
            "type": "string",
            "format": "pravda-url",
            "description": "http or https; its host must be public.",
        },
        "method": words(METHODS),
        "headers": _pairs("header"),
        "cookies": _pairs("cookie"),
        "body": {"type": "string", "format": "pravda-text", "description": "Sent as UTF-8; not with GET."},
        "engine": words(ENGINES),
        "expect": ref("Expect"),
        "max_age": {
            **DURATION,
            "description": "A usable snapshot that young is the answer; nothing is fetched.",
        },
        "max_stale_age": {
            **DURATION,
            "description": "How old a snapshot may be that stands in for a failure.",
        },
        "stale_if": many(words(state for state in State if state is not State.LIVE)),
        "key": {
            "type": "string",
            "format": "pravda-key",
            "maxLength": 1024,
            "description": "An identity of your own in place of URL and body.",
        },
        "conditional": FLAG,
        "artifacts": many(words(HTTP_ARTIFACTS)),
        "timeouts": {
            "type": "object",
            "properties": dict.fromkeys(("connect", "first_byte", "idle", "body", "total"), _BUDGET),
            "additionalProperties": False,
        },
        "max_bytes": {"type": "integer", "minimum": 1, "maximum": 2**31},
        "tls": words(TlsMode),
        "on_failure": words(OnFailure),
        "robots": words(RobotsMode),
    }
    return {
        "type": "object",
        "properties": {name: schema if name == "url" else maybe(schema) for name, schema in members.items()},
        "required": ["url"],
        "additionalProperties": False,
        "if": {"required": ["body"], "properties": {"body": {"type": "string", "minLength": 1}}},
        "then": {
            "required": ["method"],
            "properties": {"method": words(method for method in METHODS if method != "GET")},
        },
        "examples": [
            {
                "url": "https://example.org/notices",
                "expect": {"selector": "table#list"},
                "max_stale_age": "7d",
            }
        ],
    }


# coming out

_FAILURE = record(
    {
        "cause": words(Cause),
        "reason": words(Reason),
        "fault": words(FaultSide),
        "phase": TEXT,
        "detail": TEXT,
        "evidence": many(record({"where": TEXT, "matched": TEXT})),
        "retry_after_seconds": maybe(NUMBER),
        "raw": TEXT,
    },
    description="Why the page is not live.",
)
_HTTP = record(
    {
        "status": maybe({"type": "integer"}),
        "version": maybe(TEXT),
        "headers": many({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}),
        "redirects": many(
            record(
                {
                    "url": TEXT,
                    "status": {"type": "integer"},
                    "received_at": maybe(TIME),
                    "remote_address": maybe(TEXT),
                }
            )
        ),
        "remote_address": maybe(TEXT),
        "tls": maybe(
            record({"version": maybe(TEXT), "cipher": maybe(TEXT), "verified": FLAG, "problem": maybe(TEXT)})
        ),
    }
)
_CONTENT = record(
    {
        "sha256": TEXT,
        "bytes": WHOLE,
        "media_type": maybe(TEXT),
        "charset": maybe(TEXT),
        "charset_from": maybe(TEXT),
        "ending": TEXT,
        "wire_bytes": WHOLE,
        "declared_bytes": maybe(WHOLE),
    }
)
_VALIDATORS = record({"etag": maybe(TEXT), "last_modified": maybe(TEXT)})
_MILLISECONDS = ("dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms")
_SNAPSHOT: dict[str, Schema] = {
    "id": ID,
    "url": TEXT,
    "final_url": TEXT,
    "engine": TEXT,
    "method": TEXT,
    "requested_at": TIME,
    "captured_at": TIME,
    "state": words(State),
    "usable": FLAG,
    "failure": maybe(_FAILURE),
    "http": maybe(_HTTP),
    "content": maybe(_CONTENT),
    "validators": _VALIDATORS,
    "not_modified": FLAG,
    "content_from": maybe(ID),
    "content_captured_at": maybe(TIME),
    "request": record(
        {
            "key": maybe(TEXT),
            "expect": {"type": "object"},
            "conditional": FLAG,
            "tls": words(TlsMode),
            "steps": {},
            "capture_id": TEXT,
            "page": TEXT,
            "identity": TEXT,
            "artifacts": many(TEXT),
            "headers": many(TEXT),
            "sent_validators": _VALIDATORS,
        }
    ),
    "client_redirects": many(TEXT),
    "artifacts": many(
        record(
            {"name": TEXT, "media_type": TEXT, "bytes": WHOLE, "sha256": TEXT, "redacted": FLAG, "href": TEXT}
        )
    ),
    "checks": many(record({"rule": TEXT, "expected": {}, "passed": FLAG, "found": {}, "reason": {}})),
    "warnings": many(record({"code": TEXT, "detail": TEXT, "by": TEXT})),
    "error": maybe(
        record(
            {
                "reason": words(Reason),
                "phase": TEXT,
                "detail": TEXT,
                "raw": TEXT,
                "errno": maybe({"type": "integer"}),
            }
        )
    ),
    "timings": record(dict.fromkeys(_MILLISECONDS, maybe(NUMBER))),
}
_NEWEST = record({"id": ID, "captured_at": TIME, "age_seconds": NUMBER})
_ANSWER: dict[str, Schema] = {
    "result": words(Result),
    "stale": FLAG,
    "age_seconds": maybe(NUMBER),
    "max_stale_age_seconds": maybe(NUMBER),
    "snapshot": maybe(ref("Snapshot")),
    "attempt": maybe(ref("Snapshot")),
    "attempts": many(ID),
    "newest_usable": maybe(_NEWEST),
}
_PROBLEM: dict[str, Schema] = {"type": TEXT, "title": TEXT, "status": {"type": "integer"}, "detail": TEXT}
_SCALAR: Schema = {"type": ["string", "integer", "null"]}
_DIFFERENCE = record(
    {
        "before": ID,
        "after": ID,
        "same": FLAG,
        "facts": many(record({"name": TEXT, "before": _SCALAR, "after": _SCALAR})),
        "headers": many(record({"name": TEXT, "before": many(TEXT), "after": many(TEXT), "passing": FLAG})),
        "text": {"type": "object"},
    }
)
_CAPTURE = record(
    {
        "id": ID,
        "status": words(Status),
        "url": TEXT,
        "created_at": TIME,
        "http_status": maybe({"type": "integer"}),
        "answer": maybe(ref("Answer")),
        "problem": maybe(ref("Problem")),
        "events": TEXT,
    },
    description="A capture on its way; `answer` or `problem` come when it has ended.",
)

SCHEMAS: dict[str, Schema] = {
    "Request": _request(),
    "Expect": EXPECT,
    "Snapshot": {**record(_SNAPSHOT, description="One stored attempt, good or bad."), "examples": [SNAPSHOT]},
    "AgedSnapshot": record({**_SNAPSHOT, "age_seconds": NUMBER}),
    "Snapshots": record({"items": many(ref("Snapshot")), "next": maybe(TEXT)}),
    "Answer": {**record(_ANSWER, description="How a capture ended."), "examples": [*ANSWERS.values()]},
    "Failed": record({**_PROBLEM, **_ANSWER}, description="An answer without evidence to use."),
    "Problem": record(
        {**_PROBLEM, "field": TEXT, "newest_usable": maybe(_NEWEST)},
        description="RFC 9457.",
        optional=("field", "newest_usable"),
    ),
    "Capture": _CAPTURE,
    "Difference": _DIFFERENCE,
    "Health": record({"status": TEXT, "checks": {"type": "object"}}, optional=("checks",)),
}
"""By name."""
