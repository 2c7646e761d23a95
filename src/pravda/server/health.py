"""How the service itself is doing."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from pravda.core.digest import Json
from pravda.server import queries
from pravda.server.problems import Kind, Problem, Refused
from pravda.server.replies import json_reply
from pravda.server.schema import HEALTHZ, METRICS, READYZ
from pravda.server.service import Service


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the operations of this file."""
    watching = Watching(service)
    router.add_api_route("/healthz", watching.healthz, methods=["GET"], **HEALTHZ)
    router.add_api_route("/readyz", watching.readyz, methods=["GET"], **READYZ)
    router.add_api_route("/metrics", watching.metrics, methods=["GET"], **METRICS)


class Watching:
    """The operations for those who watch over the service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def healthz(self, request: HttpRequest) -> Response:
        """Whether the process answers; looks at nothing else."""
        queries.read(request, ())
        return json_reply({"status": "ok"})

    async def readyz(self, request: HttpRequest) -> Response:
        """Whether captures can be taken: database, blobs, disk space."""
        queries.read(request, ())
        health = await asyncio.to_thread(self._service.probe)
        words = {"database": health.database, "blobs": health.blobs, "disk": health.disk}
        checks: dict[str, Json] = {name: word or "ok" for name, word in words.items()}
        if any(words.values()):
            detail = "; ".join(f"{name}: {word}" for name, word in words.items() if word)
            raise Refused(
                Problem(kind=Kind.NOT_READY, detail=detail, retry_after=30, members={"checks": checks})
            )
        return json_reply({"status": "ok", "checks": checks})

    async def metrics(self, request: HttpRequest) -> Response:
        """Numbers for Prometheus."""
        queries.read(request, ())
        health = await asyncio.to_thread(self._service.probe)
        text = self._service.metrics.text(self._service.desk, health)
        return Response(text, media_type="text/plain; version=0.0.4")
