"""What a refresh came to, told to people and to workflows. No page and no parser can forge a line of it. No I/O."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pravda.tree.attempt import printable
from pravda.tree.pending import Pending
from pravda.tree.results import LOST, Outcome, RunResult, SourceResult

MOST_ANNOTATIONS: Final = 50
"""A forge shows ten of a kind for a step; the rest of many would only fill the log."""
LONGEST_SUMMARY: Final = 900_000
"""Bytes; GitHub takes a mebibyte for a step and drops a longer summary whole."""

_LONGEST_SUBJECT: Final = 72  # characters, as git's own tools show them
_MARKDOWN: Final = re.compile(r"[\\`*_\[\]<>|&~@!$#{}]|:(?=//)")
_WORDS: Final = {
    Outcome.FETCHED: "changed",
    Outcome.UNCHANGED: "unchanged",
    Outcome.REJECTED: "rejected",
    Outcome.FAILED: "failed",
    Outcome.SKIPPED_INTERVAL: "not due",
    Outcome.SKIPPED_SPACING: "put off by their host",
    Outcome.SKIPPED_ROBOTS: "refused by robots.txt",
    Outcome.PLANNED: "planned",
}
"""How many sources met each fate, in words."""


class Level(StrEnum):
    """How an annotation is shown."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One thing that a person should see on the page of the run."""

    level: Level
    title: str
    text: str

    def command(self) -> str:
        """The line that GitHub and Gitea Actions take for an annotation."""
        title = escaped(self.title).replace(":", "%3A").replace(",", "%2C")
        # Gitea's runner takes the last `::` of a line for the end of the properties
        text = escaped(self.text.replace("::", ": :"))
        return f"::{self.level} title={title}::{text}"


def escaped(text: str) -> str:
    """Text as the data of a workflow command: one line, and nothing in it ends or begins another."""
    # docs.github.com, "Workflow commands"; the runner itself unescapes %25, %0D and %0A
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def harmless(line: str) -> str:
    """An ordinary line of a log that no runner takes for a command, wherever the command stands in it."""
    # the runner finds `##[` anywhere in a line, and `::` at its beginning behind any white space
    shown = line.replace("##[", "# #[")
    return shown.replace("::", ": :", 1) if shown.lstrip().startswith("::") else shown


def summary_line(result: RunResult) -> str:
    """The whole run in one line."""
    counts = dict.fromkeys(_WORDS, 0)
    for source in result.results:
        counts[source.outcome] += 1
    told = [f"{count} {_WORDS[outcome]}" for outcome, count in counts.items() if count]
    return f"{counted(len(result.results), 'source')}: {', '.join(told) or 'nothing to do'}"


def annotations(result: RunResult, troubles: Sequence[str] = ()) -> tuple[Annotation, ...]:
    """What is worth a person's eye, the worst first; `troubles` are the run's own."""
    found = [*_errors(result, troubles), *_warnings(result)]
    cut = found[:MOST_ANNOTATIONS]
    if len(found) > len(cut):
        more = f"{len(found) - len(cut)} more are in the summary"
        cut.append(Annotation(level=Level.WARNING, title="More", text=more))
    return tuple(cut)


def outputs(result: RunResult, committed: str | None = None) -> str:
    """The outputs of a workflow's step, a line each; lists of ids are separated by commas."""
    values = {
        "changed": str(result.changed),
        "attempted": str(result.attempted),
        "confirmed": str(result.confirmed),
        "broken": ",".join(result.broken),
        "refused": ",".join(result.refused),
        "dirty": "true" if result.dirty else "false",
        "committed": "true" if committed else "false",
    }
    # ids hold none of the letters that could end a line, and numbers and words cannot
    return "".join(f"{name}={value}\n" for name, value in values.items())


def markdown(result: RunResult, troubles: Sequence[str] = ()) -> str:
    """The summary of a workflow's step: a table, and what else is to be known."""
    lines = [f"### {_text(summary_line(result))}", ""]
    lines += [f"**Error:** {_text(trouble)}\n" for trouble in troubles]
    for title, ids in lists(result):
        lines.append(f"**{title}:** {_text(', '.join(ids), None)}\n")
    lines += [
        f"* {_text(source_id or 'run')}: {_text(note.detail)}" for source_id, note in result.all_warnings()
    ]
    lines += [
        "",
        "| source | result | state | status | items | note |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return _cut([*lines, *map(_row, _by_weight(result.results))])


def commit_message(pages: Sequence[Pending], built: str | None = None) -> str:
    """The message of a commit: what it holds of each source, and the document `built` where that is in it."""
    changed = [page.source_id for page in pages if page.changed]
    other = [page.source_id for page in pages if not page.changed]
    if changed:
        subject = _subject(f"Refresh {counted(len(changed), 'source')}", changed)
    elif not other:
        subject = f"Build {printable(built or '')}"
    else:
        what = "Confirm" if all(page.confirms for page in pages) else "Update metadata of"
        subject = _subject(f"{what} {counted(len(other), 'source')}, no content changed", other)
    body = [
        f"{title}: {', '.join(ids)}"
        for title, ids in (("Changed", changed), ("Also written", sorted(other)))
        if ids
    ]
    if built:
        body.append(f"Built: {printable(built)}")
    return "\n".join([subject, "", *body]) + "\n"


def _errors(result: RunResult, troubles: Sequence[str]) -> Iterator[Annotation]:
    for trouble in troubles:
        yield Annotation(level=Level.ERROR, title="Refresh", text=trouble)
    if result.hard_failure:
        yield Annotation(
            level=Level.ERROR,
            title="Nothing came through",
            text="every selected source failed or was refused",
        )
    for source in result.results:
        if source.record.broken:
            text = f"{counted(source.record.failures, 'failure')} in a row: {source.note or source.outcome}"
            yield Annotation(level=Level.ERROR, title=f"{source.source_id} is broken", text=text)


def _warnings(result: RunResult) -> Iterator[Annotation]:
    for source in result.results:
        if source.outcome in LOST and not source.record.broken:
            title = f"{source.source_id}: {source.outcome}"
            yield Annotation(level=Level.WARNING, title=title, text=source.note)
    for source_id, note in result.all_warnings():
        title = f"{source_id}: {note.code}" if source_id else note.code
        yield Annotation(level=Level.WARNING, title=title, text=note.detail)


def lists(result: RunResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lists that are told by name, those with something in them."""
    named = (
        ("Broken", result.broken),
        ("Refused by robots.txt", result.refused),
        ("Asked although not due", result.forced),
        ("Robots rules assumed to allow", result.assumed_robots),
        ("Asked through a proxy of their host", result.proxied),
    )
    return ((title, ids) for title, ids in named if ids)


def _by_weight(results: Iterable[SourceResult]) -> list[SourceResult]:
    """What failed first, what was not due last, so that a cut takes the least."""
    order = [*LOST, Outcome.FETCHED, Outcome.SKIPPED_SPACING, Outcome.PLANNED, Outcome.UNCHANGED]
    ranks = {outcome: 0 if outcome in LOST else rank for rank, outcome in enumerate(order)}
    return sorted(results, key=lambda source: ranks.get(source.outcome, len(order)))


def _row(source: SourceResult) -> str:
    facts = (source.source_id, source.outcome, source.state, source.status, source.items, source.note)
    return f"| {' | '.join(_text('' if fact is None else str(fact)) for fact in facts)} |"


def _text(text: str, limit: int | None = 500) -> str:
    """Text that Markdown shows as it is, in a table too: it cannot become a link, a heading or another cell."""
    line = printable(text) if limit else text
    # CommonMark 2.5: a character reference is text, and never structure
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", line)


def _cut(lines: list[str]) -> str:
    """The lines as far as the forge takes them."""
    size, kept = 0, 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > LONGEST_SUMMARY:
            break
        kept += 1
    more = [] if kept == len(lines) else ["", f"{len(lines) - kept} more are left out."]
    return "\n".join([*lines[:kept], *more]) + "\n"


def _subject(what: str, ids: Sequence[str]) -> str:
    """The first line of a message, with as many ids as it has room for."""
    named: list[str] = []
    for number, source_id in enumerate(ids):
        rest = len(ids) - number - 1
        more = f" and {rest} more" if rest else ""
        if named and len(f"{what}: {', '.join([*named, source_id])}{more}") > _LONGEST_SUBJECT:
            return f"{what}: {', '.join(named)} and {rest + 1} more"
        named.append(source_id)
    return f"{what}: {', '.join(named)}"


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
