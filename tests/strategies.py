"""Generated evidence, verdicts and snapshots for property tests."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from pravda.core.evidence import (
    Artifact,
    Content,
    Ending,
    Evidence,
    Hop,
    Note,
    Phase,
    Response,
    Timings,
    Tls,
    Trouble,
    Validators,
)
from pravda.core.outcome import Answer, Asked, Failure, Mark, Newest, Result, Snapshot, Verdict
from pravda.core.request import TlsMode
from pravda.core.rules import Check, Rules
from pravda.core.states import Cause, FaultSide, Reason, State

TEXTS = st.text(max_size=12)
MOMENTS = st.integers(0, 7_000_000_000_000).map(
    lambda milliseconds: datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
)
COUNTS = st.integers(min_value=0, max_value=2**53)
SECONDS = st.floats(min_value=0, max_value=1e9) | st.integers(min_value=0, max_value=10**9)

VALIDATORS = st.builds(Validators, etag=st.none() | TEXTS, last_modified=st.none() | TEXTS)
NOTES = st.lists(st.builds(Note, code=TEXTS, detail=TEXTS), max_size=2).map(tuple)
TROUBLES = st.builds(
    Trouble,
    reason=st.sampled_from(Reason),
    phase=st.sampled_from(Phase),
    detail=TEXTS,
    raw=TEXTS,
    errno=st.none() | st.integers(0, 200),
)
TLS = st.builds(
    Tls,
    version=st.none() | TEXTS,
    cipher=st.none() | TEXTS,
    verified=st.booleans(),
    problem=st.none() | TEXTS,
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["Content-Type", "content-range", "Retry-After", "ETag", "cf-mitigated", "Server"]),
        st.sampled_from(["text/html", "bytes 0-9/10", "120", '"a"', "challenge", "cloudflare"]) | TEXTS,
    ),
    max_size=4,
).map(tuple)
RESPONSES = st.builds(
    Response,
    status=st.integers(100, 1100) | st.sampled_from([200, 206, 304, 403, 404, 410, 503, 511]),
    version=st.sampled_from(["1.0", "1.1", "2"]),
    headers=HEADERS,
    remote_address=st.none() | TEXTS,
    tls=st.none() | TLS,
)
CONTENTS = st.builds(
    Content,
    sha256=TEXTS,
    bytes=COUNTS,
    media_type=st.none() | TEXTS,
    charset=st.none() | st.sampled_from(["utf-8", "windows-1252"]),
    charset_from=st.none() | TEXTS,
    ending=st.sampled_from(Ending),
    wire_bytes=COUNTS,
    declared_bytes=st.none() | COUNTS,
)
ARTIFACTS = st.builds(
    Artifact,
    name=st.sampled_from(["body", "payload", "request", "response"]),
    media_type=TEXTS,
    bytes=COUNTS,
    sha256=TEXTS,
    redacted=st.booleans(),
)
TIMES = st.none() | SECONDS
EVIDENCE = st.builds(
    Evidence,
    url=TEXTS,
    final_url=TEXTS | st.just("https://example.org/"),
    engine=TEXTS,
    method=st.sampled_from(["GET", "POST"]),
    requested_at=MOMENTS,
    captured_at=MOMENTS,
    response=st.none() | RESPONSES,
    content=st.none() | CONTENTS,
    redirects=st.lists(
        st.builds(
            Hop,
            url=TEXTS,
            status=st.integers(300, 399),
            received_at=st.none() | MOMENTS,
            remote_address=st.none() | TEXTS,
        ),
        max_size=2,
    ).map(tuple),
    client_redirects=st.lists(TEXTS, max_size=2).map(tuple),
    trouble=st.none() | TROUBLES,
    sent=VALIDATORS,
    asked_headers=st.lists(st.sampled_from(["accept", "range", "x"]), max_size=2).map(tuple),
    notes=NOTES,
    artifacts=st.lists(ARTIFACTS, max_size=3).map(tuple),
    timings=st.builds(
        Timings, dns_ms=TIMES, connect_ms=TIMES, tls_ms=TIMES, first_byte_ms=TIMES, total_ms=TIMES
    ),
)

RULES = st.builds(
    Rules,
    media_type=st.lists(st.sampled_from(["text/html", "text/csv"]), max_size=2, unique=True).map(tuple),
    min_bytes=st.none() | st.integers(0, 100),
    selector=st.lists(st.sampled_from(["p", "table", "a["]), max_size=2, unique=True).map(tuple),
    text_present=st.lists(st.sampled_from(["One", "Two"]), max_size=2, unique=True).map(tuple),
    not_matches=st.lists(st.sampled_from(["One", "("]), max_size=2, unique=True).map(tuple),
    max_drop=st.none() | st.floats(0, 1),
)
CHECKS = st.builds(
    Check,
    rule=TEXTS,
    expected=TEXTS | COUNTS | st.floats(0, 1) | st.lists(TEXTS, max_size=2).map(tuple),
    passed=st.booleans(),
    found=st.none() | TEXTS | COUNTS,
    reason=TEXTS,
)
FAILURES = st.builds(
    Failure,
    cause=st.sampled_from(Cause),
    reason=st.sampled_from(Reason),
    fault=st.sampled_from(FaultSide),
    phase=st.sampled_from(Phase),
    detail=TEXTS,
    evidence=st.lists(st.builds(Mark, where=TEXTS, matched=TEXTS), max_size=2).map(tuple),
    retry_after_seconds=st.none() | SECONDS,
    raw=TEXTS,
)
_SAID = {"checks": st.lists(CHECKS, max_size=2).map(tuple), "warnings": NOTES}
LIVE = st.builds(Verdict, state=st.just(State.LIVE), failure=st.none(), **_SAID)
FAILED = st.builds(
    Verdict,
    state=st.sampled_from([state for state in State if state is not State.LIVE]),
    failure=FAILURES,
    **_SAID,
)
ASKED = st.builds(
    Asked,
    page=TEXTS,
    identity=TEXTS,
    capture_id=TEXTS,
    key=st.none() | TEXTS,
    expect=RULES,
    conditional=st.booleans(),
    tls=st.sampled_from(TlsMode),
    artifacts=st.lists(TEXTS, max_size=2).map(tuple),
)


def snapshots(verdicts: st.SearchStrategy[Verdict] = LIVE | FAILED) -> st.SearchStrategy[Snapshot]:
    """Snapshots of any kind, as far as their parts do not contradict each other."""
    return st.builds(
        Snapshot,
        id=TEXTS,
        evidence=EVIDENCE,
        verdict=verdicts,
        asked=ASKED,
        validators=VALIDATORS,
        not_modified=st.booleans(),
        content_from=st.none() | TEXTS,
        content_captured_at=st.none() | MOMENTS,
    )


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Answers of any kind: a failed one has no snapshot, a reused one no attempt."""
    result = draw(st.sampled_from(Result))
    return Answer(
        result=result,
        snapshot=None if result is Result.FAILED else draw(snapshots(LIVE)),
        attempt=None if result is Result.REUSED else draw(snapshots(FAILED)),
        attempts=tuple(draw(st.lists(TEXTS, max_size=2))),
        age_seconds=draw(TIMES),
        max_stale_age_seconds=draw(TIMES),
        newest_usable=draw(st.none() | st.builds(Newest, id=TEXTS, captured_at=MOMENTS, age_seconds=SECONDS)),
    )
