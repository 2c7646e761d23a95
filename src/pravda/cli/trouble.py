"""How what raises becomes one line on stderr and an exit code."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import click

from pravda.cli.words import safe
from pravda.core.mistake import BadRequest
from pravda.core.states import Exit
from pravda.errors import ArchiveUnavailable, Damaged, NotFound
from pravda.server.problems import Problem, problem_of


class Stop(click.ClickException):
    """Ends a command with a message and an exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(safe(message))
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance too


@contextmanager
def told() -> Iterator[None]:
    """Turn what Pravda raises into a Stop; where JSON is wanted, the problem goes to stdout too."""
    try:
        yield
    except BadRequest as problem:
        raise _stop(problem, str(problem), Exit.USAGE) from None
    except NotFound as problem:
        raise _stop(problem, str(problem), Exit.NOT_FOUND) from None
    except Damaged as problem:
        raise _stop(problem, str(problem), Exit.ARCHIVE) from None
    except ArchiveUnavailable as problem:
        raise _stop(problem, _unavailable(problem), Exit.ARCHIVE) from None


def _stop(problem: Exception, message: str, code: Exit) -> Stop:
    context = click.get_current_context(silent=True)
    if context and context.params.get("as_json"):
        _print_problem(problem_of(problem), message)
    return Stop(message, code)


def print_mistake(field: str | None, message: str) -> None:
    """A mistake that click found, as told tells of ours."""
    _print_problem(replace(problem_of(BadRequest(field or "", message)), field=field), message)


def _print_problem(problem: Problem, message: str) -> None:
    """As the service would answer it (RFC 9457), with what stderr says as its detail."""
    click.echo(json.dumps(replace(problem, detail=message).to_json()))


def _unavailable(problem: ArchiveUnavailable) -> str:
    newest = problem.newest_usable
    if newest is None:
        return str(problem)
    when = newest.captured_at.isoformat(timespec="seconds")
    return f"{problem} The newest usable snapshot is {newest.id} of {when}."
