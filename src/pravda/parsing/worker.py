"""The process that runs parsers: jobs come in on standard input, answers go out, and nothing else gets through.

Started as `python -m pravda.parsing.worker ROOT LIMITS`.
"""

import gc
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from pravda.parsing.frames import frame, read_job
from pravda.parsing.reading import Reader
from pravda.parsing.values import Limits

_NETWORK: Final = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)
_GRACE: Final = 2.0
"""Seconds; by then whoever started this process has ended it, unless that one was killed itself."""


class Offline(RuntimeError):
    """A parser asked for something from the network."""


def main() -> None:
    """Do jobs until there are no more."""
    root, limits = Path(sys.argv[1]), Limits(**json.loads(sys.argv[2]))
    # What a parser prints must not get between the answers.
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _redirect()
    _limit_memory(limits.memory)
    sys.path.insert(0, str(root))
    sys.addaudithook(_stay_offline)
    reader = Reader(root, limits)
    gc.freeze()
    _give(answers, b"")
    while (job := read_job(jobs)) is not None:
        # Ends this process should its starter no longer be there to do so; so ends no parser's loop in an orphan.
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE)
        asked, only_load = job
        answer = reader.loaded(asked.parser, asked.schema) if only_load else reader.read(asked)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a parser may have closed or replaced them
                stream.flush()
        _give(answers, answer)
    os._exit(0)  # whatever a parser has registered for the end, or left running, holds nothing up


def _give(answers: BinaryIO, answer: bytes) -> None:
    answers.write(frame(answer))
    answers.flush()


def _redirect() -> None:
    """Nothing to read, and what is printed goes to standard error."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)


def _limit_memory(most: int) -> None:
    if most:
        # Not the address space: interpreters reserve far more of that than they use.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _stay_offline(event: str, arguments: tuple[object, ...]) -> None:
    if event in _NETWORK:
        raise Offline("A parser reads what is stored and never asks the network.")


if __name__ == "__main__":
    main()
