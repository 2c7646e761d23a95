"""Retry-After, Content-Range and validators, as their RFCs read them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.evidence import Evidence, Response, Validators
from pravda.core.headers import LONGEST_RETRY_AFTER, after_not_modified, covers_whole, retry_after

NOW = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)
WEEK = 7 * 86400.0


def http_date(moment):
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("2", 2.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("9999999999", WEEK),
        ("999999999", WEEK),
        ("99999999999999999999", WEEK),
        ("-1", None),
        ("-5", None),
        ("1.5", None),
        ("abc", None),
        ("", None),
        ("１２", None),
        (http_date(NOW + timedelta(hours=3)), 3 * 3600.0),
        (http_date(NOW - timedelta(hours=3)), 0.0),
        (http_date(NOW + timedelta(days=900)), WEEK),
        ("Sunday, 06-Nov-94 08:49:38 GMT", 1.0),
        ("Sun Nov  6 08:49:39 1994", 2.0),
        ("Sun, 06 Nov 1994 08:49:40 -0000", 3.0),
        ("Sun, 99 Nov 1994 08:49:40 GMT", None),
        ("Sun, 06 Nov 1994 08:49:40 GMT" + " " * 64, 3.0),
        ("Sun, 06 Nov 1994 08:49:40 GMT" + "x" * 64, None),
    ],
)
def test_retry_after(value, seconds):
    """Seconds and dates are read and clamped, anything else says nothing."""
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=80) | st.from_regex(r"[A-Z][a-z]{2},? [0-9 :A-Za-z+-]{0,40}", fullmatch=True))
def test_retry_after_is_bounded(value):
    """Whatever a server sends, the wait is nothing or between now and a week."""
    wait = retry_after(value, NOW)
    assert wait is None or 0 <= wait <= LONGEST_RETRY_AFTER


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ("bytes 0-99/100", True),
        ("Bytes 0-0/1", True),
        (" bytes  0-99/100 ", True),
        ("bytes 0-98/100", False),
        ("bytes 1-99/100", False),
        ("bytes 0-99/*", False),
        ("bytes */100", False),
        ("items 0-99/100", False),
        ("bytes 0-99/100, bytes 0-99/100", False),
        ("bytes 0-" + "9" * 40 + "/1", False),
        ("", False),
        (None, False),
    ],
)
def test_content_range(value, whole):
    """Only a range of all bytes covers the whole page."""
    assert covers_whole(value) is whole


def validators(etag=None, modified=None):
    return Validators(etag=etag, last_modified=modified)


@pytest.mark.parametrize(
    ("sent", "received", "held", "kept"),
    [
        pytest.param(validators('"a"'), validators('"a"'), validators('"a"'), validators('"a"'), id="same"),
        pytest.param(validators('"a"'), validators(), validators('"a"', "LM"), validators('"a"', "LM"), id="R-A3"),
        pytest.param(
            validators('"a"', "LM"), validators('"a"', "LM2"), validators('"a"', "LM"), validators('"a"', "LM2"),
            id="R-A1 a date rotates",
        ),
        pytest.param(
            validators(None, "LM"), validators('"b"'), validators(None, "LM"), validators('"b"', "LM"),
            id="an ETag comes where none was sent",
        ),
        pytest.param(
            validators('W/"abc-gzip"'), validators('"abc-gzip"'), validators('W/"abc-gzip"'),
            validators('"abc-gzip"'), id="weakly equal",
        ),
        pytest.param(
            validators('"abc"'), validators('"abc-gzip"'), validators('"abc"', "LM"), validators(),
            id="foreign ETag: the next request is unconditional",
        ),
    ],
)  # fmt: skip
def test_after_not_modified(sent, received, held, kept):
    """A 304 renews what it repeats, keeps what it leaves out, and a foreign ETag ends all."""
    assert after_not_modified(sent, received, held) == kept


def test_many_confirmations_keep_the_validator():
    """R-A17: the ETag of the page survives any number of bare 304s."""
    held = validators('"a"')
    for _ in range(3):
        held = after_not_modified(held, validators(), held)
    assert held == validators('"a"')


def seen(*headers, response=True):
    return Evidence(
        url="https://example.org/",
        final_url="https://example.org/",
        engine="http",
        method="GET",
        requested_at=NOW,
        captured_at=NOW,
        response=Response(status=200, version="1.1", headers=headers) if response else None,
    )


def test_validators_as_received():
    """R-A19, R-A11: validators are kept byte for byte, prefix, suffix and odd dates included."""
    page = seen(("etag", 'W/"abc-gzip"'), ("Last-Modified", "Friday, 14-Aug-26 09:00:00 GMT"))
    assert page.validators == validators('W/"abc-gzip"', "Friday, 14-Aug-26 09:00:00 GMT")


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_blank_validators_are_none(blank):
    """R-A15: a blank validator is none."""
    page = seen(("ETag", blank), ("Last-Modified", blank))
    assert page.validators == validators()
    assert not page.validators


def test_no_response_has_no_validators():
    """Without a response there are no validators."""
    assert seen(response=False).validators == validators()
    assert seen(("ETag", '"a"')).validators
    assert seen(("Last-Modified", "x")).validators
