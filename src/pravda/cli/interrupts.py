"""Work that a signal ends in order: what it saw is kept, and what is said of it is true."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from pravda.cli.trouble import Stop
from pravda.core.states import Exit

_T = TypeVar("_T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHELL = 128
"""A shell's exit code for a program that a signal ended, less the signal's number."""
_TOGETHER = 1.0
"""Seconds in which signals count as one: Ctrl-C under `timeout` arrives from the terminal and from `timeout`."""


class Interrupted(Stop):
    """Raised by work that was cancelled, with what is to be said of it; `run` gives it the signal's exit code."""

    def __init__(self, message: str) -> None:
        super().__init__(f"interrupted; {message}" if message else "interrupted", Exit.INTERRUPTED)


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on a loop of its own.

    The first SIGINT, SIGTERM or SIGHUP cancels the work, the second waits with it, a third one ends the program at once.
    """
    watch = _Watch()
    try:
        with asyncio.Runner() as runner:
            watch.begin()
            return runner.run(watch.over(work))
    except asyncio.CancelledError:
        raise watch.named(Interrupted("")) from None
    except Interrupted as end:
        raise watch.named(end) from None
    finally:
        watch.end()


class _Watch:
    """Takes the signals in place of whoever took them before."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._since = 0.0
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._before: dict[int, Any] = {}

    def begin(self) -> None:
        """Take the signals; those that are ignored (nohup) stay so, and only the main thread may take any."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)

    def end(self) -> None:
        """Give the signals back, unless one has come: then the program ends, and another must not disturb that."""
        for number, handler in self._before.items():
            # ignored, since the interpreter's end would put the deadly default in place of a handler
            signal.signal(number, handler if self._first is None else signal.SIG_IGN)

    async def over(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The work, which a signal cancels."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._first is not None:
            work.close()
            raise Interrupted("nothing had begun")
        return await work

    def named(self, end: Interrupted) -> Interrupted:
        """The end with the exit code of the signal that brought it."""
        if self._first is not None:
            end.exit_code = _SHELL + self._first  # type: ignore[misc]  # click reads it from the instance too
        return end

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._first is None:
            self._first, self._since = number, time.monotonic()
            if self._loop and self._task and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._task.cancel)  # wakes the loop too
        elif self._count > 2 and time.monotonic() - self._since > _TOGETHER:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
