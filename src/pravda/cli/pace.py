"""Whose turn it is: so many requests to a host at once, and none to one that asked for time."""

import heapq
from collections import Counter, deque
from dataclasses import dataclass

from pravda.core.request import Request

LONGEST_WAIT = 600.0
"""Seconds that a batch waits for a host; the lines of one that wants more are not asked in this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a list, ready to be captured."""

    number: int
    """From 1."""
    request: Request

    @property
    def host(self) -> str:
        """What pauses and limits go by."""
        return self.request.url.hostname


class Pace:
    """Entries that wait for their turn; times are seconds of one clock that never goes back."""

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._waiting: dict[str, deque[Entry]] = {}
        self._busy: Counter[str] = Counter()
        self._ready: dict[str, None] = {}  # hosts with a free slot and something waiting, in turn
        self._resting: dict[str, float] = {}  # when a host may be asked again
        self._wakes: list[tuple[float, str]] = []  # the same as a heap

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def add(self, entry: Entry, now: float) -> bool:
        """Let an entry wait; False: its host wants more time than a batch waits."""
        if self._resting.get(entry.host, 0.0) - now > LONGEST_WAIT:
            return False
        self._waiting.setdefault(entry.host, deque()).append(entry)
        self._call(entry.host)
        return True

    def take(self, now: float) -> Entry | None:
        """The next entry that may be asked for now; `give_back` its host afterwards."""
        while self._wakes and self._wakes[0][0] <= now:
            until, host = heapq.heappop(self._wakes)
            if self._resting.get(host) == until:
                del self._resting[host]
                self._call(host)
        while self._ready:
            host = next(iter(self._ready))
            del self._ready[host]
            if self._is_free(host):
                entry = self._waiting[host].popleft()
                if not self._waiting[host]:
                    del self._waiting[host]
                self._busy[host] += 1
                self._call(host)
                return entry
        return None

    def give_back(self, host: str, now: float, rest: float = 0.0) -> list[Entry]:
        """A request to a host has ended, and it wants to rest so long; answers the entries that cannot wait for it."""
        self._busy[host] -= 1
        if not self._busy[host]:
            del self._busy[host]
        until = max(now + rest, self._resting.get(host, 0.0))
        if until <= now:
            self._call(host)
            return []
        if self._resting.get(host) != until:
            self._resting[host] = until
            heapq.heappush(self._wakes, (until, host))
        return list(self._waiting.pop(host, ())) if until - now > LONGEST_WAIT else []

    def rest_of(self, host: str, now: float) -> float:
        """Seconds that entries of a host wait because it wants to rest; 0: none do."""
        return max(0.0, self._resting.get(host, 0.0) - now) if host in self._waiting else 0.0

    def wakes_in(self, now: float) -> float | None:
        """Seconds until a resting host may be asked again; None: none rests."""
        return max(0.0, self._wakes[0][0] - now) if self._wakes else None

    def _call(self, host: str) -> None:
        if self._is_free(host):
            self._ready.setdefault(host)

    def _is_free(self, host: str) -> bool:
        return host in self._waiting and host not in self._resting and self._busy[host] < self._per_host
