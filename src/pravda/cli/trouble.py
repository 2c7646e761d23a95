"""How what raises becomes one line on stderr and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pravda.cli.words import safe
from pravda.core.mistake import BadRequest
from pravda.core.states import Exit
from pravda.errors import ArchiveUnavailable, Damaged, NotFound


class Stop(click.ClickException):
    """Ends a command with a message and an exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(safe(message))
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance too


@contextmanager
def told() -> Iterator[None]:
    """Turn what Pravda raises into a Stop."""
    try:
        yield
    except BadRequest as problem:
        raise Stop(str(problem), Exit.USAGE) from None
    except NotFound as problem:
        raise Stop(str(problem), Exit.NOT_FOUND) from None
    except Damaged as problem:
        raise Stop(str(problem), Exit.ARCHIVE) from None
    except ArchiveUnavailable as problem:
        raise Stop(_unavailable(problem), Exit.ARCHIVE) from None


def _unavailable(problem: ArchiveUnavailable) -> str:
    newest = problem.newest_usable
    if newest is None:
        return str(problem)
    when = newest.captured_at.isoformat(timespec="seconds")
    return f"{problem} The newest usable snapshot is {newest.id} of {when}."
