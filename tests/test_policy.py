"""What to do next, as a table of cases and as a property of every sequence of attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.evidence import Phase, Response
from pravda.core.outcome import Failure, Newest, Snapshot, Verdict
from pravda.core.policy import (
    SHORTEST_TRY,
    UNKNOWN,
    Candidate,
    Fall,
    Finish,
    Look,
    Reuse,
    Run,
    Serve,
    age_of,
    may_stand_in,
    newest_of,
    next_step,
)
from pravda.core.request import Request
from pravda.core.states import FACTS, FaultSide, Reason, State
from tests.factories import NOON, a_snapshot
from tests.strategies import snapshots

DAY = 86400.0


def ask(**fields):
    return Request.parse("https://example.org/", **fields)


def held(age=0.0):
    """A usable snapshot of some age at noon."""
    return a_snapshot(captured_at=NOON - timedelta(seconds=age))[0]


def failed(reason, *, status=None, method="GET", fault=None):
    """A failed attempt; without a status no headers came."""
    facts = FACTS[reason]
    snapshot, _ = a_snapshot(state=State.DOWN)
    response = Response(status=status, version="1.1", headers=()) if status else None
    failure = Failure(
        cause=facts.cause,
        reason=reason,
        fault=fault or facts.fault,
        phase=Phase.RESPONSE,
        detail=facts.sentence,
    )
    verdict = Verdict(state=facts.state_when(headers=status is not None), failure=failure)
    evidence = replace(snapshot.evidence, response=response, content=None, method=method)
    return replace(snapshot, evidence=evidence, verdict=verdict)


DOWN = failed(Reason.SERVICE_UNAVAILABLE, status=503)
GONE = failed(Reason.NOT_FOUND, status=404)
OURS = failed(Reason.LOCAL_NETWORK)


def step(request, *attempts, candidate=UNKNOWN, spent=0.0):
    return next_step(request, NOON, spent, attempts, candidate)


# the opening


def test_capture_now():
    """Without max_age the page is captured, with the whole budget, and nothing is looked for first."""
    assert step(ask(timeouts={"total": 60})) == Run(budget=60.0)


@pytest.mark.parametrize(
    ("max_age", "age", "reused"),
    [(60, 59.999, True), (60, 60, True), (60, 60.001, False), ("1d", DAY, True), (1, -5, True)],
)
def test_reuse(max_age, age, reused):
    """A usable snapshot that young, the limit included, is the answer without an attempt."""
    request, young = ask(max_age=max_age), held(age)
    assert step(request) == Look()
    assert step(request, candidate=young) == (Reuse(snapshot=young) if reused else Run(budget=300.0))
    assert step(request, candidate=None) == Run(budget=300.0)


def test_max_age_of_nothing():
    """A max_age of 0 always captures, also within the same moment and when the clock went back."""
    for age in (0.0, -60.0):
        assert isinstance(step(ask(max_age=0), candidate=held(age)), Run)
    assert isinstance(step(ask(max_age=0)), Run)


def test_conditional():
    """A conditional capture sends the validators of the newest usable snapshot, if there is one."""
    request, page = ask(conditional=True), held(DAY)
    assert step(request) == Look()
    assert step(request, candidate=page) == Run(budget=300.0, held=page)
    assert step(request, candidate=None) == Run(budget=300.0)
    assert step(ask(max_age=60), candidate=page) == Run(budget=300.0)


# after an attempt


def test_fresh():
    """A usable attempt is the answer, whatever else is kept."""
    page = held()
    assert step(ask(max_stale_age="7d"), page, candidate=held(5)) == Serve(snapshot=page)
    assert step(ask(), failed(Reason.CONNECTION_RESET), page) == Serve(snapshot=page)


@pytest.mark.parametrize(
    ("fields", "attempt", "age", "stale"),
    [
        pytest.param({"max_stale_age": "7d"}, DOWN, DAY, True, id="young enough"),
        pytest.param({"max_stale_age": 10}, DOWN, 10, True, id="limit included"),
        pytest.param({"max_stale_age": 10}, DOWN, 11, False, id="R-B1 too old"),
        pytest.param({"max_stale_age": 10}, DOWN, 10.001, False, id="just too old"),
        pytest.param({}, DOWN, 0, False, id="R-B3 none"),
        pytest.param({"max_stale_age": 0}, DOWN, 0, False, id="R-B3 zero"),
        pytest.param({"max_stale_age": 0}, OURS, 0, False, id="R-B3 zero for our own fault too"),
        pytest.param({"max_stale_age": "1d"}, DOWN, -60, True, id="a clock that went back"),
        pytest.param({"max_stale_age": "1d"}, GONE, 5, True, id="gone too by default"),
        pytest.param({"max_stale_age": "1d", "stale_if": "down,blocked"}, GONE, 5, False, id="gone left out"),
        pytest.param({"max_stale_age": "1d", "stale_if": "down,blocked"}, DOWN, 5, True, id="down named"),
        pytest.param({"max_stale_age": "1d", "stale_if": []}, DOWN, 5, False, id="no state allows it"),
        pytest.param({"max_stale_age": "1d", "stale_if": []}, OURS, 5, True, id="a local fault always does"),
        pytest.param({"max_stale_age": 2 * DAY}, DOWN, DAY, True, id="R-B12 a 304 of yesterday"),
    ],
)
def test_fallback(fields, attempt, age, stale):
    """An earlier snapshot stands in when it is young enough and the failure allows it, else nothing does."""
    request, page = ask(**fields), held(age)
    assert step(request, attempt) == Look()
    assert step(request, attempt, candidate=page) == (Fall(snapshot=page) if stale else Finish())
    assert step(request, attempt, candidate=None) == Finish()
    assert may_stand_in(request, NOON, attempt, page) is stale


def test_age_counts_from_the_capture():
    """R-B10: failed attempts do not make a snapshot younger, and a slow one not older."""
    page = held(22 * 3600)
    assert age_of(page, NOON) == 22 * 3600
    assert newest_of(page, NOON) == Newest(id=page.id, captured_at=page.captured_at, age_seconds=22 * 3600)
    assert age_of(held(-5), NOON) == 0
    request = ask(max_stale_age="22h")
    assert step(request, DOWN, candidate=page, spent=290.0) == Fall(snapshot=page)


# the second try


@pytest.mark.parametrize(
    ("attempt", "again"),
    [
        (failed(Reason.CONNECTION_RESET), True),
        (failed(Reason.EMPTY_RESPONSE), True),
        (failed(Reason.SERVER_ERROR, status=421), True),
        (failed(Reason.SERVER_ERROR, status=425), True),
        (failed(Reason.SERVER_ERROR, status=421, method="POST"), True),
        (failed(Reason.BROWSER_CRASHED), True),
        (failed(Reason.BROWSER_CRASHED, status=200), True),
        (failed(Reason.CONNECTION_RESET, method="POST"), False),
        (failed(Reason.EMPTY_RESPONSE, method="PATCH"), False),
        (failed(Reason.BOT_CHALLENGE, status=425), False),
        (failed(Reason.CANCELLED, status=421), False),
        (failed(Reason.EMPTY_RESPONSE, status=103), False),
        (failed(Reason.TRUNCATED_BODY, status=200), False),
        (failed(Reason.CONNECTION_REFUSED), False),
        (failed(Reason.RESPONSE_TIMEOUT), False),
        (failed(Reason.SERVICE_UNAVAILABLE, status=503), False),
        (failed(Reason.RATE_LIMITED, status=429), False),
    ],
)
def test_retry(attempt, again):
    """One more try on a fresh connection, only for what it may cure and never for what may have been done."""
    request = ask(timeouts={"total": 60})
    assert step(request, attempt, spent=12.0) == (
        Run(budget=48.0, fresh_connection=True) if again else Look()
    )
    assert step(request, attempt, attempt, spent=12.0) == Look()


def test_no_time_for_a_retry():
    """A second try needs a second."""
    attempt, request = failed(Reason.CONNECTION_RESET), ask(timeouts={"total": 60})
    assert isinstance(step(request, attempt, spent=60 - SHORTEST_TRY), Run)
    assert step(request, attempt, spent=60 - SHORTEST_TRY / 2) == Look()


def test_conditional_retry():
    """The second try of a conditional capture sends the same validators."""
    attempt, page = failed(Reason.CONNECTION_RESET), held(5)
    assert step(ask(conditional=True), attempt, candidate=page, spent=10) == Run(
        budget=290.0, fresh_connection=True, held=page
    )
    assert step(ask(), attempt, candidate=page) == Run(budget=300.0, fresh_connection=True)


def test_an_unexplained_failure_is_not_retried():
    """An attempt that is not live and does not say why ends as it is."""
    odd = replace(DOWN, verdict=Verdict(state=State.DOWN))
    assert step(ask(max_stale_age="1d"), odd, candidate=None) == Finish()
    assert may_stand_in(ask(max_stale_age="1d"), NOON, odd, held(5))


REQUESTS = st.builds(
    ask,
    max_age=st.none() | st.sampled_from([0, 60, 1e9]),
    max_stale_age=st.none() | st.sampled_from([0, 60, 1e9]),
    stale_if=st.sampled_from(["down", "gone,blocked", []]),
    conditional=st.booleans(),
    timeouts=st.floats(min_value=0.5, max_value=300).map(lambda total: {"total": total}),
)


@given(REQUESTS, st.lists(snapshots(), min_size=2, max_size=2), st.none() | snapshots(), st.data())
def test_every_capture_ends(request_, world, kept, data):
    """Whatever the world answers, at most two attempts are made, within the budget, and the answer is allowed."""
    total = request_.timeouts.total
    attempts: tuple[Snapshot, ...] = ()
    candidate: Candidate = UNKNOWN
    spent, looks = 0.0, 0
    for _ in range(6):
        now = next_step(request_, NOON, spent, attempts, candidate)
        match now:
            case Look():
                candidate, looks = kept, looks + 1
            case Run():
                assert 0 < now.budget <= total - spent
                assert now.fresh_connection is bool(attempts)
                assert now.held is None or (request_.conditional and now.held is kept)
                spent += data.draw(st.floats(0, now.budget))
                attempts += (world[len(attempts)],)
            case Serve():
                assert now.snapshot is attempts[-1]
                assert now.snapshot.usable
                break
            case Reuse():
                assert not attempts
                assert request_.max_age
                assert age_of(now.snapshot, NOON) <= request_.max_age
                break
            case Fall():
                assert not attempts[-1].usable
                assert request_.max_stale_age
                assert age_of(now.snapshot, NOON) <= request_.max_stale_age
                failure = attempts[-1].verdict.failure
                assert failure is not None
                assert failure.fault is FaultSide.LOCAL or attempts[-1].state in request_.stale_if
                break
            case Finish():
                assert not attempts[-1].usable
                break
            case _:
                assert_never(now)
    else:
        pytest.fail("the capture does not end")
    assert len(attempts) <= 2
    assert looks <= 1
