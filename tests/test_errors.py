"""What raises, and what it says."""

import pickle

import pytest

from pravda.core.mistake import shown
from pravda.core.outcome import Answer, Newest, Result
from pravda.core.states import Reason, State
from pravda.errors import (
    ArchiveUnavailable,
    BadRequest,
    Damaged,
    NotFound,
    NoUsableSnapshot,
    PravdaError,
    StorageTrouble,
)
from tests.factories import NOON, a_snapshot


def failed(state=State.DOWN, newest=None):
    attempt, _ = a_snapshot(state=state)
    return Answer(result=Result.FAILED, snapshot=None, attempt=attempt, newest_usable=newest)


NEWEST = Newest(id="0198", captured_at=NOON, age_seconds=90_000.0)
ERRORS = [
    BadRequest("url", "is none"),
    NoUsableSnapshot(failed(newest=NEWEST)),
    NotFound("no such thing"),
    Damaged("changed"),
    StorageTrouble(Reason.DISK_FULL, "no space"),
    ArchiveUnavailable("read-only", NEWEST),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickle(error):
    """Every error survives the way to another process, with all it carries."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_tree():
    """A caller's mistake is a ValueError, everything else a PravdaError."""
    assert isinstance(ERRORS[0], ValueError)
    assert all(isinstance(error, PravdaError) for error in ERRORS[1:])


def test_bad_request_names_the_field():
    """A mistake says which part is wrong."""
    assert str(ERRORS[0]) == "url: is none"


def test_no_usable_snapshot_tells_the_story():
    """The message says what happened and what is kept, in whole sentences."""
    error = NoUsableSnapshot(failed(newest=NEWEST))
    assert error.attempt is error.answer.attempt
    assert error.newest_usable is NEWEST
    assert str(error) == (
        "down, service_unavailable: The server is overloaded or under maintenance. "
        "The newest usable snapshot is 0198, captured at 2026-03-01T12:00:00+00:00."
    )
    assert str(NoUsableSnapshot(failed())).endswith(
        "maintenance. No earlier snapshot is kept that this request may use."
    )


def deep():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ("\n\ud800", r"'\n\ud800'"),
        ("x" * 100, "'" + "x" * 59),
        (10**5000, "this int"),
        (deep(), "this list"),
    ],
    ids=["short", "hostile", "long", "huge", "deep"],
)
def test_shown(value, text):
    """A caller's value is shown short and on one line, whatever it is."""
    assert shown(value) == text
