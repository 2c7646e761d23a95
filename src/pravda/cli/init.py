"""`pravda init`: the files that a snapshot tree begins with."""

from collections.abc import Iterator
from pathlib import Path

import click

from pravda.cli import trees
from pravda.cli.words import program, safe
from pravda.core.mistake import BadRequest
from pravda.settings import VERSION
from pravda.tree.adopt import Adopted, adopt
from pravda.tree.files import Tree
from pravda.tree.git import Git, GitTrouble
from pravda.tree.layout import SNAPSHOTS, SOURCES
from pravda.tree.report import counted
from pravda.tree.scaffold import Scaffolded, create, repository_of, scaffold

_HELP = """Write what a snapshot tree begins with into DIR (default: here): sources.toml, .gitignore, .gitattributes, an
example parser with a fixture, and a scheduled workflow for GitHub and Gitea Actions.

A file that is there already stays as it is. With --adopt only sources.toml is written, from the metadata of the
snapshots that are there."""


@click.command("init", help=_HELP, short_help="Begin a snapshot tree, or take over one that is there.")
@click.argument("root", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--adopt", "adopts", is_flag=True, help="Take over a tree that has snapshots and no sources.toml."
)
def command(root: Path, *, adopts: bool) -> None:
    """Write and tell."""
    with trees.tree_told():
        for line in _adopted(root) if adopts else _begun(root):
            click.echo(safe(line))


def _begun(root: Path) -> Iterator[str]:
    # told only when all is written: what stands in the way ends the command
    made = scaffold(root, version=VERSION, repository=_repository(root))
    yield from (_told(file) for file in made)
    for file in made:
        for line in file.lacks:
            yield f"{file.name} should also hold the line: {line}"
    if not (root / ".git").exists():
        yield "workflows are read only at the top of a git repository, which this folder is not"
    yield f"next: {program()} refresh --tree {root}"


def _told(file: Scaffolded) -> str:
    return f"written  {file.name}" if file.written else f"kept     {file.name}, which was there"


def _repository(root: Path) -> str | None:
    """The owner/name of the remote called origin; None: nobody knows."""
    if not root.is_dir():
        return None
    try:
        address = Git(root).text_or_none("remote", "get-url", "origin")
    except GitTrouble:
        return None
    return repository_of(address) if address else None


def _adopted(root: Path) -> Iterator[str]:
    target = root / SOURCES
    if target.exists():
        raise BadRequest("adopt", f"{target} is there already, and is not overwritten")
    found: Adopted = adopt(Tree(root))
    if not found.ids and not found.passed_over:
        raise BadRequest("adopt", f"{root / SNAPSHOTS} holds no metadata of snapshots")
    if not create(target, found.text.encode()):
        raise BadRequest("adopt", f"{target} is there already, and is not overwritten")
    yield f"written  {SOURCES}, with {counted(len(found.ids), 'source')}"
    for source_id, problem in found.passed_over:
        yield f"passed over {source_id}: {problem}"
