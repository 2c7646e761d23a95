"""Everything that one running service is made of."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from pravda.core.outcome import Answer
from pravda.server.book import Book
from pravda.server.desk import Desk, Work
from pravda.server.keys import Keys
from pravda.server.ledger import Ledger
from pravda.server.metrics import Metrics
from pravda.server.options import Options
from pravda.server.ports import Evidence, Now, Probe
from pravda.server.replies import status_of

log = logging.getLogger("pravda.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a service is given."""

    evidence: Evidence
    ledger: Ledger
    probe: Probe
    now: Now
    new_id: Callable[[], str]
    options: Options
    host: str = "127.0.0.1"
    """The name or address it was told to listen on."""


class Service:
    """The parts at work."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.options = parts, parts.options
        self.evidence, self.probe, self.now = parts.evidence, parts.probe, parts.now
        self.keys = Keys(parts.ledger)
        self.book = Book(parts.ledger, parts.options.kept_seconds)
        self.metrics = Metrics()
        self.desk = Desk(
            parts.evidence.run,
            self._ended,
            most_running=parts.options.most_running,
            most_waiting=parts.options.most_waiting,
        )
        self.streams = 0
        """Event streams that are open."""
        self.recorded: set[str] = set()
        """Ids of unfinished captures that stand in the book."""

    async def close(self) -> None:
        """End what runs, then let go of everything."""
        await self.desk.close(self.options.grace)
        await self.evidence.close()
        self.parts.ledger.close()

    async def _ended(self, work: Work) -> None:
        outcome = work.outcome
        seconds = time.monotonic() - work.began
        if isinstance(outcome, Answer):
            http_status = status_of(outcome, work.request.on_failure)
            self.metrics.captured(outcome, seconds)
        else:
            assert outcome is not None  # it is told of its end
            http_status = outcome.kind.status
            self.metrics.failed(outcome.kind.slug)
        log.info("captured", extra=_told(work, http_status, seconds))
        if work.id in self.recorded:
            await asyncio.to_thread(self.book.end, work, http_status, self.now().timestamp())
            self.recorded.discard(work.id)


def _told(work: Work, http_status: int, seconds: float) -> dict[str, object]:
    outcome = work.outcome
    told: dict[str, object] = {
        "work": work.id,
        "url": work.request.url.page,
        "status": http_status,
        "seconds": round(seconds, 3),
    }
    if not isinstance(outcome, Answer):
        return told
    failure = outcome.attempt.verdict.failure if outcome.attempt else None
    shown = outcome.attempt or outcome.snapshot
    return told | {
        "result": outcome.result.value,
        "capture_id": shown.asked.capture_id if shown else None,
        "snapshot": outcome.snapshot.id if outcome.snapshot else None,
        "reason": failure.reason.value if failure else None,
    }
