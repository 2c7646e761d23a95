"""Reading what is kept."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from pravda.core.classify import subject_of
from pravda.core.difference import difference, difference_to_json
from pravda.core.digest import Json, canonical, sha256
from pravda.core.listing import cursor_of, read_cursor, read_moment
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot
from pravda.core.policy import age_of
from pravda.core.ports import Query
from pravda.core.states import State
from pravda.core.text import Page
from pravda.core.urls import BadURL, parse
from pravda.core.wire import snapshot_to_json
from pravda.errors import NotFound
from pravda.server import queries
from pravda.server.ranges import Conditions, Instead, part_of
from pravda.server.replies import json_reply, next_link
from pravda.server.schema import DIFF, LATEST, LIST, SNAPSHOT
from pravda.server.service import Service

_LIST = ("url", "key", "state", "since", "until", "limit", "cursor")
_MOST, _USUAL = 1000, 100
_DIFF_BYTES = 8 * 1024 * 1024
"""Of each page; longer ones are compared as far as that."""
_MOST_DIFFS = 4  # at one time; each takes a thread for as long as a second


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the operations of this file."""
    reading = Reading(service)
    router.add_api_route("/snapshots", reading.list, methods=["GET"], **LIST)
    router.add_api_route("/snapshots/latest", reading.latest, methods=["GET"], **LATEST)
    router.add_api_route("/snapshots/{id}", reading.get, methods=["GET"], **SNAPSHOT)
    router.add_api_route("/snapshots/{id}/diff/{other}", reading.diff, methods=["GET"], **DIFF)


class Reading:
    """The operations that capture nothing."""

    def __init__(self, service: Service) -> None:
        self._service, self._evidence = service, service.evidence
        self._diffs = asyncio.Semaphore(_MOST_DIFFS)

    async def list(self, request: HttpRequest) -> Response:
        """What is kept, newest first."""
        asked = queries.read(request, _LIST)
        limit = queries.read_count("limit", asked.get("limit", str(_USUAL)), _MOST)
        found = await self._evidence.history(
            self._query(asked, limit + 1)
        )  # one more tells whether there is more
        following = cursor_of(found[limit - 1]) if len(found) > limit else None
        items: list[Json] = [snapshot_to_json(snapshot) for snapshot in found[:limit]]
        link = {"Link": next_link("/snapshots", {**asked, "cursor": following})} if following else {}
        return json_reply({"items": items, "next": following}, headers=link)

    async def latest(self, request: HttpRequest) -> Response:
        """The newest usable snapshot of a page, without capturing."""
        asked = queries.read(request, ("url", "max_age", "key"))
        if "url" not in asked:
            raise BadRequest("url", "is missing")
        began = self._service.now()
        found = await self._evidence.latest(asked["url"], max_age=asked.get("max_age"), key=asked.get("key"))
        if found is None:
            young = " that young" if "max_age" in asked else ""
            raise NotFound(f"no usable snapshot{young} is kept of this page")
        age = age_of(found, began)
        headers = {"Age": str(int(age)), "Content-Location": f"/snapshots/{found.id}"}
        return json_reply({**snapshot_to_json(found), "age_seconds": age}, headers=headers)

    async def get(self, request: HttpRequest) -> Response:
        """Everything that is known of one snapshot."""
        queries.read(request, ())
        told = snapshot_to_json(await self._evidence.get(request.path_params["id"]))
        etag = f'"{sha256(canonical(told))}"'
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        asked = Conditions(if_none_match=request.headers.get("if-none-match"))
        if part_of(1, etag, asked) is Instead.NOT_MODIFIED:
            return Response(status_code=304, headers=headers)
        return json_reply(told, headers=headers)

    async def diff(self, request: HttpRequest) -> Response:
        """What differs between two snapshots."""
        queries.read(request, ())
        before = await self._evidence.get(request.path_params["id"])
        after = await self._evidence.get(request.path_params["other"])
        async with self._diffs:
            page, later = await self._page(before), await self._page(after)
            found = await asyncio.to_thread(difference, before, after, page, later)
        return json_reply(difference_to_json(found))

    def _query(self, asked: dict[str, str], limit: int) -> Query:
        now = self._service.now()
        return Query(
            page=_page(asked["url"]) if "url" in asked else None,
            key=asked.get("key"),
            state=_state(asked["state"]) if "state" in asked else None,
            since=read_moment("since", asked["since"], now) if "since" in asked else None,
            until=read_moment("until", asked["until"], now) if "until" in asked else None,
            limit=limit,
            # a plus that was not escaped comes as a space
            before=read_cursor(asked["cursor"].replace(" ", "+")) if "cursor" in asked else None,
        )

    async def _page(self, snapshot: Snapshot) -> Page | None:
        try:
            body = await self._evidence.read(snapshot, "body", _DIFF_BYTES)
        except NotFound:
            return None
        holder = await self._evidence.get(snapshot.content_from) if snapshot.content_from else snapshot
        return subject_of(holder.evidence, body).page


def _page(url: str) -> str:
    try:
        return parse(url).page
    except BadURL as problem:
        raise BadRequest("url", str(problem)) from None


def _state(word: str) -> State:
    if word not in tuple(State):
        raise BadRequest("state", f"must be one of {', '.join(State)}")
    return State(word)
