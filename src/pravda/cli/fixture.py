"""`pravda fixture`: pages pinned for ever."""

from collections.abc import Iterator
from pathlib import Path

import click

from pravda.cli import options
from pravda.cli.bench import deadline, opened, present, present_of, say, tell, tree, verbose, write
from pravda.cli.trouble import Stop, told
from pravda.cli.words import safe
from pravda.core.states import Exit
from pravda.parsing import fixtures
from pravda.parsing.bench import Bench, Recipe
from pravda.parsing.files import encoded, pretty
from pravda.parsing.fixtures import Checked, Fixture
from pravda.parsing.values import Json
from pravda.tree.report import counted

_HELP = """Fixtures: pages pinned to a date for ever, with what their parser must make of them.

A snapshot is the current page and is overwritten; a fixture never is. None of these commands ever asks for anything."""

_ADD = """Pin the page that the tree holds of the source ID, with what its parser makes of it.

It goes to fixtures/ID/DATE.html, .meta.json and .expected.json. The present is pinned too, so that a parser which reads
dates without a year gives the same for ever.

Exit codes: 0 pinned; 2 there is no page, the parser fails on it, or it is pinned already."""

_LIST = "List the fixtures of the sources ID, of all where none is named, oldest first."

_CHECK = """Hold every parser to every pinned page of the sources ID, of all where none is named, and show what differs.

Exit codes: 0 all as expected; 1 something differs; 2 a mistake in the call or in sources.toml; 4 there is no fixture."""


@click.group("fixture", help=_HELP, short_help="Pin pages for ever, and hold parsers to them.")
def command() -> None:
    """The group."""


@command.command("add", help=_ADD, short_help="Pin the page that is stored now.")
@click.argument("source_id", metavar="ID")
@tree
@present
@click.option(
    "--rejected", is_flag=True, help="Pin it also if the parser fails, as a page that must be rejected."
)
@deadline
@verbose
def add(
    source_id: str, *, root: Path, present: str | None, rejected: bool, deadline: str | None, verbose: bool
) -> None:
    """Pin, and say where."""
    with told(), opened(root, deadline) as bench:
        recipe = bench.recipe(source_id)
        try:
            fixture, parsing = fixtures.add(bench, recipe, present_of(present), allow_failure=rejected)
        except OSError as problem:
            raise Stop(f"the fixture cannot be written: {problem.strerror}", Exit.ARCHIVE) from None
        tell(parsing, source_id, verbose=verbose)
        count = "rejected" if parsing.items is None else f"{len(parsing.items)} items"
        click.echo(f"{safe(str(fixture.body))}  {count}")


@command.command("list", help=_LIST, short_help="List the fixtures.")
@click.argument("source_ids", metavar="[ID]...", nargs=-1)
@tree
@options.as_json
def list_(source_ids: tuple[str, ...], *, root: Path, as_json: bool) -> None:
    """List."""
    with told(), opened(root) as bench:
        found = [fixture for _, fixture in _chosen(bench, source_ids)]
        if as_json:
            rows: list[Json] = [
                {"sourceId": one.source_id, "name": one.name, "body": str(one.body)} for one in found
            ]
            write(encoded(pretty({"items": rows, "next": None})))
            return
        for one in found:
            click.echo(f"{one.source_id}  {safe(one.name)}  {safe(str(one.body))}")


@command.command("check", help=_CHECK, short_help="Hold parsers to their fixtures.")
@click.argument("source_ids", metavar="[ID]...", nargs=-1)
@tree
@click.option("--update", is_flag=True, help="Write what the parsers give now as what is expected.")
@deadline
@verbose
@options.as_json
def check(
    source_ids: tuple[str, ...],
    *,
    root: Path,
    update: bool,
    deadline: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Check each, tell of those that differ."""
    with told(), opened(root, deadline) as bench:
        done: list[Checked] = []
        for recipe, fixture in _chosen(bench, source_ids):
            try:
                done.append(fixtures.check(bench, recipe, fixture, update=update))
            except OSError as problem:
                raise Stop(
                    f"{fixture.expected} cannot be written: {problem.strerror}", Exit.ARCHIVE
                ) from None
            if not as_json:
                _print(done[-1], verbose=verbose)
        if as_json:
            write(encoded(pretty({"items": [_report(checked) for checked in done], "next": None})))
    if not done:
        raise Stop("there is no fixture", Exit.NOT_FOUND)
    wrong = sum(checked.problem is not None for checked in done)
    if not as_json:
        say(f"{counted(len(done), 'fixture')}, {wrong} not as expected")
    click.get_current_context().exit(Exit.DIFFERENT if wrong else Exit.OK)


def _chosen(bench: Bench, source_ids: tuple[str, ...]) -> Iterator[tuple[Recipe, Fixture]]:
    recipes = [bench.recipe(source_id) for source_id in source_ids] or bench.recipes
    for recipe in recipes:
        for fixture in fixtures.find(bench, recipe):
            yield recipe, fixture


def _print(checked: Checked, *, verbose: bool) -> None:
    name = f"{checked.fixture.source_id} {checked.fixture.name}"
    word = "updated" if checked.updated else "ok" if checked.problem is None else "differs"
    click.echo(f"{word:<8} {safe(name)}")
    if checked.problem:
        click.echo(f"    {safe(checked.problem)}")
    for line in checked.diff:
        click.echo(f"    {safe(line)}")
    if verbose and checked.parsing:
        tell(checked.parsing, name, verbose=True)


def _report(checked: Checked) -> Json:
    return {
        "sourceId": checked.fixture.source_id,
        "name": checked.fixture.name,
        "problem": checked.problem,
        "diff": list(checked.diff),
        "updated": checked.updated,
    }
