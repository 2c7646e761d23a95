"""Pravda for code that does not await: the same verbs, run on a loop in a thread of their own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from pravda.capture import Pravda
from pravda.core.outcome import Answer, Snapshot, Verdict
from pravda.core.ports import Query
from pravda.errors import ArchiveUnavailable

_T = TypeVar("_T")


class BlockingPravda:
    """A thin wrapper; safe to share between threads."""

    def __init__(self, make: Callable[[], Pravda]) -> None:
        """`make` is called once, on the loop's thread; what it raises is raised here."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pravda", daemon=True)
        self._thread.start()
        try:
            self._pravda = self._run(_made(make))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close Pravda and end the thread; safe to call twice."""
        if self._thread.is_alive():
            self._run(self._pravda.close())
            self._end()

    def capture(self, url: str, **fields: object) -> Answer:
        """As `Pravda.capture`."""
        return self._run(self._pravda.capture(url, **fields))

    def get(self, snapshot_id: str) -> Snapshot:
        """As `Pravda.get`."""
        return self._run(self._pravda.get(snapshot_id))

    def history(self, query: Query) -> tuple[Snapshot, ...]:
        """As `Pravda.history`."""
        return self._run(self._pravda.history(query))

    def latest(self, url: str, *, max_age: object = None, **fields: object) -> Snapshot | None:
        """As `Pravda.latest`."""
        return self._run(self._pravda.latest(url, max_age=max_age, **fields))

    def read(self, snapshot: Snapshot, name: str = "body", limit: int | None = None) -> bytes:
        """As `Pravda.read`."""
        return self._run(self._pravda.read(snapshot, name, limit))

    def reclassify(self, snapshot: Snapshot) -> Verdict:
        """As `Pravda.reclassify`."""
        return self._run(self._pravda.reclassify(snapshot))

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            future: Future[_T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as problem:  # what a loop says that is closed
            work.close()  # lest the interpreter complain that nobody awaited it
            raise ArchiveUnavailable("This archive is closed.") from problem
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()  # what the attempt saw is kept on the loop's thread
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


async def _made(make: Callable[[], Pravda]) -> Pravda:
    return make()
