"""What the commands on a snapshot tree share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pravda.cli.trouble import Stop, told
from pravda.cli.words import safe
from pravda.core.states import Exit
from pravda.errors import ArchiveUnavailable, Damaged, NotFound, PravdaError
from pravda.tree.report import harmless

tree = click.option(
    "--tree",
    "root",
    metavar="DIR",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The tree's root, where sources.toml is. Default: here.",
)


@contextmanager
def tree_told() -> Iterator[None]:
    """Turn what Pravda raises into a message and an exit code; trouble with a tree or git is code 1."""
    with told():
        try:
            yield
        except (ArchiveUnavailable, Damaged, NotFound):
            raise  # have codes of their own
        except PravdaError as problem:
            raise Stop(str(problem), Exit.DIFFERENT) from None


def warn(text: str) -> None:
    """One line of warning on stderr."""
    click.echo(harmless(f"pravda: warning: {safe(text)}"), err=True)
