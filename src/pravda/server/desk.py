"""Where captures wait for their turn and run; the number of both is bounded."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from pravda.core.outcome import Answer
from pravda.core.request import OnFailure, Request
from pravda.server.problems import Kind, Problem, Refused, problem_of

log = logging.getLogger("pravda.server")

Outcome = Answer | Problem

_RETRY_SECONDS = 5  # until somebody who was turned away may try again


class Status(StrEnum):
    """How far a capture has come."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """The service ended before the capture did."""


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """One capture on its way."""

    id: str
    owner: str
    """The key's id; empty: there are no keys."""
    request: Request
    created_at: datetime
    status: Status = Status.QUEUED
    outcome: Outcome | None = None
    """None: it has not ended."""
    task: "asyncio.Task[Outcome] | None" = None
    began: float = field(default_factory=time.monotonic)
    """Monotonic seconds at which it was taken, then at which its turn came."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and made anew, at each change of status."""

    def move(self, status: Status) -> None:
        """Go on to a status and tell those who wait."""
        self.status = status
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait(self, seconds: float | None) -> Outcome | None:
        """The outcome; None: it takes longer. A waiter that is cancelled stops nothing."""
        assert self.task is not None
        await asyncio.wait({self.task}, timeout=seconds)
        return self.outcome


Ended = Callable[[Work], Awaitable[None]]
"""Told of each capture before those who wait for it are."""


class Desk:
    """Takes captures, runs them, and ends them."""

    def __init__(
        self,
        run: Callable[[Request], Awaitable[Answer]],
        ended: Ended,
        *,
        most_running: int,
        most_waiting: int,
    ) -> None:
        self._run, self._ended = run, ended
        self._turns = asyncio.Semaphore(most_running)
        self._most_running, self._most = most_running, most_running + most_waiting
        self._works: dict[str, Work] = {}
        self._closing = False

    @property
    def running(self) -> int:
        """How many captures run."""
        return sum(work.status is Status.RUNNING for work in self._works.values())

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._works) - self.running

    def find(self, work_id: str) -> Work | None:
        """A capture that has not ended."""
        return self._works.get(work_id)

    def refuse_full(self) -> None:
        """Raises Refused when no more captures are taken."""
        if self._closing:
            raise Refused(
                Problem(
                    kind=Kind.INTERRUPTED, detail="The service is being stopped.", retry_after=_RETRY_SECONDS
                )
            )
        if len(self._works) >= self._most:
            raise Refused(
                Problem(
                    kind=Kind.QUEUE_FULL,
                    detail=f"{self._most_running} captures run and {self._most - self._most_running} wait; try again later.",
                    retry_after=_RETRY_SECONDS,
                )
            )

    def begin(self, work: Work) -> None:
        """Take a capture; raises Refused."""
        self.refuse_full()
        self._works[work.id] = work
        work.task = asyncio.create_task(self._work(work), name=f"capture {work.id}")

    async def close(self, grace: float) -> None:
        """Take no more, wait so many seconds for what runs, then end it: what was seen is kept as cancelled."""
        self._closing = True
        tasks = {work.task for work in self._works.values() if work.task}
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=grace)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _work(self, work: Work) -> Outcome:
        try:
            work.outcome = await self._outcome(work)
            await self._told(work)
        finally:
            del self._works[work.id]
            interrupted = isinstance(work.outcome, Problem) and work.outcome.kind is Kind.INTERRUPTED
            work.move(Status.INTERRUPTED if interrupted else Status.FINISHED)
        return work.outcome

    async def _outcome(self, work: Work) -> Outcome:
        try:
            async with self._turns:
                work.began = time.monotonic()
                work.move(Status.RUNNING)
                # the same attempt may serve several callers, and each says for itself what a failure is to him
                return await self._run(replace(work.request, on_failure=OnFailure.RETURN))
        except asyncio.CancelledError:
            return Problem(
                kind=Kind.INTERRUPTED,
                detail="The service was stopped while this capture ran; what was seen by then is kept as cancelled.",
                retry_after=_RETRY_SECONDS,
                members={"capture": work.id},
            )
        except Exception as raised:  # the rim of one capture: whatever it is, it is this caller's answer
            problem = problem_of(raised)
            if problem.kind.status >= 500:
                log.error("capture failed", exc_info=raised)
            return problem

    async def _told(self, work: Work) -> None:
        try:
            await self._ended(work)
        except Exception as raised:  # nothing is acknowledged that cannot be written down
            log.error("capture could not be written down", exc_info=raised)
            work.outcome = problem_of(raised)


def seconds_up(seconds: float) -> int:
    """Whole seconds for Retry-After, never too early."""
    return max(1, math.ceil(seconds))
