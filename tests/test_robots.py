"""robots.txt: rules, groups, names, and what an answer means."""

import base64
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.evidence import Phase
from pravda.core.outcome import Failure, Mark
from pravda.core.robots import LARGEST, Kind, Robots, judge, product_token
from pravda.core.states import FACTS, Reason
from tests.conformance import SUITES, cases

HELD = ("rfc9309", "rfc9309-percent", "full-header-ua")
BOM = b"\xef\xbb\xbf"
HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>Not found</body></html>"


def allows(robots: str | bytes, path: str = "/page", name: str = "pravda") -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return Robots.parse(body).allows(name, f"https://example.org{path}")


def failed(reason: Reason, where: str = "status") -> Failure:
    facts = FACTS[reason]
    return Failure(
        cause=facts.cause,
        reason=reason,
        fault=facts.fault,
        phase=Phase.RESPONSE,
        detail=facts.sentence,
        evidence=(Mark(where=where, matched="x"),),
    )


def kind(
    status: int | None,
    body: bytes = b"",
    *,
    reason: Reason | None = None,
    where: str = "status",
    content_type: str | None = "text/plain",
) -> Kind:
    return judge(status, content_type, body, failure=failed(reason, where) if reason else None).kind


# the public suites


@pytest.mark.parametrize("tag", HELD)
def test_conformance(tag):
    """Every case of the public suites that follows RFC 9309 is decided as they say."""
    wrong = []
    for case in cases("robots.json", tag):
        body = (
            base64.b64decode(case["robots_b64"]) if "robots_b64" in case else case["robots"].encode("utf-8")
        )
        if Robots.parse(body).allows(case["ua"], case["url"]) is not case["allowed"]:
            wrong.append(case["id"])
    assert wrong == []


def test_fetch_conformance():
    """Every answer to the question for robots.txt in the public suites opens or closes the host as they say."""
    cases("robots.json")
    suite = json.loads((SUITES / "robots.json").read_text("utf-8"))["fetch_cases"]
    assert len(suite) == 15
    wrong = [case["id"] for case in suite if _opens(case["response"]) is not case["allowed"]]
    assert wrong == []


def _opens(response: dict[str, Any]) -> bool:
    body = response.get("body", "").encode()
    reason = None
    if response.get("body_over_cap"):
        body = b"User-agent: *\nDisallow:\n" * 40_000
    if response.get("error_after_body"):
        reason = Reason.TRUNCATED_BODY
    if response.get("redirects"):
        response, reason = {"status": 302}, Reason.REDIRECT_LOOP
    if response.get("error"):
        reason = Reason.CONNECTION_REFUSED
    failure = failed(reason) if reason else None
    return judge(response.get("status"), response.get("content_type"), body, failure=failure).opens


# bugs from the wild


def test_a_byte_order_mark_hides_nothing():
    """R-C1: a byte-order mark before the first group does not hide it, nor does a broken or doubled one."""
    for mark in (BOM, BOM + BOM, BOM[:2]):
        assert not allows(mark + b"User-agent: *\nDisallow: /")
        assert kind(200, mark + b"User-agent: *\nDisallow: /") is Kind.RULES


def test_a_page_is_no_permission():
    """R-C3: HTML in place of rules closes the host whatever its content type says; an empty file opens it."""
    assert kind(200, b"<html>Not found") is Kind.NOT_RULES
    assert kind(200, HTML, content_type="text/html") is Kind.NOT_RULES
    assert kind(200, BOM + b"\r\n <!doctype html>User-agent: *\nAllow: /") is Kind.NOT_RULES
    for blank in (b"", b" \n\t\r\n", BOM):
        assert kind(200, blank) is Kind.EMPTY


def test_old_line_ends():
    """R-C8: lines that end with CR alone are lines."""
    assert not allows(b"User-agent: *\rDisallow: /\r")
    assert not allows(b"User-agent: *\r\nAllow: /x\rDisallow: /\n")


def test_no_pattern_is_catastrophic():
    """R-C9: a pattern of many stars on a long path is decided at once."""
    robots = Robots.parse(b"User-agent: *\nDisallow: /" + b"*a" * 20 + b"*b")
    url = "https://example.org/" + "a" * 2000
    began = time.perf_counter()
    assert robots.allows("pravda", url)
    assert not robots.allows("pravda", url + "b")
    assert time.perf_counter() - began < 0.05


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"User-agent: a%d\n" % number for number in range(15_000))
        + b"".join(b"Disallow: /%d\n" % number for number in range(15_000)),
        b"User-agent: *\nDisallow: /" + b"*a" * 240_000,
        b"User-agent: *\n" + b"Disallow: /*\xff$\n" * 30_000,
        b":" * 500_000,
        b" " * 500_000,
        b"Allow\t" * 80_000,
        b"User-agent: " + b"Mozilla/5.0 (compatible;" * 20_000,
    ],
    ids=["agents times rules", "stars", "unprintable", "colons", "blanks", "words", "agents"],
)
def test_a_hostile_file_is_read_in_good_time(body):
    """A file of the largest size costs no more than a moment, whatever it repeats."""
    began = time.perf_counter()
    robots = Robots.parse(body)
    robots.rule_against("a77", "https://example.org/" + "a" * 2000)
    robots.crawl_delay("pravda")
    assert time.perf_counter() - began < 3


def test_a_stranger_in_our_address_is_not_us():
    """R-C12: a name inside the contact address of the User-Agent is not the crawler's name."""
    robots = "User-agent: cat\nAllow: /\n\nUser-agent: *\nDisallow: /"
    assert not allows(robots, name="pravda/1 (+https://x/StereotypicalCat)")


@pytest.mark.parametrize("said", ["86400", "0", "1e9", "2.5", ".5", "10 seconds", "5\nCrawl-delay: 3"])
def test_crawl_delay_is_told_as_it_stands(said):
    """R-C14: a Crawl-delay is handed on as it is written, however absurd; the largest one said counts."""
    wanted = {"86400": 86400, "0": 0, "1e9": 1, "2.5": 2.5, ".5": 0.5, "10 seconds": 10}.get(said, 5)
    assert Robots.parse(f"User-agent: *\nCrawl-delay: {said}".encode()).crawl_delay("pravda") == wanted


@pytest.mark.parametrize("said", ["", "-5", "soon", "nan", "inf", "Infinity", "£5"])
def test_what_is_no_delay_says_nothing(said):
    """A Crawl-delay that is no number is none."""
    assert Robots.parse(f"User-agent: *\nCrawl-delay: {said}".encode()).crawl_delay("pravda") is None


def test_a_delay_too_large_for_numbers_is_endless():
    """A delay of a thousand digits is infinite, and no error."""
    assert Robots.parse(b"User-agent: *\nCrawl-delay: " + b"9" * 1000).crawl_delay("pravda") == math.inf


# groups and names


def test_groups_of_one_name_count_together():
    """RFC 9309 §2.2.1: groups that name us are merged, and then those for everyone do not speak to us."""
    robots = (
        "User-agent: pravda\nDisallow: /a\n\nUser-agent: *\nDisallow: /c\n\nUser-agent: PRAVDA\nDisallow: /b"
    )
    assert [allows(robots, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_unknown_records_end_no_group():
    """Neither an unknown record nor a Sitemap nor a Crawl-delay parts the names of a group from its rules."""
    for between in (
        "Foo: bar",
        "Sitemap: https://example.org/map.xml",
        "Crawl-delay: 5",
        "<br />",
        "# x",
        "",
    ):
        assert not allows(f"User-agent: pravda\n{between}\nUser-agent: other\nDisallow: /")


def test_a_group_without_rules_opens():
    """A group that names us and forbids nothing opens what is forbidden to everyone else."""
    assert allows("User-agent: *\nDisallow: /\n\nUser-agent: pravda\nDisallow:")
    assert allows("User-agent: *\nDisallow: /\n\nUser-agent: pravda")


def test_rules_before_any_name_bind_nobody():
    """Rules, delays included, that no group holds are passed over."""
    assert allows("Disallow: /\nCrawl-delay: 9\nUser-agent: *\nAllow: /")


def test_a_nameless_group_is_nobodys():
    """A User-agent line without a name begins a group that binds nobody, and ends the one before."""
    assert allows("User-agent: *\nDisallow: /x\nUser-agent:\nDisallow: /")


@pytest.mark.parametrize("line", ["Pravda/1.0", "pravda/2 (+https://x)", "PRAVDA bot", "pravda*", "pravda"])
def test_a_group_names_us_in_many_ways(line):
    """Version, comment, case and a trailing star do not hide that a group means us."""
    assert not allows(f"User-agent: {line}\nDisallow: /\n\nUser-agent: *\nAllow: /")


@pytest.mark.parametrize("line", ["prav", "pravdabot", "my-pravda", "a pravda", "*bot"])
def test_a_group_with_a_part_of_our_name_is_not_ours(line):
    """Names are compared as a whole."""
    assert allows(f"User-agent: {line}\nDisallow: /")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("pravda/0.1.0", "pravda"),
        ("pravda/1 (+https://x/StereotypicalCat)", "pravda"),
        ("  Gacha-Event_Tracker", "Gacha-Event_Tracker"),
        ("Mozilla/5.0 (compatible; Pravda/1.0; +https://example.org)", "Pravda"),
        ("Mozilla/5.0 (compatible; )", "Mozilla"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        ("(nothing)", ""),
        ("", ""),
    ],
)
def test_product_token(header, name):
    """The crawler's name is the first product of its User-Agent, or the compatible one of a would-be browser."""
    assert product_token(header) == name


def test_the_nameless_hear_what_is_said_to_everyone():
    """A crawler without a name is bound by the group for everyone."""
    assert not allows("User-agent: *\nDisallow: /", name="")


# rules


def test_the_longest_rule_wins_and_allow_wins_a_tie():
    """RFC 9309 §2.2.2: the most specific match decides, the friendlier one when both are alike."""
    assert allows("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c")
    assert not allows("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c")
    assert allows("User-agent: *\nDisallow: /a\nAllow: /a", "/a")


def test_paths_are_compared_octet_by_octet():
    """RFC 9309 §2.2.2: letters, their percent-encoding and either case of its digits are one."""
    for rule in ("/käse", "/k%C3%A4se", "/k%c3%a4se", "/%6B%C3%A4se"):
        assert not allows(f"User-agent: *\nDisallow: {rule}", "/käse")
    assert allows("User-agent: *\nDisallow: /a%2Fb", "/a/b")
    assert not allows(b"User-agent: *\nDisallow: /k\xe4se", "/k%E4se")


def test_a_line_separator_inside_a_rule_is_no_line_end():
    """What only Unicode takes for a line end begins no new rule."""
    assert not allows("User-agent: *\nDisallow: /\u2028Allow: /page\nDisallow: /page")
    assert not allows("User-agent: *\nDisallow: /a\x0bAllow: /page\nDisallow: /page")


def test_the_url_is_read_as_a_browser_asks():
    """Dot segments are gone before the rules are held against the path, and what is no URL is not allowed."""
    assert not allows("User-agent: *\nDisallow: /private", "/open/../private")
    robots = Robots.parse(b"User-agent: *\nDisallow: /")
    assert not robots.allows("pravda", "https://[broken/")
    assert robots.rule_against("pravda", "https://[broken/") is None
    assert not allows("User-agent: *\nDisallow: //x", "//x/y")


def test_robots_txt_itself_is_always_allowed():
    """RFC 9309 §2.2.2: the file that says so may be asked for."""
    assert allows("User-agent: *\nDisallow: /", "/robots.txt")


def test_a_forgotten_colon_and_a_misspelling_still_forbid():
    """Whoever wrote a rule badly meant it."""
    for rule in ("Disallow /", "disallow\t/", "Dissallow: /", "DISALLOW : /"):
        assert not allows(f"User-agent *\n{rule}")


def test_half_a_path_is_no_rule():
    """Beyond the largest size nothing is read, and the line that the limit cuts is left out."""
    head = b"User-agent: *\nDisallow: /\n"
    rule = b"Allow: /other"
    padding = b"#" * (LARGEST - len(head) - len(rule) + 4) + b"\n"
    assert not allows(head + padding + rule)
    assert not allows(head + b"#" * LARGEST + b"\nAllow: /page")


def test_the_rule_against_a_url_is_told():
    """A refusal names the longest rule that forbids the page; a permission names none."""
    robots = Robots.parse(
        b"User-agent: *\nDisallow: /a\nDisallow: /a/b\nDisallow: /z\nAllow: /a/c\nDisallow: /*.pdf$"
    )
    assert robots.rule_against("pravda", "https://example.org/a/b/d") == "Disallow: /a/b"
    assert robots.rule_against("pravda", "https://example.org/a/d") == "Disallow: /a"
    assert robots.rule_against("pravda", "https://example.org/q/x.pdf") == "Disallow: /*.pdf$"
    assert robots.rule_against("pravda", "https://example.org/a/c") is None


def test_a_file_answers_for_many_names():
    """One file can be asked for more names than it keeps matchers for."""
    robots = Robots.parse(b"User-agent: n3\nDisallow: /")
    assert [robots.allows(f"n{number}", "https://example.org/") for number in range(20)].count(False) == 1


RECORDS = (
    "User-agent: *",
    "User-agent: pravda",
    "User-agent: other",
    "Disallow: /a",
    "Disallow: /",
    "Disallow:",
    "Allow: /a/b",
    "Allow: /",
    "Foo: bar",
    "Crawl-delay: 3",
    "",
)
LINES = st.lists(st.sampled_from(RECORDS), max_size=12)


@given(st.binary(max_size=300), st.text(max_size=40), st.text(max_size=40))
def test_any_bytes_are_read(body, name, path):
    """No bytes, no name and no path make the parser or the judge raise, and a told rule goes with a refusal."""
    robots = Robots.parse(body)
    url = f"https://example.org/{path}"
    assert (robots.rule_against(name, url) is None) == robots.allows(name, url)
    robots.crawl_delay(name)
    judge(200, None, body)


@given(LINES, st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/b"]))
def test_groups_are_chosen_as_the_rfc_says(lines, path):
    """The parser agrees with a plain reading of RFC 9309 on files of a few known lines."""
    assert allows("\n".join(lines), path) is _plainly(lines, path)


def _plainly(lines: list[str], path: str) -> bool:
    rules: dict[str, list[tuple[int, bool]]] = {}
    names: list[str] = []
    naming = False
    for line in lines:
        field, _, value = line.partition(":")
        value = value.strip()
        if field == "User-agent":
            names = [*names, value] if naming else [value]
            naming = True
            rules.setdefault(value, [])
        elif field in ("Allow", "Disallow"):
            naming = False
            for name in names:
                if value and path.startswith(value):
                    rules[name].append((len(value), field == "Allow"))
    matching = rules.get("pravda", rules.get("*", []))
    return max(matching)[1] if matching else True


# what an answer means


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (None, Reason.DNS_NOT_FOUND, Kind.UNREACHABLE),
        (None, Reason.CONNECTION_REFUSED, Kind.UNREACHABLE),
        (None, None, Kind.UNREACHABLE),
        (None, Reason.CONNECT_TIMEOUT, Kind.TIMEOUT),
        (None, Reason.RESPONSE_TIMEOUT, Kind.TIMEOUT),
        (404, Reason.NOT_FOUND, Kind.ABSENT),
        (410, Reason.GONE, Kind.ABSENT),
        (400, Reason.CLIENT_ERROR, Kind.UNEXPECTED),
        (405, Reason.CLIENT_ERROR, Kind.UNEXPECTED),
        (401, Reason.AUTH_REQUIRED, Kind.REFUSAL),
        (403, Reason.ACCESS_DENIED, Kind.UNCLASSIFIABLE),
        (403, None, Kind.UNCLASSIFIABLE),
        (429, Reason.RATE_LIMITED, Kind.UNCLASSIFIABLE),
        (451, Reason.LEGAL_BLOCK, Kind.REFUSAL),
        (500, Reason.SERVER_ERROR, Kind.SERVER_ERROR),
        (503, Reason.SERVICE_UNAVAILABLE, Kind.SERVER_ERROR),
        (202, None, Kind.UNEXPECTED),
        (203, None, Kind.UNEXPECTED),
        (204, Reason.EMPTY_CONTENT, Kind.UNEXPECTED),
        (206, Reason.PARTIAL_CONTENT, Kind.UNEXPECTED),
        (302, Reason.REDIRECT_LOOP, Kind.UNEXPECTED),
        (304, Reason.UNEXPECTED_NOT_MODIFIED, Kind.UNEXPECTED),
        (999, Reason.ACCESS_DENIED, Kind.UNEXPECTED),
        (200, Reason.EMPTY_CONTENT, Kind.EMPTY),
        (200, Reason.TRUNCATED_BODY, Kind.INCOMPLETE),
        (200, Reason.BODY_TIMEOUT, Kind.INCOMPLETE),
        (200, Reason.UNDECODABLE, Kind.INCOMPLETE),
        (200, Reason.LOGIN_WALL, Kind.CHALLENGE),
    ],
)
def test_kinds(status, reason, expected):
    """Only rules, an empty 200, a 404 and a 410 open the host; everything else closes it and says as what."""
    answer = judge(status, "text/plain", b"", failure=failed(reason) if reason else None)
    assert answer.kind is expected
    assert answer.opens is (expected in (Kind.EMPTY, Kind.ABSENT))
    assert answer.detail


def test_a_403_says_which_kind():
    """A 403 is a challenge, a refusal that the page states, or neither can be told."""
    assert kind(403, HTML, reason=Reason.BOT_CHALLENGE, where="header cf-mitigated") is Kind.CHALLENGE
    assert kind(403, HTML, reason=Reason.ACCESS_DENIED, where="title + text") is Kind.REFUSAL
    assert kind(403, HTML, reason=Reason.ACCESS_DENIED) is Kind.UNCLASSIFIABLE


def test_a_challenge_under_any_status_closes():
    """A challenge under a 200 or a 404 is no permission."""
    assert kind(200, b"User-agent: *\nAllow: /", reason=Reason.BOT_CHALLENGE) is Kind.CHALLENGE
    assert kind(404, reason=Reason.BOT_CHALLENGE) is Kind.CHALLENGE


def test_what_is_rules():
    """A 200 is rules when a record or nothing but comments is in it; words that are neither close the host."""
    assert kind(200, b"Sitemap: https://example.org/map.xml") is Kind.RULES
    assert kind(200, b"User-agent: *\nDisallow: /x", content_type="text/html") is Kind.RULES
    assert kind(200, b"# be nice\n\n  # please") is Kind.RULES
    assert kind(200, b"# be nice", content_type="text/html; charset=utf-8") is Kind.NOT_RULES
    assert kind(200, b"Access denied", content_type=None) is Kind.NOT_RULES
    assert kind(200, b'{"error": "not found"}') is Kind.NOT_RULES
    assert kind(200, b"\x00" * 100) is Kind.NOT_RULES
    assert kind(200, b"#" * (LARGEST + 1)) is Kind.INCOMPLETE


def test_rules_come_with_the_answer():
    """An answer of rules holds them; any other holds none that could be taken for a permission."""
    answer = judge(200, None, b"User-agent: *\nDisallow: /x")
    assert not answer.rules.allows("pravda", "https://example.org/x")
    assert answer.detail == "200 OK: rules"
    closed = judge(503, None, b"User-agent: *\nDisallow: /x", failure=failed(Reason.SERVICE_UNAVAILABLE))
    assert closed.rules.allows("pravda", "https://example.org/x")
    assert not closed.opens
    assert closed.detail.startswith("503 Service Unavailable: a server error: ")
