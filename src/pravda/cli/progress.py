"""A bar for work that takes long, shown to a person at a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from pravda.cli.words import safe

Show = Callable[[int, int | None, str], None]
"""How much is done, of how much (None: not known), and a word about it."""


class Bar:
    """Progress on stderr; lines for stdout pass through `say`, so that the two do not mix on one screen."""

    def __init__(self, show: Show | None, say: Callable[[str], None]) -> None:
        self.live = show is not None
        """Whether anybody sees it."""
        self.show = show or _nothing
        self.say = say


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Bar]:
    """A bar that leaves nothing behind; without a terminal `show` does nothing."""
    if quiet or not sys.stderr.isatty():
        yield Bar(None, click.echo)
        return
    # heavy, and only a person who waits at a terminal needs it
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # redirecting would send what belongs to a pipe on stdout to the terminal
    shown = Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
    shares_screen = sys.stdout.isatty()

    def say(line: str) -> None:
        if shares_screen:
            shown.console.print(Text.from_ansi(line), soft_wrap=True)
        else:
            click.echo(line)

    with shown as progress:
        task = progress.add_task(safe(what, 60), total=None)

        def show(done: int, whole: int | None, note: str) -> None:
            progress.update(task, completed=done, total=whole, description=safe(f"{what} {note}", 60))

        yield Bar(show, say)


def _nothing(done: int, whole: int | None, note: str) -> None:
    """Nobody looks."""
