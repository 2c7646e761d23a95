"""The order of decision, step by step, and the invariants that no evidence breaks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravda.core.classify import classify, subject_of
from pravda.core.evidence import (
    Artifact,
    Content,
    Ending,
    Evidence,
    Phase,
    Response,
    Tls,
    Trouble,
    Validators,
)
from pravda.core.media import effective_type
from pravda.core.outcome import Failure, Verdict
from pravda.core.rules import Previous, Rules, Subject
from pravda.core.states import FACTS, Cause, FaultSide, Reason, State
from pravda.core.text import Page
from tests.factories import NOON
from tests.strategies import EVIDENCE, RULES

URL = "https://example.org/list"
PAGE = (
    b"<!doctype html><title>List</title><h1>List</h1><table id=list><tr><td>One</td></tr></table><p>"
    + b"word " * 50
)
CHALLENGE = ("cf-mitigated", "challenge")
HTML = ("Content-Type", "text/html; charset=utf-8")
CASES = json.loads(Path(__file__).with_name("data").joinpath("classify.json").read_text("utf-8"))


def subject(body=PAGE, *, size=None, content_type="text/html", url=URL):
    page = Page(
        body, content_type=content_type, charset="utf-8", final_url=url, whole=size in (None, len(body))
    )
    return Subject(page=page, size=len(body) if size is None else size, final_url=url)


def seen(
    status=200,
    body=PAGE,
    *headers,
    ending=Ending.COMPLETE,
    trouble=None,
    sent=None,
    asked=(),
    url=URL,
    tls=None,
    declared=None,
):
    headers = headers or (HTML,)
    kind = next((value for name, value in headers if name.lower() == "content-type"), None)
    content = Content(
        sha256="0" * 64,
        bytes=len(body),
        media_type=effective_type(kind, body) if body else None,
        charset="utf-8",
        charset_from="header",
        ending=ending,
        wire_bytes=len(body),
        declared_bytes=declared,
    )
    return Evidence(
        url=url,
        final_url=url,
        engine="http",
        method="GET",
        requested_at=NOON,
        captured_at=NOON,
        response=Response(status=status, version="1.1", headers=headers, tls=tls)
        if status is not None
        else None,
        content=content if status is not None else None,
        trouble=trouble,
        sent=sent or Validators(),
        asked_headers=asked,
        artifacts=tuple(
            Artifact(name=name, media_type="x/y", bytes=1, sha256="0" * 64)
            for name in ("body", "request", "response")
        ),
    )


def broken(reason, phase=Phase.RESPONSE):
    return Trouble(reason=reason, phase=phase, detail="It broke.", raw="curl 56: reset")


def judge(evidence, body=PAGE, **how):
    expect = how.pop("expect", {})
    rules = expect if isinstance(expect, Rules) else Rules.parse(expect)
    return classify(evidence, subject_of(evidence, body), expect=rules, **how)


def verdict(status=200, body=PAGE, *headers, expect=None, artifacts=(), previous=None, **evidence):
    return judge(
        seen(status, body, *headers, **evidence),
        body,
        expect=expect or {},
        artifacts=artifacts,
        previous=previous,
    )


def said(judged):
    reason = judged.failure.reason if judged.failure else None
    return f"{judged.state} {reason}" if reason else str(judged.state)


def failure(judged: Verdict) -> Failure:
    assert judged.failure is not None
    return judged.failure


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_cases_from_the_wild(case):
    """Real pages get the verdict they deserve."""
    rules, body = dict(case["rules"]), case["body"].encode()
    size, matches = rules.pop("previous_bytes", None), rules.pop("previous_matches", None)
    previous = Previous(bytes=size, matches=matches) if size is not None else None
    headers = tuple(case["headers"].items())
    judged = verdict(case["status"], body, *headers, expect=rules, previous=previous, url=case["final_url"])
    expected = case["expect"]
    assert said(judged) == (
        f"{expected['state']} {expected['reason']}" if expected["reason"] else expected["state"]
    )


def test_live():
    """A whole page under 200 without anything odd is live, and there is nothing to say about it."""
    judged = verdict()
    assert (judged.state, judged.failure, judged.checks, judged.warnings) == (State.LIVE, None, (), ())


# the order of decision: each step wins over all after it


def everything_wrong(**changes):
    """A blocked 404 with a cut body, of which every later step has something to say as well."""
    given = {"trouble": broken(Reason.CONNECTION_RESET), "ending": Ending.CUT} | changes
    return verdict(404, PAGE, HTML, CHALLENGE, expect={"selector": "#none"}, artifacts=("dom",), **given)


def test_our_own_fault_comes_first():
    """A fault of ours decides before anything else, down before headers and partial after."""
    judged = everything_wrong(trouble=broken(Reason.RESOURCE_EXHAUSTED))
    assert said(judged) == "partial resource_exhausted"
    assert failure(judged).fault is FaultSide.LOCAL
    assert said(verdict(None, b"", trouble=broken(Reason.RESOURCE_EXHAUSTED))) == "down resource_exhausted"


@pytest.mark.parametrize("reason", [r for r in Reason if FACTS[r].fault is FaultSide.LOCAL])
def test_local_faults(reason):
    """A local fault is told as one, whatever the page was."""
    for status in (None, 404):
        failed = failure(verdict(status, b"", trouble=broken(reason)))
        assert (failed.reason, failed.fault, failed.raw) == (reason, FaultSide.LOCAL, "curl 56: reset")


@pytest.mark.parametrize("reason", ["redirect_loop", "redirect_invalid", "redirect_unsupported_scheme"])
def test_redirects_that_cannot_be_followed(reason):
    """A redirect to nowhere is down, although it has headers."""
    assert said(verdict(302, b"moved", ("Location", "x"), trouble=broken(Reason(reason)))) == f"down {reason}"


@pytest.mark.parametrize("reason", ["robots_disallowed", "robots_unreadable"])
@pytest.mark.parametrize("status", [None, 302, 200])
def test_robots(reason, status):
    """A page that robots.txt forbids is blocked, asked for or redirected to."""
    assert said(verdict(status, b"x", trouble=broken(Reason(reason)))) == f"blocked {reason}"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("dns_not_found", "down dns_not_found"),
        ("connection_refused", "down connection_refused"),
        ("connection_reset", "down connection_reset"),
        ("tls_certificate_expired", "down tls_certificate_expired"),
        ("client_certificate_required", "blocked client_certificate_required"),
        ("connect_timeout", "down connect_timeout"),
        ("response_timeout", "down response_timeout"),
        ("malformed_response", "down malformed_response"),
        ("headers_too_large", "down headers_too_large"),
        ("body_timeout", "down response_timeout"),
        ("truncated_body", "down empty_response"),
        ("access_denied", "down empty_response"),
    ],
)
def test_no_response(reason, expected):
    """Without response headers a page is down, save that a client certificate was asked for."""
    judged = verdict(None, b"", trouble=broken(Reason(reason)))
    assert said(judged) == expected
    assert failure(judged).detail == "It broke."
    assert failure(judged).evidence[0].where == "engine http"
    assert judged.checks == judged.warnings == ()


def test_neither_response_nor_trouble():
    """An engine that saw nothing at all saw an empty response."""
    assert said(verdict(None, b"")) == "down empty_response"


@pytest.mark.parametrize("status", [200, 202, 304, 403, 404, 410, 429, 500, 503])
def test_decisive_marker(status):
    """A decisive marker decides whatever the status, and names its place."""
    judged = verdict(status, PAGE, HTML, CHALLENGE, ending=Ending.CUT)
    assert said(judged) == "blocked bot_challenge"
    assert failure(judged).evidence[0].where == "header cf-mitigated"
    assert failure(judged).detail == "A bot check stands before the page (cloudflare-challenge-header)."


@pytest.mark.parametrize("status", [403, 409, 530])
@pytest.mark.parametrize("code", ["1000", "1001", "1002", "1016", "1018"])
def test_cloudflare_dns(status, code):
    """A proxy that cannot resolve its origin is down, not a denial."""
    assert said(verdict(status, b"x", HTML, ("cf-error-type", code))) == "down origin_dns"


@pytest.mark.parametrize("status", [200, 404])
def test_cloudflare_dns_elsewhere(status):
    """The code of a proxy's fault means nothing under a status that denies it."""
    assert verdict(status, PAGE, HTML, ("cf-error-type", "1000")).state in (State.LIVE, State.GONE)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (103, "down empty_response"), (204, "partial empty_content"), (300, "partial redirect_unresolved"),
        (302, "partial redirect_unresolved"), (304, "partial unexpected_not_modified"), (400, "partial client_error"),
        (401, "blocked auth_required"), (403, "blocked access_denied"), (404, "gone not_found"), (410, "gone gone"),
        (406, "blocked access_denied"), (408, "down response_timeout"), (421, "down server_error"),
        (429, "blocked rate_limited"), (451, "blocked legal_block"), (503, "down service_unavailable"),
        (522, "down origin_timeout"), (530, "down server_error"), (599, "down response_timeout"),
        (700, "partial unexpected_status"), (999, "blocked access_denied"),
    ],
)  # fmt: skip
def test_status_comes_before_the_body(status, expected):
    """The status decides although the body is cut, empty or wanting, and rules are judged all the same."""
    judged = verdict(
        status, PAGE, ending=Ending.CUT, trouble=broken(Reason.CONNECTION_RESET), expect={"selector": "#none"}
    )
    assert said(judged) == expected
    assert failure(judged).evidence[0].where == "status"
    assert failure(judged).evidence[0].matched == str(status)
    assert [check.passed for check in judged.checks] == [False]
    assert said(verdict(status, b"")) == expected


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (503, "503 Service Unavailable"),
        (404, "404 Not Found"),
        (522, "522: The origin server did not answer the site's proxy in time."),
        (302, "302 Found without a target that could be followed"),
        (304, "304 Not Modified, although no validators were sent"),
        (103, "103 Early Hints, and then no final answer"),
    ],
)
def test_details(status, detail):
    """The detail says what came, and what it means where the code alone does not."""
    assert failure(verdict(status, b"x")).detail == detail


def test_captive_portal():
    """A 511 is our own network's doing: a local fault, down although headers came."""
    judged = verdict(511, PAGE)
    assert said(judged) == "down captive_portal"
    assert failure(judged).fault is FaultSide.LOCAL


def test_own_accept():
    """A 406 is a denial, but not when the caller's own Accept was refused."""
    assert said(verdict(406, PAGE, asked=("accept",))) == "partial client_error"


@pytest.mark.parametrize(
    ("headers", "asked", "expected"),
    [
        ((HTML,), (), "partial partial_content"),
        ((HTML, ("Content-Range", "bytes 0-9/10")), (), "live"),
        ((HTML, ("Content-Range", "bytes 0-9/20")), (), "partial partial_content"),
        ((HTML, ("Content-Range", "bytes 0-9/20")), ("range",), "live"),
    ],
)
def test_partial_content(headers, asked, expected):
    """A 206 nobody asked for is partial unless its range is the whole."""
    assert said(verdict(206, PAGE, *headers, asked=asked)) == expected


def test_accepted():
    """A 202 is a page like another, empty or challenging included."""
    assert said(verdict(202)) == "live"
    assert said(verdict(202, b"")) == "partial empty_content"
    assert said(verdict(202, PAGE, HTML, ("x-amzn-waf-action", "challenge"))) == "blocked bot_challenge"


@pytest.mark.parametrize(
    "title", ["400 The SSL certificate error", "400 No required SSL certificate was sent"]
)
def test_nginx_client_certificate(title):
    """nginx sends 495 and 496 as 400 with titles of their own."""
    body = f"<html><head><title>{title}</title></head><body><center>nginx</center>".encode()
    assert said(verdict(400, body)) == "blocked client_certificate_required"


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Ending.CUT, "truncated_body"),
        (Ending.TIMED_OUT, "body_timeout"),
        (Ending.TOO_LARGE, "body_too_large"),
        (Ending.TRUNCATED_CODING, "truncated_encoding"),
        (Ending.CORRUPT, "undecodable"),
        (Ending.UNSUPPORTED, "unsupported_encoding"),
    ],
)
def test_integrity(ending, reason):
    """A body that did not end as it should is partial, before any rule is asked; W-A1 names both sizes."""
    body = b"%PDF-1.4 half"
    judged = verdict(200, body, ending=ending, declared=5000, expect={"selector": "#none"})
    assert said(judged) == f"partial {reason}"
    assert failure(judged).detail.endswith("13 bytes came of 5,000 declared.")
    assert failure(judged).phase is Phase.BODY
    assert failure(judged).raw == ""
    assert [check.passed for check in judged.checks] == [False]


def test_integrity_has_the_engines_words():
    """The engine's own words stand with a cut body, also where no length was declared."""
    failed = failure(verdict(ending=Ending.CUT, trouble=broken(Reason.CONNECTION_RESET)))
    assert failed.raw == "curl 56: reset"
    assert failed.detail.endswith(f"{len(PAGE)} bytes came.")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("connection_reset", "partial truncated_body"),
        ("malformed_response", "partial truncated_body"),
        ("response_timeout", "partial body_timeout"),
        ("load_timeout", "partial load_timeout"),
        ("step_failed", "partial step_failed"),
        ("client_redirect_loop", "partial client_redirect_loop"),
        ("client_certificate_required", "blocked client_certificate_required"),
        ("redirect_loop", "partial truncated_body"),
    ],
)
def test_trouble_after_headers(reason, expected):
    """Trouble after complete headers never makes a success down."""
    assert said(verdict(200, PAGE, trouble=broken(Reason(reason)))) == expected


@pytest.mark.parametrize(
    "body",
    [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b" " * 1024, "\u00a0\u2003".encode()],
)
def test_empty(body):
    """A body of nothing, of a byte order mark or of white space is empty content."""
    judged = verdict(200, body, expect={"media_type": "text/csv"})
    assert said(judged) == "partial empty_content"
    assert failure(judged).evidence[0].matched == f"{len(body)} bytes"


def test_empty_utf_16():
    """White space is nothing in UTF-16 too."""
    body = "\ufeff \n".encode("utf-16-le")
    evidence = seen(200, body)
    assert evidence.content is not None
    evidence = replace(evidence, content=replace(evidence.content, charset="utf-16le"))
    assert said(judge(evidence, body)) == "partial empty_content"


def test_not_empty():
    """A body that is long, or of which only the beginning is at hand, is not called empty."""
    assert said(verdict(200, b" " * 1025)) == "live"
    assert said(judge(seen(200, b"x" * 10), b" ")) == "live"
    assert said(verdict(200, b"\0\0", ("Content-Type", "application/octet-stream"))) == "live"


def test_no_content():
    """Headers without any content are an empty page; no rule is judged on it."""
    evidence = replace(seen(), content=None)
    judged = judge(evidence, b"", expect={"min_bytes": 5})
    assert (said(judged), judged.checks) == ("partial empty_content", ())


def test_callers_rules():
    """The first rule that fails, in the order of the specification, gives the reason; all are reported."""
    rules = {"text_present": "Two", "selector": ["table#list", "#none"], "media_type": "text/html"}
    judged = verdict(expect=rules)
    assert said(judged) == "partial selector_missing"
    assert [(check.rule, check.passed) for check in judged.checks] == [
        ("media_type", True), ("selector", True), ("selector", False), ("text_present", False),
    ]  # fmt: skip
    assert failure(judged).evidence[0].where == "rule selector"
    assert failure(judged).phase is Phase.CHECK
    assert failure(judged).detail == (
        "An element that the page must have is not there. The rule selector demands #none; found: 0."
    )


def test_a_rule_that_found_nothing():
    """Where a rule found nothing at all, the detail says so."""
    assert failure(verdict(expect={"matches": "Tw."})).detail.endswith("demands Tw.; found: nothing.")


def test_drop():
    """A page that lost too much since the last usable one is partial, when that is to be judged."""
    previous = Previous(bytes=10_000, matches=None)
    assert said(verdict(expect={"max_drop": 0.5}, previous=previous)) == "partial size_drop"
    again = judge(seen(), expect={"max_drop": 0.5}, previous=previous, judge_drop=False)
    assert (said(again), again.checks) == ("live", ())


PARKED = b"<title>example.org</title><h1>example.org</h1><p>This website is for sale!</p>"


def test_weak_findings():
    """What a small page looks like decides only where no rule of the caller's has found its page."""
    assert said(verdict(200, PARKED)) == "partial parked_domain"
    assert (
        said(verdict(200, PARKED, expect={"media_type": "text/html", "min_bytes": 5}))
        == "partial parked_domain"
    )
    for rule in ({"selector": "h1"}, {"text_present": "example.org"}, {"matches": "sale"}, {"xpath": "//h1"}):
        assert said(verdict(200, PARKED, expect=rule)) == "live"
    assert said(verdict(200, PARKED, expect={"selector": "h2"})) == "partial selector_missing"


def test_artifacts():
    """What the caller named and did not get makes a good page partial."""
    assert said(verdict(artifacts=("body", "payload", "request"))) == "live"
    judged = verdict(artifacts=("body", "dom", "har"))
    assert said(judged) == "partial artifact_missing"
    assert failure(judged).detail == "A part that had to be kept could not be obtained. Missing: dom, har."
    bare = replace(seen(), artifacts=())
    assert said(judge(bare, artifacts=("payload",))) == "partial artifact_missing"


# a 304

HELD = Validators(etag='"a"')


def test_confirmed():
    """A 304 to our own validators is live, judged on the page it confirms."""
    confirmation = replace(seen(304, b"", sent=HELD), content=seen().content, artifacts=())
    held = subject_of(seen(), PAGE)
    rules = Rules.parse({"selector": "table#list"})
    judged = classify(confirmation, held, expect=rules, artifacts=("body", "payload"))
    assert said(judged) == "live"
    assert [check.passed for check in judged.checks] == [True]
    strict = classify(confirmation, held, expect=Rules.parse({"selector": "#none"}))
    assert said(strict) == "partial selector_missing"


def test_confirmed_empty_page():
    """A confirmed page is what it was; the 304's own body is always empty."""
    confirmation = replace(seen(304, b"", sent=HELD), content=None)
    judged = classify(confirmation, subject(b""), expect=Rules.parse({"min_bytes": 0}))
    assert (said(judged), len(judged.checks)) == ("live", 1)


def test_unasked_not_modified():
    """R-A6: a 304 that nobody asked for confirms nothing."""
    judged = verdict(304, b"")
    assert said(judged) == "partial unexpected_not_modified"
    assert failure(judged).cause is Cause.PROTOCOL_ERROR


# what is told besides

WAIT = ("Retry-After", "120")


@pytest.mark.parametrize("status", [403, 413, 429, 500, 503])
def test_retry_after_is_told(status):
    """A server that turns us away for now may say for how long."""
    assert failure(verdict(status, PAGE, HTML, WAIT)).retry_after_seconds == 120
    assert failure(verdict(status)).retry_after_seconds is None
    assert failure(verdict(status, PAGE, HTML, WAIT, CHALLENGE)).retry_after_seconds == 120


@pytest.mark.parametrize("status", [204, 302, 404, 410, 511])
def test_retry_after_means_nothing(status):
    """A wait is not told where the page is gone, where it came, or where the fault is ours."""
    assert failure(verdict(status, PAGE, HTML, WAIT)).retry_after_seconds is None
    assert failure(verdict(200, b"", HTML, WAIT)).retry_after_seconds is None
    assert (
        failure(verdict(503, PAGE, HTML, WAIT, trouble=broken(Reason.CANCELLED))).retry_after_seconds is None
    )


def codes(judged):
    return [warning.code for warning in judged.warnings]


@pytest.mark.parametrize(
    ("tls", "detail"),
    [
        (Tls(verified=False), "The certificate was not verified, as asked."),
        (Tls(verified=False, problem="expired"), "The certificate was not verified, as asked (expired)."),
    ],
)
def test_unverified_certificates_are_told(tls, detail):
    """Evidence over an unverified connection says so, on failures too."""
    for status, body in ((200, PAGE), (503, PAGE), (204, b"")):
        assert [warning.detail for warning in verdict(status, body, tls=tls).warnings] == [detail]
    assert codes(verdict(tls=Tls())) == []


def test_media_type_mismatch():
    """W-E1: bytes that show another type than the header claims are kept, with a warning."""
    pdf = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
    judged = verdict(200, pdf, HTML)
    assert (said(judged), codes(judged)) == ("live", ["media_type_mismatch"])
    assert codes(verdict(200, pdf, ("Content-Type", "application/pdf"))) == []
    assert codes(verdict(200, pdf, ("Server", "x"))) == []


def test_charset_mismatch():
    """A byte order mark that contradicts the header is told."""
    evidence = seen(200, PAGE, ("Content-Type", "text/html; charset=windows-1251"))
    assert codes(judge(evidence)) == ["charset_mismatch"]
    assert codes(verdict(200, PAGE, ("Content-Type", "text/html"))) == []
    confirmed = replace(evidence, response=replace(evidence.response, status=304), sent=HELD)
    assert codes(classify(confirmed, subject(), expect=Rules())) == []


def test_a_claim_that_the_bytes_do_not_keep_is_told():
    """A page of another type under the header of a PDF is kept as what it is, with a warning; a mere label is not."""
    assert codes(verdict(200, PAGE, ("Content-Type", "application/pdf"))) == ["media_type_mismatch"]
    assert codes(verdict(200, PAGE, ("Content-Type", "application/octet-stream"))) == []
    assert codes(verdict(200, PAGE, ("Content-Type", "text/html; charset=UTF-8"))) == []


def test_json_that_is_none_is_told():
    """A document that claims to be JSON and cannot be read as that is kept, with a warning."""
    kind = ("Content-Type", "application/json")
    assert codes(verdict(200, b'{"items":[{"id":1},', kind)) == ["not_json"]
    assert codes(verdict(200, b'{"items":[]}', kind)) == []


def test_a_charset_nobody_declared_is_told():
    """Bytes that are not UTF-8 and say nothing of their charset are read as UTF-8, with a warning."""
    for body, told in (
        ("日本語のページ".encode("shift_jis"), ["charset_undeclared"]),
        (PAGE, []),
        ("é".encode()[:1], []),
    ):
        evidence = seen(200, body, ("Content-Type", "text/html"))
        assert evidence.content is not None
        guessed = replace(evidence, content=replace(evidence.content, charset_from="default"))
        assert codes(judge(guessed, body)) == told


# the invariants, whatever an engine reports

BODIES = st.sampled_from(
    [
        PAGE, b"", b" \n", PARKED, b"\x89PNG\r\n\x1a\n", b"\xff\xfe<\0p\0", b"{}",
        b'<script>window._cf_chl_opt={}</script>', b'<span class="cf-error-code">1000</span>',
        b'<span class="cf-error-code">1020</span>', b"<title>404 Not Found</title><h1>404 Not Found</h1>",
    ]
)  # fmt: skip


@st.composite
def cases(draw):
    """Any evidence with a body that fits it, under any rules; its fault may be any but a captive portal's."""
    evidence, body = draw(EVIDENCE), draw(BODIES | st.binary(max_size=60))
    # a captive portal is told by its status, and is the one fault that is down although headers came
    if evidence.trouble and evidence.trouble.reason is Reason.CAPTIVE_PORTAL:
        evidence = replace(evidence, trouble=None)
    if evidence.content:
        evidence = replace(evidence, content=replace(evidence.content, bytes=len(body)))
    judged = judge(evidence, body if evidence.content else b"", expect=draw(RULES))
    return evidence, judged


def our_own(evidence):
    return evidence.trouble is not None and FACTS[evidence.trouble.reason].fault is FaultSide.LOCAL


@settings(max_examples=400)
@given(cases())
def test_invariants(case):
    """No evidence breaks what the specification promises of a verdict."""
    evidence, judged = case
    status = evidence.response.status if evidence.response else None
    assert (judged.state is State.LIVE) == (judged.failure is None)
    if status is None:
        refusals = (Cause.ROBOTS_DISALLOWED, Cause.UNSAFE_ADDRESS)
        refused = (
            failure(judged).cause in refusals or failure(judged).reason is Reason.CLIENT_CERTIFICATE_REQUIRED
        )
        assert judged.state is (State.BLOCKED if refused else State.DOWN)
        return
    if 200 <= status < 300:
        assert judged.state in (State.LIVE, State.BLOCKED, State.PARTIAL)
    if status in (404, 410) and not our_own(evidence):
        marked = judged.state is State.BLOCKED and failure(judged).evidence[0].where != "status"
        assert judged.state is State.GONE or marked
    if 400 <= status < 600:
        assert judged.state is not State.LIVE
    if judged.state is State.LIVE:
        assert 200 <= status < 300 or (status == 304 and evidence.sent)
        assert all(check.passed for check in judged.checks)
        assert evidence.trouble is None
        assert evidence.content is None or evidence.content.ending is Ending.COMPLETE


@given(cases())
def test_faults_and_words(case):
    """A failure has its reason's cause and fault, and says something; our fault is never the source's."""
    evidence, judged = case
    if judged.failure is None:
        return
    failed = judged.failure
    assert failed.cause is FACTS[failed.reason].cause
    assert failed.fault is FACTS[failed.reason].fault
    if our_own(evidence):
        assert failed.fault is FaultSide.LOCAL
        assert failed.reason is evidence.trouble.reason
    else:
        assert failed.fault is FaultSide.SOURCE or evidence.response.status == 511
    if failed.retry_after_seconds is not None:
        assert judged.state in (State.BLOCKED, State.DOWN) or failed.reason is Reason.CLIENT_ERROR


PRESENCE = [
    ("Server", "cloudflare"), ("Server", "AkamaiGHost"), ("CF-RAY", "8f-AMS"), ("X-Iinfo", "10-145"),
    ("X-CDN", "Incapsula"), ("x-datadome", "protected"), ("X-Sucuri-ID", "14014"), ("Set-Cookie", "__cf_bm=1"),
    ("Set-Cookie", "_abck=1"), ("Set-Cookie", "datadome=1"), ("Set-Cookie", "visid_incap_1=1"), ("Set-Cookie", "_px3=1"),
]  # fmt: skip


@given(st.lists(st.sampled_from(PRESENCE)), st.sampled_from([200, 404, 410, 500, 503]))
def test_presence_is_no_denial(headers, status):
    """A vendor that is merely there never blocks a page."""
    assert verdict(status, PAGE, HTML, *headers).state is not State.BLOCKED
