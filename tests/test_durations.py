"""Durations as callers write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.durations import LONGEST, seconds
from pravda.core.mistake import BadRequest


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (90, 90.0),
        (1.5, 1.5),
        ("90", 90.0),
        ("1.5", 1.5),
        (" 7d ", 604800.0),
        ("7d", 604800.0),
        ("36h", 129600.0),
        ("1h30m", 5400.0),
        ("1w2d3h4m5s", 788645.0),
        ("0.5d", 43200.0),
        ("0s", 0.0),
        ("P7D", 604800.0),
        ("PT36H", 129600.0),
        ("P1W", 604800.0),
        ("P1DT2H", 93600.0),
        ("PT1M1.5S", 61.5),
        ("PT0S", 0.0),
        (LONGEST, LONGEST),
    ],
)
def test_read(value, expected):
    """Numbers are seconds; short and ISO 8601 forms add up."""
    assert seconds("max_age", value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "d", "x", "7 d", "7y", "1m1h", "1d1d", "P", "PT", "P1Y", "P1M", "P-1D", "p7d", "P7DT",
        "7d!", "٣d", "1e3", "nan", "inf", "0x10", "1_000", "1" * 61, "-7d", -1, -0.5, "-1", float("nan"),
        float("inf"), float("-inf"), LONGEST + 1, "101w101w", "99999w", 10**400, 10**5000, -(10**5000), True,
        False, None, b"7d", [7], {"days": 7}, object(),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_refused(value):
    """Anything else is a mistake that names the field and stays short."""
    with pytest.raises(BadRequest, match=r"^max_age: ") as refused:
        seconds("max_age", value)
    assert refused.value.field == "max_age"
    assert len(str(refused.value)) < 200


@given(st.text(max_size=100) | st.floats() | st.integers())
def test_bounded(value):
    """A duration is between nothing and a hundred years, or refused."""
    with suppress(BadRequest):
        assert 0 <= seconds("x", value) <= LONGEST
