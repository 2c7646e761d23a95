"""The caller's rules: what they take, what they say of a page, and that no page makes them raise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.mistake import BadRequest
from pravda.core.rule_values import Rule
from pravda.core.rules import (
    NOT_JSON,
    TOO_DEEP,
    TOO_LARGE,
    Check,
    Previous,
    Rules,
    Subject,
    count_matches,
    evaluate,
    first_failure,
)
from pravda.core.states import Reason
from pravda.core.text import Page

HTML = "<title>Who</title><table id=list><tr><td>One\n two</td></tr><tr><td>Three</td></tr></table><p hidden>secret"
JSON = '{"items": [1, 2, 3], "none": []}'
TYPES = {HTML: "text/html; charset=utf-8", JSON: "application/json"}


def subject(
    body: str | bytes = HTML,
    content_type: str | None = "text/html; charset=utf-8",
    charset: str = "utf-8",
    final_url: str = "https://example.org/list",
    size: int | None = None,
    whole: bool = True,
) -> Subject:
    data = body if isinstance(body, bytes) else body.encode()
    page = Page(data, content_type=content_type, charset=charset, final_url=final_url, whole=whole)
    return Subject(page=page, size=len(data) if size is None else size, final_url=final_url)


def checks(rules: dict[str, object], on: Subject, previous: Previous | None = None) -> tuple[Check, ...]:
    return evaluate(Rules.parse(rules), on, previous)


def one(rules: dict[str, object], on: Subject, previous: Previous | None = None) -> Check:
    (check,) = checks(rules, on, previous)
    return check


@pytest.mark.parametrize(
    ("rule", "good", "bad", "found", "reason"),
    [
        ("media_type", "text/html", "text/csv", "text/html", "wrong_media_type"),
        ("media_type", ["text/csv", "text/*"], ["text/csv", "image/png"], "text/html", "wrong_media_type"),
        ("charset", "UTF8", "latin1", "utf-8", "wrong_charset"),
        ("charset", ["shift_jis", "utf-8"], ["shift_jis", "big5"], "utf-8", "wrong_charset"),
        ("min_bytes", len(HTML), len(HTML) + 1, len(HTML), "too_small"),
        ("max_bytes", len(HTML), len(HTML) - 1, len(HTML), "too_large"),
        ("final_url", "/list$", "/login", "https://example.org/list", "redirect_unexpected"),
        ("selector", "table#list td", "ul li", 0, "selector_missing"),
        ("xpath", "//tr/td", "//li", 0, "selector_missing"),
        ("xpath", "count(//td) = 2", "count(//td) = 3", 0, "selector_missing"),
        ("text_present", "One  two", "Four", 0, "text_missing"),
        ("text_present", "Three", "secret", 0, "text_missing"),
        ("text_absent", "secret", "Three", 1, "text_forbidden"),
        ("matches", "T[a-z]+e", "Four", None, "text_missing"),
        ("not_matches", "secret", "T..e+", "Three", "text_forbidden"),
    ],
)
def test_each_rule_passes_and_fails(rule, good, bad, found, reason):
    """A rule passes where the page fulfils it; where not, it says what was found and gives its reason."""
    passed, failed = one({rule: good}, subject()), one({rule: bad}, subject())
    assert (passed.passed, passed.rule, passed.reason) == (True, rule, reason)
    assert (failed.passed, failed.found, failed.reason) == (False, found, reason)


@pytest.mark.parametrize(
    ("body", "path", "passed", "found", "reason"),
    [
        (JSON, "$.items", True, 1, "json_path_missing"),
        (JSON, "$.items[*]", True, 3, "json_path_missing"),
        (JSON, "$.none[*]", False, 0, "json_path_missing"),
        ("<p>Too many requests", "$.items", False, NOT_JSON, "undecodable"),
    ],
)
def test_json_path(body, path, passed, found, reason):
    """A JSONPath finds nodes in JSON; a body which is no JSON cannot be decoded."""
    check = one({"json_path": path}, subject(body, "application/json"))
    assert (check.passed, check.found, check.reason) == (passed, found, reason)


@pytest.mark.parametrize(
    ("query", "body", "matches"),
    [
        ({"selector": "td"}, HTML, 2),
        ({"selector": ["td", "table"]}, HTML, 2),
        ({"xpath": "count(//td)"}, HTML, 2),
        ({"selector": "td", "xpath": "//table"}, HTML, 2),
        ({"json_path": "$.items[*]"}, JSON, 3),
        ({"json_path": "$.items[*]"}, HTML, None),
        ({"selector": "td"}, JSON, 0),
        ({"text_present": "x"}, HTML, None),
    ],
)
def test_matches_are_counted_by_the_first_query(query, body, matches):
    """The first selector counts, else the first XPath, else the first JSONPath."""
    assert count_matches(Rules.parse(query), subject(body, TYPES[body]).page) == matches


def test_matches_have_bounds():
    """min_matches and max_matches hold at their limits and say what was counted."""
    for low, high, reason in [(2, 2, None), (3, 9, "count_too_low"), (0, 1, "count_too_high")]:
        failure = first_failure(
            checks({"selector": "td", "min_matches": low, "max_matches": high}, subject())
        )
        assert (failure.reason if failure else None) == reason
        assert failure is None or failure.found == 2


@pytest.mark.parametrize("limit", ["min_matches", "max_matches"])
def test_uncountable_matches_fail(limit):
    """A body in which nothing can be counted fails both bounds."""
    failed = checks({"json_path": "$.items", limit: 0}, subject())
    assert [(check.passed, check.found) for check in failed] == [(False, NOT_JSON)] * 2


@pytest.mark.parametrize(
    ("most", "previous", "passed", "found", "reason"),
    [
        (0.5, None, True, None, "size_drop"),
        (0.5, Previous(bytes=200, matches=None), True, 0.5, "size_drop"),
        (0.5, Previous(bytes=60_000, matches=9), False, 0.9983, "size_drop"),
        (0.3, Previous(bytes=50, matches=None), True, 0.0, "size_drop"),
        (0, Previous(bytes=100, matches=None), True, 0.0, "size_drop"),
        (0, Previous(bytes=101, matches=None), False, 0.0099, "size_drop"),
        (1, Previous(bytes=10**9, matches=None), True, 1.0, "size_drop"),
        (0.5, Previous(bytes=0, matches=None), True, None, "size_drop"),
    ],
)
def test_max_drop_over_bytes(most, previous, passed, found, reason):
    """Without a counting rule the bytes are compared with the last usable snapshot's."""
    check = one({"max_drop": most}, subject("x" * 100), previous)
    assert (check.passed, check.found, check.reason) == (passed, found, reason)


def test_max_drop_over_matches():
    """With a counting rule the matches are compared, unless the earlier ones are not known."""
    rules = {"selector": "td", "max_drop": 0.5}

    def drop(previous: Previous, on: Subject) -> tuple[bool, object, str]:
        check = checks(rules, on, previous)[-1]
        return check.passed, check.found, check.reason

    small = len(HTML)
    assert drop(Previous(bytes=10**6, matches=4), subject()) == (True, 0.5, "count_drop")
    assert drop(Previous(bytes=1, matches=10), subject()) == (False, 0.8, "count_drop")
    assert drop(Previous(bytes=1, matches=0), subject()) == (True, None, "count_drop")
    assert drop(Previous(bytes=small * 4, matches=None), subject()) == (False, 0.75, "size_drop")
    assert drop(Previous(bytes=1, matches=10), subject(whole=False)) == (False, TOO_LARGE, "count_drop")


@pytest.mark.parametrize(("before", "now", "most"), [(10, 7, 0.3), (10, 1, 0.9), (1_000_000, 900_000, 0.1)])
def test_max_drop_includes_its_limit(before, now, most):
    """A share without exact binary form does not fail the page that stands right at it."""
    assert one({"max_drop": most}, subject(size=now), Previous(bytes=before, matches=None)).passed


def test_max_drop_can_be_left_out():
    """On stored evidence there is nothing to compare with, so the drop is not judged."""
    rules = Rules.parse({"max_drop": 0.1, "min_bytes": 1})
    previous = Previous(bytes=10**6, matches=None)
    assert [check.rule for check in evaluate(rules, subject(), previous, drop=False)] == ["min_bytes"]


def test_all_rules_are_reported_in_order():
    """Every rule is judged although one before it failed, several values each by itself, and the first failure counts."""
    rules: dict[str, object] = {
        "max_drop": 0.5,
        "not_matches": "x",
        "matches": ["a", "b"],
        "text_absent": "x",
        "text_present": "x",
        "max_matches": 9,
        "min_matches": 1,
        "json_path": "$",
        "xpath": "//a",
        "selector": ["a", "b"],
        "final_url": ["x", "y"],
        "max_bytes": 99,
        "min_bytes": 1,
        "charset": ["utf-8", "big5"],
        "media_type": "text/csv",
    }
    done = checks(rules, subject())
    assert list(dict.fromkeys(check.rule for check in done)) == [rule.value for rule in Rule]
    assert len(done) == 18
    first = first_failure(done)
    assert first is not None
    assert first.reason == "wrong_media_type"
    assert done[1].expected == ("utf-8", "big5")
    assert {check.reason for check in done} <= {reason.value for reason in Reason}
    assert len(Rule) == 15


def test_nothing_demanded_nothing_checked():
    """No rules, no checks, no failure."""
    assert evaluate(Rules(), subject(), None) == ()
    assert first_failure(()) is None


CONTENT_RULES: dict[str, object] = {
    "selector": "td",
    "xpath": "//td",
    "min_matches": 0,
    "max_matches": 9,
    "text_present": "One",
    "text_absent": "x",
    "matches": "One",
    "not_matches": "x",
}


def test_a_head_is_not_judged_as_a_whole():
    """Rules on the content of a body too large to read fail and say so; those on its outside are judged."""
    done = checks(
        {**CONTENT_RULES, "json_path": "$", "min_bytes": 500, "media_type": "text/html"},
        subject(whole=False, size=1_000),
    )
    assert {check.found for check in done if not check.passed} == {TOO_LARGE}
    assert {check.rule for check in done if check.passed} == {"min_bytes", "media_type"}


def test_a_cut_tree_is_not_judged():
    """Rules fail honestly on a page that is nested too deep to be read to its end."""
    done = checks(CONTENT_RULES, subject("<div>" * 5_000 + HTML))
    assert {(check.passed, check.found) for check in done} == {(False, TOO_DEEP)}


def test_a_query_that_cannot_be_answered_fails():
    """An XPath that would not end on this page fails, and says why."""
    check = one({"xpath": "//p/following::p"}, subject("<p>x</p>" * 20_000))
    assert not check.passed
    assert "too large" in str(check.found)


def test_texts_of_other_types_are_searched():
    """Patterns see the decoded text of CSV and JSON with its lines, and nothing of a picture."""
    csv = subject("a,b\nc,d\n", "text/csv")
    assert one({"matches": r"(?m)^c,d$"}, csv).passed
    assert one({"text_present": "b c"}, csv).passed
    picture = subject(b"\x89PNG\r\n\x1a\n words", "image/png")
    assert not one({"matches": "words"}, picture).passed
    assert not one({"text_present": "words"}, picture).passed


def test_media_type_goes_by_the_bytes():
    """A header that claims a type whose magic is absent fails, and bytes that show a type overrule the header."""
    assert not one(
        {"media_type": "application/pdf"}, subject("<!doctype html><p>x", "application/pdf")
    ).passed
    assert one({"media_type": "application/pdf"}, subject(b"%PDF-1.4\n", "text/html")).passed


def test_charsets_are_compared_by_name():
    """Labels of one encoding are one, also where the page's own is not canonical."""
    assert one({"charset": "windows-1252"}, subject(charset="ISO-8859-1")).passed
    assert one({"charset": "latin1"}, subject(charset="windows-1252")).passed


def test_what_was_found_is_short():
    """A match of a whole page does not become part of the answer."""
    assert len(str(one({"not_matches": "x+"}, subject("x" * 10_000)).found)) == 200


@pytest.mark.parametrize(
    ("expect", "field", "says"),
    [
        ({"selektor": "a"}, "expect.selektor", "write one of media_type"),
        ({"parser": "a"}, "expect.parser", "write one of"),
        ({1: "a"}, "expect.int", "write one of"),
        ({"selector": "a["}, "expect.selector", "a["),
        ({"selector": "a::text"}, "expect.selector", "pseudo-element"),
        ({"selector": 1}, "expect.selector", "write a text"),
        ({"selector": 10**5_000}, "expect.selector", "of type int"),
        ({"selector": None}, "expect.selector", "write a text"),
        ({"selector": {"a": 1}}, "expect.selector", "write a text"),
        ({"selector": ""}, "expect.selector", "empty"),
        ({"selector": []}, "expect.selector", "empty list"),
        ({"selector": ["a", ["b"]]}, "expect.selector", "write a text"),
        ({"selector": "a" * 2_001}, "expect.selector", "at most 2000"),
        ({"selector": ["a"] * 51}, "expect.selector", "at most 50"),
        ({"selector": "a\0"}, "expect.selector", "NUL"),
        ({"text_present": "\ud800"}, "expect.text_present", "half a character"),
        ({"text_present": " \n"}, "expect.text_present", "empty"),
        ({"xpath": "//a["}, "expect.xpath", "XPath 1.0"),
        ({"xpath": "document('x')"}, "expect.xpath", "document"),
        ({"json_path": "items"}, "expect.json_path", "RFC 9535"),
        ({"matches": "(?=a)"}, "expect.matches", "look-around"),
        ({"not_matches": r"(a)\1"}, "expect.not_matches", "back-references"),
        ({"final_url": "("}, "expect.final_url", "RE2"),
        ({"media_type": "html"}, "expect.media_type", "text/html"),
        ({"media_type": "text/html; charset=utf-8"}, "expect.media_type", "without parameters"),
        ({"charset": "utf-9"}, "expect.charset", "windows-1252"),
        ({"min_bytes": True}, "expect.min_bytes", "whole number"),
        ({"min_bytes": "10"}, "expect.min_bytes", "whole number"),
        ({"min_bytes": 1.5}, "expect.min_bytes", "whole number"),
        ({"min_bytes": -1}, "expect.min_bytes", "from 0"),
        ({"max_bytes": 10**5_000}, "expect.max_bytes", "from 0"),
        ({"min_bytes": 2, "max_bytes": 1}, "expect.min_bytes", "no page"),
        ({"min_matches": 1}, "expect.min_matches", "selector, xpath or json_path"),
        ({"max_matches": 1}, "expect.max_matches", "selector, xpath or json_path"),
        ({"selector": "a", "min_matches": 2, "max_matches": 1}, "expect.min_matches", "no page"),
        ({"max_drop": 1.1}, "expect.max_drop", "0 to 1"),
        ({"max_drop": -0.1}, "expect.max_drop", "0 to 1"),
        ({"max_drop": float("nan")}, "expect.max_drop", "0 to 1"),
        ({"max_drop": 10**400}, "expect.max_drop", "0 to 1"),
        ({"max_drop": True}, "expect.max_drop", "0 to 1"),
        ({"max_drop": "0.5"}, "expect.max_drop", "0 to 1"),
        (["selector"], "expect", "not an object"),
    ],
)
def test_mistakes_are_refused(expect: Any, field: str, says: str):
    """A mistake is a BadRequest which names the rule, what is wrong, and what to write."""
    with pytest.raises(BadRequest) as refused:
        Rules.parse(expect)
    assert refused.value.field == field
    assert says in refused.value.problem
    assert len(str(refused.value)) < 700


def test_values_become_canonical():
    """One value or a list, labels and letter case, repetitions and several bounds come to one form."""
    rules = Rules.parse(
        {
            "media_type": "Text/HTML",
            "charset": ["UTF8", "utf-8", "latin1"],
            "text_present": [" a \n b "],
            "min_bytes": [1, 5],
            "max_bytes": [9, 7],
            "max_drop": [1, 0],
        }
    )
    assert rules == Rules(
        media_type=("text/html",),
        charset=("utf-8", "windows-1252"),
        text_present=("a b",),
        min_bytes=5,
        max_bytes=7,
        max_drop=0.0,
    )
    assert rules.to_wire() == {
        "media_type": "text/html",
        "charset": ["utf-8", "windows-1252"],
        "min_bytes": 5,
        "max_bytes": 7,
        "text_present": "a b",
        "max_drop": 0.0,
    }
    assert Rules().to_wire() == {}


def test_rules_know_what_they_need():
    """Only rules on the content ask for the bytes."""
    assert Rules().is_empty
    assert not Rules.parse({"min_bytes": 0}).is_empty
    cases: list[tuple[dict[str, object], bool]] = [
        ({}, False),
        ({"min_bytes": 1, "max_drop": 0.5, "final_url": "x", "charset": "utf-8"}, False),
        ({"media_type": "text/html"}, True),
        ({"text_absent": "x"}, True),
        ({"selector": "a", "max_drop": 0.5}, True),
    ]
    for expect, needed in cases:
        assert Rules.parse(expect).needs_body is needed


VALUES: dict[str, st.SearchStrategy[object]] = {
    "media_type": st.sampled_from(["text/html", "text/*", "application/pdf", "application/json"]),
    "charset": st.sampled_from(["utf-8", "latin1", "Shift_JIS"]),
    "min_bytes": st.integers(0, 50),
    "max_bytes": st.integers(50, 10**6),
    "final_url": st.sampled_from(["^https://", "login", "."]),
    "selector": st.sampled_from(["p", "div > p", "p ~ p", "table td", ":not(p)", "*"]),
    "xpath": st.sampled_from(["//p", "count(//*)", "//@*", "string(/)", "//p/text()", "not(//p)", "//*//*"]),
    "json_path": st.sampled_from(["$", "$..*", "$[0]", "$.a", "$[?match(@, '.*')]"]),
    "min_matches": st.integers(0, 3),
    "max_matches": st.integers(3, 9),
    "text_present": st.sampled_from(["a", "é b", "<"]),
    "text_absent": st.sampled_from(["a", "\ufffd"]),
    "matches": st.sampled_from(["a+", r"(?i)\pL", "^$"]),
    "not_matches": st.sampled_from(["[^a]", "b|c"]),
    "max_drop": st.floats(0, 1),
}
BOUNDS = {"min_bytes", "max_bytes", "min_matches", "max_matches", "max_drop"}
ANY_RULES = st.fixed_dictionaries(
    {"selector": st.lists(VALUES["selector"], min_size=1, max_size=3)},
    optional={
        name: one_value if name in BOUNDS else one_value | st.lists(one_value, min_size=1, max_size=3)
        for name, one_value in VALUES.items()
        if name != "selector"
    },
)


@given(ANY_RULES)
def test_rules_survive_the_wire(expect):
    """What is written to the wire parses into the same rules, and is written the same again."""
    rules = Rules.parse(expect)
    assert Rules.parse(rules.to_wire()) == rules
    assert Rules.parse(rules.to_wire()).to_wire() == rules.to_wire()


@given(
    ANY_RULES,
    st.binary(max_size=200) | st.text(alphabet='<>/pdivtable a[]{}":,1é\0&;!-', max_size=200).map(str.encode),
    st.sampled_from([None, "text/html", "text/xml", "application/json", "text/plain", "image/png", ";;"]),
    st.sampled_from(["utf-8", "utf-16le", "windows-1252", "replacement"]),
    st.booleans(),
    st.none() | st.builds(Previous, bytes=st.integers(0, 10**6), matches=st.none() | st.integers(0, 9)),
)
def test_no_page_makes_evaluate_raise(expect, body, content_type, charset, whole, previous):
    """Whatever came, every rule gets its check."""
    rules = Rules.parse(expect)
    on = subject(body, content_type, charset, whole=whole)
    done = evaluate(rules, on, previous)
    assert {check.rule for check in done} == set(rules.to_wire())
    assert evaluate(rules, on, previous) == done


@given(
    st.dictionaries(
        st.sampled_from(list(Rule)) | st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3),
        ),
        max_size=3,
    )
)
def test_no_value_makes_parse_raise_anything_else(expect):
    """Whatever is asked, it is taken or it is a BadRequest that names its place."""
    try:
        rules = Rules.parse(expect)
    except BadRequest as refused:
        rules = Rules()
        assert refused.field.startswith("expect.")  # noqa: PT017 - either outcome is right
    assert Rules.parse(rules.to_wire()) == rules
