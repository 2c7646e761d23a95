"""What the commands share that parse what a tree holds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from pravda.assemble import open_bench
from pravda.cli.words import now, safe
from pravda.core.durations import seconds
from pravda.core.mistake import BadRequest
from pravda.parsing.bench import Bench
from pravda.parsing.values import Limits, Parsing

tree = click.option(
    "--tree",
    "root",
    metavar="FOLDER",
    default=Path(),
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the tree, which holds sources.toml. Default: this one.",
)
deadline = click.option(
    "--deadline", metavar="DURATION", help="The longest that a parser may take for one page. Default: 30s."
)
verbose = click.option("-v", "--verbose", is_flag=True, help="Show tracebacks and what parsers print.")
present = click.option(
    "--now", "present", metavar="TIME", help="What parsers take for the present, as 2026-03-01T12:00:00Z."
)


@contextmanager
def opened(root: Path, deadline: str | None = None) -> Iterator[Bench]:
    """The tree in a folder; raises BadRequest."""
    limits = Limits()
    if deadline is not None:
        longest = seconds("deadline", deadline)
        if longest <= 0:
            raise BadRequest("deadline", "must be more than 0")
        limits = Limits(seconds=longest)
    with open_bench(root, limits) as bench:
        yield bench


def moment(field: str, text: str | None) -> datetime | None:
    """A time, or a date's first moment, in UTC where it names no zone; raises BadRequest."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRequest(field, f"{text!r:.60} is no time; write 2026-03-01T12:00:00Z") from None


def present_of(text: str | None) -> datetime:
    """What parsers take for the present: the time given, else the clock's."""
    return moment("now", text) or now()


def write(data: bytes) -> None:
    """Bytes to stdout, as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def tell(parsing: Parsing, name: str, *, verbose: bool) -> None:
    """What is to be said of a parsing, on stderr."""
    if parsing.problem:
        say(f"{name}: {parsing.problem.detail}")
        if verbose and parsing.problem.traceback:
            for line in parsing.problem.traceback.splitlines():
                say(f"  {line}")
    for wrong in parsing.failures:
        say(f"{name}: {wrong.path} does not fit the schema and is left out: {wrong.detail}")
    if verbose:
        for repair in parsing.repairs:
            say(f"{name}: {repair.path} repaired: {', '.join(repair.what)}")
        for line in parsing.said.splitlines():
            say(f"  printed: {line}")
    elif parsing.repaired:
        say(f"{name}: {parsing.repaired} values repaired; --verbose names them")


def say(text: str) -> None:
    """A line on stderr; nothing in it steers a terminal or a workflow."""
    # a workflow's runner takes a line that begins with `::` for a command, wherever it is printed
    click.echo(f"pravda: {safe(text)}", err=True)
