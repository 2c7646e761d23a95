"""What becomes of a command whose output nobody takes."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

CANNOT_WRITE = 74
"""Exit code, EX_IOERR of sysexits.h; beside states.Exit, whose codes tell of pages and archives."""

_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EINVAL})


class Unwritable(click.ClickException):
    """Stdout does not take what is written."""

    exit_code = CANNOT_WRITE

    def __init__(self, reason: str, kept: str = "") -> None:
        super().__init__(f"the output cannot be written: {reason}{f'; {kept}' if kept else ''}")


@contextmanager
def writing(kept: str) -> Iterator[None]:
    """Turn trouble with stdout into Unwritable, which says what is kept all the same."""
    try:
        yield
    except OSError as problem:
        if not is_of_output(problem):
            raise
        raise Unwritable(problem.strerror or str(problem), kept) from None


def is_of_output(problem: OSError) -> bool:
    """Whether it comes of writing to what is open already; a closed pipe is no trouble but an end."""
    return problem.errno in _ERRORS and problem.filename is None


def silence() -> None:
    """Let the interpreter's flush at its end, which would fail and complain once more, go nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
