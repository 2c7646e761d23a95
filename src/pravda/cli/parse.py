"""`pravda parse`: one parser, one page or its history."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from pravda.assemble import open_blocking
from pravda.blocking import BlockingPravda
from pravda.cli import options
from pravda.cli.bench import deadline, opened, present, present_of, say, tell, tree, verbose, write
from pravda.cli.trouble import Stop, told
from pravda.cli.words import typed_url
from pravda.core.charset import detect, label_to_name
from pravda.core.mistake import BadRequest
from pravda.core.outcome import Snapshot
from pravda.core.ports import Query
from pravda.core.states import Exit, State
from pravda.core.wire import time_text
from pravda.errors import NotFound
from pravda.parsing import fixtures
from pravda.parsing.bench import Bench, Recipe, Stored
from pravda.parsing.files import Unreadable, encoded, lines, one_line, pretty
from pravda.parsing.history import Past, over
from pravda.parsing.values import Json, Parsing

_PAGE = 500  # snapshots that are listed at a time
_HEAD = 65_536  # bytes in which a declaration is looked for

_HELP = """Run the parser of the source ID over the page that the tree holds of it, and print the items as JSON.

The page is decoded with the charset that was stored with it. Nothing is ever asked for: another page is taken from a
fixture, from the archive, or from a file. --history runs the parser over every live snapshot of URL in the archive,
oldest first, and says what came and went.

Exit codes: 0 there are items, be it none; 2 a mistake in the call or in sources.toml; 4 there is no such page; 13 the
parser rejected the page or failed; 20 what the archive holds is damaged."""


@click.command("parse", help=_HELP, short_help="Run a source's parser over a stored page; never a request.")
@click.argument("source_id", metavar="ID")
@tree
@click.option("--fixture", metavar="DATE", help="Parse this fixture, with the present that it is pinned to.")
@click.option("--snapshot", metavar="ID", help="Parse this snapshot of the archive.")
@click.option("--file", metavar="FILE", help="Parse this file, or stdin for `-`.")
@click.option("--history", metavar="URL", help="Parse all that the archive holds of this page.")
@click.option("--charset", help="Decode as this instead of what is stored or found.")
@present
@deadline
@verbose
@options.as_json
@options.home
def command(
    source_id: str,
    *,
    root: Path,
    fixture: str | None,
    snapshot: str | None,
    file: str | None,
    history: str | None,
    charset: str | None,
    present: str | None,
    deadline: str | None,
    verbose: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Find the page, parse it, print."""
    with told(), opened(root, deadline) as bench:
        if sum(given is not None for given in (fixture, snapshot, file, history)) > 1:
            raise BadRequest("fixture", "say only one of --fixture, --snapshot, --file and --history")
        recipe = bench.recipe(source_id)
        if history is not None:
            _history(bench, recipe, history, home, as_json=as_json, verbose=verbose)
            return
        now = present_of(present)
        if fixture is not None:
            found = _fixture(bench, recipe, fixture)
            page, now = found.page, now if present else found.now
        elif snapshot is not None:
            page = _snapshot(snapshot, home)
        elif file is not None:
            page = _file(recipe, file)
        else:
            page = _held(bench, recipe)
        if charset is not None:
            page = replace(page, charset=_charset(charset))
        _print(bench.parse(recipe, page, now), source_id, as_json=as_json, verbose=verbose)


def _print(parsing: Parsing, name: str, *, as_json: bool, verbose: bool) -> None:
    tell(parsing, name, verbose=verbose)
    if as_json:
        write(encoded(pretty(_report(parsing))))
    elif parsing.items is not None:
        write(encoded(lines(parsing.items)))
    if parsing.items is None:
        click.get_current_context().exit(Exit.PARTIAL)
    if not parsing.items:
        say(f"{name}: no items")


def _report(parsing: Parsing) -> dict[str, Json]:
    problem = parsing.problem
    return {
        "items": None if parsing.items is None else list(parsing.items),
        "problem": {"trouble": problem.trouble, "detail": problem.detail} if problem else None,
        "repaired": parsing.repaired,
        "repairs": [{"path": repair.path, "what": list(repair.what)} for repair in parsing.repairs],
        "schemaFailures": [{"path": wrong.path, "detail": wrong.detail} for wrong in parsing.failures],
    }


def _held(bench: Bench, recipe: Recipe) -> Stored:
    held = bench.held(recipe)
    for sentence in held.damage:
        say(f"{recipe.source_id}: {sentence}")
    if held.page is None:
        raise Stop(
            f"{recipe.source_id} has no whole snapshot; take --fixture, --snapshot or --file", Exit.NOT_FOUND
        )
    return held.page


def _fixture(bench: Bench, recipe: Recipe, name: str) -> fixtures.Pinned:
    found = [fixture for fixture in fixtures.find(bench, recipe) if fixture.name.startswith(name)]
    if not found:
        raise Stop(f"{recipe.source_id} has no fixture {name!r:.80}", Exit.NOT_FOUND)
    try:
        return fixtures.pinned(found[0], recipe)
    except Unreadable as problem:
        raise Stop(str(problem), Exit.DAMAGED) from None


def _file(recipe: Recipe, name: str) -> Stored:
    body = options.read_file("file", name)
    now = present_of(None)
    return Stored(body=body, charset=detect(body[:_HEAD], ()).name, url=recipe.url, captured_at=now)


def _snapshot(snapshot_id: str, home: Path | None) -> Stored:
    with open_blocking(home=home) as pravda:
        return _stored(pravda, pravda.get(snapshot_id))


def _stored(pravda: BlockingPravda, snapshot: Snapshot) -> Stored:
    body, seen = pravda.read(snapshot), snapshot.evidence
    types = seen.response.values("content-type") if seen.response else ()
    named = seen.content.charset if seen.content else None
    return Stored(
        body=body,
        charset=(named or detect(body[:_HEAD], types).name).lower(),
        url=seen.final_url,
        captured_at=snapshot.captured_at,
    )


def _charset(label: str) -> str:
    name = label_to_name(label)
    if name is None:
        raise BadRequest("charset", f"{label!r:.60} names no encoding that browsers know")
    return name


def _history(
    bench: Bench, recipe: Recipe, url: str, home: Path | None, *, as_json: bool, verbose: bool
) -> None:
    rows: list[Json] = []
    with open_blocking(home=home) as pravda:
        for step in over(bench, recipe, _pasts(pravda, typed_url(url).page)):
            parsing, when = step.parsing, time_text(step.past.page.captured_at)
            tell(parsing, step.past.snapshot_id, verbose=verbose)
            count = None if parsing.items is None else len(parsing.items)
            row: dict[str, Json] = {
                "snapshot": step.past.snapshot_id,
                "capturedAt": when,
                "itemCount": count,
                "came": step.came,
                "went": step.went,
                "problem": parsing.problem.detail if parsing.problem else None,
            }
            rows.append(row)
            if not as_json:
                words = "failed" if count is None else f"{count} items  +{step.came} -{step.went}"
                click.echo(f"{when}  {step.past.snapshot_id}  {words}")
    if as_json:
        click.echo(one_line({"items": rows, "next": None}))
    if not rows:
        raise Stop("the archive holds no live snapshot of this page", Exit.NOT_FOUND)
    if any(isinstance(row, dict) and row["itemCount"] is None for row in rows):
        click.get_current_context().exit(Exit.PARTIAL)


def _pasts(pravda: BlockingPravda, page: str) -> Iterator[Past]:
    """The live snapshots of a page that brought bytes of their own, oldest first."""
    found: list[Snapshot] = []
    query = Query(page=page, state=State.LIVE, limit=_PAGE)
    while some := pravda.history(query):
        found += [snapshot for snapshot in some if snapshot.content_from is None]
        query = replace(query, before=(some[-1].captured_at, some[-1].id))
    for snapshot in reversed(found):
        try:
            yield Past(snapshot_id=snapshot.id, page=_stored(pravda, snapshot))
        except NotFound as problem:
            say(f"{snapshot.id}: {problem}")
