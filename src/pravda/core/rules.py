"""The caller's rules (`expect`): taken apart before anything is fetched, then judged on what came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pravda.core.charset import label_to_name
from pravda.core.css import count_selector
from pravda.core.jsonpath import count_json_path
from pravda.core.media import HEAD_BYTES, satisfies
from pravda.core.mistake import BadRequest
from pravda.core.query import BadQuery, Unanswerable
from pravda.core.regex import find_regex
from pravda.core.rule_values import (
    INTEGER_RULES,
    TEXT_RULES,
    Rule,
    read_integer,
    read_share,
    read_texts,
    refuse,
)
from pravda.core.states import Reason
from pravda.core.text import NotJSON, Page
from pravda.core.xpath import count_xpath

_LONGEST_FOUND = 200  # characters

TOO_LARGE = "body larger than rules may read"
TOO_DEEP = "page nested too deep for rules to read"
NOT_JSON = "body is not JSON"


_REASONS = {
    Rule.MEDIA_TYPE: Reason.WRONG_MEDIA_TYPE,
    Rule.CHARSET: Reason.WRONG_CHARSET,
    Rule.MIN_BYTES: Reason.TOO_SMALL,
    Rule.MAX_BYTES: Reason.TOO_LARGE,
    Rule.FINAL_URL: Reason.REDIRECT_UNEXPECTED,
    Rule.SELECTOR: Reason.SELECTOR_MISSING,
    Rule.XPATH: Reason.SELECTOR_MISSING,
    Rule.JSON_PATH: Reason.JSON_PATH_MISSING,
    Rule.MIN_MATCHES: Reason.COUNT_TOO_LOW,
    Rule.MAX_MATCHES: Reason.COUNT_TOO_HIGH,
    Rule.TEXT_PRESENT: Reason.TEXT_MISSING,
    Rule.TEXT_ABSENT: Reason.TEXT_FORBIDDEN,
    Rule.MATCHES: Reason.TEXT_MISSING,
    Rule.NOT_MATCHES: Reason.TEXT_FORBIDDEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the caller demands of a usable page; empty fields demand nothing."""

    media_type: tuple[str, ...] = ()
    """Alternatives: essences in lower case, or `text/*`."""
    charset: tuple[str, ...] = ()
    """Alternatives: WHATWG names in lower case."""
    min_bytes: int | None = None
    """Of the body, codings removed."""
    max_bytes: int | None = None
    """Of the body, codings removed."""
    final_url: tuple[str, ...] = ()
    """Regular expressions (RE2) to be found in the URL the page came from."""
    selector: tuple[str, ...] = ()
    """CSS selectors that match something; the first is the one that counts matches."""
    xpath: tuple[str, ...] = ()
    """XPath 1.0 expressions that find something; the first counts where there is no selector."""
    json_path: tuple[str, ...] = ()
    """JSONPaths (RFC 9535) that find something; the first counts where there is neither."""
    min_matches: int | None = None
    """Of what counts."""
    max_matches: int | None = None
    """Of what counts."""
    text_present: tuple[str, ...] = ()
    """Literals that a reader sees, white space folded."""
    text_absent: tuple[str, ...] = ()
    """Literals that no reader sees, white space folded."""
    matches: tuple[str, ...] = ()
    """Regular expressions (RE2) to be found in what a reader sees."""
    not_matches: tuple[str, ...] = ()
    """Regular expressions (RE2) not to be found in it."""
    max_drop: float | None = None
    """Largest share, 0–1, that may be lost since the last usable snapshot: of the matches, else of the bytes."""

    @classmethod
    def parse(cls, value: Mapping[str, object]) -> "Rules":
        """Read a name → value(s) mapping; raises BadRequest for whatever could not be judged later."""
        if not isinstance(value, Mapping):
            raise BadRequest("expect", "is not an object; write rule names and their values")
        read: dict[str, Any] = {}
        for name, given in value.items():
            if name in TEXT_RULES:
                read[name] = read_texts(Rule(name), given)
            elif name in INTEGER_RULES:
                read[name] = read_integer(Rule(name), given)
            elif name == Rule.MAX_DROP:
                read[name] = read_share(Rule.MAX_DROP, given)
            else:
                raise BadRequest(f"expect.{_named(name)}", f"is no rule; write one of {', '.join(Rule)}")
        rules = cls(**read)
        _check_together(rules)
        return rules

    @classmethod
    def stored(cls, value: Mapping[str, object]) -> "Rules":
        """Take rules as they were stored, also those that `parse` refuses today; what is no rule now is left out."""
        read: dict[str, Any] = {}
        for name, given in value.items():
            values = tuple(given) if isinstance(given, list | tuple) else (given,)
            kind = str if name in TEXT_RULES else int if name in INTEGER_RULES else int | float
            fitting = tuple(one for one in values if isinstance(one, kind) and not isinstance(one, bool))
            if name in TEXT_RULES:
                read[name] = fitting
            elif fitting and (name in INTEGER_RULES or name == Rule.MAX_DROP):
                read[name] = fitting[0]
        return cls(**read)

    def to_wire(self) -> dict[str, object]:
        """Give the smallest mapping that parses into the same rules."""
        wire: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple) and value:
                wire[field.name] = value[0] if len(value) == 1 else list(value)
            elif value is not None and value != ():
                wire[field.name] = value
        return wire

    @property
    def is_empty(self) -> bool:
        """Whether nothing is demanded."""
        return self == Rules()

    @property
    def counts(self) -> bool:
        """Whether there is a rule by which matches are counted."""
        return bool(self.selector or self.xpath or self.json_path)

    @property
    def needs_body(self) -> bool:
        """Whether judging needs the bytes themselves, not only their number, their charset and where they came from."""
        texts = self.text_present or self.text_absent or self.matches or self.not_matches
        return self.counts or bool(texts or self.media_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule, judged."""

    rule: str
    """The rule's name."""
    expected: str | int | float | tuple[str, ...]
    """The value demanded; several where they are alternatives."""
    passed: bool
    """Whether the page fulfils it."""
    found: str | int | float | None
    """What the page has instead, or why that cannot be told; None: nothing."""
    reason: str
    """The reason this rule gives when it fails, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """The last usable snapshot, as far as `max_drop` asks."""

    bytes: int
    """Of its body."""
    matches: int | None
    """By the rules at hand; None: not counted, or not countable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is judged."""

    page: Page
    """The body, parsed when needed."""
    size: int
    """Bytes of the body; more than the page holds where it is not whole."""
    final_url: str
    """Where the body came from."""


def _named(name: object) -> str:
    return name[:60] if isinstance(name, str) else type(name).__name__


def _check_together(rules: Rules) -> None:
    for least, most in ((Rule.MIN_BYTES, Rule.MAX_BYTES), (Rule.MIN_MATCHES, Rule.MAX_MATCHES)):
        low, high = getattr(rules, least), getattr(rules, most)
        if low is not None and high is not None and low > high:
            refuse(least, f"is {low}, more than {most} {high}; no page could fulfil both")
    for rule in (Rule.MIN_MATCHES, Rule.MAX_MATCHES):
        if getattr(rules, rule) is not None and not rules.counts:
            refuse(rule, "has nothing to count; write selector, xpath or json_path as well")


def evaluate(
    rules: Rules, subject: Subject, previous: Previous | None, *, drop: bool = True
) -> tuple[Check, ...]:
    """Judge every rule, in the order of Rule; `drop=False` leaves `max_drop` out."""
    counted = _Counted(subject.page)
    checks = [
        *_judge_envelope(rules, subject),
        *_judge_queries(rules, counted),
        *_judge_texts(rules, subject.page),
    ]
    if drop and rules.max_drop is not None:
        checks.append(_judge_drop(rules, rules.max_drop, subject, counted, previous))
    return tuple(checks)


def count_matches(rules: Rules, page: Page) -> int | None:
    """Count by the first selector, else XPath, else JSONPath; None: no such rule, or not countable here."""
    return _number(_Counted(page).matches(rules))


def first_failure(checks: Sequence[Check]) -> Check | None:
    """Give the check that explains why the page is not usable; None: all passed."""
    return next((check for check in checks if not check.passed), None)


class _Counted:
    """How often each query is answered by a page, counted once; a text where it cannot be told."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._known: dict[tuple[Rule, str], int | str] = {}

    def count(self, rule: Rule, query: str) -> int | str:
        key = rule, query
        if key not in self._known:
            self._known[key] = self._count(rule, query)
        return self._known[key]

    def matches(self, rules: Rules) -> int | str | None:
        for rule in (Rule.SELECTOR, Rule.XPATH, Rule.JSON_PATH):
            for query in getattr(rules, rule):
                return self.count(rule, query)
        return None

    def _count(self, rule: Rule, query: str) -> int | str:
        page = self._page
        if not page.whole:
            return TOO_LARGE
        if rule is Rule.JSON_PATH:
            try:
                return count_json_path(query, page.json)
            except NotJSON:
                return NOT_JSON
            except BadQuery as error:  # stored long ago, and refused today
                return str(error)
        if page.cut:
            return TOO_DEEP
        if page.root is None:
            return 0
        try:
            if rule is Rule.XPATH:
                return count_xpath(query, page.root)
            return count_selector(query, page.root, html=page.is_html)
        except (Unanswerable, BadQuery) as error:
            return str(error)


def _judge_envelope(rules: Rules, subject: Subject) -> Iterator[Check]:
    page = subject.page
    if rules.media_type:
        head = page.body[:HEAD_BYTES]
        passed = any(satisfies(wanted, page.content_type, head) for wanted in rules.media_type)
        yield _check(Rule.MEDIA_TYPE, _scalar(rules.media_type), passed, page.media_type)
    if rules.charset:
        name = label_to_name(page.charset) or page.charset
        yield _check(Rule.CHARSET, _scalar(rules.charset), name in rules.charset, name)
    if rules.min_bytes is not None:
        yield _check(Rule.MIN_BYTES, rules.min_bytes, subject.size >= rules.min_bytes, subject.size)
    if rules.max_bytes is not None:
        yield _check(Rule.MAX_BYTES, rules.max_bytes, subject.size <= rules.max_bytes, subject.size)
    for pattern in rules.final_url:
        yield _judge_regex(Rule.FINAL_URL, pattern, subject.final_url, subject.final_url)


def _judge_queries(rules: Rules, counted: _Counted) -> Iterator[Check]:
    for rule in (Rule.SELECTOR, Rule.XPATH, Rule.JSON_PATH):
        for query in getattr(rules, rule):
            count = counted.count(rule, query)
            reason = Reason.UNDECODABLE if count == NOT_JSON else _REASONS[rule]
            yield _check(rule, query, bool(_number(count)), count, reason)
    matches = counted.matches(rules)
    number = _number(matches)
    if rules.min_matches is not None:
        passed = number is not None and number >= rules.min_matches
        yield _check(Rule.MIN_MATCHES, rules.min_matches, passed, matches)
    if rules.max_matches is not None:
        passed = number is not None and number <= rules.max_matches
        yield _check(Rule.MAX_MATCHES, rules.max_matches, passed, matches)


def _judge_texts(rules: Rules, page: Page) -> Iterator[Check]:
    for rule in (Rule.TEXT_PRESENT, Rule.TEXT_ABSENT, Rule.MATCHES, Rule.NOT_MATCHES):
        for value in getattr(rules, rule):
            unread = _unread(page)
            if unread is not None:
                yield _check(rule, value, False, unread)
            elif rule in (Rule.TEXT_PRESENT, Rule.TEXT_ABSENT):
                times = page.visible.count(value)
                yield _check(rule, value, bool(times) is (rule is Rule.TEXT_PRESENT), times)
            else:
                yield _judge_regex(rule, value, _searched(page))


def _judge_regex(rule: Rule, pattern: str, text: str, found: str | None = None) -> Check:
    """Search a text; `found` is shown instead of the match."""
    try:
        match = find_regex(pattern, text)
    except BadQuery as error:  # stored long ago, and refused today
        return _check(rule, pattern, False, str(error))
    passed = (match is None) is (rule is Rule.NOT_MATCHES)
    return _check(rule, pattern, passed, match if found is None else found)


def _judge_drop(
    rules: Rules, most: float, subject: Subject, counted: _Counted, previous: Previous | None
) -> Check:
    """Compare the matches where a rule counts them and both sides have a number, else the bytes."""
    now: int | str | None = subject.size
    before = None if previous is None else previous.bytes
    reason = Reason.SIZE_DROP
    if rules.counts and previous is not None and previous.matches is not None:
        now, before, reason = counted.matches(rules), previous.matches, Reason.COUNT_DROP
    if not before:
        return _check(Rule.MAX_DROP, most, True, None, reason)
    number = _number(now)
    if number is None:
        return _check(Rule.MAX_DROP, most, False, now, reason)
    lost = max(0, before - number) / before
    # Shares such as 0.3 have no exact binary form; what is lost to that must not fail a page.
    return _check(Rule.MAX_DROP, most, lost <= most + 1e-9, round(lost, 4), reason)


def _unread(page: Page) -> str | None:
    if not page.whole:
        return TOO_LARGE
    return TOO_DEEP if page.is_html and page.cut else None


def _searched(page: Page) -> str:
    if page.is_html:
        return page.visible
    return page.text if page.is_text else ""


def _number(count: int | str | None) -> int | None:
    return count if isinstance(count, int) else None


def _scalar(values: tuple[str, ...]) -> str | tuple[str, ...]:
    return values[0] if len(values) == 1 else values


def _check(
    rule: Rule,
    expected: str | int | float | tuple[str, ...],
    passed: bool,
    found: str | int | float | None,
    reason: Reason | None = None,
) -> Check:
    shown = found[:_LONGEST_FOUND] if isinstance(found, str) else found
    return Check(
        rule=rule.value,
        expected=expected,
        passed=passed,
        found=shown,
        reason=(reason or _REASONS[rule]).value,
    )
