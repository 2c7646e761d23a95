"""`POST /snapshots`, and following captures that take longer."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime

from fastapi import APIRouter
from fastapi.sse import EventSourceResponse
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from pravda.core.digest import Json
from pravda.core.mistake import BadRequest, shown
from pravda.core.outcome import Answer
from pravda.core.request import OnFailure, Request
from pravda.core.urls import redact
from pravda.core.wire import answer_from_json, time_text
from pravda.errors import NotFound
from pravda.server import prefer, queries
from pravda.server.bodies import read_object
from pravda.server.book import Claim, Record, document_of
from pravda.server.desk import Outcome, Status, Work
from pravda.server.gate import KEY
from pravda.server.keys import Key, Scope
from pravda.server.problems import Kind, Problem, Refused
from pravda.server.replies import answer_reply, json_reply, problem_reply, status_of
from pravda.server.schema import CAPTURE, EVENTS, POST_SNAPSHOTS
from pravda.server.service import Service

_FIELDS = tuple(item.name for item in fields(Request))
_THREAD_FROM = 64 * 1024  # bytes from which reading JSON would hold up others
_BEAT_SECONDS = 5.0  # between two events while nothing changes
_REPLAYED = {"Idempotent-Replayed": "true"}


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the operations of this file."""
    captures = Captures(service)
    router.add_api_route("/snapshots", captures.post, methods=["POST"], **POST_SNAPSHOTS)
    router.add_api_route("/captures/{id}", captures.get, methods=["GET"], **CAPTURE)
    router.add_api_route("/captures/{id}/events", captures.events, methods=["GET"], **EVENTS)


class Captures:
    """The operations on captures."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def post(self, request: HttpRequest) -> Response:
        """Capture a page now, and answer with the best evidence allowed."""
        queries.read(request, ())
        asked = await self._read(request)
        wanted = self._request(dict(asked))
        preference = prefer.read(request.headers.getlist("prefer"))
        claim = self._service.book.claim(request.headers.get("idempotency-key"), asked)
        work = Work(
            id=self._service.parts.new_id(),
            owner=_owner(request),
            request=wanted,
            created_at=self._service.now(),
        )
        applied = {"Preference-Applied": preference.applied} if preference.applied else {}
        self._service.desk.refuse_full()
        if claim or preference.wait is not None:
            earlier = await asyncio.to_thread(self._service.book.begin, work, claim, redact(wanted.url.href))
            if earlier is not None:
                return await self._again(earlier, claim, preference.wait, applied)
            self._service.recorded.add(work.id)
        await self._begin(work)
        outcome = await work.wait(preference.wait)
        return self._reply(work, outcome, applied)

    async def get(self, request: HttpRequest) -> Response:
        """How far a capture has come, and its answer."""
        queries.read(request, ())
        found = await self._find(request)
        return json_reply(self._told(found))

    async def events(self, request: HttpRequest) -> Response:
        """The same as a stream of events, until the capture has ended."""
        queries.read(request, ())
        found = await self._find(request)
        if self._service.streams >= self._service.options.most_streams:
            raise Refused(
                Problem(kind=Kind.QUEUE_FULL, detail="Too many event streams are open.", retry_after=5)
            )
        return EventSourceResponse(self._stream(found), headers={"Cache-Control": "no-store"})

    async def _read(self, request: HttpRequest) -> dict[str, object]:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            # also keeps forms of foreign pages out, which browsers send without asking
            raise Refused(Problem(kind=Kind.UNSUPPORTED_MEDIA_TYPE, detail="Send JSON as application/json."))
        options = self._service.options
        try:
            data = await asyncio.wait_for(request.body(), options.body_seconds)
        except TimeoutError:
            detail = f"The body did not arrive within {options.body_seconds:g} seconds."
            raise Refused(
                Problem(kind=Kind.REQUEST_TIMEOUT, detail=detail, headers={"Connection": "close"})
            ) from None
        if len(data) < _THREAD_FROM:
            return read_object(data, options.most_depth)
        return await asyncio.to_thread(read_object, data, options.most_depth)

    def _request(self, asked: dict[str, object]) -> Request:
        """A checked request within this service's bounds; raises BadRequest."""
        for name in asked:
            if name not in _FIELDS:
                field = name if name.isidentifier() and len(name) < 60 else shown(name)
                raise BadRequest(field, f"is no field of a request; there are {', '.join(_FIELDS)}")
        url = asked.pop("url", None)
        if not isinstance(url, str):
            raise BadRequest("url", "is missing" if url is None else f"must be text, not {shown(url)}")
        request, options = self._service.evidence.request(url, **asked), self._service.options
        if request.timeouts.total > options.longest_capture:
            raise BadRequest("timeouts.total", f"may be {options.longest_capture:g} seconds at most here")
        if request.max_bytes > options.most_page_bytes:
            raise BadRequest("max_bytes", f"may be {options.most_page_bytes:,} at most here")
        return request

    async def _begin(self, work: Work) -> None:
        try:
            self._service.desk.begin(work)
        except Refused:
            if work.id in self._service.recorded:
                self._service.recorded.discard(work.id)
                await asyncio.to_thread(self._service.book.drop, work)
            raise

    async def _again(
        self, earlier: Record, claim: Claim | None, wait: float | None, applied: Mapping[str, str]
    ) -> Response:
        """The answer to a request that came before under the same Idempotency-Key."""
        if claim is None or earlier.fingerprint != claim.fingerprint:
            raise BadRequest("Idempotency-Key", "was used for another request; take a new one")
        work = self._service.desk.find(earlier.id)
        if work is not None and wait is not None:
            return self._reply(work, await work.wait(wait), {**applied, **_REPLAYED})
        if earlier.document is None or earlier.http_status is None:
            detail = f"That request is still running as /captures/{earlier.id}."
            raise Refused(Problem(kind=Kind.IN_PROGRESS, detail=detail, retry_after=1))
        return answer_reply(answer_from_json(earlier.document), earlier.http_status, {**applied, **_REPLAYED})

    def _reply(self, work: Work, outcome: Outcome | None, more: Mapping[str, str]) -> Response:
        match outcome:
            case None:
                place = {"Location": f"/captures/{work.id}", "Retry-After": "1"}
                return json_reply(self._told(work), 202, {**place, **more})
            case Problem():
                return problem_reply(outcome)
            case _:
                return answer_reply(outcome, status_of(outcome, work.request.on_failure), more)

    async def _find(self, request: HttpRequest) -> Work | Record:
        """A capture of this caller's, or any for an administrator; raises NotFound."""
        wanted = request.path_params["id"]
        found: Work | Record | None = self._service.desk.find(wanted)
        if found is None:  # the book is written before the desk lets go, so that no capture is in neither
            found = await asyncio.to_thread(self._service.book.find, wanted)
        key: Key | None = request.scope[KEY]
        if found is None or not (found.owner == _owner(request) or (key and Scope.ADMIN in key.scopes)):
            raise NotFound(f"there is no capture {wanted[:60]!r}")
        return found

    def _told(self, found: Work | Record) -> dict[str, Json]:
        if isinstance(found, Work):
            # an answer is told only when it is written down
            outcome = None if found.status in (Status.QUEUED, Status.RUNNING) else found.outcome
            document = None if outcome is None else document_of(outcome)
            http_status = None if outcome is None else _http_status(outcome, found.request.on_failure)
            created, url = found.created_at, redact(found.request.url.href)
        else:
            document, http_status, url = found.document, found.http_status, found.url
            created = datetime.fromtimestamp(found.created_at, UTC)
        has_answer = document is not None and "result" in document
        return {
            "id": found.id,
            "status": found.status.value,
            "url": url,
            "created_at": time_text(created),
            "http_status": http_status,
            "answer": document if has_answer else None,
            "problem": None if has_answer else document,
            "events": f"/captures/{found.id}/events",
        }

    async def _stream(self, found: Work | Record) -> AsyncIterator[bytes]:
        self._service.streams += 1
        try:
            if isinstance(found, Work):
                while found.status in (Status.QUEUED, Status.RUNNING):
                    changed = found.changed
                    yield _event("progress", self._told(found))
                    try:
                        await asyncio.wait_for(changed.wait(), _BEAT_SECONDS)
                    except TimeoutError:
                        continue
            yield _event("end", self._told(found))
        finally:
            self._service.streams -= 1


def _http_status(outcome: Outcome, on_failure: OnFailure) -> int:
    return status_of(outcome, on_failure) if isinstance(outcome, Answer) else outcome.kind.status


def _owner(request: HttpRequest) -> str:
    key: Key | None = request.scope[KEY]
    return key.id if key else ""


def _event(name: str, data: Mapping[str, Json]) -> bytes:
    """One server-sent event (HTML standard §9.2.6); JSON in ASCII has no line breaks."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")
