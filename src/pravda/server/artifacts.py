"""Artifacts, byte for byte, and never as pages of this service."""

import base64
import re
from collections.abc import Iterator

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from pravda.core.evidence import Artifact
from pravda.core.outcome import Snapshot
from pravda.errors import Damaged, NotFound
from pravda.server import queries
from pravda.server.problems import Kind, Problem, Refused
from pravda.server.ranges import Conditions, Instead, Part, part_of
from pravda.server.schema import ARTIFACT, ARTIFACT_HEAD
from pravda.server.service import Service

POLICY = (
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
"""`sandbox` alone would still let images, styles and frames out."""

_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,100}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the operations of this file."""
    artifacts = Artifacts(service)
    path = "/snapshots/{id}/artifacts/{name}"
    router.add_api_route(path, artifacts.get, methods=["GET"], **ARTIFACT)
    router.add_api_route(path, artifacts.get, methods=["HEAD"], **ARTIFACT_HEAD)


class Artifacts:
    """The operations on artifacts."""

    def __init__(self, service: Service) -> None:
        self._evidence = service.evidence

    async def get(self, request: HttpRequest) -> Response:
        """The bytes of one artifact, or a part of them."""
        queries.read(request, ())
        snapshot, name = await self._evidence.get(request.path_params["id"]), request.path_params["name"]
        artifact = await self._artifact(snapshot, name)
        headers = _headers(snapshot, artifact)
        part = part_of(artifact.bytes, headers["ETag"], _conditions(request))
        match part:
            case Instead.NOT_MODIFIED:
                return Response(status_code=304, headers=headers)
            case Instead.PRECONDITION_FAILED:
                raise Refused(Problem(kind=Kind.PRECONDITION_FAILED, detail="The artifact has another ETag."))
            case Instead.NOT_SATISFIABLE:
                detail = f"The artifact has {artifact.bytes:,} bytes."
                told = {"Content-Range": f"bytes */{artifact.bytes}"}  # RFC 9110 §14.4
                raise Refused(Problem(kind=Kind.RANGE_NOT_SATISFIABLE, detail=detail, headers=told))
            case Part():
                return await self._send(request, snapshot, artifact, part, headers)

    async def _send(
        self,
        request: HttpRequest,
        snapshot: Snapshot,
        artifact: Artifact,
        part: Part,
        headers: dict[str, str],
    ) -> Response:
        headers["Content-Length"] = str(part.end - part.start)
        if part.partial:
            headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{artifact.bytes}"
        status = 206 if part.partial else 200
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers)
        pieces = await self._evidence.stream(snapshot, artifact.name)
        return StreamingResponse(_cut(pieces, part), status, headers)

    async def _artifact(self, snapshot: Snapshot, name: str) -> Artifact:
        """The record of an artifact; a confirmed page's body is that of the snapshot that holds it."""
        holder = snapshot
        if snapshot.content_from and name in ("body", "payload"):
            try:
                holder = await self._evidence.get(snapshot.content_from)
            except NotFound as problem:
                raise Damaged(f"snapshot {snapshot.id} points at one that is not kept") from problem
        found = next((one for one in holder.evidence.artifacts if one.name == name), None)
        if found is None:
            names = ", ".join(one.name for one in holder.evidence.artifacts) or "none"
            raise NotFound(f"snapshot {snapshot.id} has no artifact {name[:60]!r}; it has: {names}")
        return found


def _headers(snapshot: Snapshot, artifact: Artifact) -> dict[str, str]:
    media_type = artifact.media_type if _TYPE.fullmatch(artifact.media_type) else "application/octet-stream"
    file = _UNSAFE.sub("_", f"{snapshot.id}-{artifact.name}")
    return {
        "Content-Type": media_type,
        "Content-Disposition": f'attachment; filename="{file}"',
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "ETag": f'"{artifact.sha256}"',
        "Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(artifact.sha256)).decode()}:",  # RFC 9530 §3
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=31536000, immutable",
    }


def _conditions(request: HttpRequest) -> Conditions:
    head = request.headers
    return Conditions(
        if_match=head.get("if-match"),
        if_none_match=head.get("if-none-match"),
        range=head.get("range"),
        if_range=head.get("if-range"),
    )


def _cut(pieces: Iterator[bytes], part: Part) -> Iterator[bytes]:
    """The bytes of a part out of those of the whole."""
    at = 0
    for piece in pieces:
        wanted = piece[max(0, part.start - at) : max(0, part.end - at)]
        if wanted:
            yield wanted
        at += len(piece)
        if at >= part.end:
            return
