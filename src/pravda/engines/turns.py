"""Whose turn it is at a host: one request at a time, and a pause after each."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from weakref import WeakValueDictionary

from pravda.core.hosts import LONGEST_WAIT, HostBook, HostFacts, TooLong
from pravda.core.ports import Clock

Sleep = Callable[[float], Awaitable[None]]


class Door:
    """Lets one in at a time, in order of arrival; those who are on their way through may go first."""

    def __init__(self) -> None:
        self._taken = False
        self._queue: deque[asyncio.Future[None]] = deque()

    async def enter(self, *, first: bool = False) -> None:
        """Return when inside."""
        if not self._taken:
            self._taken = True
            return
        ticket = asyncio.get_running_loop().create_future()
        if first:
            self._queue.appendleft(ticket)
        else:
            self._queue.append(ticket)
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():  # let in and cancelled in the same instant
                self.leave()
            raise

    def leave(self) -> None:
        """Let the next one in."""
        while self._queue:
            ticket = self._queue.popleft()
            if not ticket.done():
                ticket.set_result(None)  # the door stays taken: it is handed over
                return
        self._taken = False


class Turns:
    """The doors and pauses of all hosts."""

    def __init__(self, book: HostBook, clock: Clock, sleep: Sleep, longest_wait: float) -> None:
        """`longest_wait` is in seconds; a longer pause is not waited for."""
        self._book, self._clock, self._sleep = book, clock, sleep
        self._longest_wait = longest_wait
        self._doors: WeakValueDictionary[str, Door] = WeakValueDictionary()

    def door(self, host: str) -> Door:
        """The one door of a host; it lasts while somebody holds it."""
        return self._doors.setdefault(host, Door())

    async def pause(self, host: str) -> None:
        """Wait for what is left of the host's pause; raises TooLong where that is longer than a run waits."""
        now = self._clock.now()
        until = (self._book.get(host) or HostFacts()).resting_until(now)
        if until is None:
            return
        seconds = (until - now).total_seconds()
        if seconds > self._longest_wait:
            raise TooLong(host, until)
        await self._sleep(seconds)

    def rest(self, host: str, seconds: float) -> None:
        """Let nobody ask the host for so long from now; a longer pause stays."""
        now = self._clock.now()
        facts = self._book.get(host) or HostFacts()
        until = now + timedelta(seconds=min(seconds, LONGEST_WAIT))
        self._book.put(host, replace(facts, not_before=max(until, facts.resting_until(now) or until)))


class Visit:
    """One order's way along hosts; it is inside at most one door, so that two orders never wait for each other."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._door: Door | None = None
        self._asking = False
        self.host = ""
        """Where it is inside; "": nowhere."""

    async def enter(self, host: str, *, first: bool = False) -> None:
        """Be inside this host's door and no other."""
        if self.host == host:
            return
        self.leave()
        door = self._turns.door(host)
        await door.enter(first=first)
        self._door, self.host = door, host

    async def begin(self) -> None:
        """Wait for the host's pause; from here on a request is under way. Raises TooLong."""
        await self._turns.pause(self.host)
        self._asking = True

    def end(self, pause: float) -> None:
        """The request under way is over, however it went: the pause begins, in seconds."""
        if self._asking:
            self._asking = False
            self._turns.rest(self.host, pause)

    def leave(self) -> None:
        """Let the next one in, wherever it is inside."""
        if self._door:
            self._door.leave()
        self._door, self.host = None, ""
