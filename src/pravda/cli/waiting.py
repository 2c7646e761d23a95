"""The progress line while a capture runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pravda.cli.words import safe


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show what is waited for and for how long, only on a terminal; nothing of it stays."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    # heavy, and only a person who waits at a terminal needs it
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        progress.add_task(safe(what, 60), total=None)
        yield
