"""`pravda build`: every source of a tree in one document."""

import time
from datetime import datetime
from pathlib import Path

import click

from pravda.assemble import open_bench
from pravda.cli.bench import deadline, moment, opened, present, say, tell, tree, verbose, write
from pravda.cli.trouble import Stop, told
from pravda.cli.words import now
from pravda.core.mistake import BadRequest
from pravda.core.states import Exit
from pravda.parsing import files
from pravda.parsing.bench import Bench
from pravda.parsing.build import BuildResult, Built, build
from pravda.parsing.watch import Watch
from pravda.tree.report import counted

_PAUSE = 0.3  # seconds between two looks at the files

_HELP = """Parse every source of a tree from its snapshot, else from its newest fixture, and write one JSON document.

Nothing is ever asked for. The bytes depend on the tree, its fixtures, its parsers and --now alone, and a file that would
be the same is not touched. Without --out and `[build] out` in sources.toml, the document goes to stdout. A parser that
fails costs its own source: its items are null, and the document says why.

Exit codes: 0 built, whatever single sources did; 1 a source has neither snapshot nor fixture, every source failed, or
with --strict any did or has fewer items than it demands (the document is written all the same); 2 a mistake in the call
or in sources.toml; 20 the document cannot be written."""


@click.command("build", help=_HELP, short_help="Parse every source into one document; never a request.")
@tree
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write there, or to stdout for `-`. Default: `[build] out` of sources.toml, else stdout.",
)
@present
@click.option("--strict", is_flag=True, help="Fail when any source fails or has too few items.")
@click.option("--watch", is_flag=True, help="Build again whenever a file of the tree changes.")
@deadline
@verbose
def command(
    *,
    root: Path,
    out: Path | None,
    present: str | None,
    strict: bool,
    watch: bool,
    deadline: str | None,
    verbose: bool,
) -> None:
    """Build, tell, write; again and again where that is wanted."""
    with told():
        at = moment("now", present)
        if watch:
            _watch(root, out, at, deadline, strict=strict, verbose=verbose)
        with opened(root, deadline) as bench:
            problem = _build(bench, out, at, strict=strict, verbose=verbose)
        if problem:
            raise Stop(problem, Exit.DIFFERENT)


def _watch(
    root: Path, out: Path | None, at: datetime | None, deadline: str | None, *, strict: bool, verbose: bool
) -> None:
    """Build until somebody interrupts."""
    with open_bench(root) as first:
        target = _target(first, out)
    if target is None:
        raise BadRequest("out", "--watch needs a file to write to")
    seen = Watch(root, target)
    while True:
        try:
            # opened anew, so that sources and parsers are read anew too
            with opened(root, deadline) as bench:
                problem = _build(bench, out, at, strict=strict, verbose=verbose)
        except BadRequest as mistake:
            problem = str(mistake)
        say(problem or "built; waiting for a change")
        while not seen.changed():
            time.sleep(_PAUSE)


def _build(bench: Bench, out: Path | None, at: datetime | None, *, strict: bool, verbose: bool) -> str | None:
    """Why the build counts as failed; None: it does not."""
    result = build(bench, clock=now(), now=at, progress=lambda built: _tell(built, verbose=verbose))
    target = _target(bench, out)
    data = result.document()
    if target is None:
        write(data)
    else:
        try:
            changed = files.write(target, data)
        except OSError as problem:
            raise Stop(f"{target} cannot be written: {problem.strerror}", Exit.ARCHIVE) from None
        say(f"{target}: {_summary(result)}" + ("" if changed else ", as before"))
    return result.problem(strict=strict)


def _target(bench: Bench, out: Path | None) -> Path | None:
    """The file to write; None: stdout."""
    if out is None:
        return bench.build_out
    return None if str(out) == "-" else out


def _tell(built: Built, *, verbose: bool) -> None:
    name = built.recipe.source_id
    for warning in built.warnings:
        say(f"{name}: {warning.detail}")
    if built.missing:
        say(f"{name}: there is neither a snapshot nor a fixture")
    if built.parsing:
        tell(built.parsing, name, verbose=verbose)


def _summary(result: BuildResult) -> str:
    items = sum(len(built.items or ()) for built in result.sources)
    words = f"{counted(len(result.sources), 'source')}, {counted(items, 'item')}"
    return f"{words}, {len(result.failed)} failed" if result.failed else words
