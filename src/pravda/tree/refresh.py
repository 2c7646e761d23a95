"""One refresh of a tree: each selected source that is due is asked once."""

import asyncio

from pravda.core.evidence import Note
from pravda.core.mistake import BadRequest
from pravda.tree.cycle import Cycle, warning
from pravda.tree.results import RunResult, SourceResult
from pravda.tree.run import Progress, Run
from pravda.tree.sources import Source


async def refresh(run: Run) -> RunResult:
    """Refresh the selected sources; raises BadRequest, TreeBusy and TreeUnavailable, all before anything is asked."""
    chosen = run.sources.chosen(run.only)
    if run.parser is None and (named := next((source for source in chosen if source.parser), None)):
        raise BadRequest("parser", f"{named.id} names a parser, and nothing is given that could run it")
    if run.dry_run:
        return RunResult(results=tuple([Cycle(run).plan(source) for source in chosen]))
    everything = _Everything(run, chosen)
    with run.tree.locked(run.clock.now()):
        run.tree.sweep()
        await everything.refresh()
    return everything.result()


class _Everything:
    """All selected sources: hosts in parallel, the sources of one host one after the other."""

    def __init__(self, run: Run, chosen: tuple[Source, ...]) -> None:
        self._run, self._chosen = run, chosen
        self._cycle = Cycle(run)
        self._results: dict[str, SourceResult] = {}
        self._warnings: list[Note] = []

    def result(self) -> RunResult:
        """What it came to, in the order of the sources file."""
        return RunResult(
            results=tuple(self._results[source.id] for source in self._chosen),
            warnings=tuple(self._warnings),
        )

    async def refresh(self) -> None:
        """Refresh all, and keep what was learnt of hosts, also when it is cut short."""
        if self._run.book:
            self._warnings += self._run.book.load()
        hosts: dict[str, list[Source]] = {}
        for source in self._chosen:
            hosts.setdefault(source.request.url.host, []).append(source)
        free = asyncio.Semaphore(self._run.parallel)
        try:
            async with asyncio.TaskGroup() as group:
                for sources in hosts.values():
                    group.create_task(self._host(sources, free))
        finally:
            self._save_book()

    async def _host(self, sources: list[Source], free: asyncio.Semaphore) -> None:
        async with free:
            for source in sources:
                self._tell(source, None)
                result = self._results[source.id] = await self._cycle.one(source)
                self._tell(source, result)
                if self._run.book and self._run.book.due():
                    self._save_book()

    def _save_book(self) -> None:
        if self._run.book:
            try:
                self._run.book.save()
            except OSError as problem:
                words = f"What is known of hosts could not be written down: {problem.strerror}."
                self._warnings.append(warning("hosts_not_written", words))

    def _tell(self, source: Source, result: SourceResult | None) -> None:
        self._run.progress(
            Progress(source_id=source.id, result=result, done=len(self._results), total=len(self._chosen))
        )
