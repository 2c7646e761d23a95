"""`pravda capture --from`: many pages, a line for each; one bad line never sinks the others."""

import asyncio
import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

import click

from pravda.assemble import open as open_pravda
from pravda.capture import Pravda
from pravda.cli.interrupts import Interrupted
from pravda.cli.listing import Listing, Text
from pravda.cli.pace import Entry, Pace
from pravda.cli.progress import Bar, bar
from pravda.cli.trouble import Stop
from pravda.cli.words import badge, safe, size, span
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Answer, Result, Snapshot
from pravda.core.request import Request
from pravda.core.states import Exit
from pravda.core.wire import answer_to_json
from pravda.errors import ArchiveUnavailable

_AHEAD = 1000
"""Lines read ahead, so that one slow host does not hold up the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a list is to be captured."""

    concurrency: int
    per_host: int
    first_line: int
    """Earlier ones are passed over."""
    as_json: bool
    quiet: bool
    exit_code: Callable[[Answer], Exit]
    """Of one answer; the batch ends with the highest."""


async def capture_list(name: str, fields: Mapping[str, object], plan: Plan, home: Path | None) -> Exit:
    """Capture every page of a list; raises BadRequest when it cannot be read, Stop when it cannot go on."""
    listing = Listing(name)
    # no typed host: a list may come from anywhere, so that none of its hosts may be a private one
    async with open_pravda(home=home) as pravda:
        with bar("Capturing", quiet=plan.quiet) as shown:
            batch = _Batch(pravda, listing, fields, plan, shown)
            try:
                await batch.run()
            except asyncio.CancelledError:
                raise Interrupted(batch.how_to_go_on()) from None
            except ArchiveUnavailable as problem:
                raise Stop(f"{problem} {batch.how_to_go_on()}", Exit.ARCHIVE) from None
        if not plan.quiet:
            click.echo(f"pravda: {batch.summary()}", err=True)
        return batch.code


class _Batch:
    def __init__(
        self, pravda: Pravda, listing: Listing, fields: Mapping[str, object], plan: Plan, shown: Bar
    ) -> None:
        self._pravda, self._listing, self._fields, self._plan, self._bar = (
            pravda,
            listing,
            fields,
            plan,
            shown,
        )
        self.code = Exit.OK
        self._counts: Counter[str] = Counter()
        self._pace = Pace(plan.per_host)
        self._room = asyncio.Semaphore(max(_AHEAD, 2 * plan.concurrency))
        self._moved = asyncio.Event()  # something may have become possible
        self._open: set[int] = set()  # numbers of lines that were read and have no answer yet
        self._running: set[asyncio.Task[None]] = set()
        self._ended: Exception | None = None
        self._waited_for: set[str] = set()  # hosts of which it was said
        self._length: int | None = None

    async def run(self) -> None:
        """Read, capture and print until the list ends; raises what keeps it from going on."""
        self._length = await asyncio.to_thread(self._listing.length)
        feeder = asyncio.create_task(self._feed())
        feeder.add_done_callback(lambda _: self._moved.set())
        try:
            while self._ended is None and not (feeder.done() and not self._pace and not self._running):
                self._start()
                self._moved.clear()
                try:
                    async with asyncio.timeout(self._pace.wakes_in(_now())):
                        await self._moved.wait()
                except TimeoutError:
                    continue
        finally:
            feeder.cancel()
            for task in self._running:
                task.cancel()  # what it saw is kept as a cancelled attempt
            await asyncio.gather(feeder, *self._running, return_exceptions=True)
        if self._ended is not None:
            raise self._ended
        await feeder
        if self._plan.first_line > max(1, self._listing.count):
            raise BadRequest("from_line", f"the list has only {self._listing.count} lines")

    def how_to_go_on(self) -> str:
        """For a person, after the end came early."""
        line = min(self._open, default=self._listing.reached + 1)
        return (
            f"every line before {line} has its answer, and what was printed is kept: go on with --from-line {line} "
            "(and --max-age 1h, which passes over later lines that are done)"
        )

    def summary(self) -> str:
        """For a person, at the end."""
        counts = ", ".join(f"{count} {word}" for word, count in self._counts.most_common())
        return counts or "there is no URL in the list" + (
            " from that line on" if self._plan.first_line > 1 else ""
        )

    async def _feed(self) -> None:
        with closing(_Seen()) as seen:
            async with aclosing(self._listing.lines()) as lines:
                async for line in lines:
                    if line.number >= self._plan.first_line:
                        await self._plan_line(line, seen)

    async def _plan_line(self, line: Text, seen: "_Seen") -> None:
        request = self._request(line)
        if request is None:
            return
        if not seen.add(request):
            self._counts["duplicate"] += 1
            return
        entry = Entry(number=line.number, request=request)
        await self._room.acquire()
        self._open.add(entry.number)
        if not self._pace.add(entry, _now()):
            self._room.release()
            self._postpone(entry)
        self._tell_of_wait(entry.host)
        self._moved.set()

    def _request(self, line: Text) -> Request | None:
        try:
            if line.problem:
                raise BadRequest("line", line.problem)
            return self._pravda.request(line.text, **self._fields)
        except BadRequest as problem:
            self._bad(line.number, problem)
            return None

    def _start(self) -> None:
        while len(self._running) < self._plan.concurrency and (entry := self._pace.take(_now())):
            self._room.release()
            task = asyncio.create_task(self._capture(entry))
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._moved.set()
        if not task.cancelled() and isinstance(problem := task.exception(), Exception):
            self._ended = self._ended or problem

    async def _capture(self, entry: Entry) -> None:
        rest = 0.0
        try:
            answer = await self._pravda.run(entry.request)
        except BadRequest as problem:
            self._bad(entry.number, problem)
        except ArchiveUnavailable:
            raise
        except Exception as problem:  # the rim of one line: a fault of ours must not sink the others
            self._count("broken", Exit.LOCAL_FAULT)
            self._complain(entry.number, f"broke inside Pravda: {problem!r:.300}")
        else:
            failure = answer.attempt.verdict.failure if answer.attempt else None
            rest = (failure.retry_after_seconds or 0.0) if failure else 0.0
            self._tell(answer)
        finally:
            for other in self._pace.give_back(entry.host, _now(), rest):
                self._room.release()
                self._postpone(other)
            self._tell_of_wait(entry.host)
        self._open.discard(entry.number)
        self._show()

    def _tell(self, answer: Answer) -> None:
        word = answer.result.value
        if answer.result is Result.FAILED and answer.attempt:
            word = answer.attempt.state.value
        self._count(word, self._plan.exit_code(answer))
        if self._plan.as_json:
            self._bar.say(json.dumps(answer_to_json(answer)))
        elif not self._plan.quiet:
            self._bar.say(_line(answer))

    def _bad(self, number: int, problem: BadRequest) -> None:
        self._count("bad", Exit.USAGE)
        self._complain(number, problem.problem if problem.field in ("url", "line") else str(problem))

    def _postpone(self, entry: Entry) -> None:
        """Its host asked for more time than a batch waits (Retry-After, RFC 9110 §10.2.3)."""
        self._open.discard(entry.number)
        self._count("postponed", Exit.BLOCKED)
        self._complain(entry.number, f"not asked: {entry.host} wants a longer pause than a batch waits")

    def _tell_of_wait(self, host: str) -> None:
        """Say once of a host that its lines wait, lest the silence be taken for a fault."""
        seconds = self._pace.rest_of(host, _now())
        if seconds and host not in self._waited_for and not self._plan.quiet:
            self._waited_for.add(host)
            click.echo(f"pravda: waiting {span(seconds)} for {safe(host)}, which asked for it", err=True)

    def _count(self, word: str, code: Exit) -> None:
        self._counts[word] += 1
        self.code = max(self.code, code)

    def _complain(self, number: int, text: str) -> None:
        click.echo(f"pravda: line {number}: {safe(text, 500)}", err=True)

    def _show(self) -> None:
        if not self._bar.live:
            return
        done = min(self._open, default=self._listing.reached + 1) - 1
        self._bar.show(done, self._length, self.summary())


class _Seen:
    """Which pages a list has named already: on disk, so that memory stays flat however long it is."""

    def __init__(self) -> None:
        # SQLite's own temporary file, deleted with the connection (sqlite.org/inmemorydb.html#temp_db)
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def add(self, request: Request) -> bool:
        """Whether the page is new."""
        name = b"\0".join((request.url.page.encode(), request.url.credentials or b""))
        digest = hashlib.blake2b(name, digest_size=16).digest()
        return self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1

    def close(self) -> None:
        self._connection.close()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _line(answer: Answer) -> str:
    shown = answer.snapshot or answer.attempt
    assert shown is not None  # one of them is always there
    return "  ".join(
        (
            badge(shown.state, 9),
            f"{answer.result.value:<6}",
            _about(answer, shown),
            safe(shown.evidence.url),
            shown.id,
        )
    )


def _about(answer: Answer, shown: Snapshot) -> str:
    """The reason of a failure, else how large the page is."""
    failure = answer.attempt.verdict.failure if answer.attempt else None
    content = shown.evidence.content
    return f"{failure.reason if failure else size(content.bytes) if content else '-':<24}"
