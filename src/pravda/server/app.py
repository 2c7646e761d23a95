"""The application: routes, what becomes of exceptions, and the gate before it all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from pravda.server import artifacts, captures, health, snapshots
from pravda.server.gate import Gate
from pravda.server.problems import Kind, Problem
from pravda.server.replies import json_reply, problem_reply
from pravda.server.schema import described
from pravda.server.service import Service

_TITLE = "Pravda"
_ABOUT = "Durable evidence of web pages: capture now, fall back to the newest evidence that is good enough."


def make_app(service: Service, version: str) -> FastAPI:
    """The application of one service, which it closes when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.book.interrupt(service.now().timestamp())
        try:
            yield
        finally:
            await service.close()

    app = FastAPI(
        title=_TITLE,
        version=version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for part in (health, snapshots, artifacts, captures):
        part.add_routes(app.router, service)
    document = described(get_openapi(title=_TITLE, version=version, description=_ABOUT, routes=app.routes))

    async def openapi(_: HttpRequest) -> Response:
        return json_reply(document)

    app.router.routes.append(Route("/openapi.json", openapi, methods=["GET"]))
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_middleware(Gate, service=service)  # it answers all other exceptions
    return app


async def _unrouted(request: HttpRequest, raised: Exception) -> Response:
    """A path or method that nothing here has."""
    allowed = {
        method
        for route in request.app.routes
        if isinstance(route, Route | APIRoute) and route.path_regex.match(request.url.path)
        for method in route.methods or ()
    }
    if allowed and isinstance(raised, HTTPException) and raised.status_code == 405:
        detail = f"Allowed are {', '.join(sorted(allowed))}."
        allow = {"Allow": ", ".join(sorted(allowed))}  # RFC 9110 §15.5.6
        return problem_reply(Problem(kind=Kind.METHOD_NOT_ALLOWED, detail=detail, headers=allow))
    return problem_reply(Problem(kind=Kind.NOT_FOUND, detail="There is nothing under this path."))
