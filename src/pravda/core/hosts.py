"""What is remembered of hosts from one run to the next: when they may be asked again, and their robots.txt."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from pravda.core.evidence import Note
from pravda.core.headers import LONGEST_RETRY_AFTER
from pravda.core.robots import Kind

LONGEST_WAIT: Final = LONGEST_RETRY_AFTER
"""Seconds; nobody can ask for more, so a `not_before` farther off comes from a wrong clock or a damaged file."""

ROBOTS_AGE: Final = 24 * 3600.0
"""Seconds that a readable robots.txt is kept (RFC 9309 §2.4)."""

_MOST_ORIGINS: Final = 8  # of one host: each port is one, and a site could redirect through all of them
_SKEW: Final = timedelta(minutes=1)  # between the clocks of machines that share a tree


class TooLong(Exception):
    """The host wants a longer pause than a run waits for; nothing was asked, come back at `until`."""

    def __init__(self, host: str, until: datetime) -> None:
        super().__init__(f"{host} is not to be asked again before {until.isoformat(timespec='seconds')}")
        self.host, self.until = host, until

    def __reduce__(self) -> tuple[type["TooLong"], tuple[str, datetime]]:
        return type(self), (self.host, self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsFacts:
    """One answer to the question for an origin's robots.txt."""

    origin: str
    fetched_at: datetime
    """When the answer was there."""
    kind: Kind
    status: int | None
    """None: no answer came."""
    final_url: str
    """Where redirects led."""
    detail: str = ""
    """What it was, in a few words for people."""
    body: bytes = b""
    """The file; empty where the answer was no rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of one host."""

    not_before: datetime | None = None
    """When it may be asked again; None: at any time."""
    robots: tuple[RobotsFacts, ...] = ()
    """Of its origins, the newest last."""

    def robots_of(self, origin: str) -> RobotsFacts | None:
        """The answer for an origin; None: it was not asked."""
        return next((facts for facts in self.robots if facts.origin == origin), None)

    def with_robots(self, facts: RobotsFacts) -> "HostFacts":
        """The same with this answer in place of an older one."""
        others = tuple(other for other in self.robots if other.origin != facts.origin)
        return HostFacts(not_before=self.not_before, robots=(*others, facts)[-_MOST_ORIGINS:])

    def resting_until(self, now: datetime) -> datetime | None:
        """When the host may be asked again, if that is still to come and can be true."""
        if self.not_before is None or self.not_before <= now:
            return None
        return None if _is_impossible(self.not_before, now) else self.not_before


class HostBook(Protocol):
    """Where facts of hosts are kept."""

    def get(self, host: str) -> HostFacts | None:
        """What is known; None: nothing."""
        ...

    def put(self, host: str, facts: HostFacts) -> None:
        """Remember instead of what was known."""
        ...


class MemoryBook:
    """A book that lives as long as its run; `hosts` can be written down."""

    def __init__(self, hosts: Mapping[str, HostFacts] | None = None) -> None:
        self.hosts = dict(hosts or {})

    def get(self, host: str) -> HostFacts | None:
        """What is known; None: nothing."""
        return self.hosts.get(host)

    def put(self, host: str, facts: HostFacts) -> None:
        """Remember instead of what was known."""
        self.hosts[host] = facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What could be read of a written book."""

    hosts: Mapping[str, HostFacts]
    warnings: tuple[Note, ...] = ()


def to_json(hosts: Mapping[str, HostFacts], now: datetime) -> bytes:
    """The book as a file, without what is no longer of use; `from_json` reads it back."""
    table = {name: entry for name, facts in sorted(hosts.items()) if (entry := _written(facts, now))}
    return (json.dumps({"hosts": table}, indent=2) + "\n").encode()


def _written(facts: HostFacts, now: datetime) -> dict[str, object]:
    until = facts.resting_until(now)
    robots = {
        answer.origin: {
            "fetchedAt": _moment(answer.fetched_at),
            "kind": answer.kind.value,
            "status": answer.status,
            "finalUrl": answer.final_url,
            "detail": answer.detail,
            "body": answer.body.decode("utf-8", "surrogateescape"),
        }
        for answer in facts.robots
        if (now - answer.fetched_at).total_seconds() < ROBOTS_AGE
    }
    entry: dict[str, object] = {"notBefore": _moment(until)} if until else {}
    return entry | ({"robots": robots} if robots else {})


def from_json(data: bytes, now: datetime) -> Loaded:
    """The hosts in a file; what is damaged or dated in the future is left out and warned of, never raised."""
    try:
        document = json.loads(data)
        hosts = document["hosts"].items()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Loaded(hosts={}, warnings=(_damaged("the file", "it is no book of hosts"),))
    reader = _Reader(now)
    return Loaded(
        hosts={name: reader.host(name, entry) for name, entry in hosts}, warnings=tuple(reader.warnings)
    )


class _Reader:
    """Reads entries one by one, so that a damaged one costs only itself."""

    def __init__(self, now: datetime) -> None:
        self.warnings: list[Note] = []
        self._now = now

    def host(self, name: str, entry: object) -> HostFacts:
        """One host; empty where nothing of it can be read."""
        if not isinstance(entry, dict):
            self.warnings.append(_damaged(name, "it is no table"))
            return HostFacts()
        return HostFacts(
            not_before=self._not_before(name, entry.get("notBefore")),
            robots=tuple(self._robots(name, entry.get("robots", {})))[-_MOST_ORIGINS:],
        )

    def _not_before(self, name: str, value: object) -> datetime | None:
        if value is None:
            return None
        try:
            moment = _read_moment(value)
        except (ValueError, TypeError, OverflowError) as problem:
            self.warnings.append(_damaged(name, str(problem)))
            return None
        if _is_impossible(moment, self._now):
            self.warnings.append(_future(name, f"it was not to be asked before {_moment(moment)}"))
            return None
        return moment

    def _robots(self, name: str, table: object) -> Iterator[RobotsFacts]:
        if not isinstance(table, dict):
            self.warnings.append(_damaged(name, "its robots answers are no table"))
            return
        for origin, entry in table.items():
            try:
                facts = _read_robots(origin, entry)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
                self.warnings.append(_damaged(name, f"robots.txt of {origin}: {problem!r:.80}"))
                continue
            if facts.fetched_at > self._now + _SKEW:
                self.warnings.append(_future(name, f"robots.txt of {_moment(facts.fetched_at)}"))
            else:
                yield facts


def _read_robots(origin: str, entry: dict[str, object]) -> RobotsFacts:
    status, body, final_url, detail = entry["status"], entry["body"], entry["finalUrl"], entry["detail"]
    if not (status is None or type(status) is int):
        raise TypeError("status")
    if not (isinstance(body, str) and isinstance(final_url, str) and isinstance(detail, str)):
        raise TypeError("text")
    return RobotsFacts(
        origin=origin,
        fetched_at=_read_moment(entry["fetchedAt"]),
        kind=Kind(str(entry["kind"])),
        status=status,
        final_url=final_url,
        detail=detail,
        body=body.encode("utf-8", "surrogateescape"),
    )


def _is_impossible(moment: datetime, now: datetime) -> bool:
    return (moment - now).total_seconds() > LONGEST_WAIT


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read_moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise TypeError("a time must be text")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{value!r:.40} has no time zone")
    return moment.astimezone(UTC)


def _damaged(name: str, why: str) -> Note:
    return Note(code="hosts_damaged", detail=f"{name[:100]!r} in the book of hosts is left out: {why[:200]}.")


def _future(name: str, what: str) -> Note:
    return Note(
        code="hosts_in_future",
        detail=f"{name[:100]!r} in the book of hosts is dated too far in the future and counts as due: {what}.",
    )
