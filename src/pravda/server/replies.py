"""Answers and problems as HTTP responses."""

import json
from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response

from pravda.core.digest import Json
from pravda.core.outcome import Answer, Result
from pravda.core.request import OnFailure
from pravda.core.wire import answer_to_json
from pravda.server.problems import MEDIA_TYPE, Problem

_encode = json.JSONEncoder(allow_nan=False).encode


def json_reply(
    body: Mapping[str, Json],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    """A response with a JSON body, in ASCII, so that half characters from a page cannot break it."""
    return Response(
        _encode(body).encode("ascii"),
        status,
        {"Cache-Control": "no-store", **(headers or {})},
        media_type,
    )


def problem_reply(problem: Problem) -> Response:
    """A problem as RFC 9457 wants it."""
    return json_reply(problem.to_json(), problem.kind.status, problem.all_headers(), MEDIA_TYPE)


def status_of(answer: Answer, on_failure: OnFailure) -> int:
    """The HTTP status of an answer."""
    match answer.result:
        case Result.FRESH:
            return 201
        case Result.FAILED if on_failure is OnFailure.RAISE:
            return 502
        case _:
            return 200


def answer_reply(answer: Answer, status: int, more: Mapping[str, str]) -> Response:
    """An answer with the headers that belong to it."""
    media_type = MEDIA_TYPE if status == 502 else "application/json"
    return json_reply(answer_to_json(answer), status, {**_headers(answer), **more}, media_type)


def _headers(answer: Answer) -> dict[str, str]:
    found: dict[str, str] = {}
    if answer.result is Result.FRESH and answer.snapshot:
        found["Location"] = f"/snapshots/{answer.snapshot.id}"
    if answer.result in (Result.STALE, Result.REUSED):
        found["Age"] = str(int(answer.age_seconds or 0))  # RFC 9111 §5.1
        found["Cache-Status"] = cache_status(answer)
    if answer.result in (Result.STALE, Result.FAILED) and answer.attempt:
        found["Link"] = f'</snapshots/{answer.attempt.id}>; rel="attempt"'
    return found


def cache_status(answer: Answer) -> str:
    """How the answer came about, in the words of RFC 9211."""
    attempt = answer.attempt
    if attempt is None:
        return "pravda; hit"
    response, failure = attempt.evidence.response, attempt.verdict.failure
    # §2.2, §2.3: a status that no integer of three digits is has no place there
    status = f"; fwd-status={response.status}" if response and 100 <= response.status <= 999 else ""
    return f"pravda; fwd=stale{status}" + (f"; detail={failure.reason}" if failure else "")


def next_link(path: str, query: Mapping[str, str]) -> str:
    """The Link to the next page of a list (RFC 8288)."""
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())
    return f'<{path}?{text}>; rel="next"'
