"""Reading over HTTP: lists, latest, artifacts in parts, differences, health."""

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.listing import cursor_of, read_cursor, read_moment
from pravda.core.mistake import BadRequest
from pravda.server.ranges import Conditions, Instead, Part, part_of
from tests.factories import NOON, a_snapshot, new_id
from tests.origin import BODY, HT, Origin, R
from tests.serving import Serving

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture(scope="module")
def origin():
    """A site."""
    with Origin() as site:
        site.routes.update(
            {
                "/live": [R(b"200 OK", BODY, HT)],
                "/broken": [R(b"500 Oops", b"oops", HT)],
                "/image": [R(b"200 OK", SVG, b"Content-Type: image/svg+xml")],
                "/empty": [R(b"200 OK", b"", HT)],
                "/big": [R(b"200 OK", bytes(range(256)) * 2000, b"Content-Type: application/octet-stream")],
            }
        )
        yield site


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that only these tests use."""
    with Serving(tmp_path_factory.mktemp("service") / "home") as running:
        yield running


def artifact(service: Serving, url: str, name: str = "body") -> str:
    """The place of an artifact of a new snapshot."""
    told = service.capture(url, on_failure="return").json()
    return f"/snapshots/{told['attempt']['id']}/artifacts/{name}"


# lists


def test_a_list_goes_on_with_its_link(service, origin):
    """A list is newest first and leads on by `next` and Link, without losing or repeating a snapshot."""
    url = origin.url("/live?list")
    made = [service.capture(url).json()["snapshot"]["id"] for _ in range(7)]
    seen, place = [], f"/snapshots?limit=3&url={url}"
    while place:
        reply = service.client.get(place)
        told = reply.json()
        seen += [item["id"] for item in told["items"]]
        link = reply.headers.get("Link", "")
        assert (told["next"] is None) == (link == "")
        place = link.partition(">")[0].removeprefix("<")
        if place:
            assert parse_qs(urlsplit(place).query)["cursor"] == [told["next"]]
            unescaped = service.client.get("/snapshots", params={"cursor": told["next"].replace("+", " ")})
            assert unescaped.status_code == 200
    assert sorted(seen) == sorted(made)
    assert seen == [
        item["id"] for item in service.client.get("/snapshots", params={"url": url}).json()["items"]
    ]


def test_lists_are_narrowed(service, origin):
    """Page, state, key and time narrow a list."""
    url = origin.url("/broken?narrow")
    failed = service.capture(url).json()["attempt"]
    keyed = service.capture(origin.url("/live?narrow"), key="bridge").json()["snapshot"]

    def ids(**query):
        return [item["id"] for item in service.client.get("/snapshots", params=query).json()["items"]]

    assert ids(url=url) == ids(url=url, state="down") == [failed["id"]]
    assert ids(url=url, state="live") == ids(url=url, until="2001-01-01") == []
    assert ids(key="bridge") == ids(key="bridge", since="1h") == [keyed["id"]]


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("/snapshots?limit=0", "limit"),
        ("/snapshots?limit=9999", "limit"),
        ("/snapshots?limit=%D9%A3", "limit"),
        ("/snapshots?state=fine", "state"),
        ("/snapshots?since=yesterday", "since"),
        ("/snapshots?cursor=x", "cursor"),
        ("/snapshots?url=nonsense", "url"),
        ("/snapshots?url=a&url=b", "url"),
        ("/snapshots?ulr=a", "ulr"),
        ("/snapshots?x%0Ay=a", "'x\\ny'"),
        ("/snapshots/latest", "url"),
        ("/snapshots/latest?url=http://a/&max_age=-1", "max_age"),
        ("/healthz?x=1", "x"),
    ],
)
def test_bad_queries_name_the_parameter(service, place, field):
    """A query that cannot be taken, unknown or doubled names among it, is a 422 problem that names the parameter."""
    reply = service.client.get(place)
    assert (reply.status_code, reply.json()["field"]) == (422, field)


def test_cursors_keep_microseconds():
    """A cursor leads to the very place it was made at, microseconds and all."""
    when = NOON.replace(microsecond=123457)
    snapshot, _ = a_snapshot(captured_at=when)
    assert read_cursor(cursor_of(snapshot)) == snapshot.order
    with pytest.raises(BadRequest, match="cursor"):
        read_cursor("2026-01-01_nothing")


def test_moments():
    """A moment is a time, a date or an age."""
    assert read_moment("since", "2026-01-01", NOON).isoformat() == "2026-01-01T00:00:00+00:00"
    assert read_moment("since", "2026-01-01T01:00:00+01:00", NOON).isoformat() == "2026-01-01T00:00:00+00:00"
    assert (NOON - read_moment("since", "7d", NOON)).days == 7
    with pytest.raises(BadRequest, match="since"):
        read_moment("since", "soon", NOON)


# one


def test_latest(service, origin):
    """The newest usable snapshot comes with its age, and 404 where there is none, or none that young."""
    url = origin.url("/live?latest")
    assert service.client.get("/snapshots/latest", params={"url": url}).status_code == 404
    made = service.capture(url).json()["snapshot"]
    reply = service.client.get("/snapshots/latest", params={"url": url, "max_age": "1h"})
    told = reply.json()
    assert {**told, "age_seconds": 0} == {**made, "age_seconds": 0}
    assert int(reply.headers["Age"]) == int(told["age_seconds"]) < 20
    none = service.client.get("/snapshots/latest", params={"url": url, "max_age": "0"})
    assert (none.status_code, none.headers["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "place", ["nope", new_id(), f"{new_id()}/artifacts/body", f"{new_id()}/diff/{new_id()}", "%00", "..%2f"]
)
def test_nothing_found(service, place):
    """What is not there is a 404 problem."""
    reply = service.client.get(f"/snapshots/{place}")
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:pravda:problem:not-found")


def test_methods_and_paths_that_are_not_there(service):
    """A wrong method is told what is allowed, on every route of its path; a path with a slash too many is not there."""
    reply = service.client.delete("/snapshots")
    assert (reply.status_code, reply.headers["Allow"]) == (405, "GET, POST")
    assert service.client.get("/snapshots/").status_code == 404
    assert service.client.post("/openapi.json").headers["Allow"] == "GET, HEAD"


# artifacts


def test_an_artifact_is_never_a_page_of_the_service(service, origin):
    """Captured content is an attachment under a policy that lets nothing in or out."""
    reply = service.client.get(artifact(service, origin.url("/image")))
    assert reply.content == SVG
    assert reply.headers["Content-Type"] == "image/svg+xml"
    assert reply.headers["Content-Disposition"].startswith("attachment; filename=")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")
    assert "allow-" not in policy


def test_an_artifact_tells_its_hash(service, origin):
    """ETag and Repr-Digest are the SHA-256 of the whole, and a caller who has it is told so."""
    place = artifact(service, origin.url("/live"))
    reply = service.client.get(place)
    digest = hashlib.sha256(BODY)
    assert reply.headers["ETag"] == f'"{digest.hexdigest()}"'
    assert reply.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    for held in (reply.headers["ETag"], f'W/{reply.headers["ETag"]}, "x"', "*"):
        same = service.client.get(place, headers={"If-None-Match": held})
        assert (same.status_code, same.content) == (304, b"")
    assert service.client.get(place, headers={"If-Match": '"x"'}).status_code == 412
    head = service.client.head(place)
    assert (head.headers["Content-Length"], head.content) == (str(len(BODY)), b"")


def test_parts_of_an_artifact(service, origin):
    """A range gives its bytes with their place in the whole; one outside is 416 with the length."""
    place, whole = artifact(service, origin.url("/big")), bytes(range(256)) * 2000
    part = service.client.get(place, headers={"Range": "bytes=300000-300099"})
    assert (part.status_code, part.content) == (206, whole[300000:300100])
    assert part.headers["Content-Range"] == f"bytes 300000-300099/{len(whole)}"
    assert service.client.get(place, headers={"Range": "bytes=-7"}).content == whole[-7:]
    outside = service.client.get(place, headers={"Range": "bytes=999999999-"})
    assert (outside.status_code, outside.headers["Content-Range"]) == (416, f"bytes */{len(whole)}")
    tag = part.headers["ETag"]
    assert service.client.get(place, headers={"Range": "bytes=0-0", "If-Range": tag}).status_code == 206
    assert service.client.get(place, headers={"Range": "bytes=0-0", "If-Range": '"old"'}).content == whole


def test_an_empty_artifact(service, origin):
    """An artifact without bytes is whole, and no part of it can be had."""
    place = artifact(service, origin.url("/empty"))
    assert service.client.get(place).content == b""
    assert service.client.get(place, headers={"Range": "bytes=0-"}).status_code == 416


def test_an_unknown_artifact(service, origin):
    """An artifact that a snapshot does not have is 404, and those it has are named."""
    reply = service.client.get(artifact(service, origin.url("/live"), "screenshot"))
    assert reply.status_code == 404
    assert "request, response, body" in reply.json()["detail"]


def test_damaged_bytes_are_not_handed_out(tmp_path, origin):
    """When stored bytes have changed, the answer is a 500 problem and none of them."""
    with Serving(tmp_path / "home") as service:
        place = artifact(service, origin.url("/big"))
        (blob,) = [path for path in (service.home / "blobs").rglob("*") if path.is_file()]
        blob.chmod(0o600)
        blob.write_bytes(blob.read_bytes()[:-9] + b"different")
        reply = service.client.get(place)
        assert (reply.status_code, reply.json()["type"]) == (500, "urn:pravda:problem:damaged")
        assert str(tmp_path) not in reply.text


TAG = '"abc"'


@given(size=st.integers(0, 50), first=st.integers(0, 60), last=st.none() | st.integers(0, 60))
def test_ranges_are_slices(size, first, last):
    """A range `first-last` is that slice of the bytes, or cannot be satisfied, or is ignored where it runs backwards."""
    part = part_of(size, TAG, Conditions(range=f"bytes={first}-{'' if last is None else last}"))
    data = bytes(range(size))
    if last is not None and last < first:
        assert part == Part(start=0, end=size, partial=False)
    elif first >= size:
        assert part is Instead.NOT_SATISFIABLE
    else:
        assert isinstance(part, Part)
        assert data[part.start : part.end] == data[first : None if last is None else last + 1]


@given(st.text(alphabet="bytes=0123456789-, \t;x", max_size=30))
def test_whatever_is_sent_as_range(text):
    """Any text as Range is a part, everything, or nothing that can be had; never trouble."""
    part = part_of(10, TAG, Conditions(range=text))
    assert part is Instead.NOT_SATISFIABLE or (isinstance(part, Part) and 0 <= part.start < part.end <= 10)


@pytest.mark.parametrize("text", ["bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=-", "bytes=a-b"])
def test_ranges_that_are_passed_over(text):
    """Several ranges, other units and nonsense give the whole (RFC 9110 §14.2)."""
    assert part_of(10, TAG, Conditions(range=text)) == Part(start=0, end=10, partial=False)


# health


def test_health_and_readiness(service):
    """Health says that the process answers, readiness that database, blobs and disk do."""
    assert service.client.get("/healthz").json() == {"status": "ok"}
    assert service.client.get("/readyz").json()["checks"] == {"database": "ok", "blobs": "ok", "disk": "ok"}


def test_a_store_that_cannot_be_used_is_not_ready(tmp_path):
    """When the catalog is gone, readiness is a 503 problem that names what is wrong, and health goes on."""
    with Serving(tmp_path / "home") as service:
        for path in service.home.glob("catalog.sqlite3*"):
            path.unlink()
        reply = service.client.get("/readyz")
        assert reply.status_code == 503
        assert reply.json()["checks"]["database"] == "rows cannot be read"
        assert service.client.get("/healthz").status_code == 200


def test_metrics(service, origin):
    """Captures are counted by result, state, cause and engine, requests by route; stale ones with their age."""
    service.capture(origin.url("/broken?metrics"))
    text = service.client.get("/metrics").text
    assert 'pravda_captures_total{cause="http_error",engine="http",result="failed",state="down"}' in text
    assert 'pravda_http_requests_total{method="POST",route="/snapshots",status="502"}' in text
    for name in (
        "pravda_captures_running",
        "pravda_captures_waiting",
        "pravda_blob_bytes",
        "pravda_disk_free_bytes",
    ):
        assert f"\n{name} " in text
    assert "pravda_stale_age_seconds_count" in text
