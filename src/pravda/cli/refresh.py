"""`pravda refresh`: ask for the pages of a tree that are due, store what is good, commit and push it."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from pravda.assemble import open_tree
from pravda.cli import options, trees
from pravda.cli.delivery import Ending, Place, deliver
from pravda.cli.progress import Bar, bar
from pravda.cli.words import safe
from pravda.core.mistake import BadRequest
from pravda.settings import load
from pravda.tree import report
from pravda.tree.git import GitTrouble
from pravda.tree.refresh import refresh
from pravda.tree.repository import Repository
from pravda.tree.results import LOST, Outcome, RunResult, SourceResult
from pravda.tree.run import Progress, Run
from pravda.tree.workflow import Workflow, add, read_workflow

_HELP = """Ask each source that is due once, politely, and store what is good; a bad answer leaves the page as it was.

Exit codes: 0 also with broken sources, so that the good ones can be committed; 1 when every selected source failed or
was refused, the build failed, or git did not take the result; 2 for a mistake, before anything is asked.

In GitHub and Gitea Actions it also writes the step's summary, its outputs (changed, attempted, confirmed, broken,
refused, dirty, committed) and annotations."""

_COLOURS = {Outcome.FETCHED: "green", Outcome.UNCHANGED: "cyan", **dict.fromkeys(LOST, "red")}
_WIDEST = 40  # characters of an id in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wishes:
    """What was asked on the command line."""

    root: Path
    only: tuple[str, ...]
    dry_run: bool
    force: bool
    archive: bool
    no_build: bool
    as_json: bool
    user_agent: str | None
    home: Path | None


@click.command("refresh", help=_HELP, short_help="Ask for the pages of a snapshot tree that are due.")
@trees.tree
@click.option("--only", multiple=True, metavar="ID", help="Only this source; repeatable.")
@click.option("--dry-run", is_flag=True, help="Ask and write nothing; say what would be asked for.")
@click.option(
    "--force",
    is_flag=True,
    help="Ask sources that are not due, too. Refused in a workflow that no person started.",
)
@click.option("--commit", is_flag=True, help="Commit the tree's pages and document, and nothing else.")
@click.option(
    "--push", is_flag=True, help="Push what is committed, behind what others pushed, never by force."
)
@click.option("--archive", is_flag=True, help="Keep every attempt in the archive, too.")
@click.option("--no-build", is_flag=True, help="Do not rebuild the document that [build] names.")
@click.option("--user-agent", metavar="TEXT", help="Stands for that of sources.toml and of the settings.")
@options.as_json
@options.home
def command(*, commit: bool, push: bool, **given: object) -> None:
    """Refresh, build, commit, push, report."""
    wishes = _Wishes(**given)  # type: ignore[arg-type]  # click's values, by the options above
    workflow = read_workflow(os.environ)
    with trees.tree_told():
        place = _place(wishes, workflow, commit=commit, push=push)
        run, result = asyncio.run(_refreshed(wishes))
        ending = Ending(result=result)
        if not wishes.dry_run:
            deliver(wishes.root, place, run, ending, build=not wishes.no_build)
        _tell(wishes, workflow, ending)
    click.get_current_context().exit(1 if ending.troubles else result.exit_code)


def _place(wishes: _Wishes, workflow: Workflow, *, commit: bool, push: bool) -> Place:
    """Where to commit and push, known before anything is asked; raises BadRequest."""
    if wishes.force and workflow.automatic:
        raise BadRequest(
            "force", "is for a person, and nobody started this workflow by hand; leave it out, or start it so"
        )
    if push and not commit:
        raise BadRequest("push", "needs --commit: only what is committed is pushed")
    if not commit or wishes.dry_run:
        return Place(repository=None, target=None)
    try:
        repository = Repository(wishes.root)
        return Place(repository=repository, target=repository.target(workflow.branch) if push else None)
    except GitTrouble as problem:
        raise BadRequest("push" if push else "commit", str(problem)) from None


async def _refreshed(wishes: _Wishes) -> tuple[Run, RunResult]:
    opened = open_tree(
        wishes.root,
        user_agent=wishes.user_agent,
        archive=wishes.archive and not wishes.dry_run,
        home=wishes.home,
    )
    async with opened as base:
        if not (wishes.user_agent or base.sources.user_agent or base.sources.contact or _has_contact()):
            trees.warn("no site can find out who asks: set contact in sources.toml")
        run = replace(base, only=wishes.only, force=wishes.force, dry_run=wishes.dry_run)
        with _table(run, wishes) as show:
            result = await refresh(replace(run, progress=show))
            if wishes.dry_run:
                for number, source in enumerate(result.results, 1):
                    show(_finished(source, number, len(result.results)))
        return run, result


def _has_contact() -> bool:
    agent = load().user_agent
    return "://" in agent or "@" in agent


# the table


@contextmanager
def _table(run: Run, wishes: _Wishes) -> "Iterator[_Table]":
    """What shows each source as it is done: a table that grows, above a bar where a person watches."""
    chosen = run.sources.chosen(run.only)
    width = min(max((len(source.id) for source in chosen), default=0), _WIDEST)
    with bar("Refreshing", quiet=False) as shown:
        yield _Table(shown, width, quiet=wishes.as_json)


class _Table:
    """Prints one line per source."""

    def __init__(self, shown: Bar, width: int, *, quiet: bool) -> None:
        self._bar, self._width, self._quiet = shown, width, quiet

    def __call__(self, progress: Progress) -> None:
        """Show how far the run has come."""
        self._bar.show(progress.done, progress.total, progress.source_id)
        if progress.result and not self._quiet:
            self._bar.say(self._line(progress.result))

    def _line(self, result: SourceResult) -> str:
        outcome = click.style(f"{result.outcome:<16}", fg=_COLOURS.get(result.outcome))
        status = "" if result.status is None else str(result.status)
        items = "" if result.items is None else f"{result.items:,} items"
        facts = f"{result.source_id:<{self._width}}  {outcome} {status:>3} {items:>12}  {safe(result.note)}"
        return report.harmless(facts.rstrip())


def _finished(result: SourceResult, done: int, total: int) -> Progress:
    return Progress(source_id=result.source_id, result=result, done=done, total=total)


# reporting


def _tell(wishes: _Wishes, workflow: Workflow, ending: Ending) -> None:
    """Say what the run came to, wherever somebody listens."""
    if not wishes.dry_run:
        _report(workflow, ending)
    result = ending.result
    if wishes.as_json:
        # `##[` would be a command to a runner wherever it stood in the line; so written it is the same JSON
        click.echo(json.dumps(result.to_json()).replace("##[", "#\\u0023["))
    else:
        click.echo(report.harmless(report.summary_line(result)))
        for title, ids in report.lists(result):
            click.echo(report.harmless(f"{title}: {', '.join(ids)}"))
    for line in ending.said:
        click.echo(report.harmless(safe(line)), err=wishes.as_json)
    if workflow.actions:
        for annotation in report.annotations(result, ending.troubles):
            click.echo(annotation.command(), err=wishes.as_json)
        return
    for source_id, note in result.all_warnings():
        trees.warn(f"{source_id}: {note.detail}" if source_id else note.detail)
    for trouble in ending.troubles:
        click.echo(f"pravda: {safe(trouble)}", err=True)


def _report(workflow: Workflow, ending: Ending) -> None:
    """Write what a workflow's step leaves behind."""
    written = (
        (workflow.outputs, report.outputs(ending.result, ending.committed)),
        (workflow.summary, report.markdown(ending.result, ending.troubles)),
    )
    for path, text in written:
        if problem := add(path, text):
            ending.warn("report", problem)
