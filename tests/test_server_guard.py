"""Who may do what, and what may not be done to the service."""

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from click.testing import CliRunner

from pravda.capture import Pravda
from pravda.cli.main import cli
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer
from pravda.core.request import Request
from pravda.errors import ArchiveUnavailable, NotFound
from pravda.server.bodies import read_object
from pravda.server.keys import Keys, Scope
from pravda.server.ledger import Ledger
from pravda.server.logs import configure, scrub
from pravda.server.options import Options
from pravda.server.prefer import Preference, read
from pravda.server.problems import Refused
from pravda.server.rate import Rates
from pravda.server.run import is_loopback
from pravda.testing import FrozenClock, MemoryArchive, ScriptedEngine, page
from tests.factories import new_id
from tests.origin import BODY, HT, Origin, R
from tests.serving import Daemon, Serving

NOW = datetime.now(UTC)
EVERYTHING = frozenset(Scope)


@pytest.fixture
def origin():
    """A site."""
    with Origin() as site:
        site.routes["/live"] = [R(b"200 OK", BODY, HT)]
        yield site


def keys(home, *arguments):
    """`pravda keys`, with --json where it prints something to read."""
    return CliRunner().invoke(cli, ["keys", *arguments, "--home", str(home)])


def a_key(home, *scopes, **more) -> tuple[str, str]:
    """Id and token of a new key."""
    options = [text for scope in scopes for text in ("--scope", str(scope))]
    options += [text for name, value in more.items() for text in (f"--{name.replace('_', '-')}", value)]
    told = json.loads(keys(home, "add", "crawler", *options, "--json").stdout)
    return told["id"], told["token"]


# keys


def test_scopes(tmp_path, origin):
    """With keys, nobody is let in without one; a key does what its scopes say, and admin everything."""
    home = tmp_path / "home"
    tokens = {scope: a_key(home, scope)[1] for scope in Scope}
    with Serving(home) as service:
        url = origin.url("/live")
        none = service.client.get("/snapshots")
        assert (none.status_code, none.headers["WWW-Authenticate"]) == (401, 'Bearer realm="pravda"')
        assert service.client.get("/healthz").status_code == 200
        assert service.client.get("/openapi.json").status_code == 200
        expected = {Scope.READ: (200, 403, 403), Scope.CAPTURE: (403, 201, 403), Scope.ADMIN: (200, 201, 200)}
        for scope, statuses in expected.items():
            with service.another(tokens[scope]) as client:
                assert (
                    client.get("/snapshots").status_code,
                    client.post("/snapshots", json={"url": url}).status_code,
                    client.get("/metrics").status_code,
                ) == statuses


def test_keys_that_open_nothing(tmp_path):
    """A wrong, cut, expired or revoked key is 401, at once, also when it was the last one."""
    home = tmp_path / "home"
    key_id, token = a_key(home, "read")
    with Serving(home) as service:
        for wrong in (
            token[:-1],
            token + "x",
            token.replace(key_id, "0" * 12),
            "pravda_",
            "é".encode().decode("latin-1"),
            "x",
        ):
            head = {b"Authorization": f"Bearer {wrong}".encode("latin-1")}
            assert service.client.get("/snapshots", headers=head).status_code == 401
        assert (
            service.client.get("/snapshots", headers={"Authorization": f"Basic {token}"}).status_code == 401
        )
        with service.another(token) as client:
            assert client.get("/snapshots").status_code == 200
            assert keys(home, "revoke", key_id).exit_code == 0
            assert client.get("/snapshots").status_code == 401


def test_keys_end(tmp_path):
    """A key is valid until its moment comes."""
    ledger = Ledger(tmp_path)
    ring = Keys(ledger)
    _, token = ring.add("x", EVERYTHING, NOW, expires_at=NOW + timedelta(hours=1))
    assert ring.find(token, NOW + timedelta(minutes=59))
    assert ring.find(token, NOW + timedelta(hours=1)) is None
    ledger.close()


def test_a_stolen_book_opens_nothing(tmp_path):
    """The file holds no token, nor what could be turned back into one, and only its owner may read it."""
    ledger = Ledger(tmp_path)
    _, token = Keys(ledger).add("x", EVERYTHING, NOW)
    ledger.close()
    for file in tmp_path.iterdir():
        assert token.split("_", 2)[2].encode() not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", {"name": " "}),
        ("name", {"name": "a\nb"}),
        ("scope", {"scopes": frozenset()}),
        ("expires", {"expires_at": NOW}),
    ],
)
def test_keys_that_cannot_be_made(tmp_path, field, values):
    """A key without name or scope, or that has ended before it begins, is refused."""
    ledger = Ledger(tmp_path)
    with pytest.raises(BadRequest) as raised:
        Keys(ledger).add(**{"name": "x", "scopes": EVERYTHING, "now": NOW} | values)
    assert raised.value.field == field
    with pytest.raises(NotFound):
        Keys(ledger).revoke("nope", NOW)
    ledger.close()


def test_keys_on_the_command_line(tmp_path):
    """`pravda keys` makes a key it shows once, lists without secrets, and revokes; a second time changes nothing."""
    made = keys(tmp_path, "add", "crawler", "--expires", "90d", "--per-minute", "5")
    token = made.stdout.strip()
    key_id = token.split("_")[1]
    assert token not in made.stderr
    listed = keys(tmp_path, "list")
    assert "valid" in listed.stdout
    assert "capture,read" in listed.stdout
    assert token not in listed.stdout
    assert [keys(tmp_path, "revoke", key_id).exit_code for _ in range(2)] == [0, 0]
    told = json.loads(keys(tmp_path, "list", "--json").stdout)["items"]
    assert [(key["standing"], key["per_minute"]) for key in told] == [("revoked", 5)]
    assert keys(tmp_path, "revoke", "nope").exit_code == 4


def test_a_service_without_keys_stays_at_home(tmp_path):
    """An address that others reach is refused with exit code 2 as long as there is no valid key."""

    def start(home):
        command = [
            sys.executable,
            "-m",
            "pravda",
            "serve",
            "--host",
            "0.0.0.0",
            "--port",
            "0",
            "--home",
            str(home),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    done = start(tmp_path)
    assert (done.returncode, "pravda keys add" in done.stderr) == (2, True)
    key_id, _ = a_key(tmp_path, "read")
    keys(tmp_path, "revoke", key_id)
    assert start(tmp_path).returncode == 2


def test_captures_belong_to_their_key(tmp_path, origin):
    """A capture, and an Idempotency-Key, are those of one key; others do not see them, an administrator does."""
    home = tmp_path / "home"
    tokens = [a_key(home, "capture")[1], a_key(home, "capture")[1], a_key(home, "admin")[1]]
    with Serving(home) as service:
        head = {"Prefer": "respond-async", "Idempotency-Key": "k"}
        with service.another(tokens[0]) as mine:
            place = mine.post("/snapshots", json={"url": origin.url("/live")}, headers=head).headers[
                "Location"
            ]
        statuses = []
        for token in tokens:
            with service.another(token) as client:
                statuses.append(client.get(place).status_code)
        assert statuses == [200, 404, 200]
        with service.another(tokens[1]) as other:
            reply = other.post("/snapshots", json={"url": origin.url("/live"), "tls": "verify"}, headers=head)
        assert reply.status_code == 202


def test_rate_limits(tmp_path):
    """Beyond its number of requests a minute a key is 429 with Retry-After, others are not, nor is health."""
    home = tmp_path / "home"
    (_, few), (_, usual) = a_key(home, "read", per_minute="2"), a_key(home, "read")
    with Serving(home) as service:
        with service.another(few) as client:
            replies = [client.get("/snapshots") for _ in range(3)]
            assert [reply.status_code for reply in replies] == [200, 200, 429]
            assert replies[2].json()["type"] == "urn:pravda:problem:rate-limited"
            assert 1 <= int(replies[2].headers["Retry-After"]) <= 30
            assert client.get("/healthz").status_code == 200
        with service.another(usual) as client:
            assert client.get("/snapshots").status_code == 200


def test_a_bucket_fills_evenly():
    """Tokens come back one by one, and never more than a minute's."""
    rates = Rates()
    assert [rates.wait("a", 60, 0.0) for _ in range(60)] == [0] * 60
    assert rates.wait("a", 60, 0.0) == pytest.approx(1)
    assert rates.wait("b", 60, 0.0) == 0
    assert [rates.wait("a", 60, 1.0), rates.wait("a", 60, 1.0)] == [0, pytest.approx(1)]
    assert rates.wait("a", 0, 1.0) == 0


# what comes over the wire


def raw(service: Serving, data: bytes) -> bytes:
    """The answer to raw bytes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
            if b"\r\n\r\n" in answer:
                break
        return answer


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Content-Length: 4\r\nTransfer-Encoding: chunked", b"400"),
        ("Content-Length: 4\r\nContent-Length: 5", b"400"),
        ("Content-Length: -1", b"400"),
        ("Content-Length: 99999999999999999999999", b"400"),
        ("Transfer-Encoding: chunked, identity", b"400"),
        ("Host: other.example", b"400"),
        ("X-Folded: a\r\n b", b"415"),
        ("X\0: a", b"400"),
        ("\r\n".join(f"X-{number}: a" for number in range(100)), b"431"),
        (f"X-Long: {'a' * 100_000}", b"4"),
    ],
)
def test_ambiguous_heads_are_refused(shared, head, status):
    """Heads that two readers could read differently, or too long ones, end in a 4xx and start no second request."""
    data = f"POST /snapshots HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n0\r\n\r\n"
    answer = raw(shared, data.encode("latin-1"))
    assert answer.split(b" ")[1].startswith(status), answer[:200]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service that several tests use."""
    with Serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("127.8.9.1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("0.0.0.0", 421),
        ("", 421),
        ("a:b:c", 421),
    ],
)
def test_other_names_for_this_service(shared, host, status):
    """Without keys only names of this machine are answered, so that no page in a browser reaches it by rebinding."""
    assert shared.client.get("/snapshots", headers={"Host": host}).status_code == status


def test_request_ids(shared):
    """Every answer has a request id: the caller's own where it is a plain one."""
    assert shared.client.get("/healthz", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    strange = shared.client.get("/healthz", headers={"X-Request-Id": "a b"}).headers["X-Request-Id"]
    assert len(strange) == 36


def test_a_heavy_rule_holds_up_nobody(tmp_path, origin):
    """While an expensive rule is judged, other requests are answered."""
    origin.routes["/heavy"] = [R(b"200 OK", b"<title>x</title>" + b"<p><b>x</b>" * 6_000, HT)]
    heavy = {"expect": {"xpath": "//*[count(preceding::*) > 1][count(following::*) > 1]"}}
    with Serving(tmp_path / "home") as service:
        replies: list[int] = []
        capturing = threading.Thread(
            target=lambda: replies.append(service.capture(origin.url("/heavy"), **heavy).status_code)
        )
        began = time.monotonic()
        capturing.start()
        slowest = 0.0
        with service.another() as client:
            while capturing.is_alive():
                asked = time.monotonic()
                assert client.get("/healthz").status_code == 200
                slowest = max(slowest, time.monotonic() - asked)
        took = time.monotonic() - began
        capturing.join()
    assert replies[0] in (201, 502)
    assert took > 0.3, "the rule is not heavy enough to show anything"
    assert slowest < took / 4, (slowest, took)


# what is told


class Broken(Pravda):
    """Breaks where nobody thought of it."""

    async def run(self, request: Request) -> Answer:
        """Break."""
        raise RuntimeError("the secret inside")


def test_an_error_tells_nothing_of_the_inside(tmp_path):
    """What breaks unexpectedly is a 500 problem without a word of the exception."""
    clock = FrozenClock()

    def make() -> Pravda:
        return Broken(
            engine=ScriptedEngine(page(), clock=clock), archive=MemoryArchive(), clock=clock, new_id=new_id
        )

    with Serving(tmp_path / "home", make=make) as service:
        reply = service.capture("https://example.org/")
        assert (reply.status_code, reply.json()["type"]) == (500, "urn:pravda:problem:internal")
        assert "secret" not in reply.text
        service.server._service.evidence.get = None  # type: ignore[method-assign,assignment]  # breaks outside a capture
        assert service.client.get(f"/snapshots/{new_id()}").status_code == 500


def test_logs_are_json_without_secrets(tmp_path, origin):
    """Each request and capture is a line of JSON with its ids, and no key, cookie, password or query stands in any."""
    home = tmp_path / "home"
    key_id, token = a_key(home, "capture", "read")
    secret_url = origin.url("/live?page=1").replace("http://", "http://user:hunter2@")
    with Daemon(home) as daemon:
        head = {"Authorization": f"Bearer {token}", "X-Request-Id": "asked-1"}
        secrets = {"Authorization": "Bearer sesame", "Cookie": "sid=oatmeal"}
        asked = {"url": secret_url, "headers": secrets}
        assert daemon.client.post("/snapshots", json=asked, headers=head).status_code == 201
        assert daemon.client.get("/snapshots", params={"url": secret_url}, headers=head).status_code == 200
        assert daemon.client.get(f"/snapshots/{token}", headers=head).status_code == 404
        assert daemon.stop() == 0
        text = daemon.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    (captured,) = [line for line in lines if line["event"] == "captured"]
    assert (captured["request_id"], captured["result"]) == ("asked-1", "fresh")
    assert captured["capture_id"]
    requests = [line for line in lines if line["event"] == "request"]
    assert [line["route"] for line in requests] == ["/snapshots", "/snapshots", "/snapshots/{id}"]
    assert {line["key_id"] for line in requests} == {key_id}
    for secret in (token, token.split("_", 2)[2], "hunter2", "sesame", "oatmeal"):
        assert secret not in text


def test_scrubbing():
    """Tokens, credentials and values under secret names are taken out, however deep they are."""
    told = scrub(
        {"url": "http://a:b@c/", "headers": [{"Cookie": "x=1", "Accept": "y"}], "note": "Bearer abc", "n": 1}
    )
    assert told == {
        "url": "http://REDACTED@c/",
        "headers": [{"Cookie": "REDACTED", "Accept": "y"}],
        "note": "Bearer REDACTED",
        "n": 1,
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], Preference()),
        (["respond-async"], Preference(wait=0, applied="respond-async")),
        (["Respond-Async; x=1, wait = 5"], Preference(wait=5, applied="respond-async, wait=5")),
        (["wait=3", "wait=9"], Preference(wait=3, applied="wait=3")),
        (["handling=lenient", "wait=soon", ",,;"], Preference()),
    ],
)
def test_preferences(fields, expected):
    """Prefer is read as RFC 7240 has it; what is unknown or wrong is passed over."""
    assert read(fields) == expected


def test_depth():
    """JSON of the allowed depth is read; one level more is refused."""
    assert read_object(b'{"a": [[1]]}', 3) == {"a": [[1]]}
    with pytest.raises(Refused, match="deeper than 2"):
        read_object(b'{"a": [[1]]}', 2)


def test_one_service_of_a_folder(tmp_path):
    """A second service over the same folder does not start; after the first has ended one does."""
    with Daemon(tmp_path / "home") as daemon:
        command = [sys.executable, "-m", "pravda", "serve", "--port", "0", "--home", str(daemon.home)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, "another `pravda serve`" in done.stderr) == (2, True)
        assert daemon.stop() == 0
        daemon.start()


def test_an_address_that_is_taken(shared):
    """A port that is taken is told in one line with exit code 2."""
    command = [
        sys.executable,
        "-m",
        "pravda",
        "serve",
        "--port",
        str(shared.port),
        "--home",
        str(shared.home) + "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, "cannot be listened on" in done.stderr) == (2, True)


def test_a_body_that_never_comes(tmp_path):
    """A body that takes too long to arrive is 408, and the connection ends."""
    with Serving(tmp_path / "home", Options(body_seconds=0.1, per_minute=0)) as service:
        head = "POST /snapshots HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        answer = raw(service, head.encode())
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()


def test_a_book_that_cannot_be_used(tmp_path):
    """A folder, a file or a book that cannot be used is told as such, also when it fails later."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "service.sqlite3").write_text(
        "no database at all, and long enough to be seen as none" * 50
    )
    for home in ("file", "home"):
        with pytest.raises(ArchiveUnavailable, match="service's book"):
            Ledger(tmp_path / home)
    ledger = Ledger(tmp_path / "new")
    ledger.close()
    ledger.close()
    with pytest.raises(ArchiveUnavailable):
        ledger.rows("keys")
    with pytest.raises(ArchiveUnavailable):
        ledger.write("revoke_key", id="x", revoked_at="")


class Terminal(StringIO):
    """A stream that people read."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_logs_on_a_terminal_are_for_people():
    """On a terminal a line is no JSON, and holds no secret either."""
    root = logging.getLogger()
    before, level, terminal = root.handlers[:], root.level, Terminal()
    try:
        configure(terminal)
        logging.getLogger("pravda.server").info("hello", extra={"url": "http://a:hunter2@b/"})
        try:
            raise ValueError("Bearer sesame")
        except ValueError as problem:
            logging.getLogger("pravda.server").error("broken", exc_info=problem)
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    text = terminal.getvalue()
    assert "hello" in text
    assert not text.startswith("{")
    assert "ValueError: Bearer REDACTED" in text
    assert "hunter2" not in text
    assert "sesame" not in text


@pytest.mark.parametrize(
    ("host", "at_home"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_loopback(host, at_home):
    """Only loopback addresses, and localhost, are known to be reached by nobody else."""
    assert is_loopback(host) is at_home


def test_too_many_requests_at_one_time(tmp_path):
    """Beyond the bound on requests at one time the answer is 429, also for those who could wait."""
    with Serving(tmp_path / "home", Options(most_requests=0, per_minute=0)) as service:
        assert service.client.get("/snapshots").status_code == 429
        assert service.client.get("/healthz").status_code == 200
