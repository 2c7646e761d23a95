"""Hashes that name things: bytes, requests, rows."""

import hashlib
import hmac
import json
from collections.abc import Mapping

from pravda.core.redact import is_secret_header
from pravda.core.request import Request

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def sha256(data: bytes) -> str:
    """SHA-256 of bytes, hex."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: Json | Mapping[str, Json]) -> bytes:
    """The one byte form of a JSON value: sorted keys, no white space, ASCII."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def keyed(secret: bytes, text: str) -> str:
    """A hash of a secret value that cannot be tried out without the catalog's key."""
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def identity(request: Request, secret: bytes) -> str:
    """The identity under which a request's snapshots are found again; the engine is no part of it."""
    headers: list[Json] = [
        [name.lower(), f"keyed:{keyed(secret, value)}" if is_secret_header(name) else value]
        for name, value in sorted(request.headers, key=lambda pair: pair[0].lower())
    ]
    cookies: list[Json] = [[name, keyed(secret, value)] for name, value in sorted(request.cookies)]
    credentials = request.url.credentials
    facts: dict[str, Json] = {
        "url": None if request.key else request.url.page,
        "key": request.key,
        "method": request.method,
        "body": sha256(request.body) if request.body and not request.key else None,
        "headers": headers,
        "cookies": cookies,
        "credentials": keyed(secret, credentials.decode("latin-1")) if credentials else None,
    }
    return sha256(canonical(facts))
