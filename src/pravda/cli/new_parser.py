"""`pravda new-parser`: a parser to begin with."""

from pathlib import Path

import click

from pravda.cli.bench import opened, tree
from pravda.cli.trouble import Stop, told
from pravda.cli.words import safe
from pravda.core.states import Exit
from pravda.parsing.scaffold import FOLDER, begin

_HELP = """Write parsers/ID.py for the source ID: a parser to begin with, made for the page that the tree holds of it.

A file that is there is left alone (exit code 2). Nothing is asked for."""


@click.command("new-parser", help=_HELP, short_help="Write a parser to begin with.")
@click.argument("source_id", metavar="ID")
@tree
def command(source_id: str, *, root: Path) -> None:
    """Write the file, and say how to name it."""
    with told(), opened(root) as bench:
        recipe = bench.recipe(source_id)
        begun = begin(recipe, bench.held(recipe).page)
    path = root / FOLDER / begun.file
    if path.exists():
        raise Stop(f"{path} is there already", Exit.USAGE)
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(begun.text)
    except OSError as problem:
        raise Stop(f"{path} cannot be written: {problem.strerror}", Exit.ARCHIVE) from None
    click.echo(f"{safe(str(path))} is written. In sources.toml, under id = {recipe.source_id!r}, write:")
    click.echo(f'    parser = "{begun.parser}"')
    click.echo(f"Then: pravda parse {recipe.source_id}, and pravda fixture add {recipe.source_id}")
