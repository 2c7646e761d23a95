"""The API's description, and requests made from it or from nothing at all."""

import json
import os
import random
import resource
import string
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from pravda.core.rule_values import INTEGER_RULES, TEXT_RULES, Rule
from pravda.server.examples import ANSWERS
from pravda.server.keys import Keys, Scope
from pravda.server.ledger import Ledger
from pravda.server.options import Options
from pravda.server.problems import Kind
from pravda.server.shapes import SCHEMAS
from tests.factories import new_id
from tests.origin import BODY, HT, Origin, R
from tests.serving import Serving

THOROUGH = bool(os.environ.get("PRAVDA_CHAOS"))
FUZZED = 10_000 if THOROUGH else 1_000


@pytest.fixture(scope="module")
def origin():
    """A site that answers everything."""
    with Origin() as site:
        for number in range(3):
            site.routes[f"/{number}"] = [R(b"200 OK", BODY, HT)]
        yield site


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that only these tests use; no capture takes long."""
    options = Options(per_minute=0, grace=0.2, longest_capture=600)
    with Serving(tmp_path_factory.mktemp("described") / "home", options) as running:
        yield running


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A service that demands a key, whose client has one that opens everything."""
    home = tmp_path_factory.mktemp("keyed") / "home"
    ledger = Ledger(home)
    _, token = Keys(ledger).add("tests", frozenset({Scope.ADMIN}), datetime.now(UTC))
    ledger.close()
    with Serving(home, Options(per_minute=0, grace=0.2), key=token) as running:
        yield running


def words(*texts: str) -> st.SearchStrategy[str]:
    """One of them."""
    return st.sampled_from(texts)


RULES = {
    Rule.MEDIA_TYPE: words("text/html", "text/*"),
    Rule.CHARSET: words("utf-8", "windows-1252"),
    Rule.FINAL_URL: words("/live", r"\d+"),
    Rule.SELECTOR: words("p", "table#list > tr", "a[href]"),
    Rule.XPATH: words("//p", "count(//p)", "//a/@href"),
    Rule.JSON_PATH: words("$.a", "$..b[0]"),
    Rule.TEXT_PRESENT: words("evidence", "a b"),
    Rule.TEXT_ABSENT: words("error", "oops"),
    Rule.MATCHES: words("evid", r"^N"),
    Rule.NOT_MATCHES: words("err", "x{3}"),
}


def describe_formats(origin: Origin) -> None:
    """What the names of our formats stand for, so that requests are made that can be taken."""
    named = {
        "pravda-url": words(*(origin.url(f"/{number}") for number in range(4))),
        "pravda-duration": words("90s", "36h", "7d", "P7D", "1h30m", "12"),
        "pravda-budget": words("5s", "10", "1m"),
        "pravda-header-name": words("Accept", "X-One", "Authorization"),
        "pravda-header-value": words("text/html", "a b", ""),
        "pravda-cookie-name": words("a", "sid"),
        "pravda-cookie-value": words("1", "x y", ""),
        "pravda-text": words("a=b", "{}", "ü"),
        "pravda-key": words("bridge", "a key"),
        "pravda-moment": words("2026-01-01", "7d", "2026-01-01T12:00:00Z"),
        "pravda-cursor": words("2026-01-01T12:00:00.000001+00:00_01a22ccd-1829-776c-b4fc-68fa49fb1269"),
        "pravda-prefer": words("respond-async", "wait=1", "respond-async, wait=0"),
        "pravda-idempotency-key": st.builds(new_id),  # each one new
    }
    for name, strategy in (named | {f"pravda-rule-{rule}": made for rule, made in RULES.items()}).items():
        schemathesis.openapi.format(name, strategy)


def test_every_rule_has_a_format():
    """Each rule of texts is one that these tests know to write."""
    assert RULES.keys() == TEXT_RULES.keys()
    assert set(Rule) == {*TEXT_RULES, *INTEGER_RULES, Rule.MAX_DROP}


def test_examples_are_what_is_described():
    """The description's examples of fresh, stale, reused and failed fit its schemas."""
    store = {"components": {"schemas": SCHEMAS}}
    for name, told in ANSWERS.items():
        shape = "Failed" if name == "failed" else "Answer"
        jsonschema_rs.validate({"$ref": f"#/components/schemas/{shape}", **store}, told)
        assert told["result"] == name


def test_the_description_is_whole(service):
    """Every operation of the table is described, with its errors as problems, and examples of each answer."""
    told = service.client.get("/openapi.json").json()
    operations = {f"{method.upper()} {path}" for path, methods in told["paths"].items() for method in methods}
    assert operations == {
        "POST /snapshots",
        "GET /snapshots",
        "GET /snapshots/latest",
        "GET /snapshots/{id}",
        "GET /snapshots/{id}/artifacts/{name}",
        "HEAD /snapshots/{id}/artifacts/{name}",
        "GET /snapshots/{id}/diff/{other}",
        "GET /captures/{id}",
        "GET /captures/{id}/events",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
    }
    post = told["paths"]["/snapshots"]["post"]["responses"]
    assert {"200", "201", "202", "422", "429", "502", "503"} <= post.keys()
    assert {
        *post["201"]["content"]["application/json"]["examples"],
        *post["200"]["content"]["application/json"]["examples"],
    } == {
        "fresh",
        "stale",
        "reused",
        "failed",
    }
    assert "application/problem+json" in post["502"]["content"]


def test_every_problem_is_documented():
    """Each type of problem stands in the guide with its status."""
    text = (Path(__file__).parent.parent / "docs" / "api.md").read_text("utf-8")
    for kind in Kind:
        assert f"| `{kind.slug}` | {kind.status} |" in text, kind.slug


def test_what_is_described_is_what_happens(keyed, origin):
    """Requests made from the description, valid and not, are answered as it says: statuses, types, headers, schemas."""
    describe_formats(origin)
    schema = schemathesis.openapi.from_url(f"{keyed.url}/openapi.json")
    schema.config.generation.update(with_security_parameters=False)  # the key is sent by hand
    most = 60 if THOROUGH else 12

    for operation in schema.get_all_operations():
        made = operation.ok()  # type: ignore[union-attr]  # a description that cannot be read would be told above
        for mode in schemathesis.GenerationMode:
            check_operation(made, mode, most, {"Authorization": f"Bearer {keyed.key}"})


def check_operation(operation: Any, mode: Any, most: int, head: dict[str, str]) -> None:
    """Send some requests of one kind and hold the answers against the description."""

    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        derandomize=not THOROUGH,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        # two of the checks are replaced: a page that is not usable is a documented 502 and no error of the service,
        # and that a lower bound must not be above its upper one is nothing that a schema can say
        replaced = [not_a_server_error, positive_data_acceptance]
        reply = case.call_and_validate(timeout=20, headers=head, excluded_checks=replaced)
        assert reply.status_code < 500 or reply.status_code == 502
        if mode is schemathesis.GenerationMode.POSITIVE and reply.status_code in (400, 415, 422):
            assert "could fulfil both" in reply.json()["detail"]

    try:
        check()
    except Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, (
            "nothing can be asked"
        )  # nor is there anything to get wrong


def nonsense(chance: random.Random, origin: Origin) -> httpx.Request:
    """A request that is wrong somewhere, or everywhere."""

    def text(most: int = 20) -> str:
        letters = string.printable + "é\u202e\ud800\0"
        return "".join(chance.choice(letters) for _ in range(chance.randint(0, most)))

    def value(depth: int = 0) -> object:
        match chance.randint(0, 9 if depth < 4 else 5):
            case 0:
                return None
            case 1:
                return chance.choice([True, False])
            case 2:
                return chance.choice([0, -1, 1, 2**63, -(2**70), 10**400])
            case 3:
                return chance.choice([0.5, -1.0, 1e308])
            case 4 | 5:
                return text()
            case 6 | 7:
                return [value(depth + 1) for _ in range(chance.randint(0, 4))]
            case _:
                return {text(): value(depth + 1) for _ in range(chance.randint(0, 4))}

    fields = ["url", "method", "headers", "cookies", "body", "engine", "expect", "max_age", "max_stale_age", "stale_if",
              "key", "conditional", "artifacts", "timeouts", "max_bytes", "tls", "on_failure", "robots", "self", text()]  # fmt: skip
    paths = ["/snapshots", "/snapshots/latest", "/snapshots/x", "/snapshots/x/artifacts/body", "/captures/x", "/metrics",
             "/healthz", "/captures/x/events", "/snapshots/x/diff/y", "/nope"]  # fmt: skip
    method = chance.choice(["GET", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"])
    path = chance.choice(paths) if method != "POST" else "/snapshots"
    asked: dict[str, object] = {chance.choice(fields): value() for _ in range(chance.randint(0, 4))}
    if chance.random() < 0.6:
        asked["url"] = origin.url(f"/{chance.randint(0, 3)}")
    data = json.dumps(asked).encode()
    if chance.random() < 0.2:
        at = chance.randint(0, len(data))
        data = data[:at] + bytes(chance.randint(0, 255) for _ in range(chance.randint(0, 9))) + data[at:]
    head = {"Content-Type": chance.choice(["application/json"] * 8 + ["text/plain", ""])}
    if chance.random() < 0.3:
        name = chance.choice(
            [
                "Prefer",
                "Idempotency-Key",
                "Range",
                "If-None-Match",
                "If-Match",
                "X-Request-Id",
                "Authorization",
            ]
        )
        head[name] = "".join(
            chance.choice(string.ascii_letters + string.punctuation + " ") for _ in range(20)
        ).strip()
    query = {text(): text() for _ in range(chance.randint(1, 2))} if chance.random() < 0.3 else {}
    query = {
        name.encode("utf-8", "replace").decode(): one.encode("utf-8", "replace").decode()
        for name, one in query.items()
    }
    return httpx.Request(method, f"http://service{path}", params=query, headers=head, content=data)


def sent(
    service: Serving, requests: Iterator[httpx.Request]
) -> Iterator[tuple[httpx.Request, httpx.Response]]:
    """The answers, one after another."""
    for request in requests:
        request.url = request.url.copy_with(host="127.0.0.1", port=service.port)
        request.headers["Host"] = f"127.0.0.1:{service.port}"
        yield request, service.client.send(request)


@pytest.mark.timeout(1200 if THOROUGH else 120)
def test_nonsense_is_never_an_error_of_ours(service, origin):
    """Whatever is sent, the answer is no 500 and comes soon, errors are problems, and memory does not grow."""
    chance = random.Random(7)  # the same nonsense each time
    before = 0
    for number, (request, reply) in enumerate(
        sent(service, (nonsense(chance, origin) for _ in range(FUZZED)))
    ):
        what = (
            request.method,
            str(request.url),
            dict(request.headers),
            request.content[:300],
            reply.text[:300],
        )
        assert reply.status_code < 500 or reply.status_code == 502, what
        assert reply.elapsed.total_seconds() < 5, what
        if reply.status_code >= 400 and request.method != "HEAD":
            assert reply.headers["Content-Type"] == "application/problem+json", what
        if number == FUZZED // 2:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100 * 1024
    for _ in range(100):
        if not service.server._service.desk.running:
            break
        time.sleep(0.05)
    assert service.client.get("/healthz").status_code == 200
