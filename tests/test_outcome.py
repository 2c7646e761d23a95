"""What an answer and a snapshot say of themselves."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pravda.core.outcome import Answer, Result
from pravda.core.states import Exit, FaultSide, State
from tests.factories import NOON, a_snapshot


def failed(state=State.DOWN):
    attempt, _ = a_snapshot(state=state)
    return Answer(result=Result.FAILED, snapshot=None, attempt=attempt)


def test_newest_is_highest():
    """Snapshots are ordered by their capture time, then by their id."""
    later, _ = a_snapshot(captured_at=NOON + timedelta(milliseconds=1), snapshot_id="0")
    first, _ = a_snapshot(snapshot_id="1")
    second, _ = a_snapshot(snapshot_id="2")
    assert max((first, later, second), key=lambda snapshot: snapshot.order) is later
    assert max((first, second), key=lambda snapshot: snapshot.order) is second


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.BLOCKED, Exit.BLOCKED),
        (State.GONE, Exit.GONE),
        (State.DOWN, Exit.DOWN),
        (State.PARTIAL, Exit.PARTIAL),
    ],
)
def test_exit_code_of_a_failed_answer(state, code):
    """A failed answer ends the command line with the code of its attempt's state."""
    assert failed(state).exit_code is code


def test_exit_code_of_a_local_fault():
    """A fault of ours has its own exit code, whatever the state."""
    answer = failed(State.BLOCKED)
    verdict = answer.attempt.verdict
    ours = replace(verdict, failure=replace(verdict.failure, fault=FaultSide.LOCAL))
    assert replace(answer, attempt=answer.attempt.judged(ours)).exit_code is Exit.LOCAL_FAULT


def test_answers_that_are_no_failure():
    """A usable answer has exit code 0 and no problem, and knows whether it is stale."""
    snapshot, _ = a_snapshot()
    fresh = Answer(result=Result.FRESH, snapshot=snapshot, attempt=snapshot)
    stale = Answer(result=Result.STALE, snapshot=snapshot, attempt=failed().attempt)
    assert (fresh.exit_code, fresh.problem, fresh.stale) == (Exit.OK, "", False)
    assert (stale.exit_code, stale.problem, stale.stale) == (Exit.OK, "", True)
