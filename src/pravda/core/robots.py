"""robots.txt (RFC 9309): which rules speak to us, and what an answer to the question for them means."""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Final

from protego import Protego

from pravda.core.outcome import Failure
from pravda.core.states import FACTS, Cause, Reason, State
from pravda.core.statuses import phrase
from pravda.core.urls import BadURL, parse

PATH: Final = "/robots.txt"
LARGEST: Final = 500 * 1024
"""Bytes that are read (RFC 9309 §2.5); a longer file closes the host, since what it goes on to say is unknown."""

_BOM: Final = b"\xef\xbb\xbf"
"""Bytes of a mark that stands whole, twice or broken before the first record in files from the wild."""

_ANYONE: Final = "*"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
# How crawlers that pose as browsers name themselves: "Mozilla/5.0 (compatible; name/1.0; +https://…)".
_COMPATIBLE: Final = re.compile(r"Mozilla/[0-9.]{1,8} {1,4}\(compatible; {0,4}", re.IGNORECASE)
_DELAY: Final = re.compile(rb"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_UNPRINTABLE: Final = re.compile(rb"[^\x21-\x7e]")
_MOST_MATCHERS: Final = 8  # of one file: nearly every run has one user agent


class _Field(Enum):
    """What a record is about."""

    AGENT = auto()
    ALLOW = auto()
    DISALLOW = auto()
    DELAY = auto()
    OTHER = auto()
    """Known to stand in such files, of no meaning here."""


_FIELDS: Final[dict[bytes, _Field]] = {
    **dict.fromkeys((b"user-agent", b"useragent", b"user agent"), _Field.AGENT),
    b"allow": _Field.ALLOW,
    # misspellings met in the wild: whoever wrote them meant to keep us out
    **dict.fromkeys(
        (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), _Field.DISALLOW
    ),
    **dict.fromkeys((b"crawl-delay", b"crawl delay"), _Field.DELAY),
    **dict.fromkeys(
        (
            b"clean-param",
            b"content-signal",
            b"content-usage",
            b"host",
            b"noindex",
            b"request-rate",
            b"sitemap",
            b"visit-time",
        ),
        _Field.OTHER,
    ),
}


@dataclass(slots=True)
class _Group:
    """Agents and what is said to them (RFC 9309 §2.2.1)."""

    agents: set[str] = field(default_factory=set)
    rules: list[str] = field(default_factory=list)
    """As "Disallow: /path", the path in printable ASCII."""
    delay: float | None = None
    """Seconds; None: not said."""


class Robots:
    """The rules of one robots.txt; time and memory grow with its size, whoever wrote it."""

    __slots__ = ("_groups", "_matchers")

    def __init__(self, groups: tuple[_Group, ...] = ()) -> None:
        self._groups = groups
        self._matchers: dict[str, Protego] = {}

    @classmethod
    def parse(cls, body: bytes) -> "Robots":
        """The rules in any bytes, of which the first LARGEST are read; what is no record is passed over."""
        groups: list[_Group] = []
        naming = False
        for line in _lines(body):
            kind, value = _record(line)
            if kind is _Field.AGENT:
                if not naming:
                    groups.append(_Group())
                naming = True
                groups[-1].agents.add(_agent(value))
            elif kind in (_Field.ALLOW, _Field.DISALLOW):
                naming = False
                if groups and value:  # an empty path matches nothing (RFC 9309 §2.2, "empty-pattern")
                    groups[-1].rules.append(f"{kind.name.capitalize()}: {_printable(value)}")
            elif kind is _Field.DELAY and groups:
                # not a rule: RFC 9309 §2.2.4, other records must not interfere with grouping
                groups[-1].delay = _longer(groups[-1].delay, _delay(value))
        return cls(tuple(groups))

    def allows(self, product_token: str, url: str) -> bool:
        """Whether the crawler of that name may ask for the URL; what is no URL may not be asked for."""
        try:
            target = parse(url).target
        except BadURL:
            return False
        return self._matcher(_agent_name(product_token)).can_fetch(_question(target), _ANYONE)

    def rule_against(self, product_token: str, url: str) -> str | None:
        """The longest rule that forbids a URL, as "Disallow: /path"; None: the URL is allowed, or none."""
        if not self._groups:
            return None  # as on most hosts
        try:
            question = _question(parse(url).target)
        except BadURL:
            return None
        agent = _agent_name(product_token)
        if self._matcher(agent).can_fetch(question, _ANYONE):
            return None
        rules = [rule for rule in self._rules(agent) if rule.startswith("Disallow")]
        rules.sort(key=len, reverse=True)

        def forbid(count: int) -> bool:
            return not _compiled(rules[:count]).can_fetch(question, _ANYONE)

        # Protego does not say which rule decided: it is the one with which the longest so many begin to forbid
        return rules[bisect_left(range(1, len(rules)), True, key=forbid)]

    def crawl_delay(self, product_token: str) -> float | None:
        """Seconds asked for between two requests, however absurd (infinity included); None: not said."""
        longest: float | None = None
        for group in self._selected(_agent_name(product_token)):
            longest = _longer(longest, group.delay)
        return longest

    def _selected(self, agent: str) -> list[_Group]:
        """RFC 9309 §2.2.1: all groups that name the crawler count as one; without any, those for everyone."""
        ours = [group for group in self._groups if agent in group.agents]
        return ours or [group for group in self._groups if _ANYONE in group.agents]

    def _rules(self, agent: str) -> list[str]:
        return list(dict.fromkeys(rule for group in self._selected(agent) for rule in group.rules))

    def _matcher(self, agent: str) -> Protego:
        found = self._matchers.get(agent)
        if found is None:
            if len(self._matchers) >= _MOST_MATCHERS:
                self._matchers.clear()
            found = self._matchers[agent] = _compiled(self._rules(agent))
        return found


def product_token(user_agent: str) -> str:
    """The name a User-Agent header gives the crawler, without version and comments; "" where there is none."""
    start = _COMPATIBLE.match(user_agent)
    found = _TOKEN.match(user_agent, start.end()) if start else None
    found = found or _TOKEN.match(user_agent.lstrip())
    return found[0] if found else ""


class Kind(StrEnum):
    """What an answer to the question for robots.txt was."""

    RULES = "rules"
    EMPTY = "empty"
    ABSENT = "absent"
    NOT_RULES = "not_rules"
    """A page or anything else in place of rules."""
    INCOMPLETE = "incomplete"
    """Cut, too large, or in a coding that cannot be read."""
    CHALLENGE = "challenge"
    REFUSAL = "refusal"
    UNCLASSIFIABLE = "unclassifiable"
    """Turned away by a bare status that does not say why."""
    UNEXPECTED = "unexpected"
    """Another status: a redirect that leads nowhere, a success without content, an odd client error."""
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"


READABLE: Final = frozenset({Kind.RULES, Kind.EMPTY, Kind.ABSENT})
"""Answers that open the host, within the rules; every other one closes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswer:
    """What the site says of itself, or why that cannot be known."""

    kind: Kind
    status: int | None
    """None: no answer came."""
    detail: str
    """A few words for people, as "403 Forbidden (a bot challenge)"."""
    rules: Robots
    """Without any rule unless the kind says so."""

    @property
    def opens(self) -> bool:
        """Whether anything of the host may be asked for, within the rules."""
        return self.kind in READABLE


_WORDS: Final = {
    Kind.RULES: "rules",
    Kind.EMPTY: "an empty file",
    Kind.ABSENT: "there is none",
    Kind.NOT_RULES: "something else in place of rules",
    Kind.INCOMPLETE: "not the whole file",
    Kind.CHALLENGE: "a challenge",
    Kind.REFUSAL: "a refusal",
    Kind.UNCLASSIFIABLE: "turned away without saying why",
    Kind.UNEXPECTED: "neither rules nor word that there are none",
    Kind.SERVER_ERROR: "a server error",
    Kind.TIMEOUT: "no answer in time",
    Kind.UNREACHABLE: "no answer",
}
_BARE: Final = frozenset({401, 402, 403, 429, 451})
"""Statuses that turn us away."""


def judge(
    status: int | None, content_type: str | None, body: bytes, *, failure: Failure | None = None
) -> RobotsAnswer:
    """What a final answer means; `failure` is that of the verdict on the same evidence, None where it is live."""
    kind = _kind(status, content_type or "", body, failure)
    rules = Robots.parse(body) if kind is Kind.RULES else Robots()
    said = [phrase(status)] if status is not None else []
    said.append(_WORDS[kind])
    if failure and kind not in READABLE:
        said.append(failure.detail[:200])
    return RobotsAnswer(kind=kind, status=status, detail=": ".join(said), rules=rules)


def _kind(status: int | None, content_type: str, body: bytes, failure: Failure | None) -> Kind:
    if status is None:
        return Kind.TIMEOUT if failure and failure.cause is Cause.TIMEOUT else Kind.UNREACHABLE
    if failure and (denial := _denial(failure)):
        return denial
    if status in (404, 410):
        return Kind.ABSENT
    if status in _BARE:
        return Kind.UNCLASSIFIABLE
    if 500 <= status < 600:
        return Kind.SERVER_ERROR
    return _kind_of_body(content_type, body, failure) if status == 200 else Kind.UNEXPECTED


def _denial(failure: Failure) -> Kind | None:
    """What turns us away by more than the number of its status; None: nothing does."""
    if failure.cause is Cause.CHALLENGE:
        return Kind.CHALLENGE
    says_why = failure.reason not in (Reason.ACCESS_DENIED, Reason.RATE_LIMITED) or any(
        mark.where != "status" for mark in failure.evidence
    )
    return Kind.REFUSAL if says_why and FACTS[failure.reason].state is State.BLOCKED else None


def _kind_of_body(content_type: str, body: bytes, failure: Failure | None) -> Kind:
    if len(body) > LARGEST or (failure and failure.reason in _UNFINISHED):
        return Kind.INCOMPLETE
    text = body.lstrip(_BOM).strip()
    if not text:
        return Kind.EMPTY
    if text.startswith(b"<"):
        return Kind.NOT_RULES
    if any(_record(line)[0] for line in _lines(text)):
        return Kind.RULES
    only_comments = all(line.lstrip()[:1] in (b"", b"#") for line in _lines(text))
    return Kind.RULES if only_comments and "html" not in content_type.lower() else Kind.NOT_RULES


_UNFINISHED: Final = frozenset(
    {
        Reason.BODY_TIMEOUT,
        Reason.BODY_TOO_LARGE,
        Reason.TRUNCATED_BODY,
        Reason.TRUNCATED_ENCODING,
        Reason.UNDECODABLE,
        Reason.UNSUPPORTED_ENCODING,
    }
)


def _lines(body: bytes) -> list[bytes]:
    """The lines, ended by CR, LF or both; one that our limit cuts is left out, for half a path means another."""
    lines = body[: LARGEST + 1].lstrip(_BOM).splitlines()
    return lines[:-1] if len(body) > LARGEST else lines


def _record(line: bytes) -> tuple[_Field | None, bytes]:
    """A record's kind and value; None: no record that means anything."""
    text = line.partition(b"#")[0].strip()
    name, _, value = text.partition(b":")
    if found := _FIELDS.get(name.strip().lower()):
        return found, value.strip()
    name, _, value = text.replace(b"\t", b" ").partition(b" ")  # the colon is forgotten often enough
    return _FIELDS.get(name.lower()), value.strip()


def _agent(value: bytes) -> str:
    """The crawler that a group names: "Name/1.0 (comment)" and "name*" mean "name"; "": none that can be."""
    if value == b"*":
        return _ANYONE
    return _agent_name(value[:1000].decode("latin-1")).rstrip("*")


def _agent_name(user_agent: str) -> str:
    # RFC 9309 §2.2.1: compared without regard to case, and as a whole
    return product_token(user_agent).lower()


def _delay(value: bytes) -> float | None:
    found = _DELAY.match(value)
    return float(found[0]) if found else None


def _longer(one: float | None, other: float | None) -> float | None:
    return max((delay for delay in (one, other) if delay is not None), default=None)


def _printable(path: bytes) -> str:
    """The path with every octet outside printable ASCII percent-encoded (RFC 9309 §2.2.2)."""
    return _UNPRINTABLE.sub(lambda found: b"%%%02X" % found[0][0], path).decode("ascii")


def _question(target: str) -> str:
    return f"http://host{target}"  # Protego reads nothing of a URL but its path and query


def _compiled(rules: list[str]) -> Protego:
    """Protego with a single group, so that it never has to choose one.

    By itself it ends a group at an unknown record, finds agents as parts of other names,
    and copies each rule once per agent.
    """
    return Protego.parse("\n".join([f"User-agent: {_ANYONE}", *rules]))
