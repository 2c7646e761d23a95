"""Parsers run in a process of their own, which is ended when one takes too long, too much, or itself away."""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from pravda.parsing.frames import ANSWER_HEAD, Nonsense, answer_size, read_parsing, write_job
from pravda.parsing.values import Job, Limits, Parsing, Trouble, failure

_MODULE: Final = "pravda.parsing.worker"
_PIECE: Final = 256 * 1024  # bytes
_MOST_SAID: Final = 64 * 1024  # bytes of what a parser prints; the rest is read and forgotten
_HEADROOM: Final = 4 * 1024 * 1024  # bytes of an answer that are not items
_LAST_BREATH: Final = 2.0  # seconds
_START: Final = 60.0  # seconds in which the process is ready


class Runner:
    """Runs one parser at a time; safe to use from several threads. The process starts with the first job."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self._root, self._limits = root, limits or Limits()
        self._worker: _Worker | None = None
        self._asked: _Worker | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and with it all that was loaded; a job that another thread waits for fails."""
        if asked := self._asked:
            asked.stop()
        with self._lock:
            worker, self._worker = self._worker, None
            if worker:
                worker.end()

    def run(self, job: Job) -> Parsing:
        """What the job's parser makes of its page; its failures are values."""
        return self._ask(write_job(job))

    def problem_of(self, job: Job) -> str | None:
        """Why the job's parser or schema cannot be loaded; None: they can. The page is not looked at."""
        problem = self._ask(write_job(job, only_load=True)).problem
        return problem.detail if problem else None

    def _ask(self, question: bytes) -> Parsing:
        with self._lock:
            worker, self._worker = self._worker or _Worker(self._root, self._limits), None
            self._asked = worker
            try:
                answer = worker.ask(question)
            except _Broken as broken:
                worker.end()
                return failure(broken.trouble, worker.reason(broken), said=worker.said)
            except BaseException:
                worker.end()  # interrupted, it would be out of step
                raise
            finally:
                self._asked = None
            self._worker = worker
            return answer


class _Broken(Exception):
    """The process gave no answer and must be ended."""

    def __init__(self, trouble: Trouble, detail: str = "") -> None:
        super().__init__(detail)
        self.trouble, self.detail = trouble, detail


class _Worker:
    """The process, from its start to its end."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self._limits, self._ready = limits, False
        self._deserted = self._ended = False
        self._said = b""
        root = root.resolve()
        self._process = subprocess.Popen(  # noqa: S603  # this interpreter and a module of ours
            # -P: a module of the tree must not stand in for one that the worker itself needs
            [sys.executable, "-P", "-m", _MODULE, str(root), json.dumps(asdict(limits))],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env=_environment(),
            start_new_session=True,  # so that the programs which a parser starts end with it
        )
        self._pipes = _Pipes(self._process)

    @property
    def said(self) -> str:
        """What was printed during the last job, its beginning."""
        return self._said.decode("utf-8", "replace")

    def ask(self, question: bytes) -> Parsing:
        """The answer; raises _Broken."""
        if not self._ready:
            self._exchange(b"", _START)  # a slow start is not the parser's fault
            self._ready = True
        answer = self._exchange(question, self._limits.seconds)
        try:
            return read_parsing(answer, self.said)
        except Nonsense:
            raise _Broken(Trouble.DIED, "It wrote among its process's own answers.") from None

    def stop(self) -> None:
        """End the process from another thread than the one that asks; that one does the rest."""
        self._process.kill()

    def end(self) -> None:
        """End the process and all that it started."""
        with suppress(subprocess.TimeoutExpired):
            # its pipes close a moment before it can be asked how it ended
            self._process.wait(_LAST_BREATH if self._deserted else 0)
        self._ended = self._process.returncode is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._pipes.close()

    def reason(self, broken: _Broken) -> str:
        """Why there was no answer, once the process has ended."""
        if broken.detail:
            return broken.detail
        if broken.trouble is Trouble.TIMED_OUT:
            return f"It took longer than {self._limits.seconds:g} seconds."
        code = self._process.returncode
        if self._ended and code >= 0:
            return f"It ended its process with exit code {code}."
        if self._ended:
            return f"Its process was ended by {signal.Signals(-code).name}."
        return "It closed its process's answers."

    def _exchange(self, question: bytes, seconds: float) -> bytes:
        talk = _Talk(question, self._limits.output + _HEADROOM)
        try:
            talk.hold(self._pipes, time.monotonic() + seconds)
            return talk.answer()
        except _Broken as broken:
            self._deserted = broken.trouble is Trouble.DIED and not broken.detail
            raise
        finally:
            self._said = bytes(talk.said)


class _Pipes:
    """The process's three pipes, none of which is waited on."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.questions, self.answers, self.words = map(
            _stream, (process.stdin, process.stdout, process.stderr)
        )

    def close(self) -> None:
        """Let go of all."""
        for stream in (self.questions, self.answers, self.words):
            stream.close()


class _Talk:
    """One question put and its answer heard, while what is printed meanwhile is taken away."""

    def __init__(self, question: bytes, most: int) -> None:
        self._left = memoryview(question)
        self._most = most
        self._heard = bytearray()
        self.said = bytearray()

    def hold(self, pipes: _Pipes, end: float) -> None:
        """Go on until the answer is whole; raises _Broken."""
        with selectors.DefaultSelector() as selector:
            if self._left:
                selector.register(pipes.questions, selectors.EVENT_WRITE)
            selector.register(pipes.answers, selectors.EVENT_READ)
            selector.register(pipes.words, selectors.EVENT_READ)
            while not self._whole():
                left = end - time.monotonic()
                if left <= 0:
                    raise _Broken(Trouble.TIMED_OUT)
                for key, _ in selector.select(left):
                    if key.fileobj is pipes.questions:
                        self._put(pipes.questions, selector)
                    elif key.fileobj is pipes.answers:
                        self._hear(pipes.answers)
                    elif not self._listen(pipes.words):
                        selector.unregister(pipes.words)
        self._listen(pipes.words)  # flushed before the answer was

    def answer(self) -> bytes:
        """What was heard."""
        return bytes(self._heard[ANSWER_HEAD:])

    def _whole(self) -> bool:
        if len(self._heard) < ANSWER_HEAD:
            return False
        size = answer_size(bytes(self._heard[:ANSWER_HEAD]))
        if size > self._most or len(self._heard) > ANSWER_HEAD + size:
            raise _Broken(Trouble.DIED, "It wrote among its process's own answers.")
        return len(self._heard) == ANSWER_HEAD + size

    def _put(self, stream: IO[bytes], selector: selectors.BaseSelector) -> None:
        try:
            self._left = self._left[os.write(stream.fileno(), self._left[:_PIECE]) :]
        except BrokenPipeError:
            self._left = self._left[:0]  # the end of the answers tells the rest
        if not self._left:
            selector.unregister(stream)

    def _hear(self, stream: IO[bytes]) -> None:
        piece = os.read(stream.fileno(), _PIECE)
        if not piece:
            raise _Broken(Trouble.DIED)
        self._heard += piece

    def _listen(self, stream: IO[bytes]) -> bool:
        """Take what is printed; False: nobody can print any more."""
        try:
            piece = os.read(stream.fileno(), _PIECE)
        except BlockingIOError:
            return True
        self.said += piece[: max(0, _MOST_SAID - len(self.said))]
        return bool(piece)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # a pipe was asked for
    os.set_blocking(stream.fileno(), False)
    return stream


def _environment() -> dict[str, str]:
    """What makes a parser's answer the same on every machine and in every run."""
    fixed = {
        "PYTHONHASHSEED": "0",  # sets come in one order
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing is written into a tree; an edit within one second is seen
        "PYTHONUTF8": "1",
        "TZ": "UTC",
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONSTARTUP", "COVERAGE_PROCESS_START")
    }
    return {**kept, **fixed}
