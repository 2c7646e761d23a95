"""The service's main operation, by clients that nobody here wrote: httpx and curl."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from pravda.capture import Pravda
from pravda.cli.main import cli
from pravda.core.outcome import Snapshot
from pravda.core.ports import Contents
from pravda.core.wire import answer_from_json
from pravda.errors import ArchiveUnavailable
from pravda.server.options import Options
from pravda.testing import FrozenClock, MemoryArchive, ScriptedEngine, page
from tests.factories import new_id
from tests.origin import BODY, HT, Origin, R, Script, Sleep, header_of
from tests.serving import Serving, curl

LIVE = [R(b"200 OK", BODY, HT)]
BROKEN = [R(b"503 Service Unavailable", b"<h1>oops</h1>", HT, b"Retry-After: 20")]


@pytest.fixture
def origin():
    """A site that works once and then breaks at /page, and has other paths."""
    with Origin() as site:
        site.routes.update(
            {
                "/page": Script(LIVE, BROKEN),
                "/live": LIVE,
                "/broken": BROKEN,
                "/gone": [R(b"410 Gone", b"gone for good", HT)],
                "/slow": [Sleep(1.0), *LIVE],
                "/never": [Sleep(15.0), *LIVE],
            }
        )
        yield site


@pytest.fixture
def service(tmp_path):
    """A service over a new archive."""
    with Serving(tmp_path / "home") as running:
        yield running


def of_cli(home: Path, *arguments: str) -> object:
    """What a command prints with --json."""
    return json.loads(CliRunner().invoke(cli, [*arguments, "--json", "--home", str(home)]).stdout)


def test_fresh(service, origin):
    """A usable page is 201, at a Location where the snapshot can be read again."""
    reply = service.capture(origin.url("/live"))
    told = reply.json()
    assert (reply.status_code, told["result"], told["stale"]) == (201, "fresh", False)
    assert reply.headers["Location"] == f"/snapshots/{told['snapshot']['id']}"
    assert told["attempt"] == told["snapshot"] == service.client.get(reply.headers["Location"]).json()
    assert "Age" not in reply.headers
    body = next(one for one in told["snapshot"]["artifacts"] if one["name"] == "body")
    assert service.client.get(body["href"]).content == BODY


def test_stale(service, origin):
    """When the refresh fails, 200 carries the earlier snapshot with its own id, time and age, and the failed attempt."""
    first = service.capture(origin.url("/page")).json()["snapshot"]
    reply = service.capture(origin.url("/page"), max_stale_age="7d")
    told = reply.json()
    assert (reply.status_code, told["result"], told["stale"]) == (200, "stale", True)
    assert told["snapshot"] == first
    assert told["max_stale_age_seconds"] == 604800
    assert 0 <= told["age_seconds"] < 20
    assert reply.headers["Age"] == str(int(told["age_seconds"]))
    assert reply.headers["Cache-Status"] == "pravda; fwd=stale; fwd-status=503; detail=service_unavailable"
    assert "Warning" not in reply.headers
    assert told["attempt"]["state"] == "down"
    assert told["attempt"]["id"] != first["id"]
    assert reply.headers["Link"] == f'</snapshots/{told["attempt"]["id"]}>; rel="attempt"'


@pytest.mark.parametrize(
    "allowed",
    [{}, {"max_stale_age": 0}, {"max_stale_age": 0.0001}, {"max_stale_age": "7d", "stale_if": ["gone"]}],
)
def test_no_fallback_unless_it_is_allowed(service, origin, allowed):
    """Without `max_stale_age`, with 0, when it is passed, or for another state, 502 names the newest usable one."""
    first = service.capture(origin.url("/page")).json()["snapshot"]
    time.sleep(0.01)
    reply = service.capture(origin.url("/page"), **allowed)
    told = reply.json()
    assert reply.status_code == 502
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert (told["type"], told["status"]) == ("urn:pravda:problem:no-usable-snapshot", 502)
    assert told["snapshot"] is None
    assert told["newest_usable"]["id"] == first["id"]


def test_the_failed_attempt_can_be_inspected(service, origin):
    """With no usable history 502 links to the attempt, whose facts and body are kept."""
    reply = service.capture(origin.url("/gone"), max_stale_age="7d")
    assert reply.status_code == 502
    assert reply.json()["newest_usable"] is None
    place = reply.headers["Link"].partition(">")[0].removeprefix("<")
    attempt = service.client.get(place).json()
    assert (attempt["state"], attempt["failure"]["reason"]) == ("gone", "gone")
    assert service.client.get(f"{place}/artifacts/body").content == b"gone for good"


def test_failure_as_a_value(service, origin):
    """With `on_failure: "return"` the failed answer comes as 200, for callers behind proxies that replace a 502."""
    reply = service.capture(origin.url("/broken"), on_failure="return")
    assert (reply.status_code, reply.json()["result"]) == (200, "failed")
    assert reply.headers["Content-Type"] == "application/json"


def test_reused(service, origin):
    """With `max_age` a young snapshot is the answer, as a cache hit, and nothing is fetched."""
    first = service.capture(origin.url("/live")).json()["snapshot"]
    reply = service.capture(origin.url("/live"), max_age="1h")
    assert (reply.status_code, reply.json()["result"], reply.json()["attempt"]) == (200, "reused", None)
    assert reply.json()["snapshot"]["id"] == first["id"]
    assert reply.headers["Cache-Status"] == "pravda; hit"
    assert len(origin.log) == 1


def test_a_weak_capture_never_satisfies_a_strict_caller(service, origin):
    """A page kept under no rules does not stand in for a caller whose rules it fails, and hides no older good one."""
    good, weak = (
        b"<title>x</title><table id=list><tr><td>good",
        b"<title>x</title><p>nothing of interest today",
    )
    origin.routes["/list"] = Script([R(b"200 OK", good, HT)], [R(b"200 OK", weak, HT)], BROKEN)
    first = service.capture(origin.url("/list")).json()["snapshot"]
    assert service.capture(origin.url("/list")).status_code == 201
    told = service.capture(origin.url("/list"), max_stale_age="1h", expect={"selector": "table#list"}).json()
    assert (told["result"], told["snapshot"]["id"]) == ("stale", first["id"])


def test_a_confirmation_is_a_live_snapshot_that_points_at_its_bytes(service, origin):
    """A 304 is live, has its own time, names the snapshot that holds the bytes, and hands them out."""
    origin.routes["/tagged"] = [
        lambda request, method: (
            R(b"304 Not Modified", b"", b'ETag: "v"', cl=False)
            if header_of(request, b"If-None-Match")
            else R(b"200 OK", BODY, HT, b'ETag: "v"')
        )
    ]
    first = service.capture(origin.url("/tagged")).json()["snapshot"]
    again = service.capture(origin.url("/tagged"), conditional=True)
    told = again.json()["snapshot"]
    assert (again.status_code, told["state"], told["not_modified"]) == (201, "live", True)
    assert told["content_from"] == first["id"]
    assert service.client.get(f"/snapshots/{told['id']}/artifacts/body").content == BODY
    assert service.client.get(f"/snapshots/{told['id']}/diff/{first['id']}").json()["same"]


def test_curl_sees_the_same(service, origin):
    """With curl, fresh, stale and failed have their statuses, headers and the one JSON form."""
    if shutil.which("curl") is None:
        pytest.skip("needs curl")

    def post(**fields):
        data = json.dumps({"url": origin.url("/page"), **fields})
        return curl("-H", "Content-Type: application/json", "-d", data, f"{service.url}/snapshots")

    status, head, told = post()
    assert (status, told["result"]) == (201, "fresh")
    status, found, snapshot = curl(service.url + head["location"])
    assert (status, snapshot) == (200, told["snapshot"])
    assert curl("-H", f"If-None-Match: {found['etag']}", service.url + head["location"])[0] == 304
    status, head, told = post(max_stale_age="7d")
    assert (status, told["result"], head["cache-status"].split(";")[0]) == (200, "stale", "pravda")
    status, head, told = post()
    assert (status, told["result"], head["content-type"]) == (502, "failed", "application/problem+json")


def test_answers_equal_those_of_the_command_line(service, origin, tmp_path):
    """The same archive answers the same JSON over HTTP and on the command line: answers, snapshots, lists, differences."""
    url = origin.url("/live")
    one = service.capture(url).json()["snapshot"]
    origin.routes["/live"] = [R(b"200 OK", BODY + b"<p>more", HT)]
    two = service.capture(url).json()["snapshot"]
    over_http = service.capture(url, max_age="1h").json()
    command = of_cli(service.home, "capture", url, "--max-age", "1h")
    assert isinstance(command, dict)
    assert {**over_http, "age_seconds": 0, "newest_usable": 0} == {
        **command,
        "age_seconds": 0,
        "newest_usable": 0,
    }
    assert answer_from_json(over_http).snapshot == answer_from_json(command).snapshot
    assert of_cli(service.home, "show", one["id"]) == service.client.get(f"/snapshots/{one['id']}").json()
    listed = service.client.get("/snapshots", params={"url": url, "limit": 1}).json()
    assert of_cli(service.home, "history", url, "--limit", "1") == listed
    diff = service.client.get(f"/snapshots/{one['id']}/diff/{two['id']}").json()
    assert of_cli(service.home, "diff", one["id"], two["id"]) == diff
    assert not diff["same"]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("url", {"url": None}),
        ("url", {"url": 7}),
        ("url", {"url": "ftp://example.org/"}),
        ("url", {"url": "http://10.0.0.1/"}),
        ("url", {"url": "http://169.254.169.254/latest/"}),
        ("nonsense", {"nonsense": 1}),
        ("self", {"self": 1}),
        ("cls", {"cls": 1}),
        ("max_age", {"max_age": -1}),
        ("max_stale_age", {"max_stale_age": "soon"}),
        ("stale_if", {"stale_if": ["live"]}),
        ("headers.Host", {"headers": {"Host": "evil.example"}}),
        ("headers.Connection", {"headers": {"Connection": "close"}}),
        ("headers.X", {"headers": {"X": "a\r\nInjected: 1"}}),
        ("headers.Transfer-Encoding", {"headers": {"Transfer-Encoding": "chunked"}}),
        ("expect.matches", {"expect": {"matches": "(?=x)"}}),
        ("expect.xpath", {"expect": {"xpath": "//["}}),
        ("expect.min_matches", {"expect": {"min_matches": 3}}),
        ("timeouts.total", {"timeouts": {"total": "1d"}}),
        ("max_bytes", {"max_bytes": 2**40}),
        ("body", {"body": "x"}),
    ],
)
def test_bad_requests_name_the_field(service, origin, field, fields):
    """A request that cannot be taken is a 422 problem that names the field; nothing is fetched or stored."""
    reply = service.client.post("/snapshots", json={"url": origin.url("/live"), **fields})
    assert (reply.status_code, reply.json()["field"]) == (422, field)
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert not origin.log
    assert service.client.get("/snapshots").json() == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("status", "data", "media_type"),
    [
        (415, b"url=http://example.org/", "application/x-www-form-urlencoded"),
        (415, b"{}", "text/plain"),
        (400, b"{", "application/json"),
        (400, b"[]", "application/json"),
        (400, b"\xff", "application/json"),
        (400, b'{"url": "http://a/", "url": "http://b/"}', "application/json"),
        (400, b'{"max_age": NaN}', "application/json"),
        (400, b'{"max_age": ' + b"9" * 5000 + b"}", "application/json"),
        (400, b'{"expect": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "application/json"),
        (400, b'{"expect": ' + b"[" * 40 + b"]" * 40 + b"}", "application/json"),
        (413, b" " * 5_000_000, "application/json"),
    ],
)
def test_bodies_that_cannot_be_read(service, status, data, media_type):
    """A body that is no strict JSON object, too deep, too large or of another type is a problem."""
    reply = service.client.post("/snapshots", content=data, headers={"Content-Type": media_type})
    assert (reply.status_code, reply.json()["status"]) == (status, status)


def test_a_body_without_length_is_bounded_too(service):
    """A chunked body ends with 413 as soon as it is too large."""
    endless = (b" " * 65536 for _ in range(100))
    reply = service.client.post("/snapshots", content=endless, headers={"Content-Type": "application/json"})
    assert reply.status_code == 413


# longer captures


def test_respond_async(service, origin):
    """`Prefer: respond-async` is answered 202 at once; the capture is followed at its Location until it has its answer."""
    reply = service.capture(origin.url("/slow"), {"Prefer": "respond-async"})
    told = reply.json()
    assert reply.status_code == 202
    assert reply.headers["Preference-Applied"] == "respond-async"
    assert reply.headers["Location"] == f"/captures/{told['id']}"
    assert told["status"] in ("queued", "running")
    with service.client.stream("GET", told["events"]) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        lines = [line for line in stream.iter_lines() if line]
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert (events[0], events[-1]) == ("progress", "end")
    end = json.loads(lines[-1].removeprefix("data: "))
    assert (end["status"], end["http_status"], end["answer"]["result"]) == ("finished", 201, "fresh")
    assert service.client.get(reply.headers["Location"]).json() == end
    again = service.client.get(told["events"]).text
    assert again.startswith("event: end\n")


@pytest.mark.parametrize(
    ("path", "wait", "status"), [("/slow", 0, 202), ("/live", 10, 201), ("/slow", 10, 201)]
)
def test_wait(service, origin, path, wait, status):
    """`Prefer: wait=N` gives the answer when it comes in time, else 202."""
    reply = service.capture(origin.url(path), {"Prefer": f"respond-async, wait={wait}"})
    assert reply.status_code == status
    assert reply.headers["Preference-Applied"] == f"respond-async, wait={wait}"


def test_an_asynchronous_capture_that_cannot_be_made(service):
    """What shows only on the way, as an unsafe address, is the capture's problem."""
    place = service.capture("http://10.0.0.1/", {"Prefer": "respond-async"}).headers["Location"]
    for _ in range(200):
        told = service.client.get(place).json()
        if told["status"] == "finished":
            break
        time.sleep(0.01)
    assert (told["http_status"], told["problem"]["field"], told["answer"]) == (422, "url", None)


def test_unknown_captures(service):
    """A capture that there never was is 404."""
    for path in ("/captures/nope", "/captures/nope/events", f"/captures/{new_id()}"):
        assert service.client.get(path).status_code == 404


# idempotency


def test_the_same_key_is_answered_by_one_capture(tmp_path, origin):
    """A repeated request under one Idempotency-Key is answered by the first capture, also after a restart."""
    key = {"Idempotency-Key": "order-7"}
    with Serving(tmp_path / "home") as service:
        first = service.capture(origin.url("/live"), key)
        again = service.capture(origin.url("/live"), key)
    with Serving(tmp_path / "home") as service:
        later = service.capture(origin.url("/live"), key)
        other = service.capture(origin.url("/live"), {"Idempotency-Key": "order-8"})
    assert len(origin.log) == 2
    assert first.json() == again.json() == later.json() != other.json()
    assert [reply.status_code for reply in (first, again, later)] == [201, 201, 201]
    assert "Idempotent-Replayed" not in first.headers
    assert later.headers["Idempotent-Replayed"] == "true"
    assert later.headers["Location"] == first.headers["Location"]


def test_the_same_key_with_another_request_is_refused(service, origin):
    """One Idempotency-Key for two different requests is 422."""
    key = {"Idempotency-Key": "k"}
    assert service.capture(origin.url("/live"), key).status_code == 201
    reply = service.capture(origin.url("/live"), key, conditional=True)
    assert (reply.status_code, reply.json()["field"]) == (422, "Idempotency-Key")
    assert service.capture(origin.url("/live"), {"Idempotency-Key": "x" * 300}).status_code == 422


def test_a_failed_answer_is_replayed_and_a_refusal_is_not(service, origin):
    """A 502 is an answer, which a repeated request gets again; a 422 frees the key."""
    key = {"Idempotency-Key": "k"}
    first, again = service.capture(origin.url("/broken"), key), service.capture(origin.url("/broken"), key)
    assert (first.status_code, again.status_code, len(origin.log)) == (502, 502, 1)
    assert first.json() == again.json()
    assert service.capture("http://10.0.0.1/", {"Idempotency-Key": "l"}).status_code == 422
    assert service.capture(origin.url("/live"), {"Idempotency-Key": "l"}).status_code == 201


def test_a_key_whose_request_still_runs(service, origin):
    """While the first runs, a repeated request is 409, or 202 with the same Location where it may be."""
    head = {"Idempotency-Key": "k", "Prefer": "respond-async"}
    place = service.capture(origin.url("/slow"), head).headers["Location"]
    busy = service.capture(origin.url("/slow"), {"Idempotency-Key": "k"})
    assert (busy.status_code, busy.headers["Retry-After"]) == (409, "1")
    assert service.capture(origin.url("/slow"), head).headers["Location"] == place
    assert len(origin.log) <= 1


# trouble of our own


def test_back_pressure(tmp_path, origin):
    """When as many captures wait as may, one more is 429 with Retry-After, and the service goes on answering."""
    options = Options(most_running=1, most_waiting=1, per_minute=0, grace=0.2)
    with Serving(tmp_path / "home", options) as service:
        places = [
            service.capture(origin.url(f"/never?{one}"), {"Prefer": "respond-async"}).headers["Location"]
            for one in range(2)
        ]
        reply = service.capture(origin.url("/live"), {"Idempotency-Key": "k"})
        assert (reply.status_code, reply.json()["type"]) == (429, "urn:pravda:problem:queue-full")
        assert int(reply.headers["Retry-After"]) > 0
        assert [service.client.get(place).json()["status"] for place in places] == ["running", "queued"]
        assert service.client.get("/healthz").status_code == 200


class FullArchive(MemoryArchive):
    """Takes nothing any more."""

    full = False

    async def keep(self, snapshot: Snapshot, contents: Mapping[str, Contents]) -> None:
        """Refuse when full."""
        if self.full:
            raise ArchiveUnavailable("the disk at /secret/place is full")
        await super().keep(snapshot, contents)


def test_an_archive_that_cannot_keep(tmp_path):
    """When the row cannot be written 503 says when to try again and names the newest usable one; reads go on."""
    clock, archive = FrozenClock(), FullArchive()

    def make() -> Pravda:
        return Pravda(engine=ScriptedEngine(page(), clock=clock), archive=archive, clock=clock, new_id=new_id)

    (tmp_path / "home").mkdir()
    with Serving(tmp_path / "home", make=make) as service:
        kept = service.capture("https://example.org/").json()["snapshot"]
        archive.full = True
        reply = service.capture("https://example.org/", {"Idempotency-Key": "k"})
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "30")
        assert reply.json()["type"] == "urn:pravda:problem:archive-unavailable"
        assert reply.json()["newest_usable"]["id"] == kept["id"]
        assert "/secret/place" not in reply.text
        assert service.client.get(f"/snapshots/{kept['id']}").status_code == 200
        archive.full = False
        assert service.capture("https://example.org/", {"Idempotency-Key": "k"}).status_code == 201


def test_what_cannot_be_written_down_is_not_acknowledged(service, origin):
    """When the service's own book fails at the end of a capture that it must remember, 201 is not said."""

    def fail(*_: object) -> None:
        raise ArchiveUnavailable("the book is full")

    service.server._service.book.end = fail
    assert service.capture(origin.url("/live"), {"Idempotency-Key": "k"}).status_code == 503
    assert service.capture(origin.url("/live")).status_code == 201


def test_event_streams_are_bounded(tmp_path, origin):
    """Beyond the bound on open event streams the answer is 429."""
    with Serving(tmp_path / "home", Options(most_streams=0, per_minute=0)) as service:
        told = service.capture(origin.url("/live"), {"Prefer": "respond-async"}).json()
        assert service.client.get(told["events"]).status_code == 429


def test_importing_the_service_is_not_needed_for_the_rest():
    """The command line is there without the service's libraries, and `serve` says how to get them."""
    block = (
        "import sys; sys.modules.update(dict.fromkeys(('fastapi','uvicorn','structlog','prometheus_client')))"
    )
    hide = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, *a: None if n in ('fastapi','uvicorn') else f(n, *a)"
    code = f"{block}\n{hide}\nfrom pravda.cli.main import run; import sys; sys.exit(run(['serve']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'pravda-evidence[server]'" in done.stderr
