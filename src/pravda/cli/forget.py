"""`pravda forget`: remove the files of a page that a tree no longer names."""

from pathlib import Path

import click

from pravda.cli import trees
from pravda.cli.words import now
from pravda.core.mistake import BadRequest
from pravda.errors import NotFound, PravdaError
from pravda.tree.files import Tree
from pravda.tree.layout import SNAPSHOTS, SOURCES, id_problem
from pravda.tree.sources_file import load_sources

_HELP = """Remove page, metadata and state of the source ID from the tree; its fixtures stay.

An id that sources.toml still names is refused, unless --force is given. Exit code 4: the tree has no files of it."""


class _NotRemoved(PravdaError):
    """A file of the tree could not be removed."""


@click.command("forget", help=_HELP, short_help="Remove the files of a page that a tree no longer names.")
@click.argument("source_id", metavar="ID")
@trees.tree
@click.option("--force", is_flag=True, help="Also when sources.toml still names it.")
def command(source_id: str, *, root: Path, force: bool) -> None:
    """Check, remove, tell."""
    with trees.tree_told():
        if problem := id_problem(source_id):
            raise BadRequest("id", f"{source_id!r:.120} {problem}")
        if not force and any(source.id == source_id for source in load_sources(root / SOURCES).sources):
            raise BadRequest(
                "id", f"{source_id} is still named by {SOURCES}; take it out first, or use --force"
            )
        for name in _forgotten(Tree(root), source_id):
            click.echo(f"removed {SNAPSHOTS}/{name}")


def _forgotten(tree: Tree, source_id: str) -> tuple[str, ...]:
    if not tree.folder.is_dir():
        raise NotFound(f"the tree has no files of {source_id}")
    with tree.locked(now()):
        try:
            names = tree.forget(source_id)
        except OSError as problem:
            raise _NotRemoved(f"{problem.filename} cannot be removed: {problem.strerror}") from problem
    if not names:
        raise NotFound(f"the tree has no files of {source_id}")
    return names
