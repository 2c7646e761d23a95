"""What goes out with a request: method, headers and cookies, and what of them survives a redirect."""

import base64

import pycurl

from pravda.core import redact
from pravda.core.evidence import Validators
from pravda.core.mistake import BadRequest
from pravda.core.ports import Held
from pravda.core.request import Pairs, Request
from pravda.core.urls import URL

_BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
_UNCONDITIONAL = Validators()

_HEADER_BYTES = 900_000  # what libcurl sends at most, its own headers left out


def refuse_oversized(request: Request) -> None:
    """Raise BadRequest for more headers than one request carries."""
    if sum(len(name) + len(value) + 4 for name, value in request.headers) > _HEADER_BYTES:
        raise BadRequest("headers", f"are more than {_HEADER_BYTES:,} bytes together")


def set_cookies(handle: pycurl.Curl, request: Request) -> None:
    """Give the handle an empty jar with the caller's cookies, which are for the asked host only."""
    handle.setopt(pycurl.COOKIEFILE, "")
    handle.setopt(pycurl.COOKIELIST, "ALL")
    url = request.url
    secure = "TRUE" if url.scheme == "https" else "FALSE"
    for name, value in request.cookies:
        fields = (url.hostname, "FALSE", "/", secure, "0", name, value)
        handle.setopt(pycurl.COOKIELIST, "\t".join(fields))


def set_method(handle: pycurl.Curl, method: str, body: bytes | None) -> None:
    """Make the handle send this method and body."""
    if method == "GET":
        handle.setopt(pycurl.HTTPGET, 1)
        handle.unsetopt(pycurl.CUSTOMREQUEST)
        return
    if body is not None or method in ("POST", "PUT", "PATCH"):
        handle.setopt(pycurl.POST, 1)
        handle.setopt(pycurl.POSTFIELDS, body or b"")
    handle.setopt(pycurl.CUSTOMREQUEST, method)


def header_lines(
    request: Request, url: URL, *, method: str, body: bytes | None, user_agent: str, sent: Validators
) -> list[bytes]:
    """The header lines that libcurl adds to its own, for one exchange of a request."""
    own_origin = url.same_origin(request.url)
    given = request.headers
    if not own_origin:  # Fetch, HTTP-redirect fetch: credentials do not cross origins
        given = tuple(pair for pair in given if not redact.is_secret_header(pair[0]))
    if body is None and request.body is not None:
        given = tuple(pair for pair in given if pair[0].lower() not in _BODY_HEADERS)
    names = {name.lower() for name, _ in given}
    defaults = (
        ("User-Agent", user_agent),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
    )
    ours = [pair for pair in defaults if pair[0].lower() not in names]
    credentials = url.credentials or (request.url.credentials if own_origin else None)
    if credentials is not None and "authorization" not in names:
        ours.append(("Authorization", f"Basic {base64.b64encode(credentials).decode()}"))  # RFC 7617 §2
    lines = [_line(*pair) for pair in (*ours, *given, *_conditions(sent))]
    if method != "POST" and "content-type" not in names:
        lines.append(
            b"Content-Type:"
        )  # only a POST without a type is a form, as libcurl takes every body to be
    return [*lines, b"Expect:"]


def validators_for(held: Held | None, url: URL, method: str) -> Validators:
    """The validators to send; RFC 9110 §13.1: only to the URL they came from, and only as they came."""
    if held is None or held.url != url.page or method != "GET":
        return _UNCONDITIONAL
    return held.validators


def after_redirect(status: int, method: str, body: bytes | None) -> tuple[str, bytes | None]:
    """RFC 9110 §15.4.2-4: 303 turns anything to GET, 301 and 302 turn POST to GET, 307 and 308 change nothing."""
    if status == 303 or (status in (301, 302) and method == "POST"):
        return "GET", None
    return method, body


def _conditions(sent: Validators) -> Pairs:
    pairs = (("If-None-Match", sent.etag), ("If-Modified-Since", sent.last_modified))
    return tuple((name, value) for name, value in pairs if value)


def _line(name: str, value: str) -> bytes:
    # libcurl's way to send a header without a value is "Name;": "Name:" would take a header of its own away
    return (f"{name}: {value}" if value else f"{name};").encode("latin-1")
